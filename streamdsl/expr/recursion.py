"""The recursion limit for deep queries: functions that walk plans and expressions recurse, a few calls for each level."""

from __future__ import annotations

import sys
from typing import Final

from streamdsl.errors import QueryError

_CALLS_PER_LEVEL: Final = 5
"""The number of Python calls for each level; the most that were measured is four."""
_BASE: Final = 2_000
_MAX_DEPTH: Final = 2_000
"""The deepest query. So the limit is never above 12,000, for which a thread's stack of 8 MB is large enough.

With 22,000 that stack overflows on Python 3.11, where the limit counts calls of C functions too; 3.12 has another limit for
these.
"""


def ensure_recursion_limit(depth: int, what: str) -> None:
    """Raise the recursion limit to what a plan or an expression of this depth needs; raises `QueryError` above 2,000 levels.

    The limit is never lowered again, as other threads may rely on it. It is low enough that a payload that is nested too deep
    raises `RecursionError` before the stack overflows.

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
