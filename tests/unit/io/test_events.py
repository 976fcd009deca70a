"""Physical events and rows as bounds: units, dates, ticks after dates, errors that name the event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from streamdsl.errors import EventError, QueryError, SchemaError, TimeOverflow, UnitError
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Inserts
from streamdsl.io.payloads import schema_for
from streamdsl.io.readers import read_events, read_rows
from streamdsl.temporal import INFINITY, MIN_TIME, MISSING, Cti, Insert, Record, Retract, edge_end, edge_start, interval, point

DAY = datetime(2013, 2, 8)
TICKS = 1360281600 * 10**6


def test_ints_are_ticks_and_keep_their_order() -> None:
    events = [Insert("a", 1, 5, {"v": 1}), Cti(2), Retract("a", 1, 5, 3)]
    bound = read_events(events)
    assert bound.unit == "tick"
    assert bound.size_hint == 3
    assert list(bound.events()) == events
    assert [list(piece) for piece in bound.pieces() if isinstance(piece, list)] == [events]


def test_a_bound_can_be_read_again_even_of_a_generator() -> None:
    bound = read_events(Cti(time) for time in (1, 2))
    for piece in bound.pieces():
        assert isinstance(piece, list)
        piece.clear()
    assert list(bound.events()) == list(bound.events()) == [Cti(1), Cti(2)]


@pytest.mark.parametrize(
    "moment",
    [
        DAY,
        DAY.replace(tzinfo=UTC),
        datetime(2013, 2, 8, 2, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2013-02-08"),
        pd.Timestamp("2013-02-08"),
        "2013-02-08",
        "2013-02-08T01:00:00+01:00",
        TICKS,
    ],
)
def test_every_form_of_a_date_is_the_same_tick(moment: Any) -> None:
    bound = read_events([Insert("a", "2013-02-08", INFINITY, 1), Cti(moment)])
    assert bound.unit == "us"
    assert list(bound.events()) == [Insert("a", TICKS, INFINITY, 1), Cti(TICKS)]


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_dates_are_ticks_of_the_given_unit(unit: Any, per_second: int) -> None:
    bound = read_events([interval("a", DAY, DAY + timedelta(seconds=2), "x")], unit=unit)
    assert bound.unit == unit
    assert list(bound.events()) == [Insert("a", 1360281600 * per_second, 1360281602 * per_second, "x")]


def test_ints_are_ticks_of_a_given_unit() -> None:
    assert read_events([Insert("a", 1, 5, "x")], unit="ms").unit == "ms"


def test_a_point_of_a_date_ends_one_tick_later() -> None:
    three: Any = np.int64(3)
    assert list(read_events([point("a", DAY, "x")]).events()) == [Insert("a", TICKS, TICKS + 1, "x")]
    assert list(read_events([point("a", three, "x")]).events()) == [Insert("a", 3, 4, "x")]


def test_edges_of_dates() -> None:
    bound = read_events([edge_start("a", DAY, "x"), edge_end("a", DAY, DAY + timedelta(seconds=1))], unit="s")
    assert list(bound.events())[1] == Retract("a", TICKS // 10**6, INFINITY, TICKS // 10**6 + 1, MISSING)


def test_numpy_ints_become_python_ints() -> None:
    one: Any = np.int64(1)
    (event,) = read_events([Insert("a", one, one, "x")]).events()
    assert isinstance(event, Insert)
    assert (type(event.le), type(event.re)) == (int, int)


@pytest.mark.parametrize("events", [[], [Cti(INFINITY)], [Cti(MIN_TIME)]])
def test_a_stream_that_tells_no_unit_has_none(events: list[Cti]) -> None:
    assert read_events(events).unit is None


def test_the_schema_is_the_payload_types_or_the_first_events() -> None:
    assert read_events([Cti(1), Insert("a", 1, 2, {"k": 1})]).schema == Schema.record(["k"])
    assert read_events([], payload=int).schema == Schema.scalar()
    assert read_events([Cti(1)]).schema is None


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (Insert("a7", 1.5, 5, "x"), UnitError),  # type: ignore[arg-type]
        (Insert("a7", True, 5, "x"), UnitError),
        (Insert("a7", 1, None, "x"), EventError),  # type: ignore[arg-type]
        (Insert("a7", 1, "never", "x"), UnitError),
        (Insert("a7", 1, 2**63, "x"), TimeOverflow),
        (Retract("a7", 1, 5, 2**64), TimeOverflow),
        (point("a7", "2013-02-08T00:00:00.1", "x"), UnitError),
    ],
)
def test_what_is_no_time_is_refused_with_the_events_id(event: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="a7"):
        read_events([event], unit="s")


def test_a_date_in_a_stream_of_plain_ticks_is_refused() -> None:
    with pytest.raises(UnitError, match=r"event 'a'.*plain ticks[\s\S]*Hint"):
        read_events([Insert("a", DAY, DAY, "x")], unit="tick")


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(EventError, match="neither"):
        read_events([(1, 5, "x")])  # type: ignore[list-item]


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(UnitError, match="'h'"):
        read_events([], unit="h")  # type: ignore[arg-type]


def test_rows_are_insertions_with_row_numbers() -> None:
    bound = read_rows([(1, 5, {"v": 2}), (DAY, INFINITY, {"v": None})], unit="us")
    (piece,) = bound.pieces()
    assert isinstance(piece, Inserts)
    assert piece.ids is None
    assert (piece.le.dtype, piece.re.tolist()) == (np.dtype(np.int64), [5, INFINITY])
    assert piece.table.columns["v"].tolist() == [2, None]
    assert list(bound.events()) == [Insert(0, 1, 5, {"v": 2}), Insert(1, TICKS, INFINITY, {"v": None})]
    assert (bound.unit, bound.schema) == ("us", Schema.record(["v"]))


def test_rows_of_other_fields_or_of_no_three_items_are_refused() -> None:
    with pytest.raises(SchemaError, match="w"):
        read_rows([(1, 5, {"v": 2}), (1, 5, {"w": 2})])
    with pytest.raises(QueryError, match=r"\(1, 5\)"):
        read_rows([(1, 5)])  # type: ignore[list-item]


@dataclass
class Trip:
    fare: float


@dataclass
class Tipped(Trip):
    tip: float


@dataclass
class Checked(Trip):
    def __post_init__(self) -> None:
        assert self.fare >= 0


class Pair(NamedTuple):
    a: int
    b: int


SUBCLASSES: list[tuple[Any, Any]] = [
    (Trip(1.0), Tipped(1.0, 0.5)),
    (Trip(1.0), Checked(1.0)),
    ((1, 2), Pair(1, 2)),
]


@pytest.mark.parametrize(("payload", "other"), SUBCLASSES)
def test_payloads_are_of_one_class_whichever_comes_first(payload: Any, other: Any) -> None:
    for first, second in ((payload, other), (other, payload)):
        with pytest.raises(SchemaError, match="event 1 is refused"):
            read_rows([(1, 5, first), (1, 5, second)])
    for one in (payload, other):
        (event,) = read_rows([(1, 5, one)]).events()
        assert type(event.payload) is type(one)  # type: ignore[union-attr]


def test_an_instance_of_a_subclass_of_the_declared_payload_is_refused_with_a_remedy() -> None:
    with pytest.raises(SchemaError, match=r"Tipped\(.*subclass of Trip[\s\S]*make it a Trip, or declare payload=Tipped"):
        read_rows([(1, 5, Tipped(1.0, 0.5))], payload=Trip)
    with pytest.raises(SchemaError, match=r"'a'.*subclass of Trip"):
        schema_for(Schema.of_type(Trip), "a", Checked(1.0))


def test_values_of_numpy_inside_payloads_and_ids_become_pythons_own() -> None:
    wrapped: Any = {"v": [np.int64(1), (np.float64(2),)]}
    plain: Any = {"v": [1, (2.0,)]}
    (row,) = read_rows([(1, 5, wrapped)]).events()
    first, second = read_events([Insert((np.int64(1), "a"), 1, 5, wrapped), Retract(1, 1, 5, 3, wrapped)]).events()
    assert repr((row, first, second)) == repr(
        (Insert(0, 1, 5, Record(plain)), Insert((1, "a"), 1, 5, plain), Retract(1, 1, 5, 3, plain))
    )


@pytest.mark.parametrize("value", [5, None, pd.DataFrame({"le": [1]})])
def test_what_is_no_list_is_refused(value: Any) -> None:
    for read, what in ((read_rows, "rows"), (read_events, "events")):
        with pytest.raises(QueryError, match=rf"{what} are expected, not a {type(value).__name__}[\s\S]*from_pandas"):
            read(value)


def test_no_rows() -> None:
    bound = read_rows([])
    assert (list(bound.events()), bound.unit, bound.schema) == ([], None, None)
