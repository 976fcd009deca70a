"""Frames out, and the round trip: what comes out of a history goes back in as the same history."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import SchemaError, TimeOverflow
from streamdsl.io.binding import Bound
from streamdsl.io.data_frames import history_to_arrow, history_to_polars
from streamdsl.io.readers import read_arrow, read_pandas, read_polars
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Record, Unit
from streamdsl.temporal.pandas_frames import HistoryColumns
from streamdsl.temporal.payload import payload_order

BIG = 2**53 + 1


def cht_to_arrow(cht: CHT[Any]) -> Any:
    return history_to_arrow(HistoryColumns.of(cht))


def cht_to_polars(cht: CHT[Any]) -> pl.DataFrame:
    return history_to_polars(HistoryColumns.of(cht))


COLUMNS: list[st.SearchStrategy[Any]] = [
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(dt.timedelta(days=-1000), dt.timedelta(days=1000)),
    st.none(),
]
MIXED: list[st.SearchStrategy[Any]] = [
    st.one_of(st.integers(), st.floats(), st.booleans()),
    st.one_of(st.integers(), st.text()),
    st.dates(),
    st.decimals(allow_nan=False, places=2),
    st.dictionaries(st.sampled_from("ab"), st.integers()),
    st.datetimes(timezones=st.timezones()),
]
NESTED = st.tuples(st.integers(), st.text())
NAMES = ("k", "v", "value", "_0", "a b", "le", "re", "payload_le")
CLEAR = NAMES[:5]
"""Names that no time has. A polars frame has no place to remember that a field was called le or re."""


@st.composite
def histories(
    draw: st.DrawFn,
    columns: list[st.SearchStrategy[Any]],
    unit: Unit = "tick",
    low: int = MIN_TIME,
    high: int = INFINITY - 1,
    names: tuple[str, ...] = NAMES,
) -> CHT[Any]:
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    fields = {name: draw(st.sampled_from(columns)) for name in chosen}
    make = st.fixed_dictionaries({name: st.none() | values for name, values in fields.items()})
    return CHT.from_rows(draw(_rows(make, low, high)), unit)


def _rows(payloads: st.SearchStrategy[Any], low: int, high: int) -> st.SearchStrategy[list[tuple[int, int, Any]]]:
    times = st.integers(low, high)
    lifetimes = st.tuples(times, times | st.just(INFINITY)).map(sorted)
    return st.lists(st.tuples(lifetimes, payloads).map(lambda row: (row[0][0], row[0][1], row[1])), max_size=5)


def dates(columns: list[st.SearchStrategy[Any]]) -> st.SearchStrategy[CHT[Any]]:
    units: st.SearchStrategy[Unit] = st.sampled_from(("s", "ms", "us", "ns"))
    return units.flatmap(lambda unit: histories(columns, unit, -(2**62), 2**62))


def again(bound: Bound) -> CHT[Any]:
    return CHT.from_rows(((e.le, e.re, e.payload) for e in bound.events()), bound.unit)  # type: ignore[union-attr]


def types(cht: CHT[Any]) -> Counter[Any]:
    return Counter(
        (row.le, row.re, tuple(sorted((name, type(value).__name__) for name, value in row.payload.items()))) for row in cht
    )


@given(histories([*COLUMNS, *MIXED, NESTED]) | dates([*COLUMNS, *MIXED, NESTED]))
def test_pandas_gives_every_history_back(cht: CHT[Any]) -> None:
    bound = read_pandas(cht.to_pandas(), start="le", end="re", unit=cht.unit)
    back = again(bound)
    assert back == cht
    assert types(back) == types(cht)
    assert bound.unit == cht.unit


@given(histories(COLUMNS) | dates(COLUMNS))
def test_arrow_gives_every_typed_history_back(cht: CHT[Any]) -> None:
    bound = read_arrow(cht_to_arrow(cht), end="re", unit=cht.unit)
    assert again(bound) == cht
    assert bound.unit == cht.unit


@given(histories(COLUMNS + MIXED, names=CLEAR) | histories(COLUMNS + MIXED, "s", -(2**50), 2**50, CLEAR))
def test_polars_gives_every_history_back(cht: CHT[Any]) -> None:
    bound = read_polars(cht_to_polars(cht), end="re", unit=cht.unit)
    assert again(bound) == cht
    assert bound.unit == cht.unit


@given(_rows(st.one_of(st.integers(), st.text(), st.none(), st.floats()) | st.lists(st.integers()), 0, 9))
def test_scalars_come_back_as_scalars(rows: list[tuple[int, int, Any]]) -> None:
    cht: CHT[Any] = CHT.from_rows([(le, re, payload) for le, re, payload in rows if not _text_and_nan(rows)])
    assert again(read_pandas(cht.to_pandas(), end="re")) == cht


def _text_and_nan(rows: list[tuple[int, int, Any]]) -> bool:
    """Say whether text stands beside a NaN, which in a pandas column of objects means missing text."""
    payloads = [payload for _, _, payload in rows]
    return any(isinstance(p, str) for p in payloads) and any(isinstance(p, float) and math.isnan(p) for p in payloads)


@given(_rows(st.tuples(st.integers(), st.none() | st.text()), 0, 9))
def test_tuples_come_back_as_tuples(rows: list[tuple[int, int, Any]]) -> None:
    cht: CHT[Any] = CHT.from_rows(rows)
    assert again(read_pandas(cht.to_pandas(), end="re")) == again(read_arrow(cht_to_arrow(cht), end="re")) == cht


@dataclass
class Trip:
    le: int
    fare: float


def test_dataclasses_come_back_with_their_class() -> None:
    cht = CHT.from_rows([(1, INFINITY, Trip(7, 2.5)), (1, 3, Trip(8, math.nan))])
    assert again(read_pandas(cht.to_pandas(), Trip, end="re")) == cht
    assert again(read_arrow(cht_to_arrow(cht), Trip, end="re")) == cht


def test_the_columns_of_a_history_of_ticks() -> None:
    frame = CHT.from_rows([(1, 5, {"k": "a", "v": BIG}), (2, 9, {"k": "b", "v": 1})]).to_pandas()
    assert frame.columns.tolist() == ["le", "re", "k", "v"]
    assert [str(dtype) for dtype in frame.dtypes.drop("k")] == ["int64", "int64", "int64"]
    assert frame.to_dict("list") == {"le": [1, 2], "re": [5, 9], "k": ["a", "b"], "v": [BIG, 1]}


def test_infinity_is_null() -> None:
    frame = CHT.from_rows([(1, INFINITY, "x")]).to_pandas()
    assert str(frame["re"].dtype) == "Int64"
    assert frame["re"].isna().all()
    frame = CHT.from_rows([(1, INFINITY, "x")], "ms").to_pandas()
    assert str(frame["re"].dtype) == "datetime64[ms, UTC]"
    assert frame["re"].isna().all()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_calendar_times_are_utc_timestamps_of_the_unit(unit: Unit) -> None:
    cht: CHT[int] = CHT.from_rows([("2013-02-08", "2013-02-09T00:00:01Z", 1)], unit)
    frame = cht.to_pandas()
    assert str(frame["le"].dtype) == f"datetime64[{unit}, UTC]"
    expected = [pd.Timestamp("2013-02-08", tz="UTC"), pd.Timestamp("2013-02-09T00:00:01Z")]
    assert [frame["le"][0], frame["re"][0]] == expected
    table = cht_to_arrow(cht)
    assert table.schema.field("le").type == pa.timestamp(unit, tz="UTC")
    assert [table["le"][0].as_py(), table["re"][0].as_py()] == expected
    polars = cht_to_polars(cht)
    assert polars.schema["le"] == pl.Datetime("ms" if unit == "s" else unit, "UTC")  # type: ignore[arg-type]
    assert [polars["le"][0], polars["re"][0]] == expected


def test_an_empty_history_has_its_times_only() -> None:
    for unit, dtype in ((None, "int64"), ("us", "datetime64[us, UTC]")):
        empty: CHT[Any] = CHT.from_rows([], unit)  # type: ignore[arg-type]
        assert empty.to_pandas().columns.tolist() == ["le", "re"]
        assert [str(found) for found in empty.to_pandas().dtypes] == [dtype, dtype]
        assert cht_to_arrow(empty).column_names == cht_to_polars(empty).columns == ["le", "re"]
        assert cht_to_polars(empty).height == cht_to_arrow(empty).num_rows == 0
        assert again(read_pandas(empty.to_pandas(), end="re")) == empty


def test_columns_with_nulls_stay_of_their_type() -> None:
    rows: list[dict[str, Any]] = [
        {"n": BIG, "f": 0.5, "b": True, "s": "a", "t": dt.datetime(2013, 2, 8), "d": dt.timedelta(1)},
        dict.fromkeys("nfbstd"),
    ]
    frame = CHT.from_rows([(0, 9 - row, payload) for row, payload in enumerate(rows)]).to_pandas()
    kinds = frame.drop(columns=["le", "re", "s"]).dtypes.map(str).tolist()
    assert kinds == ["Int64", "Float64", "boolean", "datetime64[us]", "timedelta64[us]"]
    assert frame["n"].dropna().tolist() == [BIG]


def test_pairs_are_two_columns_of_whole_records() -> None:
    left = Record(v=1)
    cht: CHT[Any] = CHT.from_rows([(1, 5, (left, None)), (2, 5, (left, Record(w=2)))])
    frame = cht.to_pandas()
    assert frame.columns.tolist() == ["le", "re", "_0", "_1"]
    assert frame["_0"].tolist() == [left, left]
    assert again(read_pandas(frame, end="re")) == cht
    assert cht_to_arrow(cht)["_1"].to_pylist() == [None, {"w": 2}]
    assert cht_to_polars(cht)["_1"].to_list() == [None, {"w": 2}]


def test_payloads_of_different_fields_have_all_their_columns() -> None:
    frame = CHT.from_rows([(1, 5, {"v": 1}), (2, 5, {"w": "x"})]).to_pandas()
    assert frame.columns.tolist() == ["le", "re", "v", "w"]
    assert [payload for _, _, payload in again(read_pandas(frame, end="re"))] == [{"v": 1, "w": None}, {"v": None, "w": "x"}]


def test_fields_called_like_times_get_a_prefix() -> None:
    frame = CHT.from_rows([(1, 5, {"le": 7, "payload_le": 8})]).to_pandas()
    assert frame.columns.tolist() == ["le", "re", "payload_payload_le", "payload_le"]
    frame = frame.rename(columns={"payload_le": "w"})
    assert [payload for _, _, payload in again(read_pandas(frame, end="re"))] == [{"payload_payload_le": 7, "w": 8}]


def test_min_time_is_no_date() -> None:
    for write in (CHT.to_pandas, cht_to_arrow, cht_to_polars):
        with pytest.raises(TimeOverflow, match="MIN_TIME"):
            write(CHT.from_rows([(MIN_TIME, 5, "x")], "us"))
        assert list(write(CHT.from_rows([(MIN_TIME, 5, "x")]))["le"].to_numpy()) == [MIN_TIME]


def test_seconds_beyond_polars_range_are_refused() -> None:
    with pytest.raises(TimeOverflow, match="polars"):
        cht_to_polars(CHT.from_rows([(2**62, INFINITY, "x")], "s"))


def test_big_integers_are_decimals_in_arrow() -> None:
    cht = CHT.from_rows([(1, 5, {"n": 2**100}), (2, 5, {"n": 1})])
    assert cht_to_arrow(cht)["n"].to_pylist() == [Decimal(2**100), Decimal(1)]


def test_what_arrow_has_no_type_for_is_refused_by_field() -> None:
    with pytest.raises(SchemaError, match=r"field 'v'[\s\S]*to_pandas"):
        cht_to_arrow(CHT.from_rows([(1, 5, {"v": 1}), (2, 5, {"v": "x"})]))


def test_what_polars_has_no_type_for_is_kept_whole() -> None:
    frame = cht_to_polars(CHT.from_rows([(1, 5, {"v": 1, "n": 1}), (2, 5, {"v": "x", "n": 0.5})]))
    assert frame.schema == {"le": pl.Int64, "re": pl.Int64, "v": pl.Object, "n": pl.Float64}
    assert frame["v"].to_list() == [1, "x"]


def test_numpy_values_lose_their_wrappers() -> None:
    cht: CHT[Any] = CHT.from_rows([(1, 5, {"v": np.int64(3)}), (2, 5, {"v": 4})])
    assert str(cht.to_pandas()["v"].dtype) == "int64"
    assert [payload_order(row.payload) for row in again(read_pandas(cht.to_pandas(), end="re"))] == [
        (3, (1, 0, 3)),
        (3, (1, 0, 4)),
    ]


def test_text_that_is_no_unicode_stays() -> None:
    cht = CHT.from_rows([(1, 5, {"s": "\ud800"}), (2, 5, {"s": None})])
    assert again(read_pandas(cht.to_pandas(), end="re")) == cht
    assert cht_to_polars(cht)["s"].to_list() == ["\ud800", None]
