"""Paper 004: window aggregates are their definitions once punctuation says so; windows of rows are those of the input."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl.progress import Tuple, WindowAggregate, WindowResult, extent, number, wids
from streamdsl.temporal import INFINITY
from streamdsl.temporal.payload import payload_order
from streamdsl.udm.builtin import exact_sum
from tests.laws.arrivals import NOTHING, arrivals, assert_sound, bound, last, steps, tuples
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from udm_examples import Median

AGGREGATES: list[Any] = [
    sd.count(),
    sd.count(lambda e: e.v),
    sd.sum(lambda e: e.v),
    sd.avg(lambda e: e.v, where=lambda e: e.k == "a"),
    sd.min(lambda e: e.v),
    sd.max(lambda e: e.v),
    sd.count_distinct(lambda e: e.k),
    sd.collect(lambda e: e.n),
    sd.count(where=lambda e: e.v is None),
    Median().of(lambda e: e.n),
    lambda payloads: [each["n"] for each in payloads],
    len,
]


def windows(seen: list[Tuple], size: int, slide: int, fn: Any, by_key: bool) -> list[WindowResult]:
    """The aggregates of all windows, each computed from the list of its members."""
    found = []
    for wid in sorted({wid for item in seen for wid in range(-200, 200) if inside(item.ts, wid, size, slide)}):
        members = [item for item in seen if inside(item.ts, wid, size, slide)]
        for key in sorted({item.payload["k"] for item in members}) if by_key else [None]:
            group = [item for item in members if not by_key or item.payload["k"] == key]
            found.append(WindowResult(wid, key, by_query(group, fn) if isinstance(fn, sd.Agg) else by_function(group, fn)))
    return found


def inside(ts: float, wid: int, size: int, slide: int) -> bool:
    return (wid + 1) * slide - size <= ts < (wid + 1) * slide


def by_query(group: list[Tuple], fn: Any) -> Any:
    """What a query's one window around the group gives."""
    rows = [(int(item.ts), int(item.ts) + 1, item.payload) for item in group]
    (row,) = sd.from_rows(rows).tumbling_window(10**6, 5 * 10**5).aggregate(x=fn).run(engine="reference").cht().rows
    return row.payload.x


def by_function(group: list[Tuple], fn: Any) -> Any:
    return fn([item.payload for item in sorted(group, key=lambda item: (item.ts, payload_order(item.payload)))])


@pytest.mark.parametrize("order", ["any", "in"])
@examples(60)
@given(SEEDS)
def test_a_window_is_complete_when_punctuation_reaches_its_end_and_then_it_is_its_definition(order: Any, seed: int) -> None:
    rng = Random(seed)
    size, slide, fn, by_key = rng.randint(1, 9), rng.randint(1, 9), rng.choice(AGGREGATES), rng.random() < 0.5
    operator = WindowAggregate(size, slide, fn, "k" if by_key else None, order)
    given_ = arrivals(rng)
    everything = windows(tuples(given_), size, slide, fn, by_key)
    for seen, out in steps(operator, given_):
        b = bound(seen)
        results = [item for item in out if isinstance(item, WindowResult)]
        assert list(map(repr, results)) == [repr(each) for each in everything if (each.wid + 1) * slide <= b]
        first_open = b if abs(b) >= INFINITY else b // slide
        assert last(out, "wid") == (first_open if order == "any" else NOTHING)
        ids = [(item, wid) for item in tuples(seen) for wid in wids(item.ts, size, slide) if wid >= first_open]
        partials = {(wid, by_key and item.payload["k"]) for item, wid in ids}
        assert operator.buffered == len(partials if order == "any" else {item.payload["n"] for item, _ in ids})
    assert_sound(out, lambda item: {"wid": item.wid})


VALUES = [0, 1, -3, 2**70, 0.1, -0.3, 1e16, -1e16, 1e-300, 1.7e308, True, None, float("nan"), float("inf"), float("-inf")]


@examples(30)
@given(SEEDS)
def test_sums_of_many_values_are_exact_in_any_order(seed: int) -> None:
    rng = Random(seed)
    few = rng.sample(VALUES, rng.randint(1, 6))
    values = [rng.choice(few) for _ in range(rng.randint(0, 300))]
    known = [value for value in values if value is not None]
    for fn, expected in ((sd.sum(lambda e: e), exact_sum(known)), (sd.avg(lambda e: e), mean(known))):
        windows = WindowAggregate(1, 1, fn)
        windows.run((0, Tuple(0, value)) for value in values)
        results = [each.value for each in windows.close() if isinstance(each, WindowResult)]
        assert repr(results) == repr([expected if known else None] if values else [])


def mean(values: list[Any]) -> Any:
    return exact_sum(values) / len(values) if values else None


@examples(60)
@given(SEEDS)
def test_window_ids_are_those_of_the_windows_that_hold_a_time(seed: int) -> None:
    rng = Random(seed)
    size, slide, ts = rng.randint(1, 9), rng.randint(1, 9), rng.randint(-30, 30)
    assert list(wids(ts, size, slide)) == [wid for wid in range(-60, 60) if inside(ts, wid, size, slide)]
    assert all(extent(wid, size, slide)[0] <= ts < extent(wid, size, slide)[1] for wid in wids(ts, size, slide))


@examples(60)
@given(SEEDS)
def test_windows_of_rows_are_those_of_the_order_at_the_system_input(seed: int) -> None:
    rng = Random(seed)
    given_ = arrivals(rng)
    n, every = rng.randint(1, 4), rng.randint(1, 3)
    numbered = number([item for _, item in given_], every)
    rows = [item for item in numbered if isinstance(item, Tuple)]
    assert [row.payload for row in rows] == [item.payload for item in tuples(given_)]
    late = rows[:]
    rng.shuffle(late)
    operator = WindowAggregate(n, n, lambda payloads: [each["n"] for each in payloads])
    out = operator.run((0, row) for row in late) + operator.close()
    ids = [row.payload["n"] for row in rows]
    assert [each.value for each in out if isinstance(each, WindowResult)] == [ids[at : at + n] for at in range(0, len(ids), n)]
    WindowAggregate(n, n, len).run((0, item) for item in numbered)
