"""New ends of lifetimes as expressions over LE and RE, and what follows from them: CTIs, final frontiers, facts.

An operator that gives each row another lifetime is two expressions. The new LE is one over LE, RE and the payload; the new RE
may read the new LE besides. Both are made of times that saturate at INFINITY: `plus`, `earliest`, `latest`, `floor` and `ceil`
to a grid, each monotone in its times, and of what users compute (`read`), of which nothing is known.

What an operator may promise is computed from the expressions by bounds: what an end is at least for rows that start and end not
before given times (`least`), and what it is at least where it changes because the RE of a row moves (`change`). The output CTI,
the final frontier and the facts of a plan's node are written in terms of these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from streamdsl.errors import QueryError
from streamdsl.expr import Inputs, describe, evaluate, evaluate_row
from streamdsl.expr.nodes import Constant, Expr, Function, Life, reads_re, rebuilt
from streamdsl.temporal import CHRONON, INFINITY, MIN_TIME, Lifetime, Unit, to_duration, to_ticks
from streamdsl.temporal.time import Ticks

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


class Change(NamedTuple):
    """Bounds of the values of an end that changes: of the one `before`, and the `least` of both."""

    before: int
    least: int


def least(end: Expr, le: int, re: int) -> int:
    """Return a bound: no row with LE >= `le` and RE >= `re` has an earlier end. MIN_TIME: nothing is known.

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


def change(end: Expr, was: int, becomes: int) -> Change | None:
    """Return the bounds of an end that changes as the RE of a row moves, from one >= `was` to one >= `becomes`; None: it stays.

    >>> change(plus(RE, 5), 10, 10), change(LE, 10, 10), change(earliest(RE, 7), 10, 10), change(earliest(RE, 70), 10, 5)
    (Change(before=15, least=15), None, None, Change(before=10, least=5))
    """
    match end:
        case Life("re"):
            return Change(was, min(was, becomes))
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
                return Change(*map(min, zip(*changes, strict=True)))
            # Of several moving parts one alone may change: of the others the bounds of a change do not hold.
            sure = [
                Change(*(each if each is not None and len(changes) == 1 else [least(part, MIN_TIME, MIN_TIME)] * 2))
                for part, each in zip(parts, moving, strict=True)
            ]
            return Change(*(_MONOTONE[name](*values) for values in zip(*sure, strict=True)))
    return Change(MIN_TIME, MIN_TIME) if reads_re(end) else None


def _change_of_earliest(parts: Sequence[Expr], was: int, becomes: int) -> Change | None:
    """A change shows only where the parts that stay are later than the least that changes."""
    found = [(part, change(part, was, becomes)) for part in parts]
    moving = [each for _, each in found if each is not None]
    if not moving:
        return None
    bound = min(each.least for each in moving)
    staying = [part for part, each in found if each is None]
    if any(most(part) <= bound for part in staying):
        return None
    later = [max(least(part, MIN_TIME, MIN_TIME), _plus(bound, CHRONON)) for part in staying]
    return Change(min([each.before for each in moving] + later), bound)


def _plus(time: int, duration: int) -> int:
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
    "add_time": _plus,
    "reach": _plus,
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


def _after(end: Expr, origin: Expr, start: int = 0) -> int | None:
    """Return how much later than an origin an end is at least; None: not known. `start` is what it is for the origin itself."""
    match end:
        case _ if end == origin:
            return start
        case Life("re") if origin == LE:
            return start + CHRONON
        case Function("add_time" | "reach", (time, Constant(value))):
            found = _after(time, origin, start)
            return None if found is None else found + value
        case Function("add_time" | "reach", (time, duration)) if least(duration, MIN_TIME, MIN_TIME) >= 0:
            return _after(time, origin, start)
        case Function("latest", parts):
            return max((found for part in parts if (found := _after(part, origin, start)) is not None), default=None)
        case Function("earliest", parts):
            each = [_after(part, origin, start) for part in parts]
            return None if None in each else min(found for found in each if found is not None)
        case Function("ceil_time", (time, *_)):
            return _after(time, origin, start)
    return None


def _before(end: Expr, origin: Expr) -> int | None:
    """Return how much later than an origin an end is at most; None: not known."""
    match end:
        case _ if end == origin:
            return 0
        case Function("add_time" | "reach", (time, Constant(value))):
            found = _before(time, origin)
            return None if found is None or value == INFINITY else found + value
        case Function("earliest", parts):
            return min((found for part in parts if (found := _before(part, origin)) is not None), default=None)
        case Function("latest", parts):
            each = [_before(part, origin) for part in parts]
            return None if None in each else max(found for found in each if found is not None)
        case Function("floor_time", (time, *_)):
            return _before(time, origin)
    return None


@dataclass(frozen=True)
class Ends:
    """The new ends of an operator's rows; a row whose new lifetime is empty vanishes."""

    le: Expr
    re: Expr

    @cached_property
    def full_re(self) -> Expr:
        """The new RE over the old lifetime alone."""
        return rebuilt(self.re, lambda part: self.le if part == NEW_LE else None)

    def cti(self, cti: int) -> int:
        """Return the output CTI: a change of the output comes from a row that starts at the CTI or later, or ends there or later.

        >>> Ends(LE, plus(RE, -3)).cti(20), Ends(LE, plus(RE, 3)).cti(20), Ends(floor(LE, 5), ceil(RE, 5)).cti(22)
        (17, 20, 20)
        """
        if cti in (MIN_TIME, INFINITY):
            return cti
        changes = (change(self.le, cti, cti), change(self.full_re, cti, cti))
        return min([least(self.le, cti, cti + CHRONON), *(each.least for each in changes if each is not None)])

    def final(self, cti: int, final: int) -> int:
        """Return up to which new RE rows are final, given the CTI and the final frontier of the input (engine/frontiers.py).

        A row that is not final ends after the input's frontier; it vanishes if it starts at the CTI or later, else its RE moves.

        >>> Ends(plus(LE, 5), plus(RE, 5)).final(20, 30), Ends(LE, plus(NEW_LE, 5)).final(20, 19)
        (35, 24)
        """
        if INFINITY in (cti, final):
            return INFINITY
        was, ends = final + CHRONON, max(cti, final) + CHRONON
        start = least(self.le, cti, ends)
        bounds = [] if most(self.full_re) <= start else [max(least(self.full_re, cti, ends), _plus(start, CHRONON))]
        moved = change(self.full_re, was, cti)
        bounds += [] if moved is None else [moved.before]
        bounds += [] if change(self.le, was, cti) is None else [least(self.full_re, MIN_TIME, was)]
        first = min(bounds, default=INFINITY)
        return first if first == MIN_TIME or not bounds else first - CHRONON

    @property
    def duration(self) -> int | None:
        """The one duration of all rows, None if they may differ."""
        match self.re:
            case Function("add_time" | "reach", (Life("le", 1), Constant(value))):
                return int(value)
        return CHRONON if self.le == RE and self.re == plus(RE, CHRONON) else None

    @property
    def keep_durations(self) -> bool:
        """Whether each row lives as long as before: both ends move by the same duration."""
        move = _before(self.le, LE)
        return move is not None and (self.le, self.re) in ((LE, RE), (plus(LE, move), plus(RE, move)))

    @property
    def keep_all_rows(self) -> bool:
        """Whether it is certain that no row vanishes, or fails: LE stays or goes down to a grid, and the new RE is after it."""
        if _before(self.le, LE) != 0:
            return False
        late = (_after(self.re, NEW_LE), _after(self.re, LE))
        return any(each is not None and each > 0 for each in late)

    @property
    def keep_apart(self) -> bool:
        """Whether rows that do not overlap do not afterwards: the new RE moves by no more than the new LE does."""
        by, least_by = _before(self.full_re, RE), _after(self.le, LE)
        return by is not None and least_by is not None and by <= least_by

    @property
    def move_starts_as_ctis(self) -> bool:
        """Whether the CTI moves as each LE does."""
        move = _before(self.le, LE)
        if move is None or self.le not in (LE, plus(LE, move)):
            return False
        delay = _delay(self.full_re)
        return delay is not None and delay >= move

    @property
    def endless(self) -> Endless:
        """Which rows never end. Where LE is the old RE, or later, those without end vanish."""
        if endless(self.le) is not Endless.NONE and not computed(self.le):
            return Endless.NONE
        return endless(self.full_re)

    @cached_property
    def are_computed(self) -> bool:
        """Whether users compute some of them, so that the payload counts."""
        return bool(computed(self.le) or computed(self.re))

    def of(self, life: Lifetime, payload: Any = None) -> tuple[int, int]:
        """Return the new ends of one row.

        >>> Ends(floor(LE, 5), plus(NEW_LE, 5)).of(Lifetime(7, 8))
        (5, 10)
        """
        le = life.le if self.le == LE else evaluate_row(self.le, (payload,), life)
        return le, evaluate_row(self.re, (payload,), life, starts=(life.le, le))

    def over(self, inputs: Inputs) -> tuple[Ticks, Ticks]:
        """Return the new ends of rows; raises `RowError` for the first row for which there are none."""
        assert inputs.le is not None
        le = inputs.le if self.le == LE else evaluate(self.le, inputs)
        return le, evaluate(self.re, inputs._replace(starts=(inputs.le, le)))

    def describe(self) -> str:
        """Return the new lifetime as people write it.

        >>> print(Ends(LE, earliest(RE, plus(LE, 5))).describe())
        [LE, min(RE, LE + 5))
        """
        return f"[{_text(self.le)}, {_text(self.full_re if self.le == LE else self.re)})"


def _delay(end: Expr) -> int | None:
    """Return how much later than the RE that moves an end is at least, where it changes at all; None: not known."""
    match end:
        case Life("re"):
            return 0
        case Function("add_time" | "reach", (time, duration)):
            found, by = _delay(time), least(duration, MIN_TIME, MIN_TIME)
            return None if found is None or by == MIN_TIME or reads_re(duration) else _plus(found, by)
        case Function("earliest" | "latest", parts):
            each = [_delay(part) for part in parts]
            return None if None in each else min(found for found in each if found is not None)
        case Function("ceil_time", (time, *_)):
            return _delay(time)
    return None if reads_re(end) else INFINITY


def _text(end: Expr) -> str:
    match end:
        case Life(name, side):
            return "new LE" if side else name.upper()
        case Constant(value):
            return "inf" if value == INFINITY else repr(value)
        case Function("add_time" | "reach", (time, Constant(value))) if value != INFINITY:
            return f"{_text(time)} {'-' if value < 0 else '+'} {abs(value)}"
        case Function("add_time" | "reach", (time, duration)):
            return f"{_text(time)} + {_text(duration)}"
        case Function("latest", (Function("to_duration", (given, *_)), _)):
            return describe(given)
        case Function("to_ticks" | "to_duration", (given, *_)):
            return describe(given)
        case Function("earliest" | "latest" as name, parts):
            return f"{'min' if name == 'earliest' else 'max'}({', '.join(map(_text, parts))})"
        case Function("floor_time" | "ceil_time" as name, (time, Constant(period), Constant(offset))):
            grid = f"{period}" + (f", offset {offset}" if offset else "")
            return f"{name.removesuffix('_time')}({_text(time)}, {grid})"
    return describe(end)


def _expr(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else Constant(value)
