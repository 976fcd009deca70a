"""The aggregates of reports: any of streamdsl's, or a function of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streamdsl.papers.common.partial_aggregates import PayloadListAggregate, aggregate_of
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import Record

Values: TypeAlias = Callable[[list[Any]], Any]


def evaluator(given: Any) -> Values:
    """Return the function that gives a report's output: its values themselves without an aggregate.

    >>> import streamdsl as sd
    >>> evaluator(sd.avg(lambda e: e.fare))([{"fare": 1}, {"fare": 4}]), evaluator(sum)([1, 4]), evaluator(None)([1, 4])
    (2.5, 5, [1, 4])
    """
    if given is None:
        return list
    if isinstance(given, dict):
        parts = {name: evaluator(each) for name, each in given.items()}
        return lambda values: Record({name: part(values) for name, part in parts.items()})
    made = aggregate_of(given, "a report's aggregate")
    if isinstance(made, PayloadListAggregate):
        return lambda values: given(values)

    def result(values: list[Any]) -> Any:
        extent, state = Lifetime(0, max(1, len(values))), made.create()
        for place, value in enumerate(values):
            state = made.add(state, place, value, extent)
        return made.result(state, extent)

    return result
