"""The ends of lifetimes as expressions: times over LE and RE, of which the operators on lifetimes are written.

The new LE of a row is an expression over its LE, its RE and its payload; the new RE may read the new LE too. Times absorb at
INFINITY: `plus` raises where a sum leaves int64, `reach` gives INFINITY there. `earliest`, `latest`, `floor` and `ceil` complete
them. Each function is monotone in its times, which is what the bounds (`end_bounds.py`) are computed from. What a user computes
is an expression of its own inside `read_time` and `read_duration`.
"""

from __future__ import annotations

from typing import Final

from streamdsl.errors import QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Constant, Expr, Function, Life, rebuilt
from streamdsl.temporal import INFINITY, MIN_TIME, Unit, to_duration, to_ticks

LE: Final = Life("le")
RE: Final = Life("re")
NEW_LE: Final = Life("le", 1)
"""In the expression of the new RE: the new LE."""

_DEEPEST: Final = 20
_READERS: Final = {"to_ticks": to_ticks, "to_duration": to_duration}


def plus(time: Expr, duration: Expr | int) -> Expr:
    """Return a time moved by a duration."""
    return Function("add_time", (time, _expr(duration)))


def reach(time: Expr, duration: int) -> Expr:
    """Return the time that is a duration after another, INFINITY where there is none: `plus` is an error there."""
    return Function("reach", (time, Constant(duration)))


def earliest(first: Expr | int, second: Expr | int) -> Expr:
    """Return the earlier of two times, or the shorter of two durations."""
    return Function("earliest", (_expr(first), _expr(second)))


def latest(first: Expr | int, second: Expr | int) -> Expr:
    """Return the later of two times, or the longer of two durations."""
    return Function("latest", (_expr(first), _expr(second)))


def floor(time: Expr, period: int, offset: int = 0) -> Expr:
    """Return the last time of the grid `offset + k * period` that is not after a time."""
    return Function("floor_time", (time, Constant(period), Constant(offset % period)))


def ceil(time: Expr, period: int, offset: int = 0) -> Expr:
    """Return the first time of the grid `offset + k * period` that is not before a time."""
    return Function("ceil_time", (time, Constant(period), Constant(offset % period)))


def read_time(computed: Expr) -> Expr:
    """Return a time that a user computes, or gives: ticks, a date, text."""
    return Function("to_ticks", (computed,))


def read_duration(computed: Expr) -> Expr:
    """Return a duration that a user computes, or gives, as one that is not negative."""
    if isinstance(computed, Constant) and type(computed.value) is int:
        return Constant(max(computed.value, 0))
    return latest(Function("to_duration", (computed,)), 0)


def computed(end: Expr) -> list[Expr]:
    """Return what users compute in an end.

    >>> from streamdsl.expr.nodes import Field
    >>> computed(plus(LE, read_duration(Field("fare")))), computed(plus(LE, 5))
    ([Field(name='fare', side=0)], [])
    """
    return [part.arguments[0] for part in end.walk() if isinstance(part, Function) and part.name in _READERS]


def with_constants_read(end: Expr, unit: Unit | None) -> Expr:
    """Return an end in which the constants that users give are ticks, as far as their unit is known; integers are ticks already.

    >>> with_constants_read(latest(Function("to_duration", (Constant("1m"),)), 0), "s")
    Constant(value=60)
    """

    def change(part: Expr) -> Expr | None:
        match part:
            case Function("latest", (Function("to_duration", (Constant(value),)), _)) if unit or type(value) is int:
                return Constant(max(to_duration(value, unit), 0))
            case Function("to_ticks", (Constant(value),)) if unit or type(value) is int:
                return Function("to_ticks", (Constant(to_ticks(value, unit)),))
        return None

    return rebuilt(end, change)


def in_unit(end: Expr, unit: Unit | None) -> Expr:
    """Return an end in which what users give is read in a unit of time.

    >>> in_unit(read_duration(Constant("1m")), "s")
    Constant(value=60)
    """

    def change(part: Expr) -> Expr | None:
        match part:
            case Function(name, (given, *_)) if name in _READERS:
                return Function(name, (given, Constant(unit)))
        return None

    return rebuilt(with_constants_read(end, unit), change)


def check(le: Expr, re: Expr) -> None:
    """Refuse, with `QueryError`, ends that are made of anything but times; only the new RE may read the new LE."""
    for end, known in ((le, (LE, RE)), (re, (LE, RE, NEW_LE))):
        if not _is_time(end, known, _DEEPEST):
            raise QueryError("that is no end of a lifetime", hint="the methods of a stream write them: shift(d), ...")


def _is_time(end: Expr, known: tuple[Expr, ...], levels: int) -> bool:
    match end:
        case Life():
            return end in known
        case Constant(value):
            return type(value) is int and MIN_TIME <= value <= INFINITY
        case Function("floor_time" | "ceil_time", (time, Constant(period), Constant(phase))):
            is_grid = type(period) is type(phase) is int and 0 <= phase < period
            return is_grid and levels > 0 and _is_time(time, known, levels - 1)
        case Function("add_time" | "reach" | "earliest" | "latest", (first, second)):
            return levels > 0 and _is_time(first, known, levels - 1) and _is_time(second, known, levels - 1)
    return isinstance(end, Function) and end.name in _READERS and 1 <= len(end.arguments) <= 2


def text_of(end: Expr) -> str:
    """Return an end as people write it.

    >>> text_of(earliest(RE, plus(LE, 5)))
    'min(RE, LE + 5)'
    """
    match end:
        case Life(name, side):
            return "new LE" if side else name.upper()
        case Constant(value):
            return "inf" if value == INFINITY else repr(value)
        case Function("add_time" | "reach", (time, Constant(value))) if value != INFINITY:
            return f"{text_of(time)} {'-' if value < 0 else '+'} {abs(value)}"
        case Function("add_time" | "reach", (time, duration)):
            return f"{text_of(time)} + {text_of(duration)}"
        case Function("latest", (Function("to_duration", (given, *_)), _)):
            return describe(given)
        case Function("to_ticks" | "to_duration", (given, *_)):
            return describe(given)
        case Function("earliest" | "latest" as name, parts):
            return f"{'min' if name == 'earliest' else 'max'}({', '.join(map(text_of, parts))})"
        case Function("floor_time" | "ceil_time" as name, (time, Constant(period), Constant(offset))):
            grid = f"{period}" + (f", offset {offset}" if offset else "")
            return f"{name.removesuffix('_time')}({text_of(time)}, {grid})"
    return describe(end)


def _expr(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else Constant(value)
