"""Every module of the gallery keeps the laws that its kind and its claims imply."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random
from typing import Any

import pytest

import udm_examples
from streamdsl.testing import check_udm, run_udm
from streamdsl.udm.bases import UDM
from tests.laws.profiles import MANY
from tests.unit.udm_examples.cases import CASES
from tests.unit.udm_examples.law import Row, random_rows
from udm_examples import (
    Busiest,
    Circle,
    Click,
    DoubleTop,
    FollowedBy,
    Geofence,
    HeadAndShoulders,
    Hysteresis,
    OnlineAnomalies,
    OnlineRegression,
    Position,
    Sample,
    SequencePattern,
    Sessionizer,
    Step,
)

EXAMPLES = 30 if MANY else 10


def is_a(payload: str) -> bool:
    return payload == "a"


def is_b(payload: str) -> bool:
    return payload == "b"


def letter(rng: Random) -> str:
    return rng.choice("abc")


def click(rng: Random) -> Click:
    return Click(rng.choice(["ann", "bob"]), rng.choice(["home", "cart"]))


def position(rng: Random) -> Position:
    return Position(rng.choice(["van", "bus"]), rng.choice([4.0, 4.5]), 52.0)


def rows_of(payload: Any) -> list[Row]:
    return random_rows(Random(1), payload, most=12)


def days(*prices: float) -> list[Row]:
    """Return prices that make a pattern as a whole, so few that many examples hold them all."""
    return [(day, day + 1, price) for day, price in enumerate(prices)]


PATTERNS: list[tuple[Any, list[Row]]] = [
    (Busiest(2), rows_of(letter)),
    (FollowedBy(is_a, is_b, within=6), rows_of(letter)),
    (SequencePattern([Step("a", is_a, many=True), Step("b", is_b)], within=9), rows_of(letter)),
    (DoubleTop(), days(100.0, 120.0, 108.0, 119.0, 107.0)),
    (HeadAndShoulders(), days(100.0, 112.0, 105.0, 125.0, 106.0, 112.0, 104.0)),
    (Sessionizer(gap=3), rows_of(click)),
    (Geofence([Circle("depot", 4.0, 52.0, 5_000.0)]), rows_of(position)),
]


IN_ORDER: list[tuple[Any, list[Row]]] = [
    (Hysteresis(low=2.0, high=4.0), rows_of(lambda rng: float(rng.randint(0, 6)))),
]


def span(rows: list[Row]) -> tuple[int, int]:
    return min(le for le, _, _ in rows), max(re for _, re, _ in rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.module.label)
def test_statistics(case: Any) -> None:
    check_udm(case.module, case.rows(0), examples=EXAMPLES)


@pytest.mark.parametrize(("module", "rows"), PATTERNS, ids=lambda value: getattr(value, "label", ""))
def test_patterns(module: Any, rows: list[Row]) -> None:
    check_udm(module, rows, window=span(rows), examples=EXAMPLES)
    assert run_udm(module, rows, span(rows)), "laws over nothing found say nothing"


@pytest.mark.parametrize(("module", "rows"), IN_ORDER, ids=lambda value: getattr(value, "label", ""))
def test_stream_operators(module: Any, rows: list[Row]) -> None:
    check_udm(module, rows)
    assert run_udm(module, rows), "laws over nothing found say nothing"


@pytest.mark.skipif(find_spec("river") is None, reason="river is not installed: pip install 'streamdsl[learning]'")
def test_online_learning() -> None:
    def sample(rng: Random) -> Sample:
        x = rng.randint(0, 5)
        return Sample((float(x),), 2.0 * x + 1)

    check_udm(OnlineRegression(), rows_of(sample), examples=10)
    check_udm(OnlineAnomalies([(0.0, 5.0)], seed=7), rows_of(lambda rng: (float(rng.randint(0, 5)),)), examples=10)


def test_no_module_of_the_gallery_is_left_out() -> None:
    exported = [getattr(udm_examples, name) for name in udm_examples.__all__]
    modules = {value for value in exported if isinstance(value, type) and issubclass(value, UDM)}
    checked = {type(case.module) for case in CASES} | {type(module) for module, _ in [*PATTERNS, *IN_ORDER]}
    assert modules - checked == {OnlineRegression, OnlineAnomalies}
