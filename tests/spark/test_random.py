"""Random queries of up to six operators on Spark give what the definition says."""

from __future__ import annotations

import random

import pytest

import streamdsl as sd
from streamdsl.denote import denote, sources
from tests.laws.compositions import STEPS, composition
from tests.spark.helpers import check_noted, lives

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SEEDS = (6, 74, 130, 643, 912, 1466, 2680, 2345, 263, 2627, 38)
"""Those of few queries in which every operator occurs, and that give rows."""


def history(rng: random.Random) -> sd.CHT[object]:
    """Return a random history of records `k`, `v`; one of the keys is None."""
    return sd.CHT.from_rows(
        [(*life, {"k": rng.choice(("a", "b", None)), "v": rng.randint(-1, 3)}) for life in lives(rng, 8, unending=False)]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_compositions(seed: int) -> None:
    rng = random.Random(seed)
    _, query = composition(rng)
    both = {name: history(rng) for name in ("s0", "s1")}
    inputs = {name: both[name] for name in sources(query.plan())}
    expected = denote(query.plan(), inputs)
    assert len(expected) > 1
    check_noted(query, inputs, expected)


def test_every_operator_occurs() -> None:
    made = "; ".join(composition(random.Random(seed))[0] for seed in SEEDS)
    assert [step.name for step in STEPS if f"= {step.name} of" not in made] == []
