"""`streamdsl debug`: the page of the debugger, of a query over files."""

from __future__ import annotations

import argparse
import sys
import tempfile
import webbrowser
from pathlib import Path

from streamdsl.jobs.input_options import add_input_options, query_and_inputs
from streamdsl.jobs.mistakes import Mistakes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `debug`."""
    add_input_options(parser)
    add = parser.add_argument
    add("--output", type=Path, metavar="PATH", help="where the page goes, also in place of one (default: a temporary file)")
    add("--last", type=int, metavar="N", help="keep the newest N events, of input and output")
    add("--no-open", action="store_true", help="do not open the page in a browser")


def debug_named(options: argparse.Namespace) -> int:
    """Run a query over its inputs, write the page of its trace, and open it."""
    mistakes = Mistakes()
    query, inputs = query_and_inputs(options, "debug", mistakes)
    mistakes.refuse()
    assert query is not None
    bindings = {name: given.read(given.files()) for name, given in inputs.items()}
    trace = query.trace(bindings, until=options.until, last=options.last)
    path = options.output or Path(tempfile.mkdtemp(prefix="streamdsl-")) / f"{options.query.rpartition(':')[2]}.html"
    trace.to_html(path)
    print(f"{trace!r}; its page is {path}", file=sys.stderr)
    if not options.no_open and not webbrowser.open(path.absolute().as_uri()):
        print("no browser could be opened", file=sys.stderr)
    return 0
