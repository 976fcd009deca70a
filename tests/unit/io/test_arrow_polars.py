"""Arrow tables and polars frames in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamdsl.errors import EventError, QueryError, SchemaError, TimeOverflow, UnitError
from streamdsl.io.binding import Bound, Inserts
from streamdsl.io.readers import read_arrow, read_polars
from streamdsl.temporal import INFINITY, Insert

BIG = 2**53 + 1
SECONDS = 1360281600


def inserts(bound: Bound) -> Inserts:
    (piece,) = bound.pieces()
    assert isinstance(piece, Inserts)
    return piece


def lifetimes(bound: Bound) -> list[tuple[int, int]]:
    piece = inserts(bound)
    return list(zip(piece.le.tolist(), piece.re.tolist(), strict=True))


def arrow_column(array: pa.Array) -> np.ndarray[Any, Any]:
    return inserts(read_arrow(pa.table({"le": pa.array(range(len(array))), "v": array}))).table.columns["v"]


def polars_column(series: pl.Series) -> np.ndarray[Any, Any]:
    frame = pl.DataFrame({"le": range(len(series)), "v": series})
    return inserts(read_polars(frame)).table.columns["v"]


def moments(unit: str, zone: str | None = None) -> pa.Array:
    return (
        pa.array([dt.datetime(2013, 2, 8), None])
        .cast(pa.timestamp(unit))
        .cast(pa.timestamp(unit, tz=zone) if zone else pa.timestamp(unit))
    )


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_arrow_dates_of_any_resolution_and_zone(unit: str, zone: str | None) -> None:
    table = pa.table({"le": moments(unit)[:1], "re": moments(unit, zone)[1:]})
    assert lifetimes(read_arrow(table, end="re", unit="s")) == [(SECONDS, INFINITY)]
    table = pa.table({"le": pa.array([SECONDS]).cast(pa.timestamp("s", tz=zone))})
    assert lifetimes(read_arrow(table)) == [(SECONDS * 10**6, SECONDS * 10**6 + 1)]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()]
)
def test_arrow_days_and_text_are_dates(kind: pa.DataType) -> None:
    day = pa.array(["2013-02-08"] if "string" in str(kind) else [dt.date(2013, 2, 8)])
    table = pa.table({"le": day.dictionary_encode() if pa.types.is_dictionary(kind) else day.cast(kind)})
    assert lifetimes(read_arrow(table, unit="s")) == [(SECONDS, SECONDS + 1)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float64()])
def test_arrow_numbers_are_ticks(kind: pa.DataType) -> None:
    table = pa.table({"le": pa.array([3, 4], type=kind), "re": pa.array([None, 9], type=kind)})
    assert lifetimes(read_arrow(table, end="re")) == [(3, INFINITY), (4, 9)]
    assert read_arrow(table, end="re").unit == "tick"


def test_a_column_of_nulls_only_is_infinite() -> None:
    assert lifetimes(read_arrow(pa.table({"le": [1], "re": pa.nulls(1)}), end="re")) == [(1, INFINITY)]
    assert lifetimes(read_polars(pl.DataFrame({"le": [1], "re": [None]}), end="re")) == [(1, INFINITY)]


@pytest.mark.parametrize(
    "values",
    [
        [BIG, None],
        [0.5, None],
        [True, None],
        ["a", None],
        [Decimal("0.10"), None],
        [dt.date(2013, 2, 8), None],
        [dt.datetime(2013, 2, 8, 1), None],
        [dt.datetime(2013, 2, 8, 1, tzinfo=dt.UTC), None],
        [dt.timedelta(seconds=1), None],
        [dt.time(1, 2), None],
        [{"a": 1, "b": [1, 2]}, None],
        [b"x", None],
        [None, None],
    ],
)
def test_values_come_out_as_plain_python(values: list[Any]) -> None:
    for found in (arrow_column(pa.array(values)).tolist(), polars_column(pl.Series(values)).tolist()):
        assert found == values
        assert list(map(type, found)) == list(map(type, values))


@pytest.mark.parametrize(("values", "dtype"), [([1, 2], np.int64), ([0.5, 1.0], np.float64), ([True, False], np.bool_)])
def test_typed_columns_stay_typed(values: list[Any], dtype: Any) -> None:
    chunked = pa.chunked_array([pa.array(values[:1]), pa.array(values[1:])])
    assert arrow_column(pa.array(values)).dtype == arrow_column(chunked).dtype == polars_column(pl.Series(values)).dtype == dtype
    assert arrow_column(chunked).tolist() == values


def test_a_nan_is_not_a_null() -> None:
    for found in (arrow_column(pa.array([float("nan"), None])), polars_column(pl.Series([float("nan"), None]))):
        assert found[0] != found[0]
        assert found[1] is None


def test_unsigned_and_wide_integers_stay_exact() -> None:
    assert arrow_column(pa.array([2**64 - 1], type=pa.uint64())).tolist() == [2**64 - 1]
    assert polars_column(pl.Series([2**64 - 1], dtype=pl.UInt64)).tolist() == [2**64 - 1]
    assert polars_column(pl.Series([2**100], dtype=pl.Int128)).tolist() == [2**100]


def test_unsigned_times_beyond_int64_are_refused() -> None:
    with pytest.raises(TimeOverflow, match="row 0"):
        read_arrow(pa.table({"le": pa.array([2**63], type=pa.uint64())}))
    with pytest.raises(TimeOverflow, match="row 0"):
        read_polars(pl.DataFrame({"le": pl.Series([2**63], dtype=pl.UInt64)}))


def test_categories_are_text() -> None:
    assert arrow_column(pa.array(["a", None, "a"]).dictionary_encode()).tolist() == ["a", None, "a"]
    assert polars_column(pl.Series(["a", None, "a"], dtype=pl.Categorical)).tolist() == ["a", None, "a"]


def test_nanoseconds_stay() -> None:
    late = pd.Timestamp("2013-02-08T00:00:00.000000001")
    even = dt.datetime(2013, 2, 8)
    array = pa.array([late, even, None], type=pa.timestamp("ns"))
    assert arrow_column(array).tolist() == [late, even, None]
    assert polars_column(pl.Series(array)).tolist() == [late, even, None]
    zoned = pl.Series(array).dt.replace_time_zone("UTC")
    assert polars_column(zoned).tolist() == [late.tz_localize("UTC"), even.replace(tzinfo=dt.UTC), None]
    assert polars_column(pl.Series([1], dtype=pl.Int64).cast(pl.Duration("ns"))).tolist() == [pd.Timedelta(1, "ns")]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_polars_dates_of_any_resolution(unit: Any) -> None:
    start = pl.Series([dt.datetime(2013, 2, 8)]).cast(pl.Datetime(unit))
    end = pl.Series([None], dtype=pl.Datetime(unit, "Asia/Tokyo"))
    frame = pl.DataFrame({"le": start, "re": end})
    assert lifetimes(read_polars(frame, end="re", unit="s")) == [(SECONDS, INFINITY)]
    assert lifetimes(read_polars(frame.lazy().drop("re"))) == [(SECONDS * 10**6, SECONDS * 10**6 + 1)]


def test_polars_days_and_text_are_dates() -> None:
    for day in (dt.date(2013, 2, 8), "2013-02-08"):
        assert lifetimes(read_polars(pl.DataFrame({"le": [day]}), unit="s")) == [(SECONDS, SECONDS + 1)]


def test_part_of_a_unit_and_a_null_start_are_refused() -> None:
    with pytest.raises(UnitError, match="row 1"):
        read_arrow(pa.table({"le": pa.array([0, 1]).cast(pa.timestamp("ns"))}))
    with pytest.raises(UnitError, match="row 1"):
        read_polars(pl.DataFrame({"le": pl.Series([0, 1]).cast(pl.Datetime("ns"))}))
    with pytest.raises(EventError, match="row 1"):
        read_arrow(pa.table({"le": [1, None]}))
    with pytest.raises(EventError, match="row 1"):
        read_polars(pl.DataFrame({"le": [1, None]}))


def test_record_batches_and_whatever_speaks_arrow() -> None:
    batch = pa.record_batch({"le": [1], "v": ["x"]})
    assert list(read_arrow(batch).events()) == [Insert(0, 1, 2, {"v": "x"})]
    assert list(read_arrow(pa.RecordBatchReader.from_batches(batch.schema, [batch])).events()) == [Insert(0, 1, 2, {"v": "x"})]


def test_names_must_be_unique_and_the_value_a_frame() -> None:
    with pytest.raises(SchemaError, match="same name"):
        read_arrow(pa.Table.from_arrays([pa.array([1])] * 2, names=["le", "le"]))
    with pytest.raises(QueryError, match="an Arrow table is expected, not a list"):
        read_arrow([1])
    with pytest.raises(QueryError, match="a polars frame is expected, not a dict"):
        read_polars({"le": [1]})  # type: ignore[arg-type]


def test_pandas_own_index_column_is_no_field() -> None:
    table = pa.Table.from_pandas(pd.DataFrame({"le": [1, 2], "v": [3, 4]}).iloc[1:])
    assert [event.payload for event in read_arrow(table).events()] == [{"v": 4}]  # type: ignore[union-attr]
