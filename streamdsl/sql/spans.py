"""Durations and windows: those in brackets after a stream, and those in GROUP BY."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from streamdsl.sql.parsing import Text, name_of
from streamdsl.stream import Stream
from streamdsl.temporal import INFINITY, Unit, to_duration

NO_PARTS: Final = "PARTITION BY is for ROWS without SLIDE"
_SECONDS: Final = {
    "microsecond": Fraction(1, 10**6),
    "millisecond": Fraction(1, 1000),
    "second": Fraction(1),
    "minute": Fraction(60),
    "hour": Fraction(3600),
    "day": Fraction(86400),
}


def span(text: Text, tree: Any) -> int | timedelta:
    """Return a duration: an int in ticks, or a timedelta if it has a unit."""
    number, unit = tree.children
    if unit is None:
        if not str(number).isdigit():
            raise text.refused(tree, f"{number} is no number of ticks", "give a whole number, or a unit: 1.5 MINUTES")
        return int(number)
    name = name_of(unit).lower().removesuffix("s")
    if name not in _SECONDS:
        raise text.refused(unit, f"there is no unit {str(unit)!r}; there are: {', '.join(f'{each}s' for each in _SECONDS)}")
    microseconds = Fraction(str(number)) * _SECONDS[name] * 10**6
    if microseconds.denominator > 1:
        raise text.refused(tree, "a length of time is a whole number of microseconds")
    try:
        return timedelta(microseconds=int(microseconds))
    except OverflowError:
        raise text.refused(tree, "this length is outside the range of times", "[RANGE UNBOUNDED] has no end") from None


def in_batches(text: Text, tree: Any, unit: Unit) -> int:
    """Return a duration in timestamps of batches; one with a unit is converted as if timestamps counted `unit`."""
    found = span(text, tree)
    if isinstance(found, int):
        return found
    with text.at(tree):
        return to_duration(found, unit)


def framed(text: Text, stream: Stream[Any], frame: Any) -> Stream[Any]:
    """Return a fluent stream with the lifetimes of its rows in a time window; their timestamp is LE."""
    names, extent, slide = frame.children
    unit = stream.plan().unit
    if names is not None:
        raise text.refused(names, NO_PARTS)
    if extent.data == "now":
        return stream.to_points() if slide is None else _slid(stream, 1, to_duration(span(text, slide), unit))
    size = INFINITY if extent.data == "unbounded" else to_duration(span(text, extent.children[0]), unit)
    if size <= 0:
        raise text.refused(extent, "a window is as long as a tick at least", "[NOW] is that of the present tick")
    return stream.alter_duration(size) if slide is None else _slid(stream, size, to_duration(span(text, slide), unit))


def _slid(stream: Stream[Any], size: int, slide: int) -> Stream[Any]:
    """Return rows with lifetimes between slides: from the first slide >= LE to the first slide >= LE + size."""
    if size < slide:
        stream = stream.where(lambda e, life: -life.le % slide < size)
        return stream.shift(slide - 1).alter_duration(1).quantize(slide, slide)
    first = stream.shift(slide - 1)
    return first.alter_duration(INFINITY if size == INFINITY else size - slide + 1).quantize(slide, slide)


def windowed(text: Text, rows: Any, tree: Any) -> Any:
    """Return rows in the windows of GROUP BY, by default in snapshot windows."""
    if tree is None:
        return rows.snapshot_window()
    lengths = [None if child is None else span(text, child) for child in tree.children]
    with text.at(tree):
        match tree.data:
            case "tumble":
                return rows.tumbling_window(lengths[0], lengths[1] or 0)
            case "hop":
                return rows.hopping_window(lengths[0], lengths[1], lengths[2] or 0)
            case "session":
                return rows.session_window(lengths[0], lengths[1])
    return rows.snapshot_window()
