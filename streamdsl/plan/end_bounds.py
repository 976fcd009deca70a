"""Bounds of ends: how early an end may be, and how early it may be where it changes, for rows of which only bounds are known.

A bound of a monotone function is the function of its arguments' bounds. Of what users compute nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from streamdsl.expr.nodes import Constant, Expr, Function, Life, reads_re
from streamdsl.plan.end_expressions import LE
from streamdsl.temporal import CHRONON, INFINITY, MIN_TIME


class EndChange(NamedTuple):
    """Bounds of the values of an end that changes: of the one `before`, and the `least` of both."""

    before: int
    least: int


def least(end: Expr, le: int, re: int) -> int:
    """Return a bound: no row with LE >= `le` and RE >= `re` has an earlier end. MIN_TIME: nothing is known.

    >>> from streamdsl.plan.end_expressions import RE, earliest, latest, plus
    >>> least(plus(latest(LE, 3), 5), 1, 9), least(earliest(RE, 7), 1, 9)
    (8, 7)
    """
    match end:
        case Life("le"):
            return le
        case Life("re"):
            return re
        case Constant(value):
            return int(value)
        case Function(name, parts) if name in _MONOTONE:
            bound: int = _MONOTONE[name](*(least(part, le, re) for part in parts))
            return bound
    return MIN_TIME


def most(end: Expr) -> int:
    """Return a bound: no row has a later end. INFINITY: nothing is known.

    >>> from streamdsl.plan.end_expressions import RE, earliest
    >>> most(earliest(RE, 7)), most(RE) == INFINITY
    (7, True)
    """
    match end:
        case Constant(value):
            return int(value)
        case Function("earliest", parts):
            return min(map(most, parts))
        case Function("latest", parts):
            return max(map(most, parts))
    return INFINITY


def change(end: Expr, was: int, becomes: int) -> EndChange | None:
    """Return bounds of an end where it changes because the RE of a row moves, from one >= `was` to one >= `becomes`.

    None: the end does not change.

    >>> from streamdsl.plan.end_expressions import RE, earliest, plus
    >>> change(plus(RE, 5), 10, 10), change(LE, 10, 10), change(earliest(RE, 7), 10, 10), change(earliest(RE, 70), 10, 5)
    (EndChange(before=15, least=15), None, None, EndChange(before=10, least=5))
    """
    match end:
        case Life("re"):
            return EndChange(was, min(was, becomes))
        case Life() | Constant():
            return None
        case Function("earliest", parts):
            return _change_of_earliest(parts, was, becomes)
        case Function(name, parts) if name in _MONOTONE:
            moving = [change(part, was, becomes) for part in parts]
            changes = [each for each in moving if each is not None]
            if not changes:
                return None
            if name == "latest":  # it is not before the part that changes
                return EndChange(*map(min, zip(*changes, strict=True)))
            # Of several moving parts one alone may change: of the others the bounds of a change do not hold.
            sure = [
                EndChange(*(each if each is not None and len(changes) == 1 else [least(part, MIN_TIME, MIN_TIME)] * 2))
                for part, each in zip(parts, moving, strict=True)
            ]
            return EndChange(*(_MONOTONE[name](*values) for values in zip(*sure, strict=True)))
    return EndChange(MIN_TIME, MIN_TIME) if reads_re(end) else None


def _change_of_earliest(parts: Sequence[Expr], was: int, becomes: int) -> EndChange | None:
    """A change shows only where the parts that stay are later than the least that changes."""
    found = [(part, change(part, was, becomes)) for part in parts]
    moving = [each for _, each in found if each is not None]
    if not moving:
        return None
    bound = min(each.least for each in moving)
    staying = [part for part, each in found if each is None]
    if any(most(part) <= bound for part in staying):
        return None
    later = [max(least(part, MIN_TIME, MIN_TIME), plus_bound(bound, CHRONON)) for part in staying]
    return EndChange(min([each.before for each in moving] + later), bound)


def plus_bound(time: int, duration: int) -> int:
    """Add bounds: MIN_TIME is one of which nothing is known, and no sum of finite ones reaches INFINITY."""
    if MIN_TIME in (time, duration):
        return MIN_TIME
    if INFINITY in (time, duration):
        return INFINITY
    return min(max(time + duration, MIN_TIME), INFINITY - CHRONON)


def _floor(time: int, period: int, phase: int) -> int:
    return time if time in (MIN_TIME, INFINITY) else max(time - (time - phase) % period, MIN_TIME)


def _ceil(time: int, period: int, phase: int) -> int:
    return time if time in (MIN_TIME, INFINITY) else min(time + (phase - time) % period, INFINITY - CHRONON)


_MONOTONE: Final[dict[str, Any]] = {
    "add_time": plus_bound,
    "reach": plus_bound,
    "earliest": min,
    "latest": max,
    "floor_time": _floor,
    "ceil_time": _ceil,
}
"""What the functions of times make of bounds; each rises with its times."""


class Endless(IntEnum):
    """Which rows have an end that is INFINITY."""

    NONE = 0
    THE_SAME = 1
    ALL = 2


def endless(end: Expr) -> Endless:
    """Return which rows have an infinite end: none, those of the input, or all. A computed duration is taken to end a row.

    >>> from streamdsl.plan.end_expressions import RE, earliest, plus
    >>> endless(plus(RE, 5)).name, endless(earliest(RE, plus(LE, 5))).name, endless(plus(LE, INFINITY)).name
    ('THE_SAME', 'NONE', 'ALL')
    """
    match end:
        case Life("re"):
            return Endless.THE_SAME
        case Constant(value):
            return Endless.ALL if value == INFINITY else Endless.NONE
        case Function("earliest", parts):
            return min(map(endless, parts))
        case Function("floor_time" | "ceil_time", (time, *_)):
            return endless(time)
        case Function("add_time" | "reach" | "latest", parts):
            return max(map(endless, parts))
    return Endless.THE_SAME if reads_re(end) else Endless.NONE


def after(end: Expr, origin: Expr, start: int = 0) -> int | None:
    """Return how much later than an origin an end is at least; None: not known. `start` is what it is for the origin itself."""
    match end:
        case _ if end == origin:
            return start
        case Life("re") if origin == LE:
            return start + CHRONON
        case Function("add_time" | "reach", (time, Constant(value))):
            found = after(time, origin, start)
            return None if found is None else found + value
        case Function("add_time" | "reach", (time, duration)) if least(duration, MIN_TIME, MIN_TIME) >= 0:
            return after(time, origin, start)
        case Function("latest", parts):
            return max((found for part in parts if (found := after(part, origin, start)) is not None), default=None)
        case Function("earliest", parts):
            each = [after(part, origin, start) for part in parts]
            return None if None in each else min(found for found in each if found is not None)
        case Function("ceil_time", (time, *_)):
            return after(time, origin, start)
    return None


def before(end: Expr, origin: Expr) -> int | None:
    """Return how much later than an origin an end is at most; None: not known."""
    match end:
        case _ if end == origin:
            return 0
        case Function("add_time" | "reach", (time, Constant(value))):
            found = before(time, origin)
            return None if found is None or value == INFINITY else found + value
        case Function("earliest", parts):
            return min((found for part in parts if (found := before(part, origin)) is not None), default=None)
        case Function("latest", parts):
            each = [before(part, origin) for part in parts]
            return None if None in each else max(found for found in each if found is not None)
        case Function("floor_time", (time, *_)):
            return before(time, origin)
    return None


def delay(end: Expr) -> int | None:
    """Return how much later than the RE that moves an end is at least, where it changes at all; None: not known."""
    match end:
        case Life("re"):
            return 0
        case Function("add_time" | "reach", (time, duration)):
            found, by = delay(time), least(duration, MIN_TIME, MIN_TIME)
            return None if found is None or by == MIN_TIME or reads_re(duration) else plus_bound(found, by)
        case Function("earliest" | "latest", parts):
            each = [delay(part) for part in parts]
            return None if None in each else min(found for found in each if found is not None)
        case Function("ceil_time", (time, *_)):
            return delay(time)
    return None if reads_re(end) else INFINITY
