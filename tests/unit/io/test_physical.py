"""Physical frames: events out and in again, and frames that are pushed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import EventError, QueryError, UserCodeError
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Inserts
from streamdsl.io.data_frames import events_to_pandas
from streamdsl.io.readers import read_frame, read_pandas, read_polars
from streamdsl.temporal import INFINITY, MISSING, Cti, Event, Insert, Retract, Unit

IDS = st.integers() | st.text() | st.tuples(st.integers(0, 3), st.text(max_size=2))
PAYLOADS = [
    st.fixed_dictionaries({"id": st.integers(), "v": st.none() | st.text()}),
    st.tuples(st.integers(), st.booleans()),
    st.integers(),
]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Event[Any]], Unit]:
    payloads = draw(st.sampled_from(PAYLOADS))
    times = st.integers(-(2**62), 2**62)
    ends = times | st.just(INFINITY)
    event = st.one_of(
        st.builds(Insert, IDS, times, ends, payloads),
        st.builds(Retract, IDS, times, ends, ends, payloads | st.just(MISSING)),
        st.builds(Cti, ends),
    )
    return draw(st.lists(event, max_size=6)), draw(st.sampled_from(["tick", "s", "ns"]))


@given(streams())
def test_events_come_back_from_their_frame(stream: tuple[list[Event[Any]], Unit]) -> None:
    events, unit = stream
    frame = events_to_pandas(events, unit)
    assert frame.columns.tolist()[:5] == ["kind", "id", "le", "re", "re_new"]
    assert read_frame(frame, unit=unit) == events
    assert list(read_pandas(frame, unit=unit).events()) == events


def test_the_frame_of_a_stream() -> None:
    events: list[Event[Any]] = [Insert("a", 1, INFINITY, {"v": 7}), Retract("a", 1, INFINITY, 4), Cti(5)]
    frame = events_to_pandas(events)
    assert frame.astype(object).where(frame.notna(), None).to_dict("list") == {
        "kind": ["insert", "retract", "cti"],
        "id": ["a", "a", None],
        "le": [1, 1, 5],
        "re": [None, None, None],
        "re_new": [None, 4, None],
        "v": [7, None, None],
    }
    assert str(events_to_pandas(events, "us")["le"].dtype) == "datetime64[us, UTC]"


def test_a_schema_gives_columns_without_a_payload() -> None:
    assert events_to_pandas([Cti(1)], schema=Schema.record(["k", "v"])).columns.tolist()[5:] == ["k", "v"]
    assert events_to_pandas([]).columns.tolist() == ["kind", "id", "le", "re", "re_new"]
    assert read_frame(events_to_pandas([])) == []


ROWS = [("insert", 1, 1, 5, None, 0.5), ("retract", 1, 1, 5, 3, None), ("cti", None, 4, None, None, None)]
NAMES = ["kind", "id", "le", "re", "re_new", "value"]
EXPECTED = [Insert(1, 1, 5, 0.5), Retract(1, 1, 5, 3), Cti(4)]


def physical() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=NAMES)


@pytest.mark.parametrize(
    "frame",
    [
        physical(),
        pa.Table.from_pandas(physical()),
        pl.DataFrame(ROWS, schema=NAMES, orient="row"),
        pl.DataFrame(ROWS, schema=NAMES, orient="row").lazy(),
    ],
)
def test_any_library_and_a_declared_payload(frame: Any) -> None:
    assert read_frame(frame, payload=float) == EXPECTED
    assert read_frame(frame, float, "tick") == EXPECTED
    assert _events(frame)[0] == Insert(1, 1, 5, {"value": 0.5})


def test_dates_give_the_unit_and_ctis_may_be_infinite() -> None:
    frame = physical().assign(
        le=pd.Series(np.array(["2013-02-08", "2013-02-08", "NaT"], dtype="datetime64[us]")), re=None, re_new=None
    )
    bound = read_pandas(frame)
    assert bound.unit == "us"
    assert list(bound.events())[2] == Cti(INFINITY)
    assert isinstance(_events(frame, unit="s")[0], Insert)
    assert _events(frame, unit="s")[0].le == 1360281600  # type: ignore[union-attr]


def _events(frame: Any, payload: Any = None, unit: Unit | None = None) -> list[Event[Any]]:
    found = read_frame(frame, payload, unit)
    assert isinstance(found, list)
    return found


@dataclass
class Positive:
    value: float

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise ValueError("it is not positive")


def test_rows_without_a_payload_build_none() -> None:
    assert _events(physical(), payload=Positive)[0] == Insert(1, 1, 5, Positive(0.5))
    with pytest.raises(UserCodeError, match="not positive"):
        read_frame(physical().assign(value=-1.0), payload=Positive)


def test_rows_of_no_kind_no_id_or_no_start_are_refused() -> None:
    unknown: list[Any] = ["update", None, np.nan]
    for kind in unknown:
        with pytest.raises(EventError, match=r"its kind is .* \(row 1, column 'kind'\)"):
            read_frame(physical().assign(kind=["insert", kind, "cti"]))
    with pytest.raises(EventError, match=r"row 1, column 'le'"):
        read_frame(physical().assign(le=[1, np.nan, np.nan]))
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(EventError, match=r"event 1 is refused: its id is null \(row 1, column 'id'\)"):
            read_frame(frame({**physical().to_dict("list"), "id": ["a", None, None]}))


def test_frames_without_the_five_columns_are_not_physical() -> None:
    frame = physical().drop(columns="re_new")
    assert isinstance(read_frame(frame), Inserts)


def test_frames_with_another_start_are_rows() -> None:
    frame = physical().assign(t=[1, 2, 3])
    assert all(isinstance(event, Insert) for event in read_pandas(frame, start="t").events())


def test_pushed_frames_of_lifetimes_are_insertions() -> None:
    piece = read_frame(pd.DataFrame({"le": [1, 2], "re": [5, None], "v": ["x", "y"]}))
    assert isinstance(piece, Inserts)
    assert (piece.ids, piece.re.tolist()) == (None, [5, INFINITY])
    points = read_frame(pl.DataFrame({"le": [1], "v": ["x"]}), Schema.record(["v"]), "ms")
    assert isinstance(points, Inserts)
    assert points.re.tolist() == [2]
    with pytest.raises(QueryError, match="not a dict"):
        read_frame({"le": [1]})


def test_a_bound_of_events_is_not_changed_by_its_reader() -> None:
    bound = read_polars(pl.DataFrame(ROWS, schema=NAMES, orient="row"), float)
    for piece in bound.pieces():
        assert isinstance(piece, list)
        piece.clear()
    assert list(bound.events()) == EXPECTED
