"""The values of fields over lifetimes: level while a row lives, and a step where the next one begins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import isfinite, nan
from numbers import Real
from statistics import fmean
from typing import Any, Final, NamedTuple

from streamdsl.errors import QueryError, shortened
from streamdsl.pictures.axis import TimeAxis
from streamdsl.pictures.lanes import Lane
from streamdsl.temporal.time import format_time

MOST_ROWS: Final = 2_000
"""The values of which each has a level of its own."""
MOST_SERIES: Final = 24


class Level(NamedTuple):
    """A value while a row lives, or of a bin the mean of the rows that begin in it, and their range."""

    series: int
    le: int
    re: int
    value: float
    low: float
    high: float
    tip: str


class Rise(NamedTuple):
    """A step from one row of a series to the next, where they meet."""

    series: int
    at: int
    before: float
    after: float


@dataclass(frozen=True)
class Levels:
    """The levels of some series, and the steps between them; with `is_binned` a level is a bin of rows."""

    series: Sequence[str]
    title: str
    levels: Sequence[Level]
    rises: Sequence[Rise] = ()
    note: str = ""
    is_binned: bool = False


def checked_fields(y: object, by: object) -> list[str]:
    """Return the fields that are named by `y`, or raise `QueryError` for what names none, and for `by` without any.

    >>> checked_fields("mean", None), checked_fields(["mean", "most"], "zone"), checked_fields(None, None)
    (['mean'], ['mean', 'most'], [])
    """
    fields = [] if y is None else [y] if isinstance(y, str) else list(y) if isinstance(y, (list, tuple)) else [None]
    names = [name for name in fields if isinstance(name, str)]
    if len(names) < len(fields):
        raise QueryError(
            f"y= is the name of a field, or a list of names, not {shortened(y)}", hint='y="mean", y=["mean", "most"]'
        )
    if by is not None and not (isinstance(by, str) and names):
        what = "without y=" if isinstance(by, str) else f"not {shortened(by)}"
        raise QueryError(f"by= is the name of a field whose values have a line each of y=, {what}", hint='y="mean", by="zone"')
    return names


def steps_of(lane: Lane, fields: Sequence[str], by: str | None, axis: TimeAxis, bins: int) -> Levels:
    """Return the values of fields of a lane's rows. What is None or not finite is a gap; rows that overlap do not meet.

    Raises `QueryError` for a field that there is not, or that is no number, and for more series than can be told apart.
    """
    names: dict[str, int] = {}
    keys = [None] * len(lane) if by is None else _column(lane, by)
    levels = [
        Level(names.setdefault(_name(key, field, by, fields), len(names)), le, re, value, value, value, "")
        for field in fields
        for key, le, re, value in zip(keys, lane.le.tolist(), lane.re.tolist(), _numbers(lane, field), strict=True)
        if isfinite(value)
    ]
    if len(names) > MOST_SERIES:
        raise QueryError(
            f"{len(names)} lines cannot be told apart, at most {MOST_SERIES} are drawn",
            hint="chart the rows that matter: where(...)",
        )
    if len(levels) > MOST_ROWS:
        note = f"{len(levels):,} values in {bins} bins: mean and range of those that begin in each"
        binned = _binned(levels, axis, bins)
        return Levels(list(names), by or "field", binned, _rises(binned), note, True)
    shown = [level._replace(tip=f"{format_time(level.le, axis.unit)}: {level.value:g}") for level in levels]
    return Levels(list(names), by or "field", shown, _rises(levels))


def _name(key: object, field: str, by: str | None, fields: Sequence[str]) -> str:
    """Return the name of a series: that of its field, or the value of `by`, or both."""
    if by is None:
        return field
    return f"{key}" if len(fields) == 1 else f"{key} {field}"


def _column(lane: Lane, name: str) -> Sequence[Any]:
    found = lane.column(name)
    if found is None:
        there = ", ".join(map(repr, lane.fields())) or "none"
        raise QueryError(f"the rows have no field {name!r} to draw", hint=f"their fields are: {there}")
    return found


def _numbers(lane: Lane, name: str) -> Iterator[float]:
    """Yield a field as floats; None, and what is too large for one, as NaN."""
    for value in _column(lane, name):
        if value is not None and not isinstance(value, (Real, Decimal)):
            raise QueryError(f"{name!r} is no number but {shortened(value)}", hint="y= takes fields of numbers, by= takes any")
        try:
            yield nan if value is None else float(value)
        except OverflowError:
            yield nan


def _rises(levels: Sequence[Level]) -> list[Rise]:
    return [
        Rise(one.series, one.re, one.value, other.value)
        for one, other in pairwise(sorted(levels))
        if one.series == other.series and one.re == other.le
    ]


def _binned(levels: Sequence[Level], axis: TimeAxis, bins: int) -> list[Level]:
    """Return the mean and the range of the values that begin in each bin, series by series."""
    edges = axis.edges(bins)
    found: dict[tuple[int, int], list[float]] = {}
    for level in levels:
        found.setdefault((level.series, min(bisect_right(edges, level.le), bins) - 1), []).append(level.value)
    return [_bin(series, edges[place], edges[place + 1], values, axis) for (series, place), values in found.items()]


def _bin(series: int, le: int, re: int, values: Sequence[float], axis: TimeAxis) -> Level:
    low, high = min(values), max(values)
    tip = f"{format_time(le, axis.unit)}: {len(values)} values from {low:g} to {high:g}"
    return Level(series, le, re, fmean(values), low, high, tip)
