"""Grouping: each group by itself, with the key that its first row shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from streamdsl.denote import denote
from streamdsl.errors import UserCodeError
from streamdsl.expr.nodes import Field, Key, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Group, GroupApply, Join, Matching, Node, Select, Source, ToEdges, Where, WindowAggregate, shift
from streamdsl.temporal import CHT, INFINITY
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Count
from streamdsl.windows import Clip, Hopping, Output
from tests.unit.denote.reading import LEFT, alive, bag, histories, meaning, means, of

PAIR = Make(Schema.tuple(2), (Key(), Whole()))
OUTER, INNER = Group(None, None, 0), Group(None, None, 1)


def count(of_rows: Node) -> Node:
    return WindowAggregate(of_rows, Hopping(10, 10), Clip.NONE, Output.ALIGN, (BoundAgg(Count()),), Field("a0"))


@given(histories)
def test_group_apply_is_the_union_of_the_body_over_each_key(rows: CHT[Any]) -> None:
    edges = meaning(GroupApply(LEFT, of(lambda e: e.k), ToEdges(OUTER, None), Whole()), rows)
    assert edges == meaning(ToEdges(LEFT, of(lambda e: e.k)), rows)
    shown = meaning(GroupApply(LEFT, of(lambda e: e.k), OUTER, PAIR), rows)
    assert shown == meaning(Select(LEFT, of(lambda e: (e.k, e))), rows)


def test_windows_are_counted_for_each_key() -> None:
    rows = [(1, 2, {"k": "a"}), (3, 12, {"k": "b"}), (4, 5, {"k": "a"})]
    means(
        GroupApply(LEFT, of(lambda e: e.k), count(OUTER), PAIR),
        rows,
        gives=[(0, 10, ("a", 2)), (0, 10, ("b", 1)), (10, 20, ("b", 1))],
    )


def test_groups_may_be_nested() -> None:
    rows = [(1, 2, {"k": "a", "v": 1}), (3, 4, {"k": "a", "v": 2}), (4, 5, {"k": "a", "v": 1})]
    inner = GroupApply(OUTER, of(lambda e: e.v), count(INNER), PAIR)
    means(GroupApply(LEFT, of(lambda e: e.k), inner, PAIR), rows, gives=[(0, 10, ("a", (1, 2))), (0, 10, ("a", (2, 1)))])


def test_a_body_may_read_its_group_twice() -> None:
    rows = [(1, 5, {"k": "a", "v": 1}), (3, 9, {"k": "a", "v": 2}), (1, 9, {"k": "b", "v": 3})]
    small, large = Where(OUTER, of(lambda e: e.v < 2)), Where(OUTER, of(lambda e: e.v > 1))
    body = Join(small, large, Matching(), of(lambda a, b: a.v + b.v, 2))
    means(GroupApply(LEFT, of(lambda e: e.k), body, PAIR), rows, gives=[(3, 5, ("a", 3))])


def test_a_group_made_elsewhere_may_be_read_inside_another() -> None:
    totals = GroupApply(Source("right"), of(lambda e: e.k), count(OUTER), PAIR)
    plan = GroupApply(LEFT, of(lambda e: e.k), Join(OUTER, totals, Matching(), of(lambda a, b: b[1], 2)), PAIR)
    assert meaning(plan, [(1, 2, {"k": "a"})], [(1, 2, {"k": "x"}), (1, 2, {"k": "x"})]) == CHT.from_rows([(1, 2, ("a", 2))])


@pytest.mark.parametrize(
    ("keys", "shown"),
    [([1.0, 1, True], 1.0), ([True, 1.0], True), ([None, None], None), ([(1, 2.0), (1.0, 2)], (1, 2.0))],
)
def test_equal_keys_make_one_group_that_shows_the_first(keys: list[Any], shown: Any) -> None:
    rows = [(t, t + 1, {"k": key}) for t, key in enumerate(keys)]
    (row,) = meaning(GroupApply(LEFT, of(lambda e: e.k), count(OUTER), Key()), rows)
    assert (row.payload, repr(row.payload)) == (shown, repr(shown))


def test_nan_is_one_group() -> None:
    rows = [(1, 2, float("nan")), (3, 4, float("nan"))]
    means(GroupApply(LEFT, of(lambda e: e), count(OUTER), PAIR), rows, gives=[(0, 10, (float("nan"), 2))])


def test_a_key_may_be_a_record() -> None:
    rows = [(1, 2, {"k": "a", "v": 1}), (3, 4, {"k": "a", "v": 1})]
    plan = GroupApply(LEFT, of(lambda e: {"zone": e.k, "day": e.v}), count(OUTER), PAIR)
    means(plan, rows, gives=[(0, 10, ({"zone": "a", "day": 1}, 2))])


def test_the_window_bound_holds_inside_groups_too() -> None:
    rows = CHT.from_rows([(1, INFINITY, {"k": "a"})])
    plan = shift(GroupApply(LEFT, of(lambda e: e.k), count(OUTER), Whole()), 100)
    found = denote(plan, {"left": rows}, until=20)
    assert [bag(alive(found, t)) for t in (100, 110, 120)] == [bag([1]), bag([1]), bag([])]


def test_a_key_that_raises_is_named() -> None:
    with pytest.raises(UserCodeError, match=r"operator group_apply_\d, event .*le=1"):
        meaning(GroupApply(LEFT, of(lambda e: 1 / e), OUTER, PAIR), [(1, 2, 0)])
