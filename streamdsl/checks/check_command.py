"""Checks from the command line: `python -m streamdsl check module:query`."""

from __future__ import annotations

import sys

from streamdsl.checks.check_query import check
from streamdsl.errors import StreamDslError
from streamdsl.naming import named_query


def check_named(target: str) -> int:
    """Print the findings for the query `module:name`; return 1 if there is a warning, 2 if there is no such query, else 0."""
    try:
        found = check(named_query(target, "check"))
    except StreamDslError as error:
        print(error, file=sys.stderr)
        return 2
    warnings = sum(each.level == "warning" for each in found)
    for each in found:
        print(each)
    print(f"{target}: {_count(warnings, 'warning')}, {_count(len(found) - warnings, 'note')}")
    return min(warnings, 1)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
