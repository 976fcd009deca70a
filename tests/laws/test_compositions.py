"""The law for random queries of two to four operators over two sources."""

from __future__ import annotations

from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

import streamdsl as sd
from tests.laws.compositions import compositions
from tests.laws.harness import EMITS, Emit, check_law
from tests.laws.profiles import examples
from tests.laws.scenarios import Scenario, scenarios


@examples(1000)
@given(compositions(), scenarios(2, unending=False, max_size=5), st.sampled_from(EMITS))
def test_a_composition_means_what_the_reference_says(query: tuple[str, sd.Stream[Any]], scenario: Scenario, emit: Emit) -> None:
    note(query[0])
    check_law(query[1], scenario, emit)
