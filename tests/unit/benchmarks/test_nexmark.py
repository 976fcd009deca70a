"""streamdsl answers Nexmark's queries as their definitions in plain Python do."""

import pytest

import streamdsl as sd
from benchmarks.nexmark import QUERIES, answer, defined, generate

DATA = generate(1_500)
TABLES = DATA.tables()


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_answered_as_defined(name: str) -> None:
    expected = defined(name, DATA)
    assert len(expected) > 0
    sd.testing.assert_cht_equal(answer(name, DATA, TABLES), expected)
