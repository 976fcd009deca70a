"""Traversal of plans and expressions, which may be deep: without recursion, or with a limit that allows a few calls a level."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from streamdsl.errors import QueryError

T = TypeVar("T")

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


def bottom_up(root: T, below: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Yield a value and all below it, each once, after those below it. Not recursive, so depth is no limit.

    >>> list(bottom_up(12, lambda n: [n // 2, n // 3] if n > 3 else []))
    [3, 2, 6, 1, 4, 12]
    """
    seen = {id(root)}
    open_: list[tuple[T, Iterator[T]]] = [(root, iter(below(root)))]
    while open_:
        each, rest = open_[-1]
        child = next((child for child in rest if id(child) not in seen), None)
        if child is None:
            yield each
            open_.pop()
        else:
            seen.add(id(child))
            open_.append((child, iter(below(child))))
