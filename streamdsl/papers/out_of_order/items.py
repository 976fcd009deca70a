"""What flows between the operators of paper 004: tuples, punctuation, and results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal.integers import whole_number
from streamdsl.temporal.time import INFINITY

Time: TypeAlias = int | float
"""A value of a progressing attribute."""
Order: TypeAlias = Literal["any", "in"]
"""How an operator processes: in the order of arrival (paper 004's operators), or in that of the progressing attribute."""

BEGINNING: Final = -math.inf
"""The bound of what has had no punctuation."""


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of a stream: its value of the progressing attribute, and all else."""

    ts: Time
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Punctuation:
    """The promise that every later item has `on` >= `value`."""

    value: Time
    on: str = "ts"


@dataclass(frozen=True, slots=True)
class JointPunctuation:
    """The promise that every later pair has left.ts >= `left` or right.ts >= `right`."""

    left: Time
    right: Time


@dataclass(frozen=True, slots=True)
class Joined:
    """A result of a join: both tuples, and so both timestamps."""

    left: Tuple
    right: Tuple


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A result of an outer join: a left tuple that no right one matches."""

    left: Tuple


@dataclass(frozen=True, slots=True)
class WindowResult:
    """The value of a group (`key` None: there are no groups) in the window with this id."""

    wid: int
    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class PairResult:
    """The value of the pairs with these two timestamps."""

    left: Time
    right: Time
    value: Any


@dataclass(frozen=True, slots=True)
class Partial:
    """So many tuples of a group in a window; there may be several for the same group and window."""

    wid: int
    group: Any
    count: int


Item: TypeAlias = Tuple | Punctuation | JointPunctuation | Joined | Unmatched | WindowResult | PairResult | Partial


def minus(bound: Time, duration: Time) -> Time:
    """Return a bound so much lower; INFINITY stays.

    >>> minus(10, 3), minus(INFINITY, 3) == INFINITY
    (7, True)
    """
    return INFINITY if bound >= INFINITY else bound - duration


def floor_to(bound: Time, step: Time) -> int:
    """Return how many whole steps a bound has; INFINITY stays.

    >>> floor_to(-1, 60), floor_to(INFINITY, 60) == INFINITY
    (-1, True)
    """
    return INFINITY if bound >= INFINITY else int(bound // step)


def check_order(order: object) -> None:
    """Raise `QueryError` for what is no order.

    >>> check_order("some")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the order is "any" or "in", not 'some'
    """
    if order not in ("any", "in"):
        raise QueryError(f'the order is "any" or "in", not {order!r}')


def check_number(value: Any, what: str) -> None:
    """Raise `QueryError` for what is no number.

    >>> check_number("3", "before")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: before is a number, not '3'
    """
    if not is_number(value):
        raise QueryError(f"{what} is a number, not {value!r}")


def check_positive(value: Any, what: str) -> None:
    """Raise `QueryError` for what is no number greater than 0.

    >>> check_positive(0, "slide")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: a slide is a number greater than 0, not 0
    """
    if not is_number(value) or not 0 < value < math.inf:
        raise QueryError(f"a {what} is a number greater than 0, not {value!r}")


def is_number(value: Any) -> bool:
    """Say whether a value is a number, one of numpy too, and not NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def is_time(value: Any) -> bool:
    """Say whether a value is one of a progressing attribute: a number, neither NaN nor beyond INFINITY.

    >>> is_time(7), is_time(1.5), is_time(math.nan), is_time("7")
    (True, True, False, False)
    """
    return is_number(value) and bool(-INFINITY <= value <= INFINITY)


def low_water_marks(times: Iterable[Time]) -> list[Time]:
    """Return the best punctuation before each tuple, and after the last one: the smallest ts still to come (3.1, Eq. 1).

    >>> low_water_marks([3, 1, 4, 2, 6]) == [1, 1, 2, 2, 6, INFINITY]
    True
    """
    found: list[Time] = [INFINITY]
    for ts in reversed(list(times)):
        found.append(min(ts, found[-1]))
    return found[::-1]


def tightness(items: Iterable[Item]) -> list[tuple[Time, Time]]:
    """Return each punctuation of a stream with the best that it could have been: the low-water mark at its place.

    Punctuation above the best one is broken by a later tuple; far below, it lets nothing go.

    >>> tightness([Tuple(3), Punctuation(1), Tuple(5), Punctuation(5), Tuple(4)])
    [(1, 4), (5, 4)]
    """
    given = [item for item in items if isinstance(item, Tuple) or (isinstance(item, Punctuation) and item.on == "ts")]
    marks = low_water_marks(item.ts if isinstance(item, Tuple) else INFINITY for item in given)
    return [(item.value, mark) for item, mark in zip(given, marks[1:], strict=True) if isinstance(item, Punctuation)]


def number(items: Iterable[Item], every: int = 1) -> list[Tuple | Punctuation]:
    """Return the tuples numbered as they come in, 0, 1, 2, ..., for windows of rows (5.2).

    A number takes the place of ts. After every `every` tuples comes punctuation on the numbers; the old punctuation is dropped.

    >>> number([Tuple(7, "a"), Punctuation(5), Tuple(5, "b")], every=2)
    [Tuple(ts=0, payload='a'), Tuple(ts=1, payload='b'), Punctuation(value=2, on='ts')]
    """
    every = whole_number(every, "every is", 1)
    found: list[Tuple | Punctuation] = []
    tuples = (item for item in items if isinstance(item, Tuple))
    for place, item in enumerate(tuples):
        found.append(Tuple(place, item.payload))
        if (place + 1) % every == 0:
            found.append(Punctuation(place + 1))
    return found
