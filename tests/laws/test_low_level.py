"""Gigascope's low level (paper 004, section 6): exact counts within the delay, and the flushes that the text, corrected, says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from streamdsl.progress import LowLevelAggregate, Partial, Tuple, roll_up
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

FLUSHES: list[dict[str, Any]] = [
    {"flush": "end"},
    {"flush": "slow"},
    {"flush": "lazy"},
    {"flush": "slow", "order": "in"},
]


def by_the_book(items: list[Tuple], size: int, every: int, delay: int, flush: str, order: str) -> list[Partial]:
    """The table as section 6 says, corrected: each slot has (wid, group, count, whether it is old), or nothing."""
    slots: list[Any] = [None] * size
    out: list[Partial] = []
    current, since, position = None, 0, 0

    def send(places: Any) -> None:
        for at in sorted(places, key=lambda at: (slots[at][0], at)):
            out.append(Partial(*slots[at][:3]))
            slots[at] = None

    def which(chosen: Callable[[Any], bool]) -> list[int]:
        return [at for at, each in enumerate(slots) if each is not None and chosen(each)]

    for item in items:
        wid, at = item.ts // 5, item.payload % size
        if wid != current:
            if order == "in":
                send(which(lambda each: each[3]))
            current, since, position = wid, 0, 0
            slots = [each and (*each[:3], True) for each in slots]
            if order == "any":
                least = wid - (0 if flush == "end" else delay)
                send(which(lambda each, least=least: each[0] < least))  # type: ignore[misc]
        since += 1
        if flush == "slow" and since % every == 0:
            following = [place for place in which(lambda each: each[3]) if place >= position]
            send(following[:1])
            position = following[0] + 1 if following else size
        if slots[at] is not None and not slots[at][3] and slots[at][1] == item.payload:
            slots[at] = (wid, item.payload, slots[at][2] + 1, False)
            continue
        if slots[at] is not None:
            if order == "in" and not slots[at][3]:
                send(which(lambda each: each[3]))
            send([at])
        slots[at] = (wid, item.payload, 1, False)
    send(which(lambda each: True))
    return out


@pytest.mark.parametrize("options", FLUSHES, ids=str)
@examples(60)
@given(SEEDS)
def test_the_low_level_flushes_by_the_book(options: dict[str, Any], seed: int) -> None:
    rng = Random(seed)
    size, every, delay = rng.randint(1, 6), rng.randint(1, 4), rng.randint(0, 3)
    times = sorted(rng.randint(-10, 40) for _ in range(rng.randint(0, 60)))
    items = [Tuple(ts, rng.randint(0, 9)) for ts in times]
    table = LowLevelAggregate(5, size, every=every, max_delay=delay, **options)
    expected = by_the_book(items, size, every, delay, options["flush"], options.get("order", "any"))
    assert table.run((0, item) for item in items) + table.close() == expected


@pytest.mark.parametrize("options", FLUSHES, ids=str)
@examples(60)
@given(SEEDS)
def test_rolled_up_counts_are_exact_and_come_within_the_delay(options: dict[str, Any], seed: int) -> None:
    rng = Random(seed)
    late = rng.randint(0, 3)
    table = LowLevelAggregate(5, rng.randint(1, 6), every=rng.randint(1, 4), max_delay=late, next_slot=late == 1, **options)
    begun = [-100]
    partials: list[Partial] = []
    counts: Counter[Any] = Counter()
    for ts in sorted(rng.randint(-10, 40) for _ in range(rng.randint(0, 60))):
        group = rng.choice([rng.randint(0, 9), "x"])
        counts[ts // 5, group] += 1
        begun += [ts // 5] if ts // 5 > begun[-1] else []
        partials += table.push(Tuple(ts, group))
        least = begun[-2] if "order" in options else ts // 5 - (0 if options["flush"] == "end" else late)
        assert table.progress >= least
        assert sum(each.count for each in partials) + table_counts(table) == counts.total()
        if "order" in options:
            assert [each.wid for each in partials] == sorted(each.wid for each in partials)
    left = table.close()
    assert (table.buffered, [each.wid for each in left]) == (0, sorted(each.wid for each in left))
    assert roll_up([*partials, *left]) == counts


def table_counts(table: LowLevelAggregate) -> int:
    return sum(n for wid, n in zip(table._table.wids, table._table._counts, strict=True) if wid is not None)
