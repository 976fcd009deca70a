"""The columns of the times have the names that `start` and `end` give them, out of a result and into a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError

FORMS: dict[str, tuple[Callable[..., Any], Callable[..., sd.Stream[Any]]]] = {
    "pandas": (lambda rows, **names: rows.to_pandas(**names), sd.from_pandas),
    "arrow": (lambda rows, **names: rows.to_arrow(**names), sd.from_arrow),
    "polars": (lambda rows, **names: rows.to_polars(**names), sd.from_polars),
}


@dataclass(frozen=True)
class Shift:
    """A payload whose fields are called like times."""

    start: int
    le: str
    end: float


PAYLOADS: dict[str, tuple[list[Any], Any, bool]] = {
    "records": ([{"n": 3}, {"n": 4}], None, True),
    "records with fields called like times": ([{"le": 1, "start": 2, "payload_start": 3, "end": 4}], None, False),
    "a class": ([Shift(1, "a", 0.5), Shift(2, "b", 1.5)], Shift, True),
    "tuples": ([(1, "a"), (2, "b")], None, False),
    "scalars": ([1, 2], None, False),
}
TIMES: dict[str, list[tuple[Any, Any]]] = {
    "ticks": [(1, 5), (3, sd.INFINITY)],
    "dates": [
        (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)),
        (datetime(2026, 3, 1, 8, tzinfo=UTC), sd.INFINITY),
    ],
}
NAMES = [("start", "end"), ("end", "start"), ("le", "re"), ("re", "le"), ("from", "until"), ("le", "end")]


@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize("times", TIMES.values(), ids=list(TIMES))
@pytest.mark.parametrize("payloads", PAYLOADS.values(), ids=list(PAYLOADS))
@pytest.mark.parametrize("form", FORMS)
def test_what_goes_out_comes_in_again(form: str, payloads: Any, times: list[tuple[Any, Any]], names: tuple[str, str]) -> None:
    write, read = FORMS[form]
    values, payload, is_plain = payloads
    result = sd.from_rows([(*life, value) for life, value in zip(times, values, strict=False)]).run()
    frame = write(result, start=names[0], end=names[1])
    columns = list(getattr(frame, "column_names", None) or frame.columns)
    assert columns[:2] == list(names)
    assert len(set(columns)) == len(columns)
    if form != "polars" or is_plain:  # a polars frame has no room for the shape of payloads
        assert read(frame, payload, start=names[0], end=names[1]).run() == result


def test_a_field_that_is_called_like_a_time_has_a_prefix_and_others_have_none() -> None:
    result = sd.from_rows([(1, 5, {"le": 7, "start": 8})]).run()
    assert result.to_pandas().columns.tolist() == ["le", "re", "payload_le", "start"]
    assert result.to_pandas(start="start", end="end").columns.tolist() == ["start", "end", "le", "payload_start"]
    assert result.cht().to_pandas(start="a", end="b").columns.tolist() == ["a", "b", "le", "start"]


def test_the_shortcuts_of_a_query_take_the_names_too() -> None:
    query = sd.from_rows([(1, 5, {"n": 3})])
    for write, _ in FORMS.values():
        frame = write(query, start="start", end="end")
        assert list(getattr(frame, "column_names", None) or frame.columns) == ["start", "end", "n"]
    frame = query.to_pandas(start="start", end="end")
    assert (frame.end - frame.start).tolist() == [4]


@pytest.mark.parametrize(("start", "end"), [("t", "t"), ("le", "le"), (None, "re"), (3, "re")])
def test_the_names_are_two(start: Any, end: Any) -> None:
    with pytest.raises(QueryError, match=r"are not the names of two columns\nHint: to_pandas\(start="):
        sd.from_rows([(1, 5, "a")]).to_pandas(start=start, end=end)
