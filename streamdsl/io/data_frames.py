"""Conversion of CHTs and physical events to pandas, Arrow and polars frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import SchemaError, TimeOverflow
from streamdsl.expr.arrow_buffers import as_arrow, text_array
from streamdsl.expr.deferred import DeferredColumns
from streamdsl.expr.schema import Schema
from streamdsl.extras import need, need_pyarrow
from streamdsl.io.layout import PHYSICAL
from streamdsl.io.values import unnested
from streamdsl.plan.types import Hints
from streamdsl.temporal import MISSING, Cti, Event, Insert, Retract, Unit, is_calendar
from streamdsl.temporal.events import PhysicalEvent
from streamdsl.temporal.pandas_frames import (
    MEMO,
    HistoryColumns,
    PayloadMemo,
    Values,
    column_names,
    frame_times,
    history_to_pandas,
    pandas_frame,
    payload_columns,
    series,
    times_to_pandas,
)
from streamdsl.temporal.time import INFINITY, Ticks

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_POLARS_SCALE = {"s": ("ms", 1000), "ms": ("ms", 1), "us": ("us", 1), "ns": ("ns", 1)}

__all__ = [
    "PhysicalRows",
    "events_to_pandas",
    "history_to_arrow",
    "history_to_pandas",
    "history_to_polars",
    "physical_to_arrow",
    "physical_to_polars",
]


@dataclass(frozen=True, slots=True)
class PhysicalRows:
    """Physical events in columns: insertions and retractions, their ids as an Arrow array, and CTIs with their positions.

    The `re_new` of an insertion is INFINITY.
    """

    is_retraction: NDArray[np.bool_]
    ids: Any
    le: Ticks
    re: Ticks
    re_new: Ticks
    fields: Mapping[str, Values]
    memo: PayloadMemo | None
    types: Hints
    unit: Unit | None
    cti_places: NDArray[np.intp]
    ctis: Ticks

    @property
    def names(self) -> list[str]:
        """The names of the fields' columns in a frame."""
        return column_names(list(self.fields), PHYSICAL)

    @property
    def places(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """For each event its row among insertions and retractions (0 for a CTI), and whether it is a CTI."""
        is_cti = self._are_ctis
        return np.where(is_cti, 0, np.cumsum(~is_cti) - 1), is_cti

    @property
    def _are_ctis(self) -> NDArray[np.bool_]:
        is_cti = np.zeros(len(self.le) + len(self.ctis), dtype=np.bool_)
        is_cti[self.cti_places] = True
        return is_cti

    def times(self) -> dict[str, Ticks]:
        """Return the time columns over all events; the time of a CTI is its `le`."""
        columns, is_row = {"le": self.le, "re": self.re, "re_new": self.re_new}, ~self._are_ctis
        spread = {name: np.full(len(is_row), INFINITY) for name in columns}
        for name, times in columns.items():
            spread[name][is_row] = times
        spread["le"][self.cti_places] = self.ctis
        return spread

    def kinds(self) -> list[str]:
        """Return the kind of each event as text."""
        names = list(_KINDS.values())
        return [names[code] for code in self.kind_codes().tolist()]

    def kind_codes(self) -> NDArray[np.int8]:
        """Return the kind of each event as a code: 0 is an insertion, 1 a retraction, 2 a CTI."""
        kinds = np.empty(len(self.le) + len(self.ctis), dtype=np.int8)
        kinds[self.cti_places] = _CTI
        kinds[~self._are_ctis] = self.is_retraction
        return kinds

    def over_all(self, values: Any) -> Any:
        """Return an Arrow array over insertions and retractions as one over all events, null at CTIs."""
        row, is_cti = self.places
        return values.take(as_arrow(row, is_cti)) if len(self.ctis) else values


def events_to_pandas(
    events: Iterable[PhysicalEvent[Any]], unit: Unit | None = None, schema: Schema | None = None
) -> pd.DataFrame:
    """Return events as a physical frame: `kind, id, le, re, re_new`, then the payload's fields; the time of a CTI is its `le`.

    INFINITY is null, and so are times that a kind of event does not have, and the fields of a missing payload. The fields of
    `schema` are columns even if no event has a payload.

    >>> events_to_pandas([Insert("a", 1, 5, {"v": 7}), Cti(6)])["kind"].tolist()
    ['insert', 'cti']
    """
    listed = list(cast(Iterable[Event[Any]], events))
    payloads = [MISSING if isinstance(event, Cti) else event.payload for event in listed]
    leading = {
        "kind": series([_KINDS[type(event)] for event in listed]),
        "id": series([None if isinstance(event, Cti) else event.id for event in listed]),
        "le": times_to_pandas([event.time if isinstance(event, Cti) else event.le for event in listed], unit),
        "re": times_to_pandas([None if isinstance(event, Cti) else event.re for event in listed], unit),
        "re_new": times_to_pandas([event.re_new if isinstance(event, Retract) else None for event in listed], unit),
    }
    return pandas_frame(leading, *payload_columns(payloads, schema.names if schema else ()))


_KINDS: dict[type, str] = {Insert: "insert", Retract: "retract", Cti: "cti"}
_CTI = 2
_RUN: Final = 64
"""Average length of runs of one kind from which each run shares a constant array."""


def history_to_arrow(history: HistoryColumns, types: Hints | None = None) -> Any:
    """Return a history as an Arrow table, columns as in `history_to_pandas`.

    `types` are the declared types of the fields: a column of nulls, or of integers where floats are declared, gets its type from
    there. Nested records become structs, exact big ints decimals, members of an enum their names. Raises `SchemaError` for values
    that Arrow has no type for, and `QueryError` without pyarrow.
    """
    need_pyarrow("Arrow tables")
    start, end = history.times
    arrays = {start: _arrow_times(history.le, history.unit), end: _arrow_times(history.re, history.unit)}
    found = _arrow_arrays(history.fields, types or {})
    return _arrow_table({**arrays, **dict(zip(history.names, found, strict=True))}, history.memo)


def physical_to_arrow(physical: PhysicalRows) -> Any:
    """Return physical events as an Arrow table; raises as `history_to_arrow` does."""
    columns = {"le": physical.le, "re": physical.re, "re_new": physical.re_new}
    times = {name: _arrow_times(each, physical.unit) for name, each in columns.items()}
    fields = zip(physical.names, _arrow_arrays(physical.fields, physical.types), strict=True)
    rows = _arrow_table({"kind": _row_kinds(physical.is_retraction), "id": physical.ids, **times, **dict(fields)}, physical.memo)
    return _with_ctis(rows, physical) if len(physical.ctis) else rows


def _with_ctis(rows: Any, physical: PhysicalRows) -> Any:
    """Return insertions and retractions interleaved with the CTIs; nothing is copied if all CTIs come last."""
    import pyarrow as pa

    ctis = {"kind": _repeated("cti", len(physical.ctis)), "le": _arrow_times(physical.ctis, physical.unit)}
    columns = [ctis.get(field.name, pa.nulls(len(physical.ctis), field.type)) for field in rows.schema]
    table = pa.concat_tables([rows, pa.Table.from_arrays(columns, schema=rows.schema)])
    if physical.cti_places[0] == len(rows):
        return table
    row, is_cti = physical.places
    row[is_cti] = np.arange(len(rows), len(table))
    return table.take(as_arrow(row))


def _row_kinds(is_retraction: NDArray[np.bool_]) -> Any:
    """Return the kinds of insertions and retractions as text; long runs share constant arrays instead of a value per row."""
    import pyarrow as pa

    starts = [0, *(1 + np.flatnonzero(is_retraction[1:] != is_retraction[:-1])).tolist()]
    if len(starts) * _RUN > len(is_retraction):
        return text_array(["insert", "retract"]).take(as_arrow(is_retraction.view(np.int8)))
    runs = zip(starts, [*starts[1:], len(is_retraction)], strict=True)
    return pa.chunked_array([_repeated("retract" if is_retraction[start] else "insert", stop - start) for start, stop in runs])


def _repeated(kind: str, times: int) -> Any:
    return _repeats(kind, max(times - 1, 1).bit_length()).slice(0, times)


@lru_cache(maxsize=16)
def _repeats(kind: str, bits: int) -> Any:
    import pyarrow as pa

    return pa.repeat(text_array([kind])[0], 1 << bits)


def _arrow_table(arrays: Mapping[str, Any], memo: PayloadMemo | None) -> Any:
    import pyarrow as pa

    for name in arrays:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise SchemaError(
                f"the field {name!r} has no name that Arrow can hold: it is no Unicode", hint="select it under another name"
            )
    return pa.table(dict(arrays)).replace_schema_metadata({MEMO: json.dumps(memo)} if memo else None)


def _arrow_arrays(fields: Mapping[str, Values], types: Hints) -> list[Any]:
    from streamdsl.io.arrow_values import arrow_array

    parts: Mapping[str, Any] = fields.parts if isinstance(fields, DeferredColumns) else fields
    return [arrow_array(name, values, types.get(name)) for name, values in parts.items()]


def _arrow_times(times: Ticks, unit: Unit | None) -> Any:
    import pyarrow as pa

    ticks, null = frame_times(times, unit)
    array = as_arrow(ticks, null if null.any() else None)
    return array.cast(pa.timestamp(unit, tz="UTC")) if is_calendar(unit) else array


def history_to_polars(history: HistoryColumns) -> pl.DataFrame:
    """Return a history as a polars frame, columns as in `history_to_pandas`; values of mixed types stay Python objects.

    Times in seconds become milliseconds, as polars has no unit of seconds. Raises `TimeOverflow` where that leaves int64, and
    `QueryError` without polars.
    """
    need("polars", "polars frames")
    import polars as pl

    start, end = history.times
    times = [_polars_times(start, history.le, history.unit), _polars_times(end, history.re, history.unit)]
    fields = zip(history.names, history.fields.values(), strict=True)
    return pl.DataFrame([*times, *(_polars_series(name, values) for name, values in fields)])


def physical_to_polars(physical: PhysicalRows) -> pl.DataFrame:
    """Return physical events as a polars frame; raises as `history_to_polars` does."""
    need("polars", "polars frames")
    import polars as pl

    row, is_cti = physical.places

    def over_all(name: str, values: Values) -> pl.Series:
        if not is_cti.any():
            return _polars_series(name, values)
        listed = values.tolist() if isinstance(values, np.ndarray) else [*values]
        return _polars_series(name, [None if cti else listed[n] for n, cti in zip(row.tolist(), is_cti.tolist(), strict=True)])

    times = [_polars_times(name, each, physical.unit) for name, each in physical.times().items()]
    fields = [over_all(name, values) for name, values in zip(physical.names, physical.fields.values(), strict=True)]
    kinds = pl.Series("kind", physical.kinds(), dtype=pl.String)
    ids = over_all("id", physical.ids.to_pylist()).cast(pl.String)
    return pl.DataFrame([kinds, ids, *times, *fields])


def _polars_times(name: str, times: Ticks, unit: Unit | None) -> pl.Series:
    import polars as pl

    ticks, null = frame_times(times, unit)
    known = [None if infinite else time for time, infinite in zip(ticks.tolist(), null.tolist(), strict=True)]
    if unit is None or not is_calendar(unit):
        return pl.Series(name, known, dtype=pl.Int64)
    polars_unit, factor = _POLARS_SCALE[unit]
    scaled = [None if time is None else time * factor for time in known]
    if any(time is not None and not -(2**63) <= time < 2**63 for time in scaled):
        raise TimeOverflow(f"a time in {unit} is outside the range of polars' int64 {polars_unit}")
    return pl.Series(name, scaled, dtype=pl.Int64).cast(pl.Datetime(polars_unit, "UTC"))  # type: ignore[arg-type]


def _polars_series(name: str, values: Values) -> pl.Series:
    """Return values as a series of the type that holds them exactly, else of Python objects."""
    import polars as pl

    if isinstance(values, np.ndarray):
        if values.dtype != object:
            return pl.Series(name, values)
        values = values.tolist()
    plain_values = [unnested(value) for value in values]
    kinds = {type(value) for value in plain_values} - {type(None)}
    if kinds == {int, float} and all(abs(value) <= 2**53 for value in plain_values if type(value) is int):
        return pl.Series(name, plain_values, dtype=pl.Float64, strict=False)
    if len(kinds) > 1 or any(isinstance(value, Decimal) and not value.is_finite() for value in plain_values):
        return pl.Series(name, values, dtype=pl.Object)
    try:
        column = pl.Series(name, plain_values, strict=True)
    except Exception:  # polars raises errors of many types for values that it has no type for
        return pl.Series(name, values, dtype=pl.Object)
    return pl.Series(name, values, dtype=pl.Object) if kinds & {dict, list} and column.to_list() != plain_values else column
