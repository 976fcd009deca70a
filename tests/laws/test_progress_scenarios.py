"""Skew, bursts, lulls, a dead device, a flood of punctuation: the streams of paper 004 in the query of its Figure 2."""

from __future__ import annotations

import streamdsl as sd
from streamdsl.progress import (
    BandJoin,
    Chain,
    Describe,
    Input,
    Joined,
    Punctuation,
    Tuple,
    Union,
    WindowAggregate,
    WindowResult,
)
from tests.laws.arrivals import Arrival


def count(arrived: list[Arrival], n: int) -> tuple[dict[int, int], int, int]:
    """Return the counts of windows of 60 over a union, the most that it held, and the last window that came before the end."""
    query, most, last = Chain(Union(n), WindowAggregate(60, 60, sd.count())), 0, -1
    found: dict[int, int] = {}
    for input, item in arrived:
        for each in query.push(item, input):
            if isinstance(each, WindowResult):
                found[each.wid], last = each.value, each.wid
        most = max(most, query.buffered)
    found |= {each.wid: each.value for each in query.close() if isinstance(each, WindowResult)}
    return found, most, last


def ordered(input: int, times: list[int], every: int = 1, late: int = 0) -> list[tuple[int, Arrival]]:
    found: list[tuple[int, Arrival]] = []
    for at, ts in enumerate(times):
        found.append((ts + late, (input, Tuple(ts))))
        if at % every == 0:
            found.append((ts + late, (input, Punctuation(ts))))
    return found


def together(*streams: list[tuple[int, Arrival]]) -> list[Arrival]:
    return [arrival for _, arrival in sorted((each for stream in streams for each in stream), key=lambda each: each[0])]


def test_skew_costs_a_partial_aggregate_per_window_that_it_spans() -> None:
    times = list(range(1200))
    found, most, last = count(together(ordered(0, times), ordered(1, times, late=300)), 2)
    assert (found, last) == (dict.fromkeys(range(20), 120), 18)
    assert most == 300 // 60 + 2


def test_a_burst_is_no_reason_to_hold_tuples() -> None:
    times = sorted([*range(600), *[100] * 5000])
    found, most, _ = count(together(ordered(0, times, every=7)), 1)
    assert (found[1], most) == (5060, 2)


def test_a_lull_stops_results_until_a_heartbeat_tells_that_it_is_one() -> None:
    busy, quiet = ordered(0, list(range(600))), Input(timer=True, drift=20)
    without = together(busy, ordered(1, [3]))
    assert count(without, 2)[2] == -1
    beats: list[tuple[int, Arrival]] = [(now, (1, each)) for now in range(10, 600, 10) for each in quiet.tick(now)]
    assert count(together(busy, ordered(1, [3]), beats), 2)[2] == 8


def test_a_dead_device_holds_the_others_back_only_for_as_long_as_it_may_be_idle() -> None:
    def devices(idle: int | None) -> int:
        source, out = Input(key=lambda p: p, idle=idle), []
        for ts in range(600):
            out += [item for key in "abc" if key != "c" or ts < 100 for item in source.push(Tuple(ts, key))]
        assert source.dropped == 0
        return count([(0, item) for item in out], 1)[2]

    assert (devices(None), devices(30)) == (0, 8)


def test_a_flood_of_punctuation_changes_nothing_and_describe_takes_it_away() -> None:
    times = list(range(1200))
    flood: list[Arrival] = []
    for ts in times:
        flood += [(0, Tuple(ts)), (0, Punctuation(ts))] if ts % 20 < 3 else [(0, Tuple(ts))]
    describe = Describe(60)
    thin: list[Arrival] = [(0, each) for each in describe.run(flood)]
    marks = [sum(isinstance(item, Punctuation) for _, item in each) for each in (flood, thin)]
    assert marks == [180, 20]
    assert count(flood, 1) == count(thin, 1) == (dict.fromkeys(range(20), 60), 2, 18)


def test_a_join_downstream_of_a_skewed_union_is_its_definition() -> None:
    left = ordered(0, list(range(0, 200, 2)))
    right = ordered(1, list(range(1, 200, 2)), late=50)
    join = BandJoin(3, 3)
    found = [each for each in join.run(together(left, right)) + join.close() if isinstance(each, Joined)]
    assert len(found) == sum(abs(a - b) <= 3 for a in range(0, 200, 2) for b in range(1, 200, 2))
