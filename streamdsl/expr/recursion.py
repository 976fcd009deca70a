"""Room for deep queries: what walks plans and expressions calls itself, a few times for each level."""

from __future__ import annotations

import sys
from typing import Final

from streamdsl.errors import QueryError

_CALLS_PER_LEVEL: Final = 5
"""So many calls of Python there may be for each level: four are the most that were found."""
_BASE: Final = 2_000
_MAX_DEPTH: Final = 2_000
"""With this the limit is never above 12,000: a thread's stack of 8 MB lasts for so many calls of all that looks into payloads.

For 22,000 it does not on Python 3.11, which counts calls of C too; from 3.12 on C has a limit of its own.
"""


def ensure_recursion_limit(depth: int, what: str) -> None:
    """Let Python call as deep as a plan or an expression of so many levels needs; raises `QueryError` for more than 2,000.

    The limit is raised once and stays, as other threads may be using it: so it is one with which payloads, however deep, end in a
    `RecursionError` and not the process.

    >>> ensure_recursion_limit(3_000, "this query")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: this query is 3000 levels deep, and 2000 are the most
    Hint: put parts together that do the same, or combine them in halves instead of one after the other
    """
    if depth > _MAX_DEPTH:
        raise QueryError(
            f"{what} is {depth} levels deep, and {_MAX_DEPTH} are the most",
            hint="put parts together that do the same, or combine them in halves instead of one after the other",
        )
    needed = _BASE + _CALLS_PER_LEVEL * depth
    if depth > _CALLS_PER_LEVEL and needed > sys.getrecursionlimit():
        sys.setrecursionlimit(needed)
