"""What `count` counts: rows, values that are not None, or with `where=` rows for which a predicate holds; no predicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import QueryError, StreamDslError
from tests.laws.profiles import examples

Predicate = Callable[[Any], object]


@dataclass(frozen=True)
class Trip:
    """A payload with a field that may be None, and two of truths."""

    fare: int | None
    late: bool
    paid: bool | None


TRUTHS: list[Predicate] = [
    lambda e: e.late,
    lambda e: sd.not_(e.late),
    lambda e: sd.is_none(e.fare),
    lambda e: sd.functions.coalesce(e.fare, 0) > 5,
    lambda e: (sd.functions.coalesce(e.fare, 0) > 5) & e.late,
    lambda e: e.late and e.fare is not None,
    lambda e: bool(e.fare),
]
trips = st.lists(
    st.builds(Trip, st.none() | st.integers(0, 9), st.booleans(), st.none() | st.booleans()).map(lambda trip: (1, 2, trip)),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("number", range(len(TRUTHS)))
@examples(60)
@given(rows=trips)
def test_a_count_is_that_of_what_python_counts(engine: Any, number: int, rows: list[tuple[int, int, Trip]]) -> None:
    holds = TRUTHS[number]
    found = (
        sd.from_rows(rows)
        .tumbling_window(10)
        .aggregate(
            n=sd.count(),
            fares=sd.count(lambda e: e.fare),
            known=sd.count(lambda e: e.paid),
            held=sd.count(where=holds),
            held_fares=sd.count(lambda e: e.fare, where=holds),
        )
    )
    (row,) = found.run(engine=engine).cht()
    fares = sd.from_rows(rows).where(holds).run(engine=engine).cht()
    assert row.payload == {
        "n": len(rows),
        "fares": sum(trip.fare is not None for _, _, trip in rows),
        "known": sum(trip.paid is not None for _, _, trip in rows),
        "held": len(fares),
        "held_fares": sum(each.payload.fare is not None for each in fares),
    }


WINDOWS = sd.from_rows([(1, 2, Trip(7, True, None)), (3, 4, Trip(3, False, True))]).tumbling_window(10)
FORMS: dict[str, Callable[[Predicate], sd.Stream[Any]]] = {
    "named": lambda p: WINDOWS.aggregate(n=sd.count(p)),
    "of a group": lambda p: sd.source("s", Trip).group_by("fare").tumbling_window(10).aggregate(n=sd.count(p)),
    "alone": lambda p: WINDOWS.aggregate(sd.count(p)),
    "in a window lambda": lambda p: WINDOWS.aggregate(lambda w: w.count(p)),
    "where": lambda p: WINDOWS.aggregate(n=sd.count(p, where=lambda e: e.late)),
}


@pytest.mark.parametrize("count", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("number", range(5))
def test_a_count_of_a_predicate_is_refused_when_it_is_written(count: Callable[..., sd.Stream[Any]], number: int) -> None:
    with pytest.raises(
        QueryError, match=r"count of the predicate .* every row[^$]*at test_counts.py, line \d+\nHint: count\(where="
    ):
        count(TRUTHS[number])


def test_a_count_of_a_predicate_that_is_written_as_an_expression_is_refused() -> None:
    with pytest.raises(QueryError, match=r"count of the predicate e.fare > 5 would count every row"):
        sd.count(sd.col("fare") > 5)


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("number", [5, 6])
def test_a_predicate_that_could_not_be_traced_is_refused_when_it_is_called(engine: Any, number: int) -> None:
    for name in ("named", "alone"):
        with pytest.raises(StreamDslError, match=r"count of the predicate <lambda> would count every row"):
            FORMS[name](TRUTHS[number]).run(engine=engine)
    with pytest.raises(StreamDslError, match=r"count of the predicate <lambda> would count every row"):
        WINDOWS.aggregate(lambda w: w.count(TRUTHS[number]) if w.count() else 0).run(engine=engine)


def test_values_that_are_no_truths_are_counted_without_a_trace_too() -> None:
    found = WINDOWS.aggregate(n=sd.count(lambda e: e.fare if e.late else None)).run()
    assert [row.payload for row in found.cht()] == [{"n": 1}]


def test_sql_counts_values_as_sql_does() -> None:
    rows = sd.from_rows([(1, 9, {"fare": 7}), (1, 9, {"fare": 3})])
    assert [row.payload for row in sd.sql("SELECT count(fare > 5) AS n FROM s", s=rows).run().cht()] == [{"n": 2}]
