"""Paper 004: punctuation from policies, timers and keys; and what streams under skew, bursts, lulls and dead sources come to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import StreamDslError
from streamdsl.progress import (
    INFINITY,
    BandJoin,
    Chain,
    Describe,
    Input,
    Joined,
    OfAttribute,
    OfPairs,
    OfWindows,
    Punctuation,
    Smooth,
    Sort,
    Tuple,
    Union,
    Unmatched,
    WindowAggregate,
    WindowResult,
)
from tests.laws.arrivals import Arrival, arrivals, bound, tuples
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

NOTHING = float("-inf")


def assert_grammatical(out: list[Any]) -> None:
    reached = NOTHING
    for item in out:
        if isinstance(item, Punctuation):
            assert item.value > reached
            reached = item.value
        else:
            assert item.ts >= reached


@examples(60)
@given(SEEDS)
def test_slack_passes_what_is_no_later_than_it_and_counts_the_rest(seed: int) -> None:
    rng = Random(seed)
    slack, source = rng.randint(0, 12), None
    source = Input(sd.Progress.slack(slack))
    given_ = tuples(arrivals(rng))
    out = source.run((0, item) for item in given_)
    on_time = [item for at, item in enumerate(given_) if item.ts >= max((each.ts for each in given_[:at]), default=-99) - slack]
    assert [item for item in out if isinstance(item, Tuple)] == on_time
    assert source.dropped == len(given_) - len(on_time)
    assert_grammatical(out)
    assert bound([(0, item) for item in out]) == max((item.ts - slack for item in given_), default=NOTHING)


@examples(60)
@given(SEEDS)
def test_each_key_has_its_own_time_and_the_slowest_one_counts(seed: int) -> None:
    rng = Random(seed)
    idle = rng.choice([None, None, 5])
    source = Input(key="k", keys="ab", idle=idle)
    latest = dict.fromkeys("ab", NOTHING)
    out: list[Any] = []
    reached = NOTHING
    first = None
    for _ in range(rng.randint(0, 25)):
        key = rng.choice("ab")
        ts = int(max(latest[key], -9)) + rng.choice([-1, 0, 1, 4])
        out += source.push(Tuple(ts, {"k": key}))
        if ts >= reached:
            latest[key] = max(latest[key], ts)
        first = ts if first is None else first
        since = max(latest.values()) - (1000 if idle is None else idle)
        waited = [each for each in latest.values() if (first if each == NOTHING else each) >= since]
        reached = max(reached, min(waited))
        assert bound([(0, item) for item in out]) == reached
    assert_grammatical(out)


def test_a_retired_key_is_waited_for_again_when_it_comes_again() -> None:
    source = Input(key="k", keys=["a", "b"])
    a, b = {"k": "a"}, {"k": "b"}
    assert source.push(Tuple(5, a)) == [Tuple(5, a)]
    assert source.retire("b") == [Punctuation(5)]
    assert source.push(Tuple(9, a)) == [Tuple(9, a), Punctuation(9)]
    assert source.push(Tuple(10, b)) == [Tuple(10, b)]
    assert source.push(Tuple(20, a)) == [Tuple(20, a), Punctuation(10)]


@pytest.mark.parametrize("idle", [None, 50])
def test_keys_that_come_and_go_are_forgotten(idle: Any) -> None:
    """A million devices over a year are not a million clocks."""
    source = Input(key="k", idle=idle)
    for n in range(1000):
        source.push(Tuple(10 * n, {"k": n}))
        if idle is None:
            source.retire(n - 3)
    clocks = source._clocks
    assert max(len(clocks._clocks), len(clocks._heap), len(clocks._retired)) < 10


def test_a_timer_punctuates_what_has_come_and_in_a_lull_what_the_time_says() -> None:
    source = Input(timer=True, drift=10)
    assert source.push(Tuple(100)) == [Tuple(100)]
    assert [source.tick(now) for now in (101, 105, 110)] == [[Punctuation(100)], [], []]
    assert [source.tick(now) for now in (111, 130)] == [[Punctuation(101)], [Punctuation(120)]]
    assert source.push(Tuple(119)) == []
    assert source.dropped == 1


def test_the_clock_and_another_source_give_progress_too() -> None:
    clock = Input(sd.Progress.wall_clock(10, 3))
    assert clock.push(Tuple(44)) == [Tuple(44)]
    assert [clock.tick(now) for now in (47, 49, 50)] == [[Punctuation(37)], [], [Punctuation(47)]]
    imported = Input(sd.Progress.imported_from("trips", 5))
    assert imported.push(Tuple(44)) == [Tuple(44)]
    assert imported.push(Punctuation(50)) == [Punctuation(45)]
    assert imported.close() == [Punctuation(INFINITY)]


def test_a_policy_counts_whole_ticks() -> None:
    with pytest.raises(StreamDslError, match="whole ticks"):
        Input().push(Tuple(1.5))


@examples(60)
@given(SEEDS)
def test_sort_gives_an_ordered_stream_to_what_needs_one(seed: int) -> None:
    given_ = arrivals(Random(seed))
    sort, out = Sort(), []
    for at, (_, item) in enumerate(given_):
        out += sort.push(item)
        seen = given_[: at + 1]
        passed = [each for each in out if isinstance(each, Tuple)]
        assert passed == sorted((each for each in tuples(seen) if each.ts < bound(seen)), key=lambda each: each.ts)
        assert sort.buffered == len(tuples(seen)) - len(passed)
    out += sort.close()
    assert_grammatical(out)
    merge = Union(1, order="in")
    assert [each.ts for each in merge.run((0, each) for each in out)] == sorted(each.ts for each in tuples(given_))


@examples(60)
@given(SEEDS)
def test_describe_leaves_out_only_what_windows_cannot_use(seed: int) -> None:
    rng = Random(seed)
    slide = rng.randint(1, 9)
    size = slide * rng.randint(1, 3)
    plain, described = WindowAggregate(size, slide, len), WindowAggregate(size, slide, len)
    describe, sent = Describe(slide), 0
    for _, item in arrivals(rng):
        fewer = describe.push(item)
        sent += sum(isinstance(each, Punctuation) for each in fewer)
        out = described.run((0, each) for each in fewer)
        assert out == plain.push(item)
        assert all(each.value % slide == 0 for each in fewer if isinstance(each, Punctuation))


@pytest.mark.parametrize("time", ["left", "right", "max", "min"])
@examples(60)
@given(SEEDS)
def test_a_joins_result_goes_on_by_either_time_or_a_function_of_both(time: Any, seed: int) -> None:
    rng = Random(seed)
    before, after = rng.randint(0, 6), rng.randint(0, 6)
    given_ = arrivals(rng, 2)
    query, out = Chain(BandJoin(before, after), OfPairs(time)), []
    ways: dict[str, Any] = {"left": lambda a, b: a, "right": lambda a, b: b, "max": max, "min": min}
    of = ways[time]
    for at, (input, item) in enumerate(given_):
        out += query.push(item, input)
        b0, b1 = (bound(given_[: at + 1], each) for each in (0, 1))
        left, right = min(b1 - after, b0), min(b0 - before, b1)
        assert bound([(0, each) for each in out]) == (max(left, right, min(b0, b1)) if time == "max" else of(left, right))
    out += query.close()
    assert_grammatical(out)
    assert bound([(0, each) for each in out]) == INFINITY
    assert all(each.ts == of(each.payload.left.ts, each.payload.right.ts) for each in out if isinstance(each, Tuple))


@examples(60)
@given(SEEDS)
def test_windows_may_be_on_any_progressing_attribute(seed: int) -> None:
    """NetFlow: in order of the ends, out of order of the starts (3.1)."""
    rng = Random(seed)
    flows = sorted((rng.randint(0, 40), rng.randint(0, 12)) for _ in range(rng.randint(0, 20)))
    items: list[Any] = []
    for at, (end, length) in enumerate(flows):
        items.append(Tuple(end, {"start": end - length, "end": end}))
        later = [e - n for e, n in flows[at + 1 :]]
        items += [Punctuation(end), Punctuation(min([end, *later]) - 1, on="start")]
    for attribute, times in (("start", [e - n for e, n in flows]), ("end", [e for e, _ in flows])):
        by = [] if attribute == "end" else [OfAttribute("start")]
        query = Chain(Union(1), *by, WindowAggregate(7, 7, sd.count()))
        out = query.run((0, item) for item in items) + query.close()
        found = {each.wid: each.value for each in out if isinstance(each, WindowResult)}
        assert found == Counter(ts // 7 for ts in times)


@examples(60)
@given(SEEDS)
def test_smoothed_results_are_the_same_within_the_delay_and_come_few_at_a_time(seed: int) -> None:
    rng = Random(seed)
    every, delay, slide = rng.randint(1, 4), rng.randint(0, 3), rng.randint(1, 5)

    def make() -> WindowAggregate:
        return WindowAggregate(slide, slide, sd.count(), key="k")

    given_, plain = arrivals(rng), make()
    smooth, out = Smooth(make(), every, delay), []
    for _, item in given_:
        found = smooth.push(item)
        out += found
        assert isinstance(item, Punctuation) or sum(isinstance(each, WindowResult) for each in found) <= 1
        reached = [each.value for each in plain.push(item) if isinstance(each, Punctuation)]
        due = [each for each in smooth._waiting if isinstance(each, WindowResult)]
        assert all(each.wid >= value - delay for value in reached for each in due)
    out += smooth.close()
    assert (out, smooth.buffered) == (make_run(make(), given_), 0)


@examples(60)
@given(SEEDS)
def test_what_an_outer_join_finds_unmatched_leaves_a_few_at_a_time_too(seed: int) -> None:
    rng = Random(seed)
    before, after, every, delay = (rng.randint(0, 6) for _ in range(4))
    given_ = arrivals(rng, 2)
    smooth, out = Smooth(BandJoin(before, after, "k", outer=True), every + 1, delay), []
    for input, item in given_:
        found = smooth.push(item, input)
        out += found
        assert isinstance(item, Punctuation) or sum(isinstance(each, (Joined, Unmatched)) for each in found) <= 1
    out += smooth.close()
    plain = BandJoin(before, after, "k", outer=True)
    assert out == plain.run(given_) + plain.close()


def make_run(operator: WindowAggregate, given_: list[Arrival]) -> list[Any]:
    return operator.run(given_) + operator.close()


def test_results_of_windows_are_the_input_of_others() -> None:
    query = Chain(
        WindowAggregate(10, 10, sd.count(), key=lambda p: p),
        OfWindows(10, 10),
        WindowAggregate(20, 20, sd.max(lambda r: r.value)),
    )
    out = query.run([(0, Tuple(ts, ts % 2)) for ts in (1, 3, 12, 14, 16, 21)]) + query.close()
    assert [each for each in out if isinstance(each, WindowResult)] == [WindowResult(0, None, 3), WindowResult(1, None, 1)]
