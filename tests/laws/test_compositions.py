"""The law for random queries of two to four operators over two sources."""

from __future__ import annotations

from random import Random

from hypothesis import given, note

from tests.laws.compositions import composition
from tests.laws.harness import EMITS, check_law
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario


@examples(1000)
@given(SEEDS)
def test_a_composition_means_what_the_reference_says(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    note(made)
    check_law(query, scenario(rng, 2, unending=False, max_size=5), rng.choice(EMITS))
