"""What a named source can be bound to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from unittest.mock import patch

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import QueryError, SchemaError, UnitError
from streamdsl.expr.schema import Schema
from streamdsl.io import readers
from streamdsl.io.libraries import is_frame
from streamdsl.io.readers import bind, read_rows
from streamdsl.plan.node import Source
from streamdsl.result import Result
from streamdsl.temporal import CHT, Cti, Insert, value_arrays

TRIPS = Source("trips")
ROW = Insert(0, 1, 5, {"v": 7})


@pytest.mark.parametrize(
    "value",
    [
        read_rows([(1, 5, {"v": 7})]),
        [ROW],
        (ROW,),
        iter([ROW]),
        (event for event in [ROW]),
        [(1, 5, {"v": 7})],
        CHT.from_rows([(1, 5, {"v": 7})]),
        pd.DataFrame({"le": [1], "re": [5], "v": [7]}),
        pl.DataFrame({"le": [1], "re": [5], "v": [7]}),
        pa.table({"le": [1], "re": [5], "v": [7]}),
        pa.record_batch({"le": [1], "re": [5], "v": [7]}),
        pd.DataFrame({"kind": ["insert"], "id": [0], "le": [1], "re": [5], "re_new": [None], "v": [7]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_holds_events_can_be_bound(value: Any) -> None:
    bound = bind(value, TRIPS)
    assert list(bound.events()) == list(bound.events()) == [ROW]
    assert bound.unit == "tick"


def test_a_lazy_frame_is_known_without_being_collected() -> None:
    lazy = pl.LazyFrame({"le": [1], "v": [7]}).map_batches(lambda frame: frame.select("nothing"))
    assert is_frame(lazy)
    assert not any(map(is_frame, ([ROW], {"le": [1]}, pd.Series([1]), pl.Series([1]), pd.DataFrame, None)))
    assert list(bind(pl.LazyFrame({"le": [1], "v": [7]}), TRIPS).events()) == [Insert(0, 1, 2, {"v": 7})]


def test_a_result_binds_with_its_ctis() -> None:
    assert list(bind(Result.from_events([ROW, Cti(9)], "tick"), TRIPS).events()) == [ROW, Cti(9)]


def test_a_bound_stays_itself() -> None:
    bound = read_rows([(1, 5, "x")])
    assert bind(bound, TRIPS) is bound


def test_a_frame_without_re_gives_points() -> None:
    assert list(bind(pd.DataFrame({"le": [1], "v": [7]}), TRIPS).events()) == [Insert(0, 1, 2, {"v": 7})]


def test_an_empty_list_has_no_unit_yet() -> None:
    assert bind([], TRIPS).unit is None


@dataclass
class Trip:
    v: int


def test_the_sources_payload_and_unit_count() -> None:
    source = Source("trips", Schema.of_type(Trip), "s")
    frame = pd.DataFrame({"le": pd.to_datetime(["1970-01-01T00:00:07"]), "v": [7], "extra": [0]})
    assert list(bind(frame, source).events()) == [Insert(0, 7, 8, Trip(7))]
    assert list(bind([(7, datetime(1970, 1, 1, 0, 0, 8), Trip(7))], source).events()) == [Insert(0, 7, 8, Trip(7))]
    assert bind(CHT.from_rows([(7, 8, Trip(7))]), source).unit == "s"
    with pytest.raises(SchemaError, match="the columns are: le, w"):
        bind(pd.DataFrame({"le": [1], "w": [7]}), source)
    with pytest.raises(SchemaError, match="Trip"):
        bind([(7, 8, {"v": 7})], source)


def test_another_unit_than_the_sources_is_refused() -> None:
    for value in (read_rows([(1, 5, "x")], unit="ms"), CHT.from_rows([(1, 5, "x")], "ms")):
        with pytest.raises(UnitError, match=r"'trips' counts time in s, its input in ms"):
            bind(value, Source("trips", None, "s"))


@pytest.mark.parametrize("value", [5, None, {"le": [1]}, "trips.csv", Cti(1)])
def test_anything_else_is_refused_and_told_what_can_be_bound(value: Any) -> None:
    with pytest.raises(
        QueryError, match=rf"'trips' cannot be bound to a {type(value).__name__}[\s\S]*Hint: bind a list of events"
    ):
        bind(value, TRIPS)


@pytest.mark.parametrize("value", [[(1, 5)], [(1, 5, "x"), 5], [(1, 5, "x")] * 5000 + [ROW]])
def test_what_is_no_row_is_refused_and_told_by_its_number(value: Any) -> None:
    with pytest.raises(QueryError, match=rf"row {len(value) - 1} is not a tuple \(le, re, payload\)"):
        bind(value, TRIPS)


@pytest.mark.parametrize("value", [[ROW, (1, 5, "x")], [ROW, 5]])
def test_lists_of_other_things_are_refused(value: Any) -> None:
    with pytest.raises(QueryError, match="an item that is a"):
        bind(value, TRIPS)


values = st.one_of(st.integers(-2, 2), st.sampled_from([True, False, None, 0.5, 1.0, "a", 2**63]))
rows_of_pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(4, 6), st.tuples(values, values)), max_size=9)


@given(rows_of_pairs, st.integers(1, 3))
def test_rows_that_are_read_a_few_at_a_time_are_the_same_rows(rows: list[Any], size: int) -> None:
    with patch.object(readers, "_AT_ONCE", size), patch.object(value_arrays, "_CHUNK", size):
        found = bind(rows, TRIPS)
        assert repr(list(found.events())) == repr([Insert(number, *row) for number, row in enumerate(rows)])
        whole = found.whole()
    together = whole if isinstance(whole, list) else list(whole.events())
    assert repr(together) == repr(list(found.events()))


def test_an_odd_payload_in_a_later_piece_is_told_by_its_number() -> None:
    with patch.object(readers, "_AT_ONCE", 2), pytest.raises(SchemaError, match="event 3 "):
        bind([(1, 5, ("x",))] * 3 + [(1, 5, ("x", "y"))], TRIPS)


def test_a_payload_alone_is_told_what_a_row_is() -> None:
    with pytest.raises(QueryError, match=r"Hint: .*the row \(1, 5, payload\)"):
        sd.from_rows([{"v": 1}])  # type: ignore[list-item]
    with pytest.raises(QueryError, match="Hint: events and rows do not mix"):
        sd.from_rows([(1, 2, "x"), sd.point("a", 1, "x")])  # type: ignore[list-item]


def test_a_generator_that_has_been_read_is_refused() -> None:
    query = sd.source("s", unit="tick").select(lambda e: e)
    rows = ((t, t + 1, t) for t in range(3))
    assert len(query.run({"s": rows}).cht()) == 3
    with pytest.raises(QueryError, match=r"read to its end\nHint: .*list"):
        query.run({"s": rows})
