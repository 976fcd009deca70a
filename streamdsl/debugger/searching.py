"""Search for a small set of causes: rows are left out for as long as the answer stays (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

T = TypeVar("T")
TRIES: Final = 600
"""The most sets that one search tries; after them what is left is a set that holds, if not a smallest one."""


def smallest(items: Sequence[T], holds: Callable[[list[T]], bool], tries: int = TRIES) -> list[T]:
    """Return a part of `items`, in their order, that holds and of which each item is needed; `items` hold as they are.

    >>> smallest(range(100), lambda part: 7 in part and 90 in part)
    [7, 90]
    >>> smallest([1, 2, 3], lambda part: True)
    []
    """
    left, n = list(items), 2

    def tried(part: list[T]) -> bool:
        nonlocal tries
        tries -= 1
        return tries >= 0 and holds(part)

    if left and tried([]):
        return []
    while len(left) > 1 and tries > 0:
        n = min(n, len(left))
        edges = [len(left) * k // n for k in range(n + 1)]
        cuts = list(pairwise(edges))
        part = next((each for a, b in cuts if tried(each := left[a:b])), None)
        if part is not None:
            left, n = part, 2
            continue
        rest = None if n == 2 else next((each for a, b in cuts if tried(each := left[:a] + left[b:])), None)
        if rest is not None:
            left, n = rest, max(n - 1, 2)
        elif n == len(left):
            break
        else:
            n *= 2
    return left
