"""`streamdsl timeline`: a picture of a run, input above output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from streamdsl.jobs.atomic_output import atomic_output
from streamdsl.jobs.input_options import add_input_options, query_and_inputs
from streamdsl.jobs.mistakes import Mistakes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `timeline`."""
    add_input_options(parser)
    parser.add_argument("--windows", action="store_true", help="also the windows of each window operator, with their members")
    parser.add_argument("--output", type=Path, metavar="PATH", help="a file: SVG if its name ends in .svg, else the text")


def timeline_of_named(options: argparse.Namespace) -> int:
    """Run a query over its inputs on the local engine, and print its timeline, or write it to a file."""
    mistakes = Mistakes()
    query, inputs = query_and_inputs(options, "timeline", mistakes)
    mistakes.refuse()
    assert query is not None
    bindings = {name: given.read(given.files()) for name, given in inputs.items()}
    drawn = query.timeline(options.windows, bindings, options.until)
    if options.output is None:
        print(drawn)
        return 0
    with atomic_output(options.output) as path:
        path.write_text(drawn.svg() if options.output.suffix == ".svg" else f"{drawn}\n", encoding="utf-8")
    print(f"the timeline is in {options.output}", file=sys.stderr)
    return 0
