"""`streamdsl check-udm`: the laws that a UDM must keep, on random examples."""

from __future__ import annotations

import argparse
import sys

from streamdsl.commands.json_report import add_json_option, part, print_json
from streamdsl.errors import UdmLawViolation
from streamdsl.naming import named_udm


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `check-udm`."""
    add = parser.add_argument
    add(
        "udm",
        metavar="module:Class",
        help="a class, an instance or a function, by its name in a module",
    )
    add("--examples", type=int, default=30, metavar="N", help="how many for each law (default: %(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="the same seed gives the same examples (default: %(default)s)")
    add_json_option(parser)


def check_udm_named(options: argparse.Namespace) -> int:
    """Print what `check_udm` reports; return 1 if a law is broken, which is printed with the smallest example."""
    from streamdsl.testing import check_udm

    udm = named_udm(options.udm, "check-udm")
    try:
        report = check_udm(udm, seed=options.seed, examples=options.examples)
    except UdmLawViolation as error:
        if options.json:
            return print_json([part(error.law, "wrong", udm=error.module, what=str(error))])
        print(error, file=sys.stderr)
        return 1
    if options.json:
        held = [part(law, "ok", udm=report.module, examples=examples) for law, examples in report.held.items()]
        return print_json(held + [part(law, "absent", udm=report.module, what=why) for law, why in report.skipped.items()])
    print(report)
    return 0
