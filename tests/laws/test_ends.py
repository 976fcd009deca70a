"""What follows from the ends of an operator's lifetimes, whatever the ends are: CTIs, final rows and facts are computed of them.

The ends are drawn by hypothesis, beyond those that the methods of a stream write; of these the rules are written out here again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Constant, Expr, Field, Function, Life
from streamdsl.plan import end_expressions as ends
from streamdsl.plan.end_bounds import Endless
from streamdsl.plan.end_expressions import LE, NEW_LE, RE
from streamdsl.plan.ends import NewLifetime
from streamdsl.plan.node import (
    AlterLifetime,
    Node,
    Source,
    alter_duration,
    alter_lifetime,
    clip_duration,
    clip_interval,
    extend,
    quantize,
    shift,
    to_points_at_end,
)
from streamdsl.stream import Stream
from streamdsl.temporal import CHT, INFINITY, CHTRow
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS, check_law
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario
from tests.laws.test_final import check_what_is_sent_stays

SOURCE = Source("s0")
DURATIONS = st.integers(-6, 9)
COMPUTED = st.sampled_from([Field("v"), Life("le"), Life("re"), Constant(3)])


def times(*known: Expr) -> st.SearchStrategy[Expr]:
    """Draw an end over some times."""
    leaves = st.sampled_from(known) | st.integers(-3, 20).map(Constant) | COMPUTED.map(ends.read_time)
    return st.recursive(
        leaves,
        lambda below: st.one_of(
            st.builds(ends.plus, below, DURATIONS | COMPUTED.map(ends.read_duration)),
            st.builds(ends.reach, below, st.integers(0, 9)),
            st.builds(ends.earliest, below, below),
            st.builds(ends.latest, below, below),
            st.builds(ends.floor, below, st.integers(1, 7), st.integers(-3, 9)),
            st.builds(ends.ceil, below, st.integers(1, 7), st.integers(-3, 9)),
        ),
        max_leaves=4,
    )


LIFETIMES = st.builds(NewLifetime, times(LE, RE), times(LE, RE, NEW_LE))
ROWS = st.lists(
    st.builds(
        lambda le, length, v: CHTRow(le, INFINITY if length is None else le + length, sd.Record(k="a", v=v)),
        st.integers(-3, 15),
        st.integers(1, 9) | st.none(),
        st.integers(-2, 6),
    ),
    min_size=1,
    max_size=6,
)


def query(ends: NewLifetime, of_windows: bool = False) -> Stream[Any]:
    rows: Stream[Any] = sd.source("s0")
    if of_windows:
        rows = rows.hopping_window(9, 3).aggregate(v=sd.count())
    return rows._over(AlterLifetime(rows.plan(), ends.le, ends.re))


@examples(250)
@given(drawn=LIFETIMES, seed=SEEDS, emit=st.sampled_from(EMITS))
@example(drawn=NewLifetime(RE, ends.plus(RE, 1)), seed=1, emit="speculative")
@example(drawn=NewLifetime(LE, ends.plus(LE, ends.read_duration(Life("re")))), seed=1, emit="speculative")
def test_ctis_and_rows_are_right_whatever_the_ends(drawn: NewLifetime, seed: int, emit: Any) -> None:
    check_law(query(drawn), scenario(Random(seed), 1, unending=True), emit)


@examples(250)
@given(drawn=LIFETIMES, seed=SEEDS, of_windows=st.booleans())
def test_what_is_final_stays_whatever_the_ends(drawn: NewLifetime, seed: int, of_windows: bool) -> None:
    """Of windows more rows are final than before the CTI."""
    check_what_is_sent_stays(query(drawn, of_windows), scenario(Random(seed), 1, unending=False, max_size=5))


def one_after_another(rows: list[CHTRow[Any]]) -> Iterator[CHTRow[Any]]:
    """Yield rows of which none overlaps another: most begin where the one before ends."""
    end = -INFINITY
    for row in sorted(rows, key=lambda row: row.le):
        start = max(row.le, end)
        end = min(start + row.re - row.le, INFINITY)
        if start < INFINITY:
            yield CHTRow(start, end, row.payload)


@examples(400)
@given(drawn=LIFETIMES, rows=ROWS)
@example(drawn=NewLifetime(LE, RE), rows=[CHTRow(0, 5, sd.Record(k="a", v=1))])
@example(drawn=NewLifetime(RE, ends.plus(RE, 1)), rows=[CHTRow(0, INFINITY, sd.Record(k="a", v=1))])
@example(drawn=NewLifetime(LE, ends.plus(RE, 3)), rows=[CHTRow(le, le + 5, sd.Record(k="a", v=1)) for le in (0, 5)])
def test_facts_are_so_whatever_the_ends(drawn: NewLifetime, rows: list[CHTRow[Any]]) -> None:
    def meaning(*given: CHTRow[Any]) -> list[CHTRow[Any]]:
        return list(denote(AlterLifetime(SOURCE, drawn.le, drawn.re), {"s0": CHT(given)}))

    out = [meaning(row) for row in rows]
    if drawn.keep_all_rows:
        assert all(out)
    if drawn.duration is not None:
        assert all(row.re - row.le == drawn.duration or row.re == INFINITY for each in out for row in each)
    if drawn.keep_durations:
        pairs = [(row, found) for row, each in zip(rows, out, strict=True) for found in each]
        assert all(found.re == INFINITY or found.re - found.le == row.re - row.le for row, found in pairs)
    endless = {Endless.NONE: [False, False], Endless.THE_SAME: [False, True], Endless.ALL: [True, True]}[drawn.endless]
    if not ends.computed(drawn.le) + ends.computed(drawn.re):
        for row, each in zip(rows, out, strict=True):
            assert all((found.re == INFINITY) == endless[row.re == INFINITY] for found in each)
    if drawn.keep_apart:
        kept = sorted(meaning(*one_after_another(rows)))
        assert all(first.re <= second.le for first, second in pairwise(kept))


RULES: dict[str, tuple[AlterLifetime, Callable[[int], int], Callable[[int, int], int]]] = {
    "shift": (shift(SOURCE, 4), lambda c: c + 4, lambda c, f: f + 4),
    "shift back": (shift(SOURCE, -4), lambda c: c - 4, lambda c, f: f - 4),
    "longer": (extend(SOURCE, 3), lambda c: c, lambda c, f: f + 3),
    "shorter": (extend(SOURCE, -3), lambda c: c - 3, lambda c, f: f - 3),
    "a clipped duration": (clip_duration(SOURCE, 5), lambda c: c, lambda c, f: min(c, f)),
    "a clipped interval": (
        clip_interval(SOURCE, 2, 9),
        lambda c: max(c, 2) if c >= 9 else c,
        lambda c, f: INFINITY if c >= 9 else min(f, 8),
    ),
    "points at the end": (to_points_at_end(SOURCE), lambda c: c, lambda c, f: f + 1),
    "a grid": (quantize(SOURCE, 5, 5), lambda c: c // 5 * 5, lambda c, f: (f // 5 + 1) * 5 - 1),
    "a duration": (alter_duration(SOURCE, 7), lambda c: c, lambda c, f: c - 1 + 7),
    "a computed duration": (alter_lifetime(SOURCE, None, Field("v")), lambda c: c, lambda c, f: c),
    "a duration from RE": (alter_lifetime(SOURCE, None, Life("re")), lambda c: sd.MIN_TIME, lambda c, f: sd.MIN_TIME),
    "a computed start": (alter_lifetime(SOURCE, Field("v"), Constant(1)), lambda c: sd.MIN_TIME, lambda c, f: sd.MIN_TIME),
}
"""Operators with their rules as docs/semantics.md has them: the output CTI, and up to which RE rows are final."""


@pytest.mark.parametrize("name", RULES)
def test_the_rules_are_those_that_the_semantics_writes_down(name: str) -> None:
    node, cti, final = RULES[name]
    for c in range(-12, 25):
        assert node.ends.cti(c) == cti(c)
        for f in (c - 1, c, c + 5):
            assert node.ends.final(c, f) == final(c, f), (c, f)
    assert node.ends.cti(INFINITY) == node.ends.final(INFINITY, INFINITY) == INFINITY
    assert node.ends.cti(sd.MIN_TIME) == sd.MIN_TIME


@pytest.mark.parametrize(
    ("le", "re"),
    [
        (NEW_LE, RE),
        (Constant("soon"), RE),
        (LE, Field("v")),
        (LE, Function("floor_time", (RE, Constant(0), Constant(0)))),
        (LE, Function("floor_time", (RE, LE, Constant(0)))),
        (LE, Function("upper", (RE,))),
    ],
)
def test_what_is_no_end_is_refused(le: Expr, re: Expr) -> None:
    with pytest.raises(QueryError, match="no end of a lifetime"):
        AlterLifetime(SOURCE, le, re)


def test_ends_that_are_nested_without_end_are_refused() -> None:
    deep: Expr = LE
    for _ in range(50):
        deep = ends.plus(deep, 1)
    with pytest.raises(QueryError, match="no end of a lifetime"):
        AlterLifetime(SOURCE, LE, deep)


def nodes() -> list[Node]:
    return [node for node, _, _ in RULES.values()]


def test_an_operator_says_what_it_does() -> None:
    assert [node.describe() for node in nodes()][:8] == [
        "[LE + 4, RE + 4)",
        "[LE - 4, RE - 4)",
        "[LE, RE + 3)",
        "[LE, RE - 3)",
        "[LE, min(RE, LE + 5))",
        "[max(LE, 2), min(RE, 9))",
        "[RE, RE + 1)",
        "[floor(LE, 5), ceil(max(RE, new LE + 5), 5))",
    ]
