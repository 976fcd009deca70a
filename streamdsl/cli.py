"""The command line: `streamdsl` and `python -m streamdsl`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from streamdsl.errors import StreamDslError
from streamdsl.extras import own_version
from streamdsl.jobs.command import add_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 2 if it fails, 130 if it is interrupted."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except StreamDslError as error:
        print(error, file=sys.stderr)
        return 2
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


def _check(options: argparse.Namespace) -> int:
    from streamdsl.checks.check_command import check_named

    return max(map(check_named, options.queries))


def _run(options: argparse.Namespace) -> int:
    from streamdsl.jobs.command import run_command

    return run_command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamdsl", description="Temporal stream processing, locally and on Spark.")
    parser.add_argument("--version", action="version", version=f"streamdsl {own_version()}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="answer five questions about the flights out of New York in 2013",
        description="Real flights as a stream of late, corrected reports: five queries, locally and on Spark, compared.",
    )
    demo.add_argument("--all", action="store_true", help="the whole year of 336,776 flights instead of February")
    demo.add_argument(
        "--out", type=Path, default=Path("demo-results"), metavar="DIR", help="where to write (default: %(default)s)"
    )
    demo.add_argument("--no-spark", action="store_true", help="run the local half only")
    demo.set_defaults(run=_demo)
    check = commands.add_parser(
        "check",
        help="say what is wrong with queries before they run",
        description="Prints what sd.checks.check finds, with file and line. The exit status: 1 for a warning, 2 for no query.",
    )
    check.add_argument("queries", nargs="+", metavar="module:query", help="a query, by its name in a module that can be imported")
    check.set_defaults(run=_check)
    run = commands.add_parser(
        "run",
        help="run a query over files, once or as a stream",
        description="Runs a query from files to files, on the local engine or on Spark (docs/jobs.md).",
    )
    add_options(run)
    run.set_defaults(run=_run)
    return parser
