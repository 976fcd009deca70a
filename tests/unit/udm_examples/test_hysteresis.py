from __future__ import annotations

from random import Random

from hypothesis import given

from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, assert_law, random_rows
from udm_examples.hysteresis import Alarm, Hysteresis

LOW, HIGH = 2.0, 4.0


def value(rng: Random) -> float:
    return rng.choice([float("nan"), *map(float, range(7))])


def switches(rows: list[Row]) -> list[tuple[int, int, Alarm]]:
    """The definition: it is on if the last value that is not strictly between the thresholds is the high one's."""
    rows = sorted(rows, key=lambda row: (row[0], row[2] != row[2], row[2], row[1]))
    states = [False]
    for n in range(len(rows)):
        outside = [v for _, _, v in rows[: n + 1] if v <= LOW or v >= HIGH]
        states.append(bool(outside) and outside[-1] >= HIGH)
    return [(*row[:2], Alarm(now, row[2])) for row, before, now in zip(rows, states, states[1:], strict=False) if before != now]


@examples(90)
@given(SEEDS)
def test_alarms_are_those_of_the_definition(seed: int) -> None:
    rows = random_rows(Random(seed), value, most=12)
    assert [tuple(row) for row in run_udm(Hysteresis(LOW, HIGH), rows)] == switches(rows)


@examples(60)
@given(SEEDS)
def test_in_groups_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    rows = random_rows(rng, lambda rng: (rng.choice("ab"), value(rng)))
    assert_law(
        lambda s: s.group_by("_0").apply(lambda g: g.select(lambda e: e._1).scan(Hysteresis(LOW, HIGH)).to_edges()), rows, rng
    )
