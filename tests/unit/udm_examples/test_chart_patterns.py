from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any, ClassVar

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.errors import TimestampViolation
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, assert_law
from udm_examples.chart_patterns import ChartPattern, DoubleTop, HeadAndShoulders, Price, TopPattern, turning_points

SWING, TOLERANCE = 0.06, 0.03


def random_prices(rng: Random) -> list[Row]:
    """Return daily prices that are often level: of a market that jumps, or that goes up and down from one day to the next."""
    jumps = [rng.choice([94, 100, 103, 106, 110, 116, 125]) for _ in range(rng.randint(1, 25))]
    lows, highs = [100, 101, 102, 99, 90], [110, 111, 112, 125, 126]
    swings = [rng.choice(levels) for _ in range(rng.randint(3, 9)) for levels in (lows, highs)] + [rng.randint(85, 110)]
    rows: list[Row] = [(day, day + 1, float(price)) for day, price in enumerate(rng.choice([jumps, swings, swings]))]
    extra = [(rng.randint(0, 20), 30, rng.choice([float("nan"), float("inf"), 0.0, -5.0, 100.0])) for _ in range(2)]
    return rows + rng.choice([[], extra])


def series(rows: Iterable[Row]) -> list[Price]:
    rows = [row for row in rows if 0 < row[2] < float("inf")]
    return [Price(time, fmean(price for le, _, price in rows if le == time)) for time in sorted({le for le, _, _ in rows})]


def is_turn(prices: Sequence[Price], i: int, factor: float) -> bool:
    """Say whether, going either way from i, the price is far enough below (factor 1) or above (-1) before it is beyond."""
    (_, here), nearest_first = prices[i], [prices[i + 1 :], prices[:i][::-1]]

    def is_far(price: float) -> bool:
        return price <= here * (1 - SWING) if factor > 0 else here <= price * (1 - SWING)

    def is_beyond(price: float, back: bool) -> bool:
        return factor * price > factor * here or (back and price == here)

    def turns(others: Sequence[Price], back: bool) -> bool:
        return next((is_far(price) for _, price in others if is_far(price) or is_beyond(price, back)), False)

    return turns(nearest_first[0], back=False) and turns(nearest_first[1], back=True)


def peaks(prices: Sequence[Price]) -> list[Price]:
    return [prices[i] for i in range(len(prices)) if is_turn(prices, i, 1)]


def troughs(prices: Sequence[Price]) -> list[Price]:
    return [prices[i] for i in range(len(prices)) if is_turn(prices, i, -1)]


@examples(72)
@given(SEEDS)
def test_turning_points_are_those_of_the_definition_and_come_in_turn(seed: int) -> None:
    prices = series(random_prices(Random(seed)))
    high, low = peaks(prices), troughs(prices)
    assert turning_points(prices, SWING) == sorted(high + low)
    assert all((a in high) != (b in high) for a, b in pairwise(sorted(high + low)))


def patterns(prices: list[Price], number: int, name: str) -> list[tuple[int, int, ChartPattern]]:
    """The definition: consecutive peaks, the lowest price between each two, and the first price below the neckline."""
    found = []
    high = peaks(prices)
    for tops in (high[i : i + number] for i in range(len(high) - number + 1)):
        lows = [min((p for p in prices if a < p < b), key=lambda p: (p.price, p.time)) for a, b in pairwise(tops)]
        if not has_shape(tops, lows):
            continue
        for at in (p for p in prices if p > tops[-1]):
            line = lows[0].price
            if len(lows) > 1:
                line += (lows[1].price - line) * (at.time - lows[0].time) / (lows[1].time - lows[0].time)
            if at.price < line:
                points = tuple(sorted([*tops, *lows]))
                found.append((tops[0].time, at.time, ChartPattern(name, points, line)))
            if at.price < line or at.price > max(top.price for top in tops):
                break
    return found


def has_shape(tops: list[Price], lows: list[Price]) -> bool:
    if len(tops) == 3 and not tops[0].price < tops[1].price > tops[2].price:
        return False
    return level(tops[0], tops[-1]) and (len(lows) < 2 or level(*lows))


def level(a: Price, b: Price) -> bool:
    return abs(a.price - b.price) / 2 <= TOLERANCE * (a.price + b.price) / 2 + 1e-12


@examples(72)
@given(SEEDS)
def test_patterns_are_those_of_the_definition(seed: int) -> None:
    rows = random_prices(Random(seed))
    for module, number in ((DoubleTop(SWING, TOLERANCE), 2), (HeadAndShoulders(SWING, TOLERANCE), 3)):
        expected = patterns(series(rows), number, module.name)
        for clip in (sd.Clip.NONE, sd.Clip.RIGHT):
            found = run_udm(module, rows, (0, 99), clip=clip, output=sd.Output.UNCHANGED, seed=seed)
            assert [tuple(row) for row in found] == expected


@pytest.mark.parametrize("module", [DoubleTop(SWING, TOLERANCE), HeadAndShoulders(SWING, TOLERANCE)])
def test_the_random_markets_show_them_often(module: TopPattern) -> None:
    assert sum(bool(run_udm(module, random_prices(Random(seed)), (0, 99))) for seed in range(200)) > 20


@examples(60)
@given(SEEDS)
def test_in_a_query_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    module = rng.choice([DoubleTop(SWING, TOLERANCE), HeadAndShoulders(SWING, TOLERANCE)])
    policy: dict[str, Any] = {
        "clip": rng.choice(list(sd.Clip)),
        "output": rng.choice([sd.Output.UNCHANGED, sd.Output.CLIP, sd.Output.ALIGN]),
    }
    hop = rng.choice([20, 7])
    assert_law(lambda s: s.hopping_window(20, hop, **policy).apply(module), random_prices(rng), rng)


def test_it_rightly_does_not_claim_to_be_time_bound() -> None:
    class Claims(DoubleTop):
        time_bound: ClassVar[bool] = True

    session = sd.source("s").tumbling_window(30, output=sd.Output.TIME_BOUND).apply(Claims()).open()
    days = [sd.point(day, day, price) for day, price in enumerate([100, 120, 108, 119, 112, 107])]
    session.push(days[:-1])
    with pytest.raises(TimestampViolation, match="time-bound"):
        session.push(days[-1:])


@dataclass(frozen=True)
class Trade:
    share: str
    price: float


def test_a_top_appears_when_it_is_complete_and_goes_with_a_cancelled_trade() -> None:
    acme = [100, 104, 112, 108, 105, 111, 125, 111, 106, 109, 112, 108, 104, 99]
    rows = [sd.point(f"acme{day}", day, Trade("ACME", price)) for day, price in enumerate(acme)]
    flat = [sd.point(f"flat{day}", day, Trade("FLAT", 50.0)) for day in range(len(acme))]
    months = sd.source("trades").group_by("share").tumbling_window(30, clip=sd.Clip.RIGHT, output=sd.Output.UNCHANGED)
    tops = months.apply(HeadAndShoulders(), lambda e: e.price)
    session = tops.open()
    assert session.push([*flat, *rows[:12]]) == [], "the right shoulder stands, but the price has not left it"
    found = session.push(rows[12:])
    assert [(event.le, event.re, event.payload[0]) for event in found if isinstance(event, sd.Insert)] == [(2, 12, "ACME")]
    [inserted] = found
    assert isinstance(inserted, sd.Insert)
    assert [price for _, price in inserted.payload[1].points] == [112, 105, 125, 106, 112]
    head = session.push([sd.Retract("acme6", 6, 7, 6)])
    assert [type(event) for event in head] == [sd.Retract], "without the trade at 125 there is no head"
