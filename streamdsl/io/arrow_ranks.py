"""Ranks of Arrow values in payload order (texts, dates, moments, numbers), computed without Python objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.expr.arrow_buffers import are_null, as_arrow, as_numpy
from streamdsl.expr.deferred import Column, Rows
from streamdsl.expr.table import flatnonzero
from streamdsl.io.arrow_fingerprints import bits
from streamdsl.temporal.time import Ticks

_MINUTE: Final = 60_000_000
"""Microseconds."""
_DAY: Final = 24 * 60 * _MINUTE
_DIGITS: Final = 6
"""The digits of the largest number of microseconds in a second."""


def ranks(array: Any) -> Column | None:
    """Return the ranks of distinct values in payload order, 0 for null; None for a type without a rule.

    >>> from datetime import date
    >>> ranks(pa.array(["b", None, "a"])).tolist(), ranks(pa.array([date(2020, 1, 9), date(2020, 1, 10)])).tolist()
    ([2, 0, 1], [2, 1])
    """
    find = next((each for test, each in _ORDERS if test(array.type)), None)
    if find is None:
        return None
    if not array.null_count:
        return _numbered(find(array))
    found = np.zeros(len(array), dtype=np.int64)
    rows = flatnonzero(~are_null(array))
    found[rows] = _numbered(find(array.take(as_arrow(rows))))
    return found


def _numbered(order: Rows) -> Column:
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(1, len(order) + 1)
    return found


def _of_texts(array: Any) -> Rows:
    """Return the sorted order of texts."""
    rows: Rows = as_numpy(pc.sort_indices(array)).astype(np.intp)
    return rows


def _of_numbers(array: Any) -> Rows:
    integers = bits(array)
    assert integers is not None, "only numbers that fit wait"
    return np.argsort(integers.view(np.float64) if pa.types.is_floating(array.type) else integers)


def _of_days(array: Any) -> Rows:
    """Return the sorted order of dates by their `repr`, which is payload order: year, month and day compare as text."""
    return np.argsort(_written_days(as_numpy(array.view(pa.int32()))))


def _written_days(days: Column) -> Ticks:
    """Return integers that sort like the `repr` of dates."""
    dates = days.astype(np.int64).astype("M8[D]")
    months, years = dates.astype("M8[M]"), dates.astype("M8[Y]")
    day = (dates - months.astype("M8[D]")).astype(np.int64) + 1
    month = (months - years.astype("M8[M]")).astype(np.int64) + 1
    year = years.astype(np.int64) + 1970
    found: Ticks = (_as_text(10_000)[year] * 13 + _as_text(13)[month]) * 32 + _as_text(32)[day]
    return found


def _of_moments(array: Any) -> Rows:
    """Return the sorted order of moments by their `repr`, which omits seconds and microseconds that are zero."""
    ticks = as_numpy(array.view(pa.int64()))
    days, within = np.divmod(ticks, _DAY)
    minutes, within = np.divmod(within, _MINUTE)
    seconds, micros = np.divmod(within, _MINUTE // 60)
    # An omitted part sorts before every number; with a zone, whose name follows in its place, after: digits precede letters.
    last = array.type.tz is not None
    digits = np.searchsorted(10 ** np.arange(1, _DIGITS), micros, side="right") + 1
    micro = np.where(micros > 0, (micros * 10 ** (_DIGITS - digits) * 8) + digits, 10**_DIGITS * 8 if last else 0)
    second = np.where(within > 0, _as_text(60)[seconds] + 1, 61 if last else 0)
    hour, minute = _as_text(24)[minutes // 60], _as_text(60)[minutes % 60]
    found = ((_written_days(days) * 24 + hour) * 60 + minute) * 62 + second
    return np.argsort(found * (10**_DIGITS * 8 + 1) + micro)


@lru_cache(maxsize=8)
def _as_text(size: int) -> Rows:
    """Return the rank that each number below `size` has among them as text.

    >>> _as_text(12).tolist()
    [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3]
    """
    found = np.empty(size, dtype=np.int64)
    found[sorted(range(size), key=str)] = np.arange(size)
    return found


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


_ORDERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Rows]], ...]] = (
    (pa.types.is_string, _of_texts),
    (_is_number, _of_numbers),
    (pa.types.is_date32, _of_days),
    (pa.types.is_timestamp, _of_moments),
)
