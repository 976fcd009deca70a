"""Operators over several inputs: what they say about each instant, and how their pieces are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import UnitError, UserCodeError
from streamdsl.plan.asof import Direction, Nearness, Ties
from streamdsl.plan.node import AntiJoin, AsofJoin, ClipBy, Join, Matching, Node, SemiJoin, Union, Where
from streamdsl.temporal import CHT, INFINITY
from streamdsl.temporal.payload import payload_order
from tests.unit.denote.reading import BY_KEY, INSTANTS, LEFT, RIGHT, alive, bag, histories, meaning, means, of

ALL = Matching()
SMALLER = Matching(BY_KEY.left_key, BY_KEY.right_key, of(lambda a, b: a.v <= b.v, 2))
NAN = float("nan")


def matching(a: Any, b: Any, how: Matching) -> bool:
    return how is ALL or (a.k == b.k and (how is BY_KEY or a.v <= b.v))


@pytest.mark.parametrize("how", [ALL, BY_KEY, SMALLER], ids=["all", "by key", "by key and predicate"])
@given(left=histories, right=histories)
def test_join_pairs_what_lives_at_each_instant(how: Matching, left: CHT[Any], right: CHT[Any]) -> None:
    joined = meaning(Join(LEFT, RIGHT, how), left, right)
    for t in INSTANTS:
        pairs = [(a, b) for a in alive(left, t) for b in alive(right, t) if matching(a, b, how)]
        assert bag(alive(joined, t)) == bag(pairs)
    assert len(joined) == sum(
        max(a.le, b.le) < min(a.re, b.re) for a in left for b in right if matching(a.payload, b.payload, how)
    ), "one row for each pair"


@pytest.mark.parametrize("how", [ALL, BY_KEY, SMALLER], ids=["all", "by key", "by key and predicate"])
@given(left=histories, right=histories)
def test_anti_join_keeps_what_has_no_match_at_each_instant(how: Matching, left: CHT[Any], right: CHT[Any]) -> None:
    alone = meaning(AntiJoin(LEFT, RIGHT, how), left, right)
    for t in INSTANTS:
        unmatched = [a for a in alive(left, t) if not any(matching(a, b, how) for b in alive(right, t))]
        assert bag(alive(alone, t)) == bag(unmatched)


def test_anti_join_gives_maximal_pieces_of_each_row() -> None:
    right = [(2, 4, "r"), (4, 5, "r"), (8, INFINITY, "r")]
    means(AntiJoin(LEFT, RIGHT, ALL), [(0, 10, "l"), (0, 10, "l")], right, gives=[(0, 2, "l"), (5, 8, "l")] * 2)


@pytest.mark.parametrize("how", [ALL, BY_KEY, SMALLER], ids=["all", "by key", "by key and predicate"])
@given(left=histories, right=histories)
def test_semi_join_keeps_what_has_a_match_at_each_instant(how: Matching, left: CHT[Any], right: CHT[Any]) -> None:
    met = meaning(SemiJoin(LEFT, RIGHT, how), left, right)
    for t in INSTANTS:
        matched = [a for a in alive(left, t) if any(matching(a, b, how) for b in alive(right, t))]
        assert bag(alive(met, t)) == bag(matched)


def test_semi_join_gives_maximal_pieces_of_each_row() -> None:
    right = [(2, 4, "r"), (4, 5, "r"), (8, INFINITY, "r")]
    means(SemiJoin(LEFT, RIGHT, ALL), [(0, 10, "l"), (0, 10, "l")], right, gives=[(2, 5, "l"), (8, 10, "l")] * 2)


@pytest.mark.parametrize("direction", ["back", "forward", "nearest"])
@pytest.mark.parametrize("outer", [False, True])
@given(left=histories, right=histories, tolerance=st.sampled_from([0, 3, INFINITY]), ties=st.sampled_from(["all", "last"]))
def test_asof_join_pairs_each_row_with_the_nearest(
    direction: Direction, outer: bool, left: CHT[Any], right: CHT[Any], tolerance: int, ties: Ties
) -> None:
    found = meaning(AsofJoin(LEFT, RIGHT, SMALLER, None, Nearness(direction, tolerance), outer, ties), left, right)
    expected: list[tuple[int, int, Any]] = []
    for a in left:
        rights = [b for b in right if matching(a.payload, b.payload, SMALLER) and abs(a.le - b.le) <= tolerance]
        before = max((b.le for b in rights if b.le <= a.le), default=None) if direction != "forward" else None
        later = min((b.le for b in rights if b.le >= a.le), default=None) if direction != "back" else None
        if before is not None and later is not None:
            chosen: int | None = before if a.le - before <= later - a.le else later
        else:
            chosen = later if before is None else before
        met = sorted((b.payload for b in rights if b.le == chosen), key=payload_order)
        met = met[-1:] if ties == "last" else met
        expected += [(a.le, a.re, (a.payload, b)) for b in met or ([None] if outer else [])]
    assert found == CHT.from_rows(expected)


@given(histories, histories)
def test_clip_by_ends_a_row_at_the_first_later_match(left: CHT[Any], right: CHT[Any]) -> None:
    clipped = meaning(ClipBy(LEFT, RIGHT, BY_KEY), left, right)
    expected = []
    for row in left:
        cut = row.re
        for other in right:
            if other.payload.k == row.payload.k and row.le < other.le:
                cut = min(cut, other.le)
        expected.append((row.le, cut, row.payload))
    assert clipped == CHT.from_rows(expected)


def test_points_clipped_by_themselves_form_a_signal() -> None:
    samples = [(1, INFINITY, 20), (1, INFINITY, 21), (4, INFINITY, 22)]
    means(ClipBy(LEFT, LEFT, ALL), samples, gives=[(1, 4, 20), (1, 4, 21), (4, INFINITY, 22)])


@given(histories, histories)
def test_union_adds_up(left: CHT[Any], right: CHT[Any]) -> None:
    both = meaning(Union((LEFT, RIGHT, LEFT)), left, right)
    assert len(both) == 2 * len(left) + len(right)
    assert all(bag(alive(both, t)) == bag([*alive(left, t), *alive(right, t), *alive(left, t)]) for t in INSTANTS)


@pytest.mark.parametrize(("a", "b"), [(None, None), (NAN, float("nan")), (1, 1.0), ((1, None), (1, None))])
def test_keys_are_equal_as_payloads_are(a: Any, b: Any) -> None:
    by_value = Matching(of(lambda e: e), of(lambda e: e))
    assert len(meaning(Join(LEFT, RIGHT, by_value), [(0, 5, a)], [(3, 9, b)])) == 1
    assert len(meaning(AntiJoin(LEFT, RIGHT, by_value), [(3, 5, a)], [(3, 9, b)])) == 0


def test_a_projection_makes_the_payload_of_a_pair() -> None:
    plan = Join(LEFT, RIGHT, ALL, of(lambda a, b: {"sum": a + b}, 2))
    means(plan, [(0, 5, 1)], [(3, 9, 2)], gives=[(3, 5, {"sum": 3})])


@pytest.mark.parametrize("operator", [Join, AntiJoin, SemiJoin, ClipBy])
def test_a_predicate_is_asked_only_where_it_can_count(operator: Any) -> None:
    """Pairs that never meet must not fail: an engine that finds pairs by time would not ask them."""
    plan: Node = operator(LEFT, RIGHT, Matching(where=of(lambda a, b: 1 / (b - a) > 0, 2)))
    assert len(meaning(plan, [(0, 5, 7)], [(5, 9, 7), (20, 21, 7)])) == (0 if operator in (Join, SemiJoin) else 1)
    with pytest.raises(UserCodeError, match=r"operator (anti_|semi_)?(join|clip_by)_\d, event .*le=0.*le=2"):
        meaning(plan, [(0, 5, 7)], [(2, 3, 7)])


def test_a_shared_input_is_read_once() -> None:
    calls = []

    def seen(e: Any) -> bool:
        calls.append(e)
        return True

    shared = Where(LEFT, of(seen))
    means(Join(shared, shared, ALL), [(0, 5, 1)], gives=[(0, 5, (1, 1))])
    assert len(calls) == 1


def test_streams_of_different_units_do_not_meet() -> None:
    left, right = CHT.from_rows([(0, 1, "x")], "s"), CHT.from_rows([(0, 1, "x")], "ms")
    for plan in (Join(LEFT, RIGHT, ALL), Union((LEFT, RIGHT))):
        with pytest.raises(UnitError):
            meaning(plan, left, right)
