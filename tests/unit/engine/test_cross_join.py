"""Cross joins: who joins very many rows with very many is told so, at the line that joins them; who joins a few is not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.engine.operators import cross
from streamdsl.errors import CrossJoinWarning

MANY: sd.Stream[Any] = sd.from_rows([(t % 10, 20, {"k": t % 50, "v": t}) for t in range(100)])
OTHERS: sd.Stream[Any] = sd.from_rows([(t % 7, 20, {"k": t % 40, "v": t}) for t in range(80)])


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross, "FEW", 1000)
    monkeypatch.setattr(cross, "FEW_EACH", 10)


def told(query: sd.Stream[Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        query.run()
    return [each for each in found if each.category is CrossJoinWarning]


def test_a_cross_join_of_many_rows_is_told_once_and_where_it_is() -> None:
    query = MANY.join(OTHERS)
    (warning,) = told(query)
    assert warning.filename == __file__
    assert "MANY.join(OTHERS)" in Path(__file__).read_text().splitlines()[warning.lineno - 1]
    assert str(warning.message).startswith("join_1 is a cross join, and has made ")
    assert 'Hint: give on="field"' in str(warning.message)
    assert len(told(MANY.left_join(OTHERS))) == 1


@pytest.mark.parametrize(
    "query",
    [
        MANY.join(OTHERS, on="k"),
        MANY.join(OTHERS, where=lambda a, b: a.v < b.v),
        MANY.join(sd.sources.from_table([{"limit": 5}, {"limit": 7}])),
        MANY.join(OTHERS.tumbling_window(5).aggregate(n=sd.count())),
        MANY.to_points().join(OTHERS.where(lambda e: e.v < 10)),
        MANY.semi_join(OTHERS),
    ],
    ids=["on", "where", "a small table", "one row at a time", "few at a time", "no pairs"],
)
def test_other_joins_are_not(query: sd.Stream[Any]) -> None:
    assert told(query) == []


def test_it_may_be_told_to_be_silent_or_to_fail() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CrossJoinWarning)
        with pytest.raises(CrossJoinWarning, match="cross join"):
            MANY.join(OTHERS).run()
        warnings.simplefilter("ignore", CrossJoinWarning)
        assert len(MANY.join(OTHERS).run().cht()) == 8000
