from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.errors import TimestampViolation
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, assert_law, random_rows
from udm_examples.followed_by import FollowedBy, Pair


def is_a(name: str) -> bool:
    return "a" in name


def is_b(name: str) -> bool:
    return "b" in name


def name(rng: Random) -> str:
    return rng.choice(["a", "b", "ab", "c"]) + str(rng.randint(1, 2))


def pairs(rows: Iterable[Row], window: tuple[int, int], within: int) -> Counter[Row]:
    """The definition: all pairs of members, of which those stay that are in order, close, and not over before the window."""
    members = [(le, re, value) for le, re, value in rows if le < window[1] and window[0] < re]
    found = [
        (max(later, window[0]), earlier + within, Pair(first, then))
        for earlier, _, first in members
        for later, _, then in members
        if is_a(first) and is_b(then) and earlier < later
    ]
    return Counter((le, re, pair) for le, re, pair in found if le < re)


def answer(rows: list[Row], window: tuple[int, int], within: int, clip: sd.Clip = sd.Clip.NONE) -> Counter[Row]:
    found = run_udm(FollowedBy(is_a, is_b, within), rows, window, clip=clip, output=sd.Output.UNCHANGED)
    return Counter(tuple(row) for row in found)


@examples(90)
@given(SEEDS)
def test_it_finds_the_pairs_of_the_definition_whatever_is_clipped_on_the_right(seed: int) -> None:
    rng = Random(seed)
    rows, within = random_rows(rng, name), rng.randint(1, 9)
    window = rng.choice([(0, 10), (-5, 40), (7, 8)])
    expected = pairs(rows, window, within)
    assert answer(rows, window, within) == answer(rows, window, within, sd.Clip.RIGHT) == expected
    assert len(run_udm(FollowedBy(is_a, is_b, within), rows, window)) == expected.total(), "none that would live for no time"
    clipped = [(max(le, window[0]), re, value) for le, re, value in rows]
    assert answer(rows, window, within, sd.Clip.LEFT) == answer(rows, window, within, sd.Clip.FULL)
    assert answer(rows, window, within, sd.Clip.LEFT) == pairs(clipped, window, within)


def test_left_clipping_changes_the_answer() -> None:
    rows = [(7, 14, "a1"), (9, 12, "b1"), (13, 14, "b2")]
    expected = {(10, 15, Pair("a1", "b1")), (13, 15, Pair("a1", "b2"))}
    assert set(answer(rows, (10, 20), 8)) == set(answer(rows, (10, 20), 8, sd.Clip.RIGHT)) == expected
    assert set(answer(rows, (10, 20), 8, sd.Clip.LEFT)) == {(13, 18, Pair("a1", "b2"))}


WINDOWS: list[Callable[[Any, Any], Any]] = [
    lambda s, policy: s.tumbling_window(10, **policy),
    lambda s, policy: s.hopping_window(10, 3, **policy),
    lambda s, policy: s.snapshot_window(**policy),
]
OUTPUTS = [sd.Output.TIME_BOUND, sd.Output.TIME_BOUND, sd.Output.UNCHANGED, sd.Output.CLIP, sd.Output.ALIGN]


@examples(72)
@given(SEEDS)
def test_in_a_query_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    policy = {"clip": rng.choice(list(sd.Clip)), "output": rng.choice(OUTPUTS)}
    windows, within, grouped = rng.choice(WINDOWS), rng.randint(1, 9), rng.random() < 0.3
    assert_law(
        lambda s: windows(s.group_by(lambda e: e[-1]) if grouped else s, policy).apply(FollowedBy(is_a, is_b, within)),
        random_rows(rng, name),
        rng,
    )


def test_over_count_windows_it_is_not_time_bound() -> None:
    query = sd.source("s").count_window(3, output=sd.Output.TIME_BOUND).apply(FollowedBy(is_a, is_b, 100))
    session = query.open()
    session.push([sd.point("x", 1, "a"), sd.point("y", 2, "b")])
    with pytest.raises(TimestampViolation, match="time-bound"):
        session.push([sd.point("z", 9, "c")])


def test_a_small_purchase_followed_by_a_large_one_on_the_same_card() -> None:
    def small(amount: int) -> bool:
        return amount < 5

    def large(amount: int) -> bool:
        return amount >= 500

    minute = 60
    purchases = sd.source("purchases", unit="s")
    trial = FollowedBy(small, large, within=30 * minute)
    cards = purchases.group_by("card").hopping_window("2h", "1h", clip=sd.Clip.RIGHT, output=sd.Output.TIME_BOUND)
    alerts = cards.apply(trial, lambda e: e.amount).select(card=lambda e: e[0], spent=lambda e: e[1].then).to_points()
    session = alerts.open()

    def bought(id: str, at: int, card: str, amount: int) -> list[sd.Event[Any]]:
        return session.push([sd.point(id, at * minute, {"card": card, "amount": amount})])

    assert bought("p1", 10, "visa", 2) == []
    assert bought("p2", 15, "amex", 900) == [], "on another card"
    first = bought("p3", 25, "visa", 700)
    assert {(event.le, event.payload.card, event.payload.spent) for event in first if isinstance(event, sd.Insert)} == {
        (25 * minute, "visa", 700)
    }
    assert bought("p4", 50, "visa", 800) == [], "forty minutes after the small one"
    late = bought("p5", 12, "amex", 1)
    assert [(event.le, event.payload.card) for event in late if isinstance(event, sd.Insert)] != []
    assert {event.payload.card for event in late if isinstance(event, sd.Insert)} == {"amex"}
    corrected = session.push([sd.Retract("p3", 25 * minute, 25 * minute + 1, 25 * minute)])
    assert {type(event) for event in corrected} == {sd.Retract}
