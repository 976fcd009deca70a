"""The public contract, section 1: payloads in and out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl import Insert, Record
from streamdsl.errors import SchemaError
from tests.unit.contract.common import EMITS, ENGINES, Checked, Trip, X, Zone, payloads_of, refused, rows, wrapped


@dataclass
class Tipped(Trip):
    tip: float = 0.0


PAYLOADS: list[tuple[Sequence[Any], Callable[[Any], Any], Callable[[Any], Any]]] = [
    ([Trip("a", 1.0), Trip("b")], lambda e: e.zone, lambda e: e["zone"]),
    ([Zone("a", 1), Zone("b", 2)], lambda e: e.zone, lambda e: e["zone"]),
    ([{"zone": "a", "n": None}, {"n": 2, "zone": "b"}], lambda e: e.zone, lambda e: e["zone"]),
    ([("a", 1), ("b", None)], lambda e: e._0, lambda e: e["_0"]),
    (["a", "b"], lambda e: e.value, lambda e: e["value"]),
]


@pytest.mark.filterwarnings("ignore:e.value of a bare payload:DeprecationWarning")
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
    assert payloads_of(rows(5).select(lambda e: e if e else None)) == [5]
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
    (Trip("a"), Tipped("a", 1.0, 0.5)),
    (Tipped("a", 1.0, 0.5), Trip("a")),
    ((1, 2), Zone("a", 1)),
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


def test_no_numpy_wrapper_inside_a_payload_comes_out() -> None:
    payload: Any = {"items": [np.int64(1), {"v": np.float64(2)}], "pair": (np.int64(1), None)}
    frame = pd.DataFrame({"le": [1], "re": [5], "items": [payload["items"]], "pair": [payload["pair"]]})
    for stream in (rows(payload), sd.from_events([Insert("a", 1, 5, payload)]), sd.from_pandas(frame, end="re")):
        assert repr(payloads_of(stream)) == "[Record(items=[1, {'v': 2.0}], pair=(1, None))]"
    assert "np." not in repr(X.open().push([Insert("a", 1, 5, payload)]))
    assert "np." not in repr(X.open().push(frame))


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
    assert payloads_of(numbers.select_many(lambda e: [1, {"value": 5}]).select(lambda e: e)) == [1, sd.Record(value=5)]
