"""`streamdsl explain`: the plan of a query, as an engine would run it."""

from __future__ import annotations

import argparse

from streamdsl.naming import named_query


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    parser.add_argument("query", metavar="module:query", help="a query, by its name in a module that can be imported")
    parser.add_argument("--engine", choices=("local", "spark", "reference"), default="local", help="(default: %(default)s)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--rules", action="store_true", help="also each step of the optimizer, before and after")
    shown.add_argument("--json", action="store_true", help="the plan as it was written, of no engine, as JSON")


def explain_named(options: argparse.Namespace) -> int:
    """Print the plan of a query; nothing runs."""
    query = named_query(options.query, "explain")
    print(query.plan().to_json() if options.json else query.explain(options.engine, rules=options.rules))
    return 0
