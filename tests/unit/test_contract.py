"""The public contract, sentence by sentence: what users may rely on, on the local engine and by the reference alike."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl import CHT, INFINITY, MIN_TIME, Clip, Cti, Insert, Output, Progress, Record, Retract
from streamdsl.errors import (
    CtiViolation,
    EventError,
    FieldNotFound,
    QueryError,
    SchemaError,
    SessionError,
    StreamDslError,
    TimeOverflow,
    TimestampViolation,
    UnboundedOutputError,
    UnitError,
    UserCodeError,
)

ENGINES: tuple[Any, ...] = ("local", "reference")
EMITS: tuple[Any, ...] = ("speculative", "watermark", "final")
X: sd.Stream[Any] = sd.source("x")
Y: sd.Stream[Any] = sd.source("y")


@dataclass
class Trip:
    zone: str
    fare: float | None = None

    @property
    def double(self) -> float:
        return 2 * (self.fare or 0)


class Zone(NamedTuple):
    zone: str
    n: int


@dataclass
class Checked:
    n: int

    def __post_init__(self) -> None:
        self.checked = True


def rows(*payloads: Any) -> sd.Stream[Any]:
    """Return the payloads with the lifetimes [1, 5), [2, 6), ..."""
    return sd.from_rows([(n, n + 4, payload) for n, payload in enumerate(payloads, 1)])


def cht_of(query: sd.Stream[Any], **arguments: Any) -> CHT[Any]:
    """Return what a query gives, the same on every engine."""
    found = [query.run(engine=engine, **arguments).cht() for engine in ENGINES]
    assert found[0] == found[1]
    kinds = [[type(row.payload) for row in cht] for cht in found]
    assert kinds[0] == kinds[1]
    return found[0]


def payloads_of(query: sd.Stream[Any], **arguments: Any) -> list[Any]:
    return [row.payload for row in cht_of(query, **arguments)]


def refused(kind: type[Exception], *texts: str) -> Any:
    return pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, texts)))


def wrapped(value: Any) -> Iterator[Any]:
    """Yield every numpy value inside a payload, an event or a row."""
    if isinstance(value, (np.generic, np.ndarray)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from wrapped(item)
    elif isinstance(value, Record):
        yield from wrapped(list(dict(value).values()))
    elif hasattr(value, "__dataclass_fields__"):
        yield from wrapped([getattr(value, name) for name in value.__dataclass_fields__])


# Section 1: time.

DAY = 86_400


@pytest.mark.parametrize(
    "time",
    [
        DAY,
        "1970-01-02",
        "1970-01-02T00:00:00Z",
        "1970-01-02T01:00:00+01:00",
        date(1970, 1, 2),
        datetime(1970, 1, 2),
        datetime(1970, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("1970-01-02"),
        pd.Timestamp("1970-01-02"),
    ],
)
def test_wherever_a_time_is_taken_any_form_of_it_is(time: Any) -> None:
    source = sd.from_events([sd.interval("a", 0, time, 1), Cti(time)], unit="s")
    assert cht_of(source).rows == [sd.CHTRow(0, DAY, 1)]
    assert cht_of(sd.from_rows([(0, INFINITY, 1)], unit="s").clip_interval(0, time)).rows == [sd.CHTRow(0, DAY, 1)]
    assert len(cht_of(sd.from_rows([(0, INFINITY, 1)], unit="s").tumbling_window("6h").aggregate(n=sd.count()), until=time)) == 4
    moved = sd.from_rows([(0, 5, 1)], unit="s").alter_lifetime(time, 5)
    assert cht_of(moved).rows == [sd.CHTRow(DAY, DAY + 5, 1)]


@pytest.mark.parametrize(
    "duration", [3600, "1h", "60m", "30m30m", timedelta(hours=1), np.timedelta64(1, "h"), pd.Timedelta("1h")]
)
def test_wherever_a_duration_is_taken_any_form_of_it_is(duration: Any) -> None:
    source = sd.from_rows([(0, 5, 1)], unit="s")
    assert cht_of(source.shift(duration)).rows == [sd.CHTRow(3600, 3605, 1)]
    assert cht_of(source.alter_duration(duration)).rows == [sd.CHTRow(0, 3600, 1)]
    assert cht_of(source.tumbling_window(duration, offset=duration).aggregate(sd.count())).rows == [sd.CHTRow(0, 3600, 1)]


def test_a_stream_over_dates_counts_microseconds_by_default_and_one_over_integers_ticks() -> None:
    assert sd.from_rows([("1970-01-01", "1970-01-02", 1)]).run().unit == "us"
    assert sd.from_rows([(1, 2, 1)]).run().unit == "tick"
    with refused(UnitError, "plain ticks", "'1h'"):
        sd.from_rows([(1, 2, 1)]).shift("1h")


@pytest.mark.parametrize(
    "query",
    [
        X.shift("1h"),
        X.union(X.shift("1h")),
        X.clip_interval("1970-01-01", "1970-01-03"),
        X.alter_duration(timedelta(hours=1)),
        X.tumbling_window("1h").aggregate(n=sd.count()),
        X.group_by("value").tumbling_window("1h").aggregate(n=sd.count()),
        X.group_by("value").apply(lambda g: g.union(g.shift("1h"))),
    ],
)
def test_mixed_time_units_are_refused(query: sd.Stream[Any]) -> None:
    """A source without a unit counts microseconds once a calendar duration is used with it; nothing else fits it then."""
    for unit in ("s", "ms", "ns", "tick"):
        times = (1, 2) if unit == "tick" else ("1970-01-01", "1970-01-02")
        with refused(UnitError, "us"):
            query.run({"x": sd.from_rows([(*times, 1)], unit=unit)})
    assert cht_of(query, bindings={"x": [("1970-01-01", "1970-01-01T00:30", 1)]}).rows[0].re > 10**9


def test_until_and_lambdas_are_read_in_the_unit_that_the_input_turns_out_to_have() -> None:
    seconds = sd.from_rows([("1970-01-01", INFINITY, {"at": datetime(1970, 1, 3), "for": timedelta(seconds=5)})], unit="s")
    counted = X.tumbling_window(10).aggregate(n=sd.count())
    assert len(cht_of(counted, bindings={"x": seconds}, until="1970-01-01T00:00:30")) == 3
    moved = X.alter_lifetime(lambda e: e["at"], lambda e: e["for"])
    assert [row[:2] for row in cht_of(moved, bindings={"x": seconds})] == [(2 * DAY, 2 * DAY + 5)]


def test_infinity_absorbs_addition_and_any_other_overflow_raises() -> None:
    assert cht_of(sd.from_rows([(1, INFINITY, 1)]).shift(5)).rows == [sd.CHTRow(6, INFINITY, 1)]
    assert cht_of(sd.from_rows([(MIN_TIME, 0, 1)])).rows == [sd.CHTRow(MIN_TIME, 0, 1)]
    last = INFINITY - 1
    overflowing = [
        sd.from_rows([(2**62, 2**62 + 1, 1)]).shift(2**62),
        sd.from_rows([(MIN_TIME, 0, 1)]).shift(-1),
        sd.from_rows([(MIN_TIME, MIN_TIME + 1, 1)]).tumbling_window(10).aggregate(n=sd.count()),
        sd.from_rows([(last - 5, last, 1)]).tumbling_window(10).aggregate(n=sd.median(lambda e: e.value)),
        sd.from_rows([(last, INFINITY, 1)]).count_window(1).aggregate(n=sd.count()),
        sd.from_rows([(1, 2, 2**70)]).alter_duration(lambda e: e.value),
    ]
    for query, engine in itertools.product(overflowing, ENGINES):
        with pytest.raises(TimeOverflow):
            query.run(engine=engine)


@pytest.mark.parametrize("duration", [1.5, None, "soon", True])
def test_a_lambda_gives_ticks_or_the_error_names_operator_and_event(duration: Any) -> None:
    computed = sd.from_events([Insert("late", 1, 5, {"d": duration})]).alter_duration(lambda e: e.d)
    for engine in ENGINES:
        with refused(UnitError, "operator alter_lifetime_1", "event", repr(duration)):
            computed.run(engine=engine)
    if duration is not None:
        with pytest.raises(UnitError):
            rows(1).alter_duration(lambda e: duration)


# Section 1: events and CHTs.


def test_events_are_immutable_comparable_and_can_be_pickled() -> None:
    for event in (Insert("a", 1, 5, "x"), Retract("a", 1, 5, 3), Cti(4), sd.point("a", 3, "x"), sd.edge_end("a", 1, 5)):
        assert pickle.loads(pickle.dumps(event)) == event == copy.copy(event)
        hash(event)
        with pytest.raises(AttributeError):
            setattr(event, next(iter(event.__dataclass_fields__)), 7)
    assert sd.sync_time(Insert("a", 1, 5, "x")) == 1
    assert sd.sync_time(Retract("a", 1, 5, 3)) == 3
    assert sd.sync_time(Retract("a", 1, 5, 9)) == 5
    old, new = sd.correct(sd.edge_start("a", 3, "x"), "y", "b")
    assert (old, new) == (Retract("a", 3, INFINITY, 3, "x"), Insert("b", 3, INFINITY, "y"))


def test_chts_are_multisets_in_which_ids_zero_lengths_and_number_types_do_not_count() -> None:
    nan = float("nan")
    assert CHT.from_rows([(1, 5, {"x": nan}), (1, 5, 1)]) == CHT.from_rows([(1, 5, 1.0), (1, 5, Record(x=nan)), (3, 3, "gone")])
    assert CHT.from_rows([(1, 5, 1)] * 2) != CHT.from_rows([(1, 5, 1)])
    assert len(CHT.from_rows([(3, 3, "gone")])) == 0
    assert [row.payload for row in CHT.from_rows([(1, 2, p) for p in ("b", None, nan, 2, {"a": 1})])][:2] == [None, 2]


@pytest.mark.parametrize("payloads", [[1, 2], [(1, "a"), (2, None)], [{"k": 1, "v": None}, {"k": 2, "v": "x"}], [2**70, 1], []])
def test_a_cht_goes_to_pandas_and_back(payloads: list[Any]) -> None:
    cht = CHT.from_rows([(n, INFINITY if n else 7, payload) for n, payload in enumerate(payloads)])
    assert sd.from_pandas(cht.to_pandas(), start="le", end="re").run().cht() == cht


MALFORMED: dict[str, list[Any]] = {
    "its LE 5 is after its RE 1": [Insert("bad", 5, 1, "x")],
    "its LE is not finite": [Insert("bad", INFINITY, INFINITY, "x")],
    "known already": [Insert("bad", 1, 5, "x"), Insert("bad", 7, 8, "x")],
    "no event with the id": [Retract("bad", 1, 5, 3)],
    "its RE 6 is not the event's current one, 5": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 6, 3)],
    "its LE 2 is not": [Insert("bad", 1, 5, "x"), Retract("bad", 2, 5, 3)],
    "its payload is not": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 5, 3, "y")],
    "is before its LE": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 5, 0)],
    "fully retracted already": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 5, 1), Retract("bad", 1, 1, 3)],
    "is before the CTI 6": [Cti(6), Insert("bad", 5, 9, "x")],
    "is before the CTI 7": [Insert("bad", 5, 9, "x"), Cti(7), Retract("bad", 5, 9, 6)],
    "its id is not hashable": [Insert(["bad"], 1, 5, "x")],  # type: ignore[arg-type]
    "neither an Insert": ["bad"],
}


@pytest.mark.parametrize("rule", MALFORMED)
def test_bad_input_is_refused_with_an_error_that_names_the_event_and_the_rule(rule: str) -> None:
    events = MALFORMED[rule]
    expected = CtiViolation if "CTI" in rule else EventError
    with refused(expected, "bad", rule):
        CHT.from_events(events)
    for engine in ENGINES:
        with refused(expected, "bad", rule):
            X.run({"x": sd.from_events(events)}, engine=engine)
    session = X.open()
    with refused(expected, "bad", rule):
        session.push(events)
    assert session.push([Insert("good", 1, 2, "x")]), "the session goes on"


def test_a_row_of_a_cht_ends_after_it_starts() -> None:
    for le, re_ in ((5, 1), (INFINITY, INFINITY)):
        with pytest.raises(EventError):
            CHT.from_rows([(le, re_, "x")])
        with pytest.raises(EventError):
            sd.from_rows([(le, re_, "x")]).run()


def test_every_error_is_of_one_tree_and_can_be_pickled() -> None:
    for error in (
        CtiViolation(Insert("a", 1, 2, 3), 1, 5),
        FieldNotFound("x", ["y"]),
        UserCodeError(ValueError("boom"), operator="where_1", event="a"),
        UnitError("no", hint="yes"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert isinstance(again, StreamDslError)


# Section 1: payloads.

PAYLOADS: list[tuple[Sequence[Any], Callable[[Any], Any], Callable[[Any], Any]]] = [
    ([Trip("a", 1.0), Trip("b")], lambda e: e.zone, lambda e: e["zone"]),
    ([Zone("a", 1), Zone("b", 2)], lambda e: e.zone, lambda e: e["zone"]),
    ([{"zone": "a", "n": None}, {"n": 2, "zone": "b"}], lambda e: e.zone, lambda e: e["zone"]),
    ([("a", 1), ("b", None)], lambda e: e._0, lambda e: e["_0"]),
    (["a", "b"], lambda e: e.value, lambda e: e["value"]),
]


@pytest.mark.parametrize(("payloads", "by_name", "by_item"), PAYLOADS)
def test_in_a_traced_lambda_attribute_and_item_mean_the_same(
    payloads: Sequence[Any], by_name: Callable[[Any], Any], by_item: Callable[[Any], Any]
) -> None:
    assert payloads_of(rows(*payloads).select(by_name)) == payloads_of(rows(*payloads).select(by_item)) == ["a", "b"]
    assert payloads_of(rows(*payloads).select(lambda e: by_name(e))) == ["a", "b"], "called directly"
    assert payloads_of(rows(*payloads).where(lambda e: True)) == list(payloads)


def test_called_directly_a_lambda_gets_the_dataclass_a_record_or_a_row_with_a_value() -> None:
    def kind(e: Any) -> str:
        return type(e).__name__

    assert payloads_of(rows(Trip("a")).select(kind)) == ["Trip"]
    assert payloads_of(rows({"k": 1}).select(kind)) == ["Record"]
    assert payloads_of(rows(5).select(lambda e: e.value if e else None)) == [5]
    assert payloads_of(rows(Trip("a", 2.0)).select(lambda e: e.double)) == [4.0]
    assert payloads_of(rows(Checked(7)).select(lambda e: (e.n, e.checked))) == [(7, True)]


REFUSED_PAYLOADS: list[tuple[Any, Any]] = [
    ({"x": 1}, {"y": 2}),
    ({"x": 1}, {"x": 1, "y": 2}),
    ({"x": 1}, 5),
    ((1, 2), (1, 2, 3)),
    (Trip("a"), Zone("a", 1)),
    (Trip("a"), {"zone": "a", "fare": 1.0}),
    (Checked(1), {"n": 1}),
    (5, {"x": 2}),
    (None, (1, 2)),
    ({"x": 1}, {1: 2}),
]


@pytest.mark.parametrize(("first", "second"), REFUSED_PAYLOADS)
def test_a_payload_without_one_of_the_fields_or_with_another_is_refused_at_the_source(first: Any, second: Any) -> None:
    events = [Insert("one", 1, 5, first), Insert("two", 2, 6, second)]
    for engine in ENGINES:
        with refused(SchemaError, "'two'"):
            X.run({"x": events}, engine=engine)
    with refused(SchemaError, "event 1"):
        rows(first, second)
    session = X.open()
    with refused(SchemaError, "'two'", "'x'"):
        session.push(events)
    assert second == {1: 2} or session.push(events[1:])[0].id == "two"  # type: ignore[union-attr]


def test_a_payload_is_of_the_declared_type() -> None:
    for declared, payload in ((Trip, {"zone": "a", "fare": 1.0}), (Checked, {"n": 1}), (Trip, 5)):
        with refused(SchemaError, "'a'", declared.__name__):
            sd.source("x", declared).open().push([Insert("a", 1, 2, payload)])


NUMPY = [np.int64(7), np.float32(0.5), np.bool_(True), np.str_("a"), np.datetime64("2013-01-01T00:00:00", "ns")]
PLAIN = [7, 0.5, True, "a", datetime(2013, 1, 1)]


@pytest.mark.parametrize(("value", "plain"), list(zip(NUMPY, PLAIN, strict=True)))
def test_results_carry_plain_python_values(value: Any, plain: Any) -> None:
    for payload, expected in ((value, plain), ({"k": value}, {"k": plain}), ((value, 1), (plain, 1)), (Trip("a", value), None)):
        event: Any = Insert(np.int64(1), np.int64(1), np.int64(5), payload)  # type: ignore[arg-type]
        for stream in (rows(payload), sd.from_events([event])):
            for engine in ENGINES:
                events = stream.run(engine=engine).events()
                assert list(wrapped(events)) == []
                first = events[0]
                assert isinstance(first, Insert)
                assert expected is None or (first.payload == expected and isinstance(first.id, int))


def test_no_numpy_wrapper_comes_out_of_any_operator() -> None:
    def mean(payloads: Sequence[Any]) -> dict[str, Any]:
        return {"mean": np.mean([e.f for e in payloads]), "all": [np.int64(1)]}

    stream = rows({"i": 1, "f": 1.5, "b": True}, {"i": 2, "f": 2.5, "b": False})
    windows = stream.tumbling_window(10)
    queries: list[sd.Stream[Any]] = [
        stream.select(x=lambda e: e.i + 1, y=lambda e: e.f * 2, z=lambda e: e.b),
        stream.select(lambda e, life: (life.le, life.re, e.i > 1)),
        windows.aggregate(n=sd.count(), s=sd.sum(lambda e: e.i), a=sd.avg(lambda e: e.f), c=sd.collect(lambda e: e.i)),
        windows.aggregate(sd.uda(mean)),
        stream.group_by(lambda e: (e.i, e.b)).snapshot_window().aggregate(lambda w: (w.key, w.max(lambda e: e.f))),
        stream.join(stream, on="i"),
        stream.select_many(lambda e: range(e.i)),
    ]
    for query, emit in itertools.product(queries, EMITS):
        name = next(iter(query.open().sources))
        session = query.open(emit)
        events = session.push(pd.DataFrame({"le": [1, 2], "re": [5, 6], "i": [1, 2], "f": [1.5, 2.5], "b": [True, False]}), name)
        assert list(wrapped(events + session.close() + list(query.run(engine="reference")))) == []


def test_results_with_named_fields_are_the_dataclass_that_the_query_named_else_records() -> None:
    stream = rows({"zone": "a", "n": 1})
    assert payloads_of(stream.select(lambda e: Zone(e.zone, e.n * 2))) == [Zone("a", 2)]
    assert payloads_of(stream.select(lambda e: Trip(zone=e.zone))) == [Trip("a")]
    for query in (stream.select(z=lambda e: e.zone), stream.select(lambda e: {"z": e.zone} if e.n else None)):
        (payload,) = payloads_of(query)
        assert isinstance(payload, Record)
        assert payload == {"z": "a"}
        with pytest.raises(AttributeError):
            payload.z = "b"


def test_results_of_several_kinds_keep_theirs() -> None:
    @sd.udo
    def mixed(payloads: Sequence[Any]) -> list[Any]:
        return [1, {"value": 5}, (2, 3), None]

    numbers = rows(1)
    assert payloads_of(numbers.tumbling_window(10).apply(mixed)) == [None, 1, (2, 3), {"value": 5}]
    assert payloads_of(numbers.select_many(lambda e: [1, {"value": 5}]).select(lambda e: e.value)) == [1, 5]


# Section 1: refused pushes, user code, violations.


def test_a_push_refused_for_its_input_changes_nothing() -> None:
    session = sd.source("x", progress=Progress.slack(2), on_violation="drop").where(lambda e: e.v > 0).open()
    session.push([Insert("a", 10, 19, {"v": 1}), Insert("late", 1, 19, {"v": 1})])
    before = (session.stats(), list(session.rejected()), session.why_no_output(), session.unit)
    good = [
        Insert("later", 1, 19, {"v": 1}),
        Insert("b", 12, 50, {"v": 1}),
        Cti(11),
        Insert("c", "1970-01-01T00:00:00.000012Z", 15, {"v": 1}),
    ]
    bad: list[Any] = [
        Insert("a", 12, 42, {"v": 1}),
        Insert("d", 12, 42, {"w": 1}),
        Insert("d", "x", 9, {"v": 1}),
        Insert([], 12, 42, {"v": 1}),  # type: ignore[arg-type]
        "d",
    ]
    for last in bad:
        with pytest.raises(StreamDslError):
            session.push([*good, last])
        assert (session.stats(), list(session.rejected()), session.why_no_output(), session.unit) == before
    with pytest.raises(StreamDslError):
        session.push(pd.DataFrame({"le": [40, 41], "re": [50, 20], "v": [1, 1]}))
    assert session.push([Insert("b", 11, 19, {"v": 1})]) == [Insert("b", 11, 19, {"v": 1}), Cti(9)]


def test_what_a_first_refused_push_shows_is_forgotten() -> None:
    session = X.open()
    with pytest.raises(SchemaError):
        session.push([Insert("a", "2013-01-01", "2013-01-02", {"v": 1}), Insert("b", 1, 2, {"w": 1})])
    assert session.unit is None
    assert session.push([Insert("a", 1, 2, (5,))]) == [Insert("a", 1, 2, (5,))]
    assert session.unit == "tick"


def _raise(*arguments: Any) -> Any:
    raise ValueError("boom")


def _stop(*arguments: Any) -> Any:
    return next(iter([]))


FAILING: list[tuple[sd.Stream[Any], tuple[str, ...]]] = [
    (X.where(lambda e: 1 / (e.value - 2)), ("ZeroDivisionError", "operator where_1", "event 'bad'")),
    (X.where(lambda e: np.array([1, e.value])), ("ValueError", "operator where_1", "event")),
    (X.select(lambda e: 1 // (e.value - 2)), ("ZeroDivisionError", "operator select_1", "event 'bad'")),
    (X.shift(1).select_many(lambda e: e.value), ("TypeError", "operator select_many_2", "event")),
    (X.alter_duration(lambda e: _raise(e)), ("boom", "operator alter_lifetime_1", "event")),
    (X.group_by(lambda e: 1 / (e.value - 2)).snapshot_window().aggregate(n=sd.count()), ("group_apply", "event 'bad'")),
    (X.tumbling_window(10).aggregate(sd.uda(_raise)), ("boom", "operator window_aggregate_1", "window [0, 10)")),
    (X.snapshot_window().apply(sd.udo(_stop)), ("StopIteration", "operator window_apply_1", "window [1, 3)")),
    (X.tumbling_window(10).aggregate(lambda w: 1 / (w.count() - 2)), ("ZeroDivisionError", "window [0, 10)")),
    (X.count_window(1).aggregate(n=sd.count(where=lambda e: 1 / (e.value - 2))), ("ZeroDivisionError", "event 'bad'")),
    (X.join(X, where=lambda a, b: 1 / (a.value - 2)), ("ZeroDivisionError", "operator join_1", "'bad'")),
    (X.to_edges(lambda e: e.value.nothing), ("AttributeError", "operator to_edges_1", "event")),
]


@pytest.mark.parametrize(("query", "texts"), FAILING)
def test_an_exception_from_user_code_names_operator_window_and_event_and_ends_the_session(
    query: sd.Stream[Any], texts: tuple[str, ...]
) -> None:
    events = [Insert("a", 1, 5, 1), Insert("bad", 3, 12, 2)]
    session = query.open()
    with refused(UserCodeError, *texts):
        session.push(events)
    with refused(SessionError, "the session has failed", "rejected() and stats()"):
        session.push([])
    with refused(SessionError, "the session has failed"):
        session.close()
    assert session.stats()
    assert list(session.rejected()) == []
    with refused(UserCodeError, *(text.split("event")[0] for text in texts if "bad'" not in text)):
        query.run({"x": events}, engine="reference")


def test_dropped_and_adjusted_events_come_out_of_rejected() -> None:
    session = sd.source("x", on_violation="drop").open()
    out = session.push(
        [
            Insert("a", 1, 9, "x"),
            Cti(5),
            Insert("b", 3, 8, "y"),
            Retract("b", 3, 8, 6),
            Retract("a", 1, 9, 4),
            Retract("a", 1, 9, 7),
        ]
    )
    assert out == [Insert("a", 1, 9, "x"), Cti(5), Retract("a", 1, 9, 7, "x")]
    assert [(r.event.id, r.cti) for r in session.rejected()] == [("b", 5), ("b", 5), ("a", 5)]
    session = sd.source("x", on_violation="adjust").open()
    out = session.push([Insert("a", 1, 9, "x"), Cti(5), Insert("b", 3, 8, "y"), Retract("b", 3, 8, 6), Retract("a", 1, 9, 4)])
    assert out == [Insert("a", 1, 9, "x"), Cti(5), Retract("a", 1, 9, 5, "x"), Insert("b", 5, 6, "y")]
    assert len(session.rejected()) == 2


# Section 2: sources.


def test_all_sources_read_the_same_rows(tmp_path: Any) -> None:
    frame = pd.DataFrame({"le": [1, 3], "re": [5, None], "k": ["a", None]})
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("le,re,k\n1,5,a\n3,,\n")
    (tmp_path / "rows.jsonl").write_text('{"le":1,"re":5,"k":"a"}\n{"le":3,"re":null,"k":null}\n')
    expected = CHT.from_rows([(1, 5, {"k": "a"}), (3, INFINITY, {"k": None})])
    for stream in (
        sd.from_rows([(1, 5, {"k": "a"}), (3, INFINITY, {"k": None})]),
        sd.from_events([Insert("a", 1, 5, {"k": "a"}), sd.edge_start("b", 3, {"k": None})]),
        sd.from_pandas(frame, end="re"),
        sd.from_arrow(pa.table({"le": [1, 3], "re": [5, None], "k": ["a", None]}), end="re"),
        sd.from_polars(pl.DataFrame({"le": [1, 3], "re": [5, None], "k": ["a", None]}), end="re"),
        sd.from_parquet(tmp_path / "rows.parquet", end="re"),
        sd.from_csv(tmp_path / "rows.csv", end="re"),
        sd.from_jsonl(tmp_path / "rows.jsonl", end="re"),
    ):
        assert cht_of(stream) == expected
        assert stream.run().events()[-1] == Cti(INFINITY)


def test_no_end_means_point_events_and_naive_times_are_utc() -> None:
    frame = pd.DataFrame({"le": pd.to_datetime(["2013-01-01"]), "v": [1]})
    expected = CHT.from_rows([("2013-01-01T00:00:00Z", "2013-01-01T00:00:01Z", {"v": 1})], "s")
    assert cht_of(sd.from_pandas(frame, unit="s")) == expected


@pytest.mark.parametrize("kind", ["rows", "events", "pandas", "arrow", "polars"])
def test_an_empty_input_gives_an_empty_output_everywhere(kind: str) -> None:
    columns: dict[str, list[Any]] = {"le": [], "v": []}
    empty: sd.Stream[Any] = {
        "rows": lambda: sd.from_rows([]),
        "events": lambda: sd.from_events([]),
        "pandas": lambda: sd.from_pandas(pd.DataFrame(columns)),
        "arrow": lambda: sd.from_arrow(pa.table({"le": pa.array([], pa.int64()), "v": pa.array([], pa.int64())})),
        "polars": lambda: sd.from_polars(pl.DataFrame(columns)),
    }[kind]()
    queries: list[sd.Stream[Any]] = [
        empty.where(lambda e: e.v > 1),
        empty.select_many(lambda e: [e.v]),
        empty.alter_lifetime(lambda e, life: life.re, lambda e: e.v),
        empty.to_edges("v").clip_interval(1, 5),
        empty.union(empty).join(empty, on="v").select(lambda p: p[0]),
        empty.anti_join(empty).clip_by(empty),
        empty.tumbling_window(5).aggregate(n=sd.count(), top=sd.max(lambda e: e.v)),
        empty.count_window(2).apply(sd.udo(lambda payloads: payloads)),
        empty.group_by("v").snapshot_window().aggregate(lambda w: (w.key, w.count())),
    ]
    for query in queries:
        assert cht_of(query).rows == []
        assert query.run().events() == [Cti(INFINITY)]
        assert [query.open(emit).close() for emit in EMITS] == [[Cti(INFINITY)]] * 3
        assert len(query.to_pandas()) == query.to_arrow().num_rows == query.to_polars().height == 0


def test_the_frames_of_an_empty_result_have_the_columns_that_the_query_names() -> None:
    none = rows(1).where(lambda e: e.value > 5).tumbling_window(5).aggregate(n=sd.count(), top=sd.max(lambda e: e.value))
    for engine in ENGINES:
        result = none.run(engine=engine)
        assert list(result.to_pandas().columns) == result.to_arrow().column_names == result.to_polars().columns
        assert list(result.to_pandas().columns) == ["le", "re", "n", "top"]


LATE = [Insert(f"{n}", le, le + 3, le) for n, le in enumerate([10, 12, 11, 20, 13, 15, 9, 30, 25])]
POLICIES = [
    (Progress.ordered(), {"2", "4", "5", "6", "8"}),
    (Progress.slack(5), {"4", "6"}),
    (Progress.every(3), {"6"}),
    (Progress.every(3, delay=5), {"6"}),
]


@pytest.mark.parametrize(("policy", "late"), POLICIES)
def test_lateness_is_judged_event_by_event_and_a_push_sends_one_cti(policy: Progress, late: set[str]) -> None:
    source = sd.source("x", progress=policy, on_violation="drop")
    for size in (1, 2, 4, len(LATE)):
        session = source.open()
        pushes = [session.push(LATE[i : i + size]) for i in range(0, len(LATE), size)]
        assert {rejection.event.id for rejection in session.rejected()} == late
        assert all(sum(isinstance(event, Cti) for event in out) <= 1 for out in pushes)
        assert all(not isinstance(event, Cti) for out in pushes for event in out[:-1])
    bounded = sd.from_rows([(event.le, event.re, event.payload) for event in LATE], progress=policy, on_violation="drop")
    assert len(cht_of(bounded)) == len(LATE) - len(late)


def test_the_same_query_object_runs_on_any_binding_and_in_any_number_of_sessions() -> None:
    query = X.tumbling_window(10).aggregate(m=sd.median(lambda e: e.v))
    first, second = query.open(), query.open()
    assert first.push([Insert("a", 1, 2, {"v": 1})])[0].payload == {"m": 1}  # type: ignore[union-attr]
    assert second.push([Insert("a", 1, 2, {"v": 9})])[0].payload == {"m": 9}  # type: ignore[union-attr]
    for binding in (
        [(1, 2, {"v": 5})],
        CHT.from_rows([(1, 2, {"v": 5})]),
        sd.from_rows([(1, 2, {"v": 5})]),
        pd.DataFrame({"le": [1], "v": [5]}),
    ):
        assert payloads_of(query, bindings={"x": binding}) == [{"m": 5}]


def test_run_is_one_push_per_source_in_binding_order(tmp_path: Any) -> None:
    frame = pd.DataFrame({"le": np.arange(200_000) % 100, "v": 1})
    frame.to_csv(tmp_path / "many.csv", index=False)
    counted = sd.from_csv(tmp_path / "many.csv").tumbling_window(10).aggregate(n=sd.count())
    events = counted.run().events()
    assert [event.payload for event in events if isinstance(event, Insert)] == [{"n": 20_000}] * 10
    assert not any(isinstance(event, Retract) for event in events)
    both = X.union(Y)
    for order in ("xy", "yx"):
        found = both.run({name: [(1, 2, name)] for name in order}).events()
        assert [event.payload for event in found if isinstance(event, Insert)] == list(order)


# Section 3: queries.


@pytest.mark.parametrize(
    "query",
    [
        rows(1, 2).where(lambda e, life: life.le + e.value > 2),
        rows(1, 2).where(lambda e, life: life.le + e.value > 2 and True),
        rows(1, 2)
        .select(lambda e, life: life.re - life.le)
        .where(lambda e: e.value)
        .shift(1)
        .where(lambda e, life: life.le == 3),
        rows(1, 2).select(start=lambda e, life: life.le).where(lambda e: e.start == 2),
        rows(1, 2).alter_duration(lambda e, life: (life.re - life.le) * (e.value - 1)),
        rows(1, 2).alter_lifetime(lambda e, life: life.re, duration=lambda e: e.value - 1),
    ],
)
def test_where_select_and_alter_lifetime_take_the_lifetime_too(query: sd.Stream[Any]) -> None:
    assert len(cht_of(query)) == 1


def test_a_plain_value_is_no_expression() -> None:
    for method in ("where", "select", "select_many"):
        with refused(QueryError, "'fare' is not an expression", "sd.col('fare')"):
            getattr(X, method)("fare")
    assert payloads_of(rows(1).where(sd.lit(True)).select(sd.lit("a"))) == ["a"]


KEYS: list[tuple[Any, dict[str, Any], Any]] = [
    ("zone", {"zone": "a"}, "a"),
    (lambda e: e.zone, {"zone": "a"}, "a"),
    (sd.col("zone"), {"zone": "a"}, "a"),
    (["zone", "fare"], {"zone": "a", "fare": 2.0}, {"zone": "a", "fare": 2.0}),
    (lambda e: {"z": e.zone}, {"z": "a"}, {"z": "a"}),
    (lambda e: Zone(e.zone, 1), {"zone": "a", "n": 1}, Zone("a", 1)),
    (lambda e: (e.zone, e.fare), {"key": ("a", 2.0)}, ("a", 2.0)),
    (lambda e: e.fare * 2, {"key": 4.0}, 4.0),
    (lambda e: f"{e.zone}!", {"key": "a!"}, "a!"),
    (lambda e: None, {"key": None}, None),
]


@pytest.mark.parametrize(("key", "fields", "value"), KEYS)
def test_grouped_results_come_with_the_key(key: Any, fields: dict[str, Any], value: Any) -> None:
    windows = rows(Trip("a", 2.0)).group_by(key).tumbling_window(10)
    assert payloads_of(windows.aggregate(c=sd.count()))[0] == {**fields, "c": 1}
    assert list(payloads_of(windows.aggregate(c=sd.count()))[0]) == [*fields, "c"]
    assert payloads_of(windows.aggregate(sd.count())) == [(value, 1)]
    assert payloads_of(windows.apply(sd.udo(lambda payloads: ["r"]))) == [(value, "r")]
    assert payloads_of(windows.aggregate(lambda w: (w.key, w.count()))) == [(value, 1)]
    assert payloads_of(windows.aggregate(lambda w: [w.key, w.count()] if True else 0)) == [[value, 1]]
    assert payloads_of(rows(Trip("a", 2.0)).group_by(key).apply(lambda g: g.select(lambda e: 7))) == [(value, 7)]


def test_fields_may_be_called_like_the_methods_of_a_record() -> None:
    stream = rows({"items": 1, "keys": 2, "a0": 3})
    counted = stream.group_by(["items", "keys"]).tumbling_window(10).aggregate(a1=sd.count(), a0=sd.sum(lambda e: e["a0"]))
    assert payloads_of(counted) == [{"items": 1, "keys": 2, "a1": 1, "a0": 3}]


JOINS: list[dict[str, Any]] = [
    {"on": "k"},
    {"on": ["k"]},
    {"on": (lambda a: a.k, lambda b: b.k)},
    {"where": lambda a, b: a.k == b.k},
    {"where": lambda a, b: a.k == b.k and True},
]


@pytest.mark.parametrize("matching", JOINS)
def test_joins_take_a_field_a_list_a_pair_of_lambdas_or_a_condition(matching: dict[str, Any]) -> None:
    left = sd.from_rows([(1, 9, {"k": 1, "a": "x"}), (3, 9, {"k": None, "a": "y"})])
    right = sd.from_rows([(2, 4, {"k": 1, "b": 10}), (5, 6, {"k": None, "b": 20})])
    assert payloads_of(left.join(right, **matching)) == [
        ({"k": 1, "a": "x"}, {"k": 1, "b": 10}),
        ({"k": None, "a": "y"}, {"k": None, "b": 20}),
    ]
    assert payloads_of(left.join(right, **matching, select=lambda a, b: {"a": a.a, "b": b.b})) == [
        {"a": "x", "b": 10},
        {"a": "y", "b": 20},
    ]
    assert [row[:2] for row in cht_of(left.anti_join(right, **matching))] == [(1, 2), (3, 5), (4, 9), (6, 9)]
    assert [row[:2] for row in cht_of(left.clip_by(right, **matching))] == [(1, 2), (3, 5)]


class Stamps(sd.TimeSensitiveUDO[Any, Any]):
    time_bound = True

    def __init__(self, start: Any = 0, end: Any = 1) -> None:
        self.start, self.end = start, end

    def compute_result(self, events: Any, window: sd.WindowDescriptor) -> Any:
        return [sd.IntervalEvent(self.start, self.end, "r")]


class Unbound(Stamps):
    time_bound = False


class Ends(sd.TimeSensitiveUDA[Any, int]):
    def compute_result(self, events: Any, window: sd.WindowDescriptor) -> int:
        return len(events)


KEPT = (Output.UNCHANGED, Output.CLIP, Output.TIME_BOUND)
WINDOWS: list[Callable[..., sd.WindowedStream[Any]]] = [
    lambda **policy: X.tumbling_window(10, **policy),
    lambda **policy: X.hopping_window(10, 5, **policy),
    lambda **policy: X.snapshot_window(**policy),
    lambda **policy: X.count_window(2, **policy),
]


AGGREGATES: list[Callable[[Any], Any]] = [
    lambda w: w.aggregate(n=sd.count()),
    lambda w: w.aggregate(Ends),
    lambda w: w.aggregate(lambda w: w.count()),
    lambda w: w.apply(sd.udo(lambda payloads: payloads)),
]


@pytest.mark.parametrize("windows", WINDOWS)
def test_policies_that_a_module_does_not_fit_are_refused_when_the_query_is_written(windows: Any) -> None:
    for output, build in itertools.product(KEPT, AGGREGATES):
        with refused(QueryError, "Output.ALIGN"):
            build(windows(output=output))
    with refused(QueryError, "time_bound = True"):
        windows(output=Output.TIME_BOUND).apply(Unbound())
    windows(output=Output.TIME_BOUND).apply(Stamps())
    with refused(QueryError, "clip='left'", "Clip.LEFT"):
        windows(clip="left")
    with refused(QueryError, "output='align'", "Output.ALIGN"):
        windows(output="align")


def test_what_is_no_window_is_refused_when_it_is_written() -> None:
    with refused(QueryError, "positive", "-1"):
        X.tumbling_window(-1)
    with refused(QueryError, "positive", "0"):
        X.hopping_window(5, 0)
    with refused(QueryError, "at least one", "0"):
        X.count_window(0)
    for n in (1.5, "2", True):
        with refused(QueryError, repr(n)):
            X.count_window(n)  # type: ignore[arg-type]


def test_an_output_before_its_window_or_with_stamps_that_are_no_ticks_is_refused() -> None:
    for engine in ENGINES:
        with refused(TimestampViolation, "Stamps", "[0, 1)", "[10, 20)"):
            sd.from_rows([(11, 12, 1)]).tumbling_window(10, output=Output.UNCHANGED).apply(Stamps()).run(engine=engine)
        with refused(UnitError, "Stamps", "int in ticks"):
            dated = sd.from_rows([("2013-01-01", "2013-01-02", 1)], unit="s").tumbling_window("1d", output=Output.CLIP)
            dated.apply(Stamps(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))).run(engine=engine)


def test_explain_says_what_is_opaque_and_whose_timestamps_are_replaced() -> None:
    assert "[opaque]" not in X.where(lambda e: (e.v > 1) & (e.w == "a")).explain()
    for predicate in (lambda e: e.v > 1 and e.w, lambda e: e.v in (1, 2), lambda e: not e.v, lambda e: f"{e.v}"):
        assert "[opaque]" in X.where(predicate).explain()
    assert "timestamps are replaced" in X.tumbling_window(5).apply(Stamps()).explain()
    assert "timestamps are replaced" in X.tumbling_window(5, output=Output.POINT_AT_END).apply(Stamps()).explain()
    assert "replaced" not in X.tumbling_window(5, output=Output.CLIP).apply(Stamps()).explain()


def test_describe_and_output_cti_on_a_windowed_stream() -> None:
    cht = CHT.from_rows([(1, 5, "a"), (3, 12, "b")])
    described = X.tumbling_window(10, clip=Clip.FULL).describe(cht)
    assert described == [((0, 10), cht.rows), ((10, 20), cht.rows[1:])]
    assert [X.snapshot_window().output_cti(cht, c) for c in (MIN_TIME, 4, INFINITY)] == [None, 4, INFINITY]
    dated = sd.from_rows([("1970-01-01", "1970-01-02", 1)], unit="s").run().cht()
    assert X.tumbling_window(DAY).output_cti(dated, "1970-01-02") == DAY


def test_sums_of_durations_are_durations() -> None:
    stream = rows({"d": timedelta(hours=1)}, {"d": timedelta(hours=2)})
    windows = (stream.tumbling_window(10), stream.snapshot_window())
    for window in windows:
        assert {"s": timedelta(hours=3), "a": timedelta(hours=1.5)} in payloads_of(
            window.aggregate(s=sd.sum(lambda e: e.d), a=sd.avg(lambda e: e.d))
        )


# Section 5: running.


def test_until_ends_the_input_there_and_cuts_nothing_else() -> None:
    forever = sd.from_events([Insert("a", 1, INFINITY, 1), Insert("b", 25, 27, 2)])
    assert forever.run(until=20).events() == [Insert("a", 1, INFINITY, 1), Insert("b", 25, 27, 2), Cti(20)]
    counted = forever.tumbling_window(10).aggregate(n=sd.count())
    assert cht_of(counted, until=25) == CHT.from_rows([(0, 10, {"n": 1}), (10, 20, {"n": 1})])
    assert len(cht_of(forever.snapshot_window().aggregate(n=sd.count()), until=25)) == 1


@pytest.mark.parametrize("aggregate", [sd.count(), sd.median(lambda e: e.value)])
def test_windows_that_an_unending_event_would_fill_raise_with_the_event_and_a_hint(aggregate: Any) -> None:
    query = X.tumbling_window(10).aggregate(n=aggregate)
    with refused(UnboundedOutputError, "'forever'", "Hint:", "until"):
        query.run({"x": [sd.edge_start("forever", 1, 1)]})
    with refused(UnboundedOutputError, "event 0", "until"):
        query.run({"x": [(1, INFINITY, 1)]})
    for emit in EMITS:
        session = query.open(emit)
        session.push([sd.edge_start("forever", 1, 1), Cti(25)])
        with refused(UnboundedOutputError, "'forever'"):
            session.close()
        assert session.stats()


def test_each_piece_of_a_push_comes_before_the_cti_that_ends_it() -> None:
    out = X.open().push(
        [
            Insert("b", 3, 9, "b"),
            Insert("a", 3, 9, "a"),
            Cti(3),
            Retract("b", 3, 9, 4),
            Insert("c", 3, 4, "c"),
            Insert("d", 3, 9, "d"),
            Retract("d", 3, 9, 3),
        ]
    )
    assert out == [Insert("a", 3, 9, "a"), Insert("b", 3, 9, "b"), Cti(3), Retract("b", 3, 9, 4, "b"), Insert("c", 3, 4, "c")]


FINAL: list[tuple[sd.Stream[Any], bool]] = [
    (X.to_points(), True),
    (X.alter_duration(5).where(lambda e: True).shift(2).select(lambda e: e.value), True),
    (X.tumbling_window(4).aggregate(n=sd.count()), True),
    (X.group_by("value").hopping_window(8, 4).aggregate(n=sd.count()), True),
    (X.snapshot_window(output=Output.POINT_AT_END).aggregate(n=sd.count()), True),
    (X.to_points().union(X.alter_duration(3)), True),
    (X, False),
    (X.snapshot_window().aggregate(n=sd.count()), False),
    (X.to_points().union(X), False),
    (X.join(X), False),
]


@pytest.mark.parametrize(("query", "fixes_ends"), FINAL)
def test_final_sends_a_row_once_it_cannot_change(query: sd.Stream[Any], fixes_ends: bool) -> None:
    final, speculative = query.open("final"), query.open()
    events = [Insert("a", 0, 6, 1), Insert("b", 2, 9, 2), Insert("c", 3, 30, 3)]
    assert final.push(events) == []
    sent, shown = [], speculative.push(events)
    for c in range(1, 40):
        out = final.push([Cti(c)])
        sent += out
        shown += speculative.push([Cti(c)])
        table = max((event.time for event in shown if isinstance(event, Cti)), default=MIN_TIME)
        rows_now = CHT.from_events(event for event in shown if not isinstance(event, Cti)).rows
        held = [row for row in rows_now if not (row.re <= table if fixes_ends else row.re < table)]
        assert len(CHT.from_events(event for event in sent if not isinstance(event, Cti))) == len(rows_now) - len(held)
        reached = max((event.time for event in sent if isinstance(event, Cti)), default=MIN_TIME)
        assert reached == min([table, *(row.le for row in held)])
    sent += final.close()
    assert not any(isinstance(event, Retract) for event in sent)
    assert sent[-1] == Cti(INFINITY)
    assert CHT.from_events(sent) == CHT.from_events(shown + speculative.close())


def test_output_ids_come_from_what_a_row_is() -> None:
    left = [Insert("a", 1, 5, {"k": 1, "v": 1}), Insert("b", 3, 12, {"k": 2, "v": 2}), Insert("c", 11, 13, {"k": 1, "v": 3})]
    right = [Insert("p", 2, 6, {"k": 1, "w": 1}), Insert("q", 0, 20, {"k": 2, "w": 2})]
    queries: list[tuple[sd.Stream[Any], set[Any]]] = [
        (X.where(lambda e: e.v > 1), {"b", "c"}),
        (X.select(lambda e: e.v), {"a", "b", "c"}),
        (X.union(Y), {(0, "a"), (0, "b"), (0, "c"), (1, "p"), (1, "q")}),
        (X.join(Y, on="k"), {("a", "p"), ("b", "q")}),
        (X.anti_join(Y, on="k"), {("a", 1), ("c", 11)}),
        (X.tumbling_window(10).aggregate(n=sd.count()), {("window_aggregate_1", 0, 0), ("window_aggregate_1", 10, 0)}),
    ]
    for query, expected in queries:
        for order, first in itertools.product(itertools.permutations(left), "xy"):
            session = query.open("final")
            pushes = {"x": list(order), "y": right}
            for source in sorted(session.sources, key=lambda name: name != first):
                session.push(pushes[source], source=source)
            assert {event.id for event in session.close() if isinstance(event, Insert)} == expected


def test_stats_are_by_the_labels_of_explain() -> None:
    query = X.where(lambda e: e.value > 0).group_by("value").tumbling_window(10).aggregate(n=sd.median(lambda e: e.value))
    session = query.open()
    session.push([Insert("a", 1, 5, 1), Insert("b", 3, 12, -2), Cti(4)])
    stats = session.stats()
    assert set(stats) == set(re.findall(r"\w+_\d+(?= )|source:\w+", query.explain()))
    keys = {"windows", "events", "state_bytes", "in", "out", "input_cti", "output_cti", "udm_calls"}
    assert all(set(figures) == keys for figures in stats.values())
    assert [stats["source:x"][key] for key in ("in", "out", "events", "output_cti")] == [2, 2, 2, 4]
    assert [stats["where_1"][key] for key in ("in", "out")] == [2, 1]
    assert [stats["group_apply_4"][key] for key in ("in", "out", "input_cti", "output_cti")] == [1, 1, 4, 0]
    assert stats["window_aggregate_3"]["udm_calls"] == 1
    assert set(X.open().stats()) == {"source:x"}


def test_why_no_output_names_the_input_that_holds_it_back() -> None:
    session = X.join(Y).open()
    session.push([Insert("a", 1, 10, 1), Cti(5)], source="x")
    assert "'y' has sent no CTI" in (session.why_no_output() or "")
    session.push([Cti(3)], source="y")
    assert "'y' has only reached the CTI 3" in (session.why_no_output() or "")
    session.push([Cti(5)], source="y")
    assert session.why_no_output() is None


def test_physical_frames_are_pushed_and_frames_of_results_hold_timestamps() -> None:
    frame = pd.DataFrame(
        [("insert", "a", 1, None, None, 7), ("cti", None, 4, None, None, None), ("retract", "a", 1, None, 5, 7)],
        columns=["kind", "id", "le", "re", "re_new", "v"],
    )
    expected = [Insert("a", 1, INFINITY, {"v": 7}), Cti(4), Retract("a", 1, INFINITY, 5, {"v": 7})]
    assert X.open().push(frame) == expected
    assert X.open().push(pl.from_pandas(frame)) == expected
    assert X.open().push(pa.Table.from_pandas(frame)) == expected
    dated = sd.from_rows([("2013-01-01", INFINITY, {"v": 7})], unit="ms").run()
    assert dated.to_pandas()["le"].tolist() == [pd.Timestamp("2013-01-01", tz="UTC")]
    assert dated.to_pandas()["re"].isna().tolist() == [True]
    assert dated.to_arrow()["le"].type == pa.timestamp("ms", tz="UTC")
    assert dated.to_polars()["re"].to_list() == [None]
    assert rows(1).to_pandas()["le"].dtype == np.int64


def test_stream_yields_the_output_of_an_asynchronous_source() -> None:
    async def source() -> AsyncIterator[Any]:
        for event in (Insert("a", 1, 5, 1), Cti(10), Insert("b", 11, 12, 2)):
            yield event

    async def collect() -> list[Any]:
        return [event async for event in X.tumbling_window(10).aggregate(n=sd.count()).stream(source(), emit="final")]

    out = asyncio.run(collect())
    assert [event.payload if isinstance(event, Insert) else event for event in out] == [
        {"n": 1},
        Cti(10),
        {"n": 1},
        Cti(INFINITY),
    ]


MISUSED: list[tuple[Callable[[], Any], tuple[str, ...]]] = [
    (lambda: X.run({"x": []}, engine="flink"), ("'flink'", "local, reference, spark")),  # type: ignore[arg-type]
    (lambda: X.open("sometimes"), ("'speculative'", "'sometimes'")),  # type: ignore[arg-type]
    (lambda: X.open().push([], source="z"), ("'z'", "x")),
    (lambda: X.union(Y).open().push([]), ("for which source", "x, y", "source=")),
    (lambda: X.open().push(Insert("a", 1, 2, 3)), ("not a Insert", "push([event])")),
    (lambda: X.run(), ("'x' is not bound", "run({'x'")),
    (lambda: X.run({"x": [], "z": []}), ("'z'", "x")),
    (lambda: X.run([Insert("a", 1, 2, 3)]), ("not a list", "run({'x'")),  # type: ignore[arg-type]
    (lambda: X.run({"x": 5}), ("cannot be bound to a int", "a list of events")),
    (lambda: X.open(engine_options={"windows": "general"}), ("'windows'", "window")),
    (lambda: X.tumbling_window(5).aggregate(n=sd.count()).open(engine_options={"window": "fast"}), ("general", "'fast'")),
    (lambda: rows({"fare": 1}).where(lambda e: e.faer > 1), ("'faer'", "fare", "did you mean 'fare'")),
    (lambda: sd.source("x", progress=Progress.slack), ("not a progress policy", "slack")),  # type: ignore[call-overload]
    (lambda: sd.source("x", on_violation="ignore"), ("'ignore'", "error, drop, adjust")),  # type: ignore[call-overload]
]


@pytest.mark.parametrize(("misuse", "texts"), MISUSED)
def test_errors_say_what_there_is_instead(misuse: Callable[[], Any], texts: tuple[str, ...]) -> None:
    with refused(QueryError, *texts):
        misuse()


def test_a_bare_source_can_be_run_and_opened_and_open_reads_nothing() -> None:
    bounded = rows("a", "b")
    assert len(bounded.run().cht()) == 2
    session = bounded.open()
    assert session.push([Insert("own", 1, 2, "c")]) == [Insert("own", 1, 2, "c")]
    assert session.close() == [Cti(INFINITY)]
    with refused(SessionError, "closed"):
        session.push([])
