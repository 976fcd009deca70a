"""The grid of hopping windows as SQL: the numbers of the windows that a row overlaps, and the LE and RE of a window.

No intermediate value overflows int64 unless a window does; that fails the task with `TimeOverflow`.
"""

from __future__ import annotations

from streamdsl.errors import UnboundedOutputError
from streamdsl.spark.sql_text import floor_div, integer, raise_error
from streamdsl.temporal import INFINITY, MIN_TIME, Unit
from streamdsl.windows import Hopping, unending

_OVERFLOW = raise_error("TimeOverflow", "a window leaves the range of times, int64 ticks")


def bounds(windows: Hopping, until: int, points: bool = False, unit: Unit | None = None) -> list[str]:
    """Return the columns `lo` and `hi`, the numbers of the first and the last window of a grid that a row overlaps.

    A row overlaps none if `lo > hi`. A row that never ends fails the task, unless `until` is finite; the
    error has durations in the `unit`.
    """
    return [f"{_first(windows)} as lo", f"{_last_of_point(windows, until) if points else _last(windows, until, unit)} as hi"]


def _first(windows: Hopping) -> str:
    return _window_number("le", windows.size + windows.offset, windows.hop, 1)


def _last(windows: Hopping, until: int, unit: Unit | None) -> str:
    if until == INFINITY:
        endless = raise_error(UnboundedOutputError.__name__, str(unending(windows, _EndlessEvent(), unit)).replace("\n", " "))
        return (
            f"CASE WHEN re = {integer(INFINITY)} THEN {endless} ELSE {_window_number('re', 1 + windows.offset, windows.hop)} END"
        )
    limit = (until - windows.size - windows.offset) // windows.hop
    last = _window_number(f"least(re, {integer(until)})", 1 + windows.offset, windows.hop)
    return f"least({last}, {integer(limit)})" if limit >= MIN_TIME else "cast(null as bigint)"


def _last_of_point(windows: Hopping, until: int) -> str:
    last = _window_number("le", windows.offset, windows.hop)
    limit = (until - windows.size - windows.offset) // windows.hop
    return last if until == INFINITY else f"least({last}, {integer(limit)})" if limit >= MIN_TIME else "cast(null as bigint)"


class _EndlessEvent:
    """What an error message shows for an event whose payload only Spark knows."""

    def __repr__(self) -> str:
        return "that reaches INFINITY"


def _window_number(time: str, back: int, hop: int, plus: int = 0) -> str:
    """Return the SQL of `(time - back) // hop + plus`."""
    hops, rest = divmod(back, hop)
    number = (
        f"{floor_div(time, hop)} - if(pmod({time}, {integer(hop)}) < {integer(rest)}, 1L, 0L)" if rest else floor_div(time, hop)
    )
    return _or_overflow(f"try_subtract({number}, {integer(hops - plus)})") if hops != plus else number


def start(windows: Hopping, number: str) -> str:
    """Return the SQL of the LE of a window of an aligned grid."""
    hop, offset = windows.hop, windows.offset
    if not offset:
        return _or_overflow(f"try_multiply({number}, {integer(hop)})")
    early = f"try_subtract(try_multiply({number} + 1L, {integer(hop)}), {integer(hop - offset)})"
    late = f"try_add(try_multiply({number}, {integer(hop)}), {integer(offset)})"
    return _or_overflow(f"if({number} < 0L, {early}, {late})")


def end(windows: Hopping, le: str) -> str:
    """Return the SQL of the RE of a window with this LE."""
    return _or_overflow(f"try_add({le}, {integer(windows.size)})")


def _or_overflow(text: str) -> str:
    return f"coalesce({text}, {_OVERFLOW})"
