"""The aggregates of reports: any of streamdsl's, or a function of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.expr.row_evaluator import project_row
from streamdsl.expr.schema import as_payload
from streamdsl.expr.tracing import trace
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import Record
from streamdsl.udm.bases import UDA, Agg
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.invoke import EXCLUDED, MemberRow, aggregate
from streamdsl.windows import Clip

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
    if isinstance(given, type) and issubclass(given, UDA):
        given = given()
    if isinstance(given, (Agg, UDA)):
        return _aggregated(given if isinstance(given, Agg) else Agg(given))
    if not callable(given) or getattr(given, "__module__", None) == "streamdsl.aggregates":
        raise QueryError(
            f"{given!r} is no aggregate", hint="give one such as sd.avg(lambda e: e.fare), or a function of a list such as sum"
        )
    return lambda values: given(values)


def _aggregated(agg: Agg[Any, Any]) -> Values:
    argument = None if agg.argument is None else trace(agg.argument, (None,))
    where = None if agg.where is None else trace(agg.where, (None,))
    bound = BoundAgg(agg.function, argument, where)

    def member(place: int, value: Any) -> MemberRow:
        row = (as_payload(value),)
        out = bound.where is not None and not project_row(bound.where, row)
        return MemberRow(place, place + 1, row[0], [EXCLUDED if out else project_row(bound.given, row)])

    def result(values: Sequence[Any]) -> Any:
        members = [member(place, value) for place, value in enumerate(values)]
        return aggregate(bound.function, 0, members, Lifetime(0, max(1, len(members))), Clip.NONE)

    return result
