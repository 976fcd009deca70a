"""Operators that are made of others, against what they mean written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import QueryError, UnboundedOutputError
from streamdsl.expr.nodes import Constant
from streamdsl.plan.derived import BandTime, band_join, fill, full_join, left_join
from streamdsl.plan.node import Matching
from streamdsl.temporal import CHT, INFINITY
from streamdsl.windows import Hopping
from tests.unit.denote.reading import BY_KEY, INSTANTS, LEFT, RIGHT, alive, bag, histories, meaning

TIMES: list[BandTime] = ["max", "min", "left", "right", "both"]


@pytest.mark.parametrize("how", [Matching(), BY_KEY], ids=["all", "by key"])
@given(left=histories, right=histories)
def test_outer_joins_pair_what_is_alone_with_none(how: Matching, left: CHT[Any], right: CHT[Any]) -> None:
    def match(a: Any, b: Any) -> bool:
        return how is not BY_KEY or a.k == b.k

    lefts, both = meaning(left_join(LEFT, RIGHT, how), left, right), meaning(full_join(LEFT, RIGHT, how), left, right)
    for t in INSTANTS:
        a_s, b_s = alive(left, t), alive(right, t)
        pairs = [(a, b) for a in a_s for b in b_s if match(a, b)]
        alone = [(a, None) for a in a_s if not any(match(a, b) for b in b_s)]
        assert bag(alive(lefts, t)) == bag([*pairs, *alone])
        assert bag(alive(both, t)) == bag([*pairs, *alone, *((None, b) for b in b_s if not any(match(a, b) for a in a_s))])


def test_a_band_without_a_bound_pairs_all_later_rows() -> None:
    left, right = CHT.from_rows([(2, 3, {"k": 1})]), CHT.from_rows([(1, 2, {"k": 1}), (10**12, 10**13, {"k": 1})])
    found = meaning(band_join(LEFT, RIGHT, BY_KEY, None, 0, INFINITY), left, right)
    assert [row.le for row in found] == [10**12]
    with pytest.raises(QueryError, match="never becomes final"):
        band_join(LEFT, RIGHT, BY_KEY, None, 0, INFINITY, "left")


@pytest.mark.parametrize("time", TIMES)
@given(left=histories, right=histories, before=st.integers(-4, 6), width=st.integers(0, 6))
def test_a_band_join_pairs_what_starts_near(time: BandTime, left: CHT[Any], right: CHT[Any], before: int, width: int) -> None:
    after = width - before
    found = meaning(band_join(LEFT, RIGHT, BY_KEY, None, before, after, time), left, right)
    pairs = [(a, b) for a in left for b in right if a.payload.k == b.payload.k and a.le - before <= b.le <= a.le + after]
    at: dict[str, Callable[[int, int], tuple[int, int]]] = {
        "max": lambda a, b: (max(a, b), max(a, b)),
        "min": lambda a, b: (min(a, b), min(a, b)),
        "left": lambda a, b: (a, a),
        "right": lambda a, b: (b, b),
        "both": lambda a, b: (min(a, b), max(a, b)),
    }
    lives = [at[time](a.le, b.le) for a, b in pairs]
    assert found == CHT.from_rows([(le, end + 1, (a.payload, b.payload)) for (le, end), (a, b) in zip(lives, pairs, strict=True)])


@given(
    rows=st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9)), max_size=5),
    size=st.integers(1, 7),
    hop=st.integers(1, 7),
    offset=st.integers(-3, 3),
)
def test_a_trailing_window_looks_back_from_every_hop(rows: list[tuple[int, int]], size: int, hop: int, offset: int) -> None:
    stream = sd.from_rows([(le, le + lasting, {"v": 1}) for le, lasting in rows])
    found = stream.trailing_window(size, hop, offset).aggregate(sd.count()).run(engine="reference").cht()
    for t in INSTANTS:
        now = (t - offset) // hop * hop + offset
        n = sum(le < now and le + lasting > now - size for le, lasting in rows)
        assert alive(found, t) == [n] * (n > 0)


@given(rows=histories, start=st.none() | st.integers(-9, 9), length=st.integers(-2, 30), every=st.integers(1, 9))
def test_fill_has_a_value_wherever_there_is_no_row(rows: CHT[Any], start: int | None, length: int, every: int) -> None:
    first = min((row.le for row in rows), default=INFINITY) if start is None else start
    end = (0 if first == INFINITY else first) + length
    found = meaning(fill(LEFT, Constant("-"), Hopping(every, every, 1), start, end), rows)
    for t in INSTANTS:
        is_empty = not alive(rows, t) and first <= t < end
        assert bag(alive(found, t)) == bag([*alive(rows, t), *(["-"] * is_empty)])
    filled = [row for row in found if row.payload == "-"]
    assert all((row.le - 1) // every == (row.re - 2) // every for row in filled), "cut at the cells"


def test_a_fill_that_cannot_be_is_refused() -> None:
    counts = sd.source("s", int).tumbling_window(5).aggregate(n=sd.count())
    with pytest.raises(QueryError, match="the value has the fields m, the rows have n"):
        counts.fill(5, {"m": 0})
    with pytest.raises(QueryError, match="begins with the group's first row"):
        sd.source("s", int).group_by(lambda e: e).apply(lambda g: g.fill(5, 0, start=3))
    with pytest.raises(UnboundedOutputError, match="until"):
        sd.from_rows([(1, 2, 7)]).fill(5, 0).run()


def test_an_empty_band_and_an_unknown_time_are_refused() -> None:
    with pytest.raises(QueryError, match="from 3 to 2 is empty"):
        band_join(LEFT, RIGHT, Matching(), None, -3, 2)
    with pytest.raises(QueryError, match="'middle'"):
        band_join(LEFT, RIGHT, Matching(), None, 3, 2, "middle")  # type: ignore[arg-type]
