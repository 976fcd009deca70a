"""The command line: `streamdsl` and `python -m streamdsl`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from streamdsl.commands import (
    bench_command,
    catalog_command,
    check_command,
    check_udm_command,
    debug_command,
    doctor_command,
    explain_command,
    replay_command,
    timeline_command,
    top_command,
)
from streamdsl.errors import StreamDslError
from streamdsl.extras import own_version
from streamdsl.jobs import command
from streamdsl.jobs.job_file import secrets_hidden, with_job

AddOptions: TypeAlias = Callable[[argparse.ArgumentParser], None]
Run: TypeAlias = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 2 if it fails, 130 if it is interrupted, 141 if nobody reads what it prints."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    with secrets_hidden() as secrets:
        return _status(options, given[1:], secrets)


def _status(options: argparse.Namespace, given: Sequence[str], secrets: dict[str, str]) -> int:
    try:
        if getattr(options, "named_job", None):
            options = with_job(options, given, secrets)
        status: int = options.run(options)
        sys.stdout.flush()
    except StreamDslError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return 141
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"{error.strerror or error}{where}\nHint: check that it exists, and that you may read or write it", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return status


def _demo(options: argparse.Namespace) -> int:
    from streamdsl.demo.flight_files import FEBRUARY, YEAR
    from streamdsl.demo.main import demo

    return demo(YEAR if options.all else FEBRUARY, options.out, spark=not options.no_spark)


def _run(options: argparse.Namespace) -> int:
    from streamdsl.jobs.command import run_command

    return run_command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamdsl", description="Temporal stream processing, locally and on Spark.")
    parser.add_argument("--version", action="version", version=f"streamdsl {own_version()}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, add_options: AddOptions, run: Run, help: str, description: str) -> None:
        added = commands.add_parser(name, help=help, description=description)
        add_options(added)
        added.set_defaults(run=run, parser=added)

    add(
        "demo",
        _demo_options,
        _demo,
        "answer five questions about the flights out of New York in 2013",
        "Real flights as a stream of late, corrected reports: five queries, locally and on Spark, compared.",
    )
    add(
        "run",
        command.add_options,
        _run,
        "run a query over files, once or as a stream",
        "Runs a query from files to files, on the local engine or on Spark (docs/jobs.md).",
    )
    add(
        "check",
        check_command.add_options,
        check_command.check_named,
        "say what is wrong with queries before they run",
        "Prints what sd.checks.check finds, with file and line. The exit status: 1 for a warning, 2 for no query.",
    )
    add(
        "explain",
        explain_command.add_options,
        explain_command.explain_named,
        "show the plan of a query",
        "Prints the plan of a query as an engine would run it. Nothing runs.",
    )
    add(
        "timeline",
        timeline_command.add_options,
        timeline_command.timeline_of_named,
        "draw a run of a query over files",
        "Runs a query over files on the local engine, and prints its input above its output on one axis of time.",
    )
    add(
        "debug",
        debug_command.add_options,
        debug_command.debug_named,
        "write and open the debugger's page of a query over files",
        "Runs a query over files on the local engine, and writes a page that says where each answer comes from.",
    )
    add(
        "replay",
        replay_command.add_options,
        replay_command.replay_into_named,
        "play what was recorded into a query",
        "Plays JSON lines of physical events into a query, at once or at a speed, and prints or writes its output.",
    )
    add(
        "bench",
        bench_command.add_options,
        bench_command.bench_named,
        "time a query over files, or over made events",
        "Prints how long a query takes for an event, by operator, beside reading its input alone.",
    )
    add(
        "catalog",
        catalog_command.add_options,
        catalog_command.print_catalog,
        "list UDMs with their types, parameters and properties",
        "Prints the UDMs that a module or a package defines, or those that every program has by name.",
    )
    add(
        "check-udm",
        check_udm_command.add_options,
        check_udm_command.check_udm_named,
        "try the laws that a UDM must keep",
        "Prints which laws a UDM keeps on random examples. The exit status: 1 for a broken law, 2 for no UDM.",
    )
    add(
        "top",
        top_command.add_options,
        top_command.top,
        "show the figures of a job that runs elsewhere",
        "Shows the figures of a job that serves them (docs/live.md), again and again until Ctrl-C.",
    )
    add(
        "doctor",
        doctor_command.add_options,
        doctor_command.doctor,
        "say what is installed, and what cannot work",
        "Prints Python, packages, extras and Java, each with its remedy. The exit status: 1 if something cannot work.",
    )
    return parser


def _demo_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--all", action="store_true", help="the whole year of 336,776 flights instead of February")
    add("--out", type=Path, default=Path("demo-results"), metavar="DIR", help="where to write (default: %(default)s)")
    add("--no-spark", action="store_true", help="run the local half only")
