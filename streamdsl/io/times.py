"""Conversion of columns of dates, integers or text to int ticks of a stream's unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import EventError, TimeOverflow, UnitError
from streamdsl.expr.table import object_column
from streamdsl.temporal import INFINITY, MIN_TIME, MISSING, Insert, Unit, format_time, plain, to_ticks
from streamdsl.temporal.payload import is_null
from streamdsl.temporal.time import PER_SECOND, Ticks

_EXACT_FLOAT: Final = 2.0**53
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
"""The dates that pandas parses with the same result as `to_ticks`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the input, for errors: the file (if any), the column, and the number of the column's first row."""

    column: str
    file: str | None = None
    first_row: int = 0

    def row(self, row: int) -> str:
        """Return the description of a row: its number, file and column."""
        file = f" of {self.file}" if self.file else ""
        return f"row {self.first_row + row}{file}, column {self.column!r}"


def no_start(where: Place, row: int) -> EventError:
    """Return the error for a row whose start is null or missing."""
    event = Insert(where.first_row + row, None, None, MISSING)  # type: ignore[arg-type]
    return EventError(event, f"its start is null ({where.row(row)})", hint="only an end may be null: it means INFINITY")


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column of times: int64 in its own `unit` (`"tick"`: plain integers), or Python values if `unit` is None.

    >>> column = TimeColumn.of_values(["1970-01-01T00:00:02Z", None])
    >>> column.calendar, column.ends("ms", Place("re")).tolist() == [2000, INFINITY]
    (True, True)
    """

    values: NDArray[Any]
    nulls: NDArray[np.bool_]
    unit: Unit | None

    @classmethod
    def of_integers(cls, values: NDArray[Any], nulls: NDArray[np.bool_] | None = None, unit: Unit = "tick") -> TimeColumn:
        """Return integers as times; unsigned ones beyond int64 stay Python ints, which the conversion to ticks refuses."""
        nulls = np.zeros(len(values), dtype=np.bool_) if nulls is None else nulls
        if values.dtype == np.uint64 and values.size and int(values.max()) > INFINITY:
            return cls(object_column(values.tolist()), nulls, None)
        return cls(values.astype(np.int64, copy=False), nulls, unit)

    @classmethod
    def of_moments(cls, values: NDArray[Any]) -> TimeColumn:
        """Return numpy dates (in UTC) as times; NaT is null."""
        unit, count = np.datetime_data(values.dtype)
        if unit not in PER_SECOND or count != 1:
            return cls.of_moments(values.astype("datetime64[s]"))
        return cls(values.view(np.int64), np.isnat(values), unit)  # type: ignore[arg-type]

    @classmethod
    def of_floats(cls, values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> TimeColumn:
        """Return floats as times: as integers if all are whole, which nulls among integers had turned into floats."""
        nulls = np.isnan(values) if nulls is None else nulls | np.isnan(values)
        filled = np.where(nulls, 0.0, values)
        whole = (np.abs(filled) < _EXACT_FLOAT) & (np.floor(filled) == filled)
        if nulls.all() or not whole.all():
            mixed = [int(value) if is_int else value for value, is_int in zip(filled.tolist(), whole.tolist(), strict=True)]
            return cls(object_column(mixed), nulls, None)
        return cls(filled.astype(np.int64), nulls, "tick")

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> TimeColumn:
        """Return Python values as times: ints, dates and ISO text; a missing value of any library is null."""
        if not set(map(type, values)) <= {str, type(None)}:
            values = list(map(plain, values))
        nulls = np.fromiter(map(is_null, values), dtype=np.bool_, count=len(values))
        if values and not nulls.any() and set(map(type, values)) == {int} and min(values) >= MIN_TIME and max(values) <= INFINITY:
            return cls.of_integers(np.array(values, dtype=np.int64))
        return cls(object_column(values), nulls, None)

    @property
    def calendar(self) -> bool | None:
        """Whether the column holds dates; None if all its values are null."""
        if self.unit is not None:
            return self.unit != "tick"
        known = self.values[~self.nulls].tolist()
        return set(map(type, known)) != {int} if known else None

    def starts(self, unit: Unit | None, where: Place) -> Ticks:
        """Return the times in ticks; raises `EventError` for a null."""
        self.refuse_nulls(where)
        return self.ends(unit, where)

    def refuse_nulls(self, where: Place) -> None:
        """Raise `EventError` for the first null, naming its row."""
        if self.nulls.any():
            raise no_start(where, int(np.flatnonzero(self.nulls)[0]))

    def ends(self, unit: Unit | None, where: Place) -> Ticks:
        """Return the times in ticks; null becomes INFINITY.

        Raises `UnitError` for a value that is no time, or no whole number of units, and `TimeOverflow` for one beyond int64.
        """
        unit = unit or ("us" if self.calendar else "tick")
        ticks = self._converted(unit, where) if self.unit is None else self._scaled(unit, where)
        return np.where(self.nulls, INFINITY, ticks) if self.nulls.any() else ticks

    def _scaled(self, unit: Unit, where: Place) -> Ticks:
        if self.unit in ("tick", unit):
            return self.values
        if unit == "tick":
            raise UnitError(
                f"column {where.column!r} holds dates, but the stream counts plain ticks",
                hint='give the source a calendar unit, for example unit="us"',
            )
        have, want = PER_SECOND[self.unit or "us"], PER_SECOND[unit]
        values = np.where(self.nulls, 0, self.values)
        return self._finer(values, want // have, unit, where) if want > have else self._coarser(values, have // want, unit, where)

    def _finer(self, values: Ticks, factor: int, unit: Unit, where: Place) -> Ticks:
        bad = np.flatnonzero((values > INFINITY // factor) | (values < -(INFINITY // factor)))
        if bad.size:
            raise TimeOverflow(f"{where.row(int(bad[0]))}: the date is outside the range of int64 {unit}")
        return values * factor

    def _coarser(self, values: Ticks, factor: int, unit: Unit, where: Place) -> Ticks:
        bad = np.flatnonzero(values % factor)
        if bad.size:
            moment = format_time(int(values[bad[0]]), self.unit)
            raise UnitError(
                f"{where.row(int(bad[0]))}: {moment} is not a whole number of {unit}", hint=f'give the source unit="{self.unit}"'
            )
        return values // factor

    def _converted(self, unit: Unit, where: Place) -> Ticks:
        parsed = _parse_texts(self.values, self.nulls) if unit != "tick" else None
        if parsed is not None:
            return TimeColumn.of_moments(parsed).ends(unit, where)
        ticks = np.zeros(len(self.values), dtype=np.int64)
        for row in np.flatnonzero(~self.nulls).tolist():
            ticks[row] = _tick_at(self.values[row], unit, where, row)
        return ticks


def _tick_at(value: object, unit: Unit, where: Place, row: int) -> int:
    try:
        return to_ticks(value, unit)
    except (UnitError, TimeOverflow) as error:
        raise type(error)(f"{where.row(row)}: {error}") from None


def _parse_texts(values: NDArray[Any], nulls: NDArray[np.bool_]) -> NDArray[Any] | None:
    """Return ISO dates parsed by pandas all at once; None if they must be parsed one by one."""
    known = values[~nulls].tolist()
    if not known or not all(isinstance(text, str) and _ISO.fullmatch(text) for text in known):
        return None
    import pandas as pd

    try:
        index = pd.to_datetime(known, format="ISO8601", utc=True)
    except (ValueError, OverflowError):
        return None
    moments = np.full(len(values), np.datetime64("NaT", index.unit))
    moments[~nulls] = index.tz_localize(None).to_numpy()
    return moments


def unit_of(columns: Iterable[TimeColumn]) -> Unit | None:
    """Return the unit of time columns: `"us"` if there are dates, `"tick"` for integers only, None if all values are null."""
    found = {column.calendar for column in columns}
    return "us" if True in found else "tick" if False in found else None
