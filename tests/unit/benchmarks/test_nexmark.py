"""streamdsl answers Nexmark's queries as their definitions in plain Python do."""

from functools import cache
from itertools import cycle
from typing import Any

import pytest

import streamdsl as sd
from benchmarks.nexmark import QUERIES, answer, defined, generate
from benchmarks.studies.nexmark import Fed
from streamdsl.emit import EMIT_MODES, EmitMode

DATA = generate(1_500)
TABLES = DATA.tables()


@cache
def expected_of(name: str) -> Any:
    return defined(name, DATA)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_answered_as_defined(name: str) -> None:
    expected = expected_of(name)
    assert len(expected) > 0
    sd.testing.assert_cht_equal(answer(name, DATA, TABLES), expected)


@pytest.mark.parametrize(("name", "emit"), list(zip(QUERIES, cycle(EMIT_MODES), strict=False)))
def test_a_session_that_is_fed_columns_answers_alike(name: str, emit: EmitMode) -> None:
    sd.testing.assert_cht_equal(Fed(name, DATA, 1_500, 200).history(emit), expected_of(name))
