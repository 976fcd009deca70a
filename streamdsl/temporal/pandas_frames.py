"""Conversion of CHTs to pandas frames: columns of times, and one of each payload field; no value is rounded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import QueryError, TimeOverflow
from streamdsl.temporal.events import MISSING
from streamdsl.temporal.payload import fields_of, is_dataclass, is_namedtuple, plain
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks, Unit, is_calendar

if TYPE_CHECKING:
    import pandas as pd

    from streamdsl.temporal.cht import CHT

MEMO: Final = "streamdsl"
"""The key of pandas' `attrs`, and of Arrow's metadata, under which a frame stores the shape of its payloads."""
LIFETIME: Final = ("le", "re")


class PayloadMemo(TypedDict):
    """The payload shape of a frame (record, tuple or scalar) and its fields, which the columns alone do not determine."""

    shape: str
    fields: list[str]


Values: TypeAlias = Sequence[Any] | NDArray[Any]
"""The values of one payload field; an array of `int64`, `float64` or `bool` if they are typed."""


@dataclass(frozen=True, slots=True)
class HistoryColumns:
    """A CHT in columns: lifetimes in ticks, payload fields, and their shape. Frames of every library are built from it."""

    le: Ticks
    re: Ticks
    fields: Mapping[str, Values]
    memo: PayloadMemo | None
    unit: Unit | None
    times: tuple[str, str] = LIFETIME
    """The names of the columns of LE and RE in a frame."""

    def named(self, start: str, end: str) -> HistoryColumns:
        """Return the same columns with other names of those of the times; raises `QueryError` for two equal ones.

        >>> from streamdsl.temporal import CHT
        >>> HistoryColumns.of(CHT.from_rows([(1, 5, {"le": 3, "start": 4})])).named("start", "end").names
        ['le', 'payload_start']
        """
        if start == end or not (_is_name(start) and _is_name(end)):
            raise QueryError(
                f"start={start!r} and end={end!r} are not the names of two columns", hint='to_pandas(start="start", end="end")'
            )
        return replace(self, times=(start, end))

    @classmethod
    def of(cls, cht: CHT[Any], fields: Sequence[str] = ()) -> HistoryColumns:
        """Return a CHT in columns; `fields` are columns even if there are no rows.

        >>> from streamdsl.temporal import CHT
        >>> HistoryColumns.of(CHT.from_rows([(1, 5, {"k": "a"})])).fields
        {'k': ['a']}
        """
        rows = cht.rows
        columns, memo = payload_columns([row.payload for row in rows], fields)
        le, re = (np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in LIFETIME)
        return cls(le, re, columns, memo, cht.unit)

    @property
    def names(self) -> list[str]:
        """The names of the fields' columns in a frame: a field called like one of the times, `le`, becomes `payload_le`."""
        return column_names(list(self.fields), self.times)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and not any("\ud800" <= letter <= "\udfff" for letter in name)


def history_to_pandas(history: HistoryColumns) -> pd.DataFrame:
    """Return a frame with the columns of LE, RE and the payload's fields; INFINITY is null, dates are UTC timestamps.

    >>> from streamdsl.temporal import CHT
    >>> history_to_pandas(HistoryColumns.of(CHT.from_rows([(1, 5, {"k": "a"})]))).to_dict("records")
    [{'le': 1, 're': 5, 'k': 'a'}]
    """
    start, end = history.times
    times = {start: times_to_pandas(history.le, history.unit), end: times_to_pandas(history.re, history.unit)}
    return pandas_frame(times, history.fields, history.memo)


def pandas_frame(leading: Mapping[str, pd.Series[Any]], columns: Mapping[str, Values], memo: PayloadMemo | None) -> pd.DataFrame:
    """Return a frame of the leading columns, then the payload fields, with the payload memo in its `attrs`."""
    import pandas as pd

    names = column_names(list(columns), leading)
    frame = pd.DataFrame({**leading, **{name: series(values) for name, values in zip(names, columns.values(), strict=True)}})
    if memo is not None:
        frame.attrs[MEMO] = memo
    return frame


def payload_columns(payloads: Sequence[Any], fields: Sequence[str] = ()) -> tuple[dict[str, list[Any]], PayloadMemo | None]:
    """Return payloads in columns by field, and the memo of their shape if all have the same one.

    A field that a payload lacks is None there, as are all fields of a payload that is `MISSING`.

    >>> payload_columns([(1, "a"), (2, "b")])
    ({'_0': [1, 2], '_1': ['a', 'b']}, {'shape': 'tuple', 'fields': ['_0', '_1']})
    """
    rows = [{} if payload is MISSING else dict(fields_of(payload)) for payload in payloads]
    names = list(dict.fromkeys([*fields, *(name for row in rows for name in row)]))
    shapes = {(_shape(payload), len(row)) for payload, row in zip(payloads, rows, strict=True) if payload is not MISSING}
    alike = len(shapes) == 1 and next(iter(shapes))[1] == len(names)
    memo = PayloadMemo(shape=shapes.pop()[0], fields=names) if alike else None
    return {name: [row.get(name) for row in rows] for name in names}, memo


def _shape(payload: object) -> str:
    if isinstance(payload, Mapping) or is_dataclass(payload) or is_namedtuple(payload):
        return "record"
    return "tuple" if isinstance(payload, tuple) else "scalar"


def column_names(fields: Sequence[str], reserved: Collection[str]) -> list[str]:
    """Return a column name for each field: its own name, prefixed with `payload_` if that is reserved.

    >>> column_names(["le", "v"], LIFETIME)
    ['payload_le', 'v']
    """
    names = []
    for name in fields:
        column = name
        while column in reserved or (column != name and column in fields):
            column = f"payload_{column}"
        names.append(column)
    return names


def frame_times(times: Iterable[int | None] | Ticks, unit: Unit | None) -> tuple[Ticks, NDArray[np.bool_]]:
    """Return times as an array, and a mask of those that are null in frames: INFINITY, or missing.

    Raises `TimeOverflow` for MIN_TIME in a calendar unit, as it is not a date.
    """
    known = times if isinstance(times, np.ndarray) else [INFINITY if time is None else time for time in times]
    ticks = np.asarray(known, dtype=np.int64)
    if is_calendar(unit) and (ticks == MIN_TIME).any():
        raise TimeOverflow(f"MIN_TIME is no date, so a frame with times in {unit} cannot hold it")
    return ticks, ticks == INFINITY


def times_to_pandas(times: Iterable[int | None] | Ticks, unit: Unit | None) -> pd.Series[Any]:
    """Return times as UTC timestamps of a calendar unit, else as integers; INFINITY is null.

    >>> times_to_pandas([1, INFINITY], None).tolist()
    [1, <NA>]
    """
    import pandas as pd

    ticks, null = frame_times(times, unit)
    if not is_calendar(unit):
        return pd.Series(pd.arrays.IntegerArray(ticks, null)) if null.any() else pd.Series(ticks)
    return pd.Series(np.where(null, MIN_TIME, ticks).view(f"datetime64[{unit}]")).dt.tz_localize("UTC")


def series(values: Values) -> pd.Series[Any]:
    """Return values as a lossless pandas column: typed if all are of one type or None, else of Python objects.

    >>> series([2**53 + 1, None]).tolist(), series([1, 0.5]).dtype
    ([9007199254740993, <NA>], dtype('O'))
    """
    import pandas as pd

    if isinstance(values, np.ndarray) and values.dtype != object:
        return pd.Series(values)
    values = [plain(value) for value in values]
    null = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(values))
    kinds = {type(value) for value in values} - {type(None)}
    typed = _typed(values, kinds.pop(), null) if len(kinds) == 1 else None
    return pd.Series(np.fromiter(values, dtype=object, count=len(values)), dtype=object) if typed is None else typed


def _typed(values: list[Any], kind: type, null: NDArray[np.bool_]) -> pd.Series[Any] | None:
    """Return values of one type and None as a typed column; None if pandas has no lossless type."""
    if kind in (int, float, bool):
        return _numbers(values, kind, null)
    if kind is str:
        return _text(values)
    if kind is datetime:
        return _dates(values)
    return _durations(values) if kind is timedelta else None


def _numbers(values: list[Any], kind: type, null: NDArray[np.bool_]) -> pd.Series[Any] | None:
    import pandas as pd

    filled = [kind(0) if value is None else value for value in values] if null.any() else values
    if kind is int and not (min(filled) >= -(2**63) and max(filled) < 2**63):
        return None
    numbers: NDArray[Any] = np.array(filled, dtype={int: np.int64, float: np.float64, bool: np.bool_}[kind])
    if not null.any():
        return pd.Series(numbers)
    if kind is float and np.isnan(numbers).any():
        return None
    arrays = {int: pd.arrays.IntegerArray, float: pd.arrays.FloatingArray, bool: pd.arrays.BooleanArray}
    return pd.Series(arrays[kind](numbers, null))


def _text(values: list[Any]) -> pd.Series[Any] | None:
    import pandas as pd

    try:
        return pd.Series(values)
    except ValueError:  # a lone surrogate: pandas stores text in Arrow, which refuses it
        return None


def _dates(values: list[Any]) -> pd.Series[Any] | None:
    import pandas as pd

    zones = {value.tzinfo for value in values if value is not None}
    if zones == {None}:
        return pd.Series(np.array(values, dtype="datetime64[us]"))
    if zones != {UTC}:
        return None
    naive = [None if value is None else value.replace(tzinfo=None) for value in values]
    return pd.Series(np.array(naive, dtype="datetime64[us]")).dt.tz_localize("UTC")


def _durations(values: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(np.array(values, dtype="timedelta64[us]"))
