"""What is found in sorted runs is what is found row by row: the law for joins, with limits so small that all rows are in runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest
from hypothesis import note

from streamdsl.engine.sorted import overlap, side, sort_keys, sorted_run, stored_rows
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS, check_law
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

OPERATORS = operators()
LIMITS: list[tuple[ModuleType, str, list[int]]] = [
    (overlap, "_LAST", [0, 3]),
    (overlap, "_COMPARED", [0, 2**14]),
    (overlap, "_SMALL", [0, 2]),
    (overlap, "_FEW", [0, 4]),
    (overlap, "_SOUGHT", [1, 64]),
    (stored_rows, "_MOST", [0, 3, 256]),
    (sorted_run, "CHUNK", [1, 4]),
    (sort_keys, "_KEY_BITS", [1, 28]),
    (sort_keys, "_TIME_BITS", [2, 34]),
    (sort_keys, "_PATIENCE", [0, 2]),
    (side, "_CREDIT_PER_STEP", [0, 1024]),
]


@contextmanager
def small_limits(rng: Random) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, values in LIMITS:
            patch.setattr(module, name, rng.choice(values))
        yield


@pytest.mark.parametrize("name", ["join", "band_join", "semi_join", "anti_join", "asof_join"])
def test_joins_mean_what_the_reference_says_in_runs_of_any_size(name: str) -> None:
    @examples(30)
    @given(SEEDS)
    def law(seed: int) -> None:
        rng = Random(seed)
        variant, emit = rng.choice(OPERATORS[name]), rng.choice(EMITS)
        note(variant.name)
        with small_limits(rng):
            check_law(variant.query(), scenario(rng, variant.inputs, variant.unending, rng.choice([14, 14, 30])), emit, None)

    law()
