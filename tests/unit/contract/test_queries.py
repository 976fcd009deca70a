"""The public contract, section 3: lambdas, grouping and joins."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from tests.unit.contract.common import Trip, X, Zone, cht_of, payloads_of, refused, rows


@pytest.mark.parametrize(
    "query",
    [
        rows(1, 2).where(lambda e, life: life.le + e > 2),
        rows(1, 2).where(lambda e, life: life.le + e > 2 and True),
        rows(1, 2).select(lambda e, life: life.re - life.le).where(lambda e: e).shift(1).where(lambda e, life: life.le == 3),
        rows(1, 2).select(start=lambda e, life: life.le).where(lambda e: e.start == 2),
        rows(1, 2).alter_duration(lambda e, life: (life.re - life.le) * (e - 1)),
        rows(1, 2).alter_lifetime(lambda e, life: life.re, duration=lambda e: e - 1),
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
