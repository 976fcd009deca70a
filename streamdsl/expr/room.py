"""Room for deep queries: what walks plans and expressions calls itself, a few times for each level."""

from __future__ import annotations

import sys
from typing import Final

from streamdsl.errors import QueryError

_FRAMES: Final = 20
"""So many calls of Python there may be for each level."""
_BESIDES: Final = 2_000
_DEEPEST: Final = 5_000


def make_room(depth: int, what: str) -> None:
    """Let Python call as deep as a plan or an expression of so many levels needs; raises `QueryError` for more than 5,000.

    The limit is raised once and stays: other threads may be using it.

    >>> make_room(6_000, "this query")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: this query is 6000 levels deep, and 5000 are the most
    Hint: put parts together that do the same, or combine them in halves instead of one after the other
    """
    if depth > _DEEPEST:
        raise QueryError(
            f"{what} is {depth} levels deep, and {_DEEPEST} are the most",
            hint="put parts together that do the same, or combine them in halves instead of one after the other",
        )
    needed = _BESIDES + _FRAMES * depth
    if depth > _FRAMES and needed > sys.getrecursionlimit():
        sys.setrecursionlimit(needed)
