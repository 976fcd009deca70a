"""`streamdsl check-udm`: the laws that a UDM must keep, on random examples."""

from __future__ import annotations

import argparse
import sys

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


def check_udm_named(options: argparse.Namespace) -> int:
    """Print what `check_udm` reports; return 1 if a law is broken, which is printed with the smallest example."""
    from streamdsl.testing import check_udm

    udm = named_udm(options.udm, "check-udm")
    try:
        print(check_udm(udm, seed=options.seed, examples=options.examples))
    except UdmLawViolation as error:
        print(error, file=sys.stderr)
        return 1
    return 0
