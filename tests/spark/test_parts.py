"""The parts of the Spark engine that need no session: keys as texts, payloads as columns, declared types, what `explain` says."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import streamdsl as sd
from streamdsl.errors import EventError, SchemaError, TimeOverflow, UnboundedOutputError, UnsupportedOnSpark, UserCodeError
from streamdsl.expr.deferred import MATERIALIZE_BELOW
from streamdsl.expr.nodes import Field, Life, Opaque, Whole
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.io import arrow_held
from streamdsl.plan.node import AlterLifetime, Group, GroupApply, Node, WindowAggregate
from streamdsl.sharding.key_encoding import encode_key
from streamdsl.spark import explain_spark
from streamdsl.spark.codec import arrow_type, decode, decode_table, encode, encode_table
from streamdsl.spark.column_types import (
    FLOAT,
    INT,
    STR,
    ListType,
    PickledType,
    RecordType,
    ScalarType,
    as_nullable,
    type_of_class,
    type_of_hint,
    type_of_payloads,
    unify,
)
from streamdsl.spark.execution_notes import declared_sources
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.result_types import result_type
from streamdsl.spark.spark_session import as_streamdsl
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import Unit
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Count
from streamdsl.windows import Count as CountWindows
from streamdsl.windows import Snapshot, Windows
from tests.laws.part_of import PartOf
from tests.spark.helpers import explained, stream


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Point:
    x: float
    name: str | None


class Pair(NamedTuple):
    a: int
    b: list[float]


NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
VALUES: list[Any] = [
    *(
        None,
        True,
        1,
        1.0,
        Decimal("1.00"),
        Fraction(1),
        Level.LOW,
        0,
        -0.0,
        2**70,
        float(2**70),
        float("nan"),
        float("inf"),
        0.1,
        Fraction(1, 10),
    ),
    *(
        "",
        "1",
        "n1/1",
        "s1:a",
        "a",
        "-",
        b"a",
        "b'a'",
        (),
        (1,),
        ("1",),
        (1, "a"),
        ((1,), "a"),
        [1],
        [1, "a"],
        {1},
        frozenset({1.0}),
        {"a": 1},
    ),
    *(sd.Record(a=1), Point(1, "a"), Point(1.0, "a"), Point(1.0, None), Pair(1, [2]), Color.RED, Color.BLUE, date(2020, 1, 1)),
    *(
        NOON,
        NOON.astimezone(timezone(timedelta(hours=3))),
        NOON.replace(tzinfo=None),
        timedelta(1),
        timedelta(hours=24),
        int,
        Point,
    ),
]


def test_keys_have_the_same_text_exactly_if_they_are_equal() -> None:
    for a, b in itertools.combinations(map(payload_key, VALUES), 2):
        assert (encode_key(a) == encode_key(b)) == (a == b), (a, b)


def test_keys_of_unknown_types_are_refused() -> None:
    with pytest.raises(SchemaError, match="object"):
        encode_key(object())


COLUMNS: list[list[Any]] = [
    [1, 2, -(2**63)],
    [1, None],
    [0.5, float("inf"), None],
    [True, False],
    ["a", None, "é"],
    [None, None],
    [1, 2.0, "x", None, 2**70],
    [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
    [(1, 0.5), (2, None)],
    [Point(1.0, None), Point(2.5, "b")],
    [Pair(1, [2.0]), Pair(2, [])],
    [{"a": {"b": 1}}, {"a": None}],
    ["\ud800"],
]


@pytest.mark.parametrize("few", [0, MATERIALIZE_BELOW])
@pytest.mark.parametrize("payloads", COLUMNS, ids=repr)
def test_payloads_survive_columns(payloads: list[Any], few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_held, "MATERIALIZE_BELOW", few)
    schema = Schema.of_payload(payloads[0])
    kind = type_of_payloads(schema, payloads)
    array = encode(payloads, kind)
    assert array.type == arrow_type(kind)
    expected = Table.from_payloads(payloads, schema).payloads()
    assert [*map(repr, decode(array, kind))] == [*map(repr, expected)]
    table = decode_table(array[1:], kind, schema)
    assert [*map(repr, table.payloads())] == [*map(repr, expected[1:])]
    assert encode_table(decode_table(array[1:], kind, schema), kind).equals(array[1:])
    again = decode_table(array, kind, schema).take(np.array([len(payloads) - 1, 0]))
    assert encode_table(again, kind).equals(array.take(pa.array([len(payloads) - 1, 0])))
    assert encode_table(Table.from_payloads(payloads, schema), kind).equals(array)


def test_values_of_another_type_are_refused() -> None:
    for values, kind in (([1, 2.0], INT), ([True], INT), ([1], FLOAT), ([1], STR)):
        with pytest.raises(SchemaError):
            encode(values, kind)
    with pytest.raises(OverflowError):
        encode([2**63], INT)


def test_types_come_together() -> None:
    record = RecordType(Schema.record(("a", "b")), (INT, STR))
    missing = RecordType(Schema.record(("a", "b")), (as_nullable(INT), FLOAT))
    assert unify([INT, as_nullable(INT)]) == as_nullable(INT)
    assert unify([record, record]) == record
    assert unify([record, missing]) == RecordType(record.schema, (as_nullable(INT), PickledType()))
    assert unify([INT, FLOAT]) == PickledType()
    assert unify([record, INT]) == PickledType()
    assert unify([PickledType(FLOAT), FLOAT]) == PickledType(FLOAT)


def test_annotations_declare_types() -> None:
    assert type_of_hint(list[int]) == ListType(as_nullable(INT), False)
    assert type_of_hint(int | str) is None
    assert type_of_class(Point) == RecordType(Schema.of_type(Point), (FLOAT, as_nullable(STR)))  # type: ignore[arg-type]
    assert type_of_class(dict) is None


class Annotated(sd.UDA[Any, Any]):
    def compute_result(self, payloads: Sequence[Any]) -> float:
        return 1.0


class ByBase(sd.UDA[float, Point]):
    def compute_result(self, payloads):  # type: ignore[no-untyped-def]
        return Point(1.0, None)


class Events(sd.TimeSensitiveUDO[Any, int]):
    def compute_result(self, events: Sequence[Any], window: sd.WindowDescriptor) -> Iterable[sd.IntervalEvent[int]]:
        return []


def test_modules_declare_their_results() -> None:
    assert result_type(Annotated()) == as_nullable(FLOAT)
    found = result_type(ByBase())
    assert isinstance(found, RecordType)
    assert found.schema.cls is Point
    assert result_type(Events()) == as_nullable(INT)

    @sd.uda
    def spread(values: Sequence[float]) -> float:
        return max(values)

    @sd.udo
    def untyped(values):  # type: ignore[no-untyped-def]
        return values

    assert result_type(spread) == as_nullable(FLOAT)
    assert result_type(untyped) == PickledType()
    assert result_type(sd.max(lambda e: e.x).function, ScalarType("str")) == as_nullable(STR)


ERRORS: list[tuple[str, type[Exception], str]] = [
    ("[USER_RAISED_EXCEPTION] UnboundedOutputError: it never ends SQLSTATE: P0001", UnboundedOutputError, "it never ends"),
    (
        "[USER_RAISED_EXCEPTION] EventError: its le is null\nHint: give it one SQLSTATE: P0001\n\nJVM stacktrace:\n\tat x",
        EventError,
        "its le is null\nHint: give it one",
    ),
    (
        "x\n[USER_RAISED_EXCEPTION] OverflowError: an integer leaves int64 SQLSTATE: P0001\n\tat x",
        OverflowError,
        "an integer leaves int64",
    ),
    (
        "Traceback:\nstreamdsl.errors.UserCodeError: KeyError in user code: 'x'\n  at operator w\n\n\tat java",
        UserCodeError,
        "KeyError in user code: 'x'\n  at operator w",
    ),
    ("ValueError: 1\nstreamdsl.errors.TimeOverflow: 9 is too late", TimeOverflow, "9 is too late"),
    ("streamdsl.errors.EventError: event 'a' is refused", EventError, "event 'a' is refused"),
]


@pytest.mark.parametrize(("text", "cls", "message"), ERRORS)
def test_failed_tasks_have_the_error_s_name(text: str, cls: type[Exception], message: str) -> None:
    found = as_streamdsl(text)
    assert type(found) is cls
    assert str(found) == message


def test_other_failures_are_left_alone() -> None:
    assert as_streamdsl("java.lang.OutOfMemoryError: heap") is None
    assert as_streamdsl("[DIVIDE_BY_ZERO] x") is None


class Median2(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return sorted(payloads)[0]


def test_explain_says_what_runs_where_and_why() -> None:
    texts: Any = stream().where(lambda e: e.v > 0).select(lambda e: str(e.v))
    said = explained(texts.group_by(lambda e: e).tumbling_window(5).aggregate(Median2()))
    assert said["where_1"] == "native"
    assert said["select_1"] == "Python (Arrow), row by row: the opaque function <lambda> runs in Python"
    assert said["window_aggregate_1"].startswith("Python (Arrow), one call per group")
    assert "objects" in said["group_apply_1"]
    keyed = explained(stream().group_by("k").tumbling_window(5).aggregate(Median2(), lambda e: e.f))
    assert keyed == {
        "window_aggregate_1": "Python (Arrow), one call per portion of windows: Median2 is Python code",
        "group_apply_1": "native",
    }
    alone = explained(stream().tumbling_window(5).aggregate(Median2(), lambda e: e.f))
    assert alone == {"window_aggregate_1": "Python (Arrow), one call per portion of windows: Median2 is Python code"}
    alone = explained(stream().snapshot_window().aggregate(Median2(), lambda e: e.f))
    assert alone == {"window_aggregate_1": "Python (Arrow), all rows in one task: Median2 is Python code"}
    assert explain_spark(sd.source("s").plan()) == {"source:s": "native"}


def test_explain_knows_declared_types() -> None:
    declared: Any = sd.source("s", Point)
    assert explained(declared.where(lambda e: e.x > 1)) == {"where_1": "native"}
    assert explained(declared.where(lambda e: e.name < 1))["where_1"].startswith("Python (Arrow)")
    assert explained(declared.tumbling_window(5).aggregate(sd.median(lambda e: e.x))) == {"window_aggregate_1": "native"}


@dataclass(frozen=True, slots=True)
class Weekly(PartOf):
    """Windows of a kind that the Spark engine has never heard of."""

    @property
    def all_windows(self) -> Windows:
        return Snapshot()

    def over(self, lifetimes: Iterable[Lifetime], until: int = sd.INFINITY) -> list[Lifetime]:
        return []

    def describe(self, unit: Unit | None = None) -> str:
        return "weekly"


class Learning(AnyUDA[Any, Any]):
    """A module of an unknown kind."""


@dataclass(frozen=True, slots=True)
class Delay(AlterLifetime):
    """An operator without a lowering."""


SOURCE = sd.source("s").plan()


def counting(windows: Windows, function: AnyUDA[Any, Any], input: Node = SOURCE) -> WindowAggregate:
    return WindowAggregate(input, windows, sd.Clip.NONE, sd.Output.ALIGN, (BoundAgg(function),), Field("a0"))


IN_A_GROUP = counting(Weekly(), Count(), Group(None, None))
UNKNOWN: dict[str, tuple[Node, str]] = {
    "windows": (counting(Weekly(), Count()), "weekly windows"),
    "windows of a group that Python makes": (
        GroupApply(SOURCE, Opaque(lambda e: str(e.v)), IN_A_GROUP, Whole()),
        "weekly windows",
    ),
    "modules": (counting(CountWindows(2), Learning()), "Learning is of a kind of modules that"),
    "operators": (Delay(SOURCE, Life("le"), Life("re")), "the operator"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_engine_does_not_know_is_refused(name: str) -> None:
    plan, said = UNKNOWN[name]
    with pytest.raises(UnsupportedOnSpark, match=f"{said} has no lowering|{said} have no lowering"):
        lower(lowering(plan, declared_sources(plan)))
    assert any(f"unsupported: {said}" in text for text in explain_spark(plan).values())
