"""The stream elements of SECRET: a value, when it happened, when it arrived, and in which batch (paper 000, definition 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import index
from typing import Any, Final, NamedTuple, TypeAlias

from streamdsl.errors import QueryError


class _Heartbeat:
    __slots__ = ()

    def __repr__(self) -> str:
        return "HEARTBEAT"


HEARTBEAT: Final = _Heartbeat()
"""The value of a dummy tuple, which says that time goes on and is in no window (paper 000, B.1.2)."""


class Tuple(NamedTuple):
    """One stream element: application time, system time and batch-id are integers, and no two have the same system time."""

    value: Any
    t_app: int
    t_sys: int
    bid: int


Given: TypeAlias = Sequence[Any]
"""What users write for a tuple: `(value, t_app, t_sys, bid)`, or `(value, t_app)`."""


def read(given: Iterable[Given]) -> list[Tuple]:
    """Return tuples in order of arrival; of `(value, t_app)` the n-th arrives at n, in batch n.

    >>> read([("a", 3), ("b", 5)])
    [Tuple(value='a', t_app=3, t_sys=1, bid=1), Tuple(value='b', t_app=5, t_sys=2, bid=2)]
    """
    if not isinstance(given, Iterable):
        raise QueryError(
            f"{given!r} is no list of tuples", hint="write [(value, t_app), ...]; a query runs by query.as_of(profile)"
        )
    found = sorted((as_tuple(each, n) for n, each in enumerate(given, 1)), key=lambda each: each.t_sys)
    for before, after in pairwise(found):
        check_order(before.t_sys, after)
    return found


def check_order(before: int, after: Tuple) -> None:
    """Raise `QueryError` for a tuple that does not arrive after the one before it."""
    if after.t_sys <= before:
        raise QueryError(
            f"the tuple {tuple(after)!r} arrives at {after.t_sys}, and another one at {before}",
            hint="at most one tuple arrives at an instant of system time, in its order",
        )


def as_tuple(given: Given, number: int) -> Tuple:
    """Return what users write as a tuple, which arrives at a number if they do not say when.

    >>> as_tuple(("a", 3), 7)
    Tuple(value='a', t_app=3, t_sys=7, bid=7)
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or len(given) not in (2, 4):
        raise QueryError(f"{given!r} is no tuple of a stream", hint="write (value, t_app, t_sys, bid), or (value, t_app)")
    times = given[1:] if len(given) == 4 else (given[1], number, number)
    if any(isinstance(time, bool) or not hasattr(time, "__index__") for time in times):
        raise QueryError(f"the times and the batch-id of {tuple(given)!r} are not all integers", hint="time is discrete")
    return Tuple(given[0], *map(index, times))
