"""pandas frames in: times, payload columns, payload classes."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, NamedTuple, NewType, TypedDict, TypeVar

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.errors import EventError, QueryError, SchemaError, TimeOverflow, UnitError, UserCodeError
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Bound, Inserts
from streamdsl.io.readers import read_pandas
from streamdsl.temporal import INFINITY, Record, to_ticks

BIG = 2**53 + 1
T = TypeVar("T")


def dates(*texts: str | None, dtype: str = "datetime64[us]") -> Any:
    known: Any = pd.Series(texts, dtype=object)
    return pd.to_datetime(known, format="ISO8601").astype(dtype)


def inserts(bound: Bound) -> Inserts:
    (piece,) = bound.pieces()
    assert isinstance(piece, Inserts)
    return piece


def column(values: Any) -> np.ndarray[Any, Any]:
    return inserts(read_pandas(pd.DataFrame({"le": range(len(values)), "v": values}))).table.columns["v"]


def lifetimes(frame: pd.DataFrame, **options: Any) -> list[tuple[int, int]]:
    piece = inserts(read_pandas(frame, **options))
    return list(zip(piece.le.tolist(), piece.re.tolist(), strict=True))


def test_without_end_rows_are_points() -> None:
    assert lifetimes(pd.DataFrame({"t": [3, 1], "re": [9, 9]}), start="t") == [(3, 4), (1, 2)]


def test_integers_are_ticks_and_a_null_end_is_infinity() -> None:
    for end in (
        [5, None],
        pd.array([5, None], dtype="Int64"),
        pd.array([5, None], dtype="int64[pyarrow]"),
        pd.Series([5, None], dtype=object),
    ):
        frame = pd.DataFrame({"le": [1, 2], "re": end})
        assert lifetimes(frame, end="re") == [(1, 5), (2, INFINITY)]
        assert read_pandas(frame, end="re").unit == "tick"


def test_big_integer_times_stay_exact() -> None:
    frame = pd.DataFrame({"le": np.array([BIG], dtype=np.uint64), "re": pd.array([BIG + 1], dtype="Int64")})
    assert lifetimes(frame, end="re") == [(BIG, BIG + 1)]


@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9), (None, 10**6)])
def test_dates_of_any_resolution_become_ticks_of_the_unit(resolution: str, unit: Any, per_second: int) -> None:
    start = dates("2013-02-08", "2013-02-09", dtype=f"datetime64[{resolution}]")
    end = dates("2013-02-10", None, dtype=f"datetime64[{resolution}]")
    frame = pd.DataFrame({"le": start, "re": end})
    assert lifetimes(frame, end="re", unit=unit) == [
        (1360281600 * per_second, 1360454400 * per_second),
        (1360368000 * per_second, INFINITY),
    ]
    assert read_pandas(frame, end="re", unit=unit).unit == (unit or "us")


@pytest.mark.parametrize(
    "start",
    [
        pd.to_datetime(["2013-02-08T02:00"]).tz_localize("Europe/Berlin"),
        pd.Series(["2013-02-08T02:00:00+01:00"]),
        pd.Series([dt.datetime(2013, 2, 8, 1)], dtype=object),
        dates("2013-02-08T01:00", dtype="timestamp[us][pyarrow]"),
        dates("2013-02-08T01:00Z", dtype="timestamp[ns, UTC][pyarrow]"),
        pd.Series(["2013-02-08 01:00:00Z"], dtype="category"),
    ],
)
def test_zones_text_and_objects_are_dates_too(start: Any) -> None:
    assert lifetimes(pd.DataFrame({"le": start}), unit="s") == [(1360285200, 1360285201)]


def test_days_are_dates_at_midnight_utc() -> None:
    frame = pd.DataFrame({"le": [dt.date(2013, 2, 8)]})
    assert lifetimes(frame, unit="s") == [(1360281600, 1360281601)]


def test_dates_and_integers_may_be_mixed_under_a_calendar_unit() -> None:
    frame = pd.DataFrame({"le": pd.Series([7, "1970-01-01T00:00:09Z"], dtype=object), "re": [10, 11]})
    assert lifetimes(frame, end="re", unit="s") == [(7, 10), (9, 11)]


def test_part_of_a_unit_is_refused_not_floored() -> None:
    frame = pd.DataFrame({"le": pd.to_datetime(["2013-02-08", "2013-02-08T00:00:00.000000001"], format="ISO8601")})
    with pytest.raises(UnitError, match=r'row 1, column .le.*\n?.*Hint: give the source unit="ns"'):
        read_pandas(frame)
    texts = pd.DataFrame({"le": ["2013-02-08", "2013-02-08T00:00:00.000000001"]})
    with pytest.raises(UnitError, match=r"row 1, column 'le'"):
        read_pandas(texts)
    assert lifetimes(texts.iloc[1:], unit="ns") == [(1360281600 * 10**9 + 1, 1360281600 * 10**9 + 2)]


TEXTS = """
2013-02-08 2013-2-8 2013/02/08 20130208 2013-02 2013-039 2013-W06-5 2013-02-08T01 2013-02-08T01:02 2013-02-08T1:02
2013-02-08T01:02.5 2013-02-08T01:02:03 2013-02-08T01:02:3 2013-02-08T01:02:03.5 2013-02-08T01:02:03,5 2013-02-08T01:02:03.1234567
2013-02-08T01:02:03.123456789 2013-02-08T01:02:03.1234567891 2013-02-08T01:02:03Z 2013-02-08T01:02:03+0100
2013-02-08T01:02:03+01:00 2013-02-08T24:00:00 2013-02-30 20130208T010203 0001-01-01 9999-12-31T23:59:59
"""


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("text", TEXTS.split())
def test_text_in_a_column_is_the_time_that_it_is_by_itself(text: str, unit: Any) -> None:
    try:
        expected = to_ticks(text, unit)
    except (UnitError, TimeOverflow):
        with pytest.raises((UnitError, TimeOverflow), match="row 0, column 'le'"):
            read_pandas(pd.DataFrame({"le": [text]}), unit=unit)
    else:
        assert lifetimes(pd.DataFrame({"le": [text]}), unit=unit) == [(expected, expected + 1)]


def test_a_date_beyond_int64_is_refused() -> None:
    frame = pd.DataFrame({"le": pd.Series(["9999-01-01"]).astype("datetime64[s]")})
    with pytest.raises(TimeOverflow, match="row 0"):
        read_pandas(frame, unit="ns")


def test_dates_do_not_fit_plain_ticks() -> None:
    for le in (pd.to_datetime(["2013-02-08"]), ["2013-02-08"]):
        with pytest.raises(UnitError, match="plain ticks"):
            read_pandas(pd.DataFrame({"le": le}), unit="tick")


@pytest.mark.parametrize("bad", ["now", "today", "soon", "20", 1.5, True, 2**63, b"x"])
def test_what_is_no_time_is_refused_with_its_row(bad: Any) -> None:
    with pytest.raises((UnitError, TimeOverflow), match="row 1, column 'le'"):
        read_pandas(pd.DataFrame({"le": pd.Series([1, bad], dtype=object)}))


def test_fractions_are_no_ticks() -> None:
    with pytest.raises(UnitError, match=r"row 1.*1\.5"):
        read_pandas(pd.DataFrame({"le": [1.0, 1.5]}))


@pytest.mark.parametrize("le", [[1, None], dates("2013-02-08", None), ["2013-02-08", None], pd.array([1, None], dtype="Int64")])
def test_a_null_start_is_refused_with_its_row(le: Any) -> None:
    with pytest.raises(EventError, match=r"row 1, column 'le'"):
        read_pandas(pd.DataFrame({"le": le}))


def test_typed_columns_stay_typed() -> None:
    assert column(np.array([1, 2], dtype=np.int8)).dtype == np.int64
    assert column(np.array([0.5, np.nan], dtype=np.float32)).dtype == np.float64
    assert column([True, False]).dtype == np.bool_
    assert column(pd.array([1, 2], dtype="Int32")).dtype == np.int64
    assert column(pd.array([0.5, 2], dtype="Float64")).dtype == np.float64
    assert column(pd.array([True], dtype="boolean")).dtype == np.bool_
    assert column(pd.array([1, 2], dtype="int64[pyarrow]")).dtype == np.int64


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pd.array([BIG, None], dtype="Int64"), [BIG, None]),
        (pd.array([BIG, None], dtype="int64[pyarrow]"), [BIG, None]),
        (pd.array([0.5, None], dtype="Float64"), [0.5, None]),
        (pd.array([True, None], dtype="boolean"), [True, None]),
        (np.array([2**63, 1], dtype=np.uint64), [2**63, 1]),
        (pd.Series([2**70, None], dtype=object), [2**70, None]),
        (["a", None], ["a", None]),
        (pd.Series(["a", np.nan], dtype=object), ["a", None]),
        (pd.Series(["a", None], dtype="category"), ["a", None]),
        (pd.Series([1, 2], dtype="category"), [1, 2]),
        (pd.Series([BIG, None], dtype=object).astype("category"), [BIG, None]),
        (
            pd.Series([pd.Timestamp("2013-02-08", tz="UTC"), None]).astype("category"),
            [dt.datetime(2013, 2, 8, tzinfo=dt.UTC), None],
        ),
        (pd.array(["a", None], dtype="string"), ["a", None]),
        (pd.Series([np.int64(1), np.float64(0.5), pd.NA], dtype=object), [1, 0.5, None]),
        (pd.Series([Decimal("0.1"), None], dtype=object), [Decimal("0.1"), None]),
        (pd.Series([dt.date(2013, 2, 8), None], dtype=object), [dt.date(2013, 2, 8), None]),
        (dates("2013-02-08T01:00", None), [dt.datetime(2013, 2, 8, 1), None]),
        (dates("2013-02-08T01:00", None, dtype="datetime64[ns]"), [dt.datetime(2013, 2, 8, 1), None]),
        (pd.Series([pd.Timestamp("2013-02-08"), pd.NaT], dtype=object), [dt.datetime(2013, 2, 8), None]),
        (pd.Series([np.datetime64("2013-02-08", "ns"), "x"], dtype=object), [dt.datetime(2013, 2, 8), "x"]),
        (pd.to_timedelta(["1s", None]), [dt.timedelta(seconds=1), None]),
        (pd.Series([{"a": 1}, [2]], dtype=object), [{"a": 1}, [2]]),
        (pd.Series([[np.int64(1)], {"a": (np.float64(2),)}], dtype=object), [[1], {"a": (2.0,)}]),
    ],
)
def test_values_come_out_as_plain_python(given: Any, expected: list[Any]) -> None:
    found = column(given).tolist()
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_a_nan_stays_in_a_float_column_and_among_objects() -> None:
    assert np.isnan(column([0.5, np.nan])[1])
    mixed = column(pd.Series([0.5, np.nan, None], dtype=object)).tolist()
    assert mixed[1] != mixed[1]
    assert mixed[2] is None


def test_zones_stay() -> None:
    (value,) = column(pd.to_datetime(["2013-02-08T01:00"]).tz_localize("Europe/Berlin")).tolist()
    assert type(value) is dt.datetime
    assert value.utcoffset() == dt.timedelta(hours=1)


def test_nanoseconds_stay() -> None:
    found = column(pd.to_datetime(["2013-02-08T00:00:00.000000001", "2013-02-08"], format="ISO8601")).tolist()
    assert found == [pd.Timestamp("2013-02-08T00:00:00.000000001"), dt.datetime(2013, 2, 8)]


def test_a_date_that_python_has_not_is_refused() -> None:
    with pytest.raises(SchemaError, match="'v'"):
        column(np.array([2**55], dtype="datetime64[s]"))


@dataclass
class Trip:
    fare: float
    pickup: dt.datetime


@dataclass
class Checked:
    fare: float

    def __post_init__(self) -> None:
        if self.fare < 0:
            raise ValueError("a fare is not negative")


class Named(NamedTuple):
    fare: float


@dataclass
class Box(Generic[T]):
    value: T


class Typed(TypedDict):
    fare: float


FRAME = pd.DataFrame(
    {"pickup": pd.to_datetime(["2013-02-08"]), "dropoff": pd.to_datetime(["2013-02-09"]), "fare": [2.5], "tip": [1]}
)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (Trip, Trip(2.5, dt.datetime(2013, 2, 8))),
        (Checked, Checked(2.5)),
        (Named, Named(2.5)),
        (Typed, Record(fare=2.5)),
        (None, Record(fare=2.5, tip=1)),
        (dict, Record(fare=2.5, tip=1)),
        (Schema.record(["tip"]), Record(tip=1)),
    ],
)
def test_a_payload_class_takes_exactly_its_fields(payload: Any, expected: Any) -> None:
    bound = read_pandas(FRAME, payload, start="pickup", end="dropoff")
    (event,) = bound.events()
    assert event.payload == expected  # type: ignore[union-attr]
    assert type(event.payload) is type(expected)  # type: ignore[union-attr]


def test_a_scalar_payload_is_the_column_value() -> None:
    (event,) = read_pandas(pd.DataFrame({"le": [1], "value": [2.5], "x": [0]}), float).events()
    assert event.payload == 2.5  # type: ignore[union-attr]
    with pytest.raises(SchemaError, match="a payload that is no record has the column 'value'; the columns are: le, fare"):
        read_pandas(pd.DataFrame({"le": [1], "fare": [2.5]}), float)


FARE = NewType("FARE", float)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (Box[int], Box(7)),
        (dict[str, int], Record(value=7)),
        (FARE, 7),
        (int | None, Record(value=7)),
        (Any, Record(value=7)),
    ],
)
def test_a_generic_payload_is_its_class(payload: Any, expected: Any) -> None:
    (event,) = read_pandas(pd.DataFrame({"le": [1], "value": [7]}), payload).events()
    assert event.payload == expected  # type: ignore[union-attr]
    assert type(event.payload) is type(expected)  # type: ignore[union-attr]


@pytest.mark.parametrize("payload", ["le", Trip(1.0, dt.datetime(2013, 2, 8)), ["fare"], {"fare": float}])
def test_a_payload_that_is_no_class_is_refused(payload: Any) -> None:
    with pytest.raises(QueryError, match=r"is not a class\nHint: .*start= and end= name"):
        read_pandas(pd.DataFrame({"le": [1], "re": [5], "v": [7]}), payload, "re")


@pytest.mark.parametrize("payload", [tuple, tuple[int, str]])
def test_a_plain_tuple_has_no_names_for_columns(payload: Any) -> None:
    with pytest.raises(QueryError, match=r"plain tuple[\s\S]*NamedTuple"):
        read_pandas(FRAME, payload, start="pickup")


def test_start_and_end_are_two_columns() -> None:
    with pytest.raises(QueryError, match="'le' is both start and end"):
        read_pandas(pd.DataFrame({"le": [1]}), end="le")


def test_missing_columns_are_named_with_those_that_there_are() -> None:
    with pytest.raises(SchemaError, match=r"'fare'.*the columns are: le, tip"):
        read_pandas(pd.DataFrame({"le": [1], "tip": [1]}), Trip)
    with pytest.raises(SchemaError, match=r"'le'; the columns are: t, v[\s\S]*start="):
        read_pandas(pd.DataFrame({"t": [1], "v": [1]}))
    with pytest.raises(SchemaError, match="'stop'"):
        read_pandas(pd.DataFrame({"le": [1]}), end="stop")


def test_a_class_that_refuses_a_row_is_a_user_code_error() -> None:
    with pytest.raises(UserCodeError, match=r"not negative[\s\S]*Checked of row 1"):
        read_pandas(pd.DataFrame({"le": [1, 2], "fare": [1.0, -1.0]}), Checked)


def test_columns_need_names_of_their_own() -> None:
    with pytest.raises(SchemaError, match="same name: v"):
        read_pandas(pd.DataFrame([[1, 2, 3]], columns=["le", "v", "v"]))
    with pytest.raises(SchemaError, match="named 0"):
        read_pandas(pd.DataFrame([[1, 2]]), start="le")


def test_another_thing_than_a_frame_is_refused() -> None:
    with pytest.raises(QueryError, match="not a list"):
        read_pandas([1, 2])  # type: ignore[arg-type]


def test_no_rows_and_no_payload_columns() -> None:
    empty = read_pandas(pd.DataFrame({"le": pd.Series(dtype="datetime64[us]"), "v": pd.Series(dtype=object)}))
    assert (list(empty.events()), empty.unit, empty.size_hint) == ([], "us", 0)
    (event,) = read_pandas(pd.DataFrame({"le": [1]})).events()
    assert event.payload == Record()  # type: ignore[union-attr]
    assert read_pandas(pd.DataFrame({"le": []})).unit is None


def test_later_changes_of_the_frame_do_not_count() -> None:
    frame = pd.DataFrame({"le": [1, 2], "v": [7, 8]})
    bound = read_pandas(frame)
    frame.loc[0, "v"] = 99
    frame.loc[0, "le"] = 99
    assert [(event.le, event.payload.v) for event in bound.events()] == [(1, 7), (2, 8)]  # type: ignore[union-attr]


def test_a_frame_may_be_written_over_when_it_has_been_pushed() -> None:
    query = sd.source("a").join(sd.source("b"), on="k", select=lambda a, b: {"v": a.v, "t": a.t, "w": b.w})
    moments = pd.date_range("2020-01-01", periods=600, freq="s", tz="UTC").as_unit("us")
    times: list[Any] = [(moments, moments + pd.Timedelta(seconds=5)), (range(600), range(5, 605))]
    for le, re in times:
        frame = pd.DataFrame({"le": le, "re": re, "k": 0, "v": range(600), "t": np.arange(600) / 2})
        session, untouched = query.open(), query.open()
        session.push(frame, source="a")
        untouched.push(frame.copy(), source="a")
        last: list[sd.Event[Any]] = [sd.Insert(1, le[3], le[4], {"k": 0, "w": 1})]
        frame.loc[:, "le"] = le[7]
        frame.loc[:, "re"] = re[7]
        frame.loc[:, ["k", "v"]] = 777
        frame.loc[:, "t"] = 7.5
        found = session.push(last, source="b")
        assert found == untouched.push(last, source="b")
        assert len(found) == 4
