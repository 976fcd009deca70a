"""Registered functions in every place of a query: the local engine gives what the reference gives, and nothing is opaque."""

from __future__ import annotations

import pytest

import streamdsl as sd
from streamdsl.errors import UserCodeError
from streamdsl.testing import assert_cht_equal
from tests.laws.places import LEFT, PLACES, bindings


@pytest.mark.parametrize("place", PLACES)
def test_a_registered_function_runs_in_every_place(place: str) -> None:
    query = PLACES[place](sd.source("a", unit="tick"), sd.source("b", unit="tick"))
    given = bindings(query)
    found = query.run(given).cht()
    assert len(found) > 0
    assert_cht_equal(found, query.run(given, engine="reference").cht())
    assert "opaque" not in str(query.explain())


def test_an_error_in_a_registered_function_names_the_operator_and_the_row() -> None:
    @sd.udf
    def failing(value: float) -> float:
        return 1 / (value - 4.0)

    query = sd.source("a", unit="tick").where(lambda e: failing(e.v) > 0)
    with pytest.raises(UserCodeError, match=r"ZeroDivisionError.*\n.*where"):
        query.run({"a": [sd.Insert(n, *row) for n, row in enumerate(LEFT)]})
