"""Running several queries as one graph, and decoding plans from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from streamdsl.building import merge_bindings
from streamdsl.errors import QueryError
from streamdsl.plan.node import Node
from streamdsl.plan.outputs import Outputs
from streamdsl.plan.units import in_unit
from streamdsl.running import run_outputs
from streamdsl.stream import Stream

if TYPE_CHECKING:
    from streamdsl.result import Result
    from streamdsl.running import EngineName
    from streamdsl.temporal import TimeLike

T = TypeVar("T")


def run_all(
    queries: Mapping[str, Stream[T]],
    bindings: Mapping[str, Any] | None = None,
    engine: EngineName = "local",
    until: TimeLike | None = None,
    engine_options: Mapping[str, Any] | None = None,
) -> dict[str, Result[T]]:
    """Run several queries as one graph, and return the result of each, equal to that of `run`.

    A stream that several queries read is computed once, and each source is read once; on Spark each output is its own batch job.
    The other arguments are those of `run`; `bindings` are for the sources of all queries. Sharing does not change LEs, REs and
    CTIs. An error in one query ends all. Raises `QueryError` if two different sources, or parameters, have one name.

    >>> import streamdsl as sd
    >>> busy = sd.from_rows([(1, 2, 7), (3, 4, 12)]).where(lambda e: e > 5)
    >>> results = sd.composing.run_all({"each": busy, "count": busy.tumbling_window(10).aggregate(n=sd.count())})
    >>> results["count"]
    Result
      [0, 10) n=2
    """
    if not isinstance(queries, Mapping) or not queries or not all(isinstance(query, Stream) for query in queries.values()):
        raise QueryError(
            f"run_all takes queries by name, not {queries!r}", hint='sd.composing.run_all({"trips": trips, "fares": fares})'
        )
    plan: Node = Outputs(tuple(query._node for query in queries.values()))
    plan = in_unit(plan, plan.unit)
    own = merge_bindings(plan, *(query._bindings for query in queries.values()))
    return dict(zip(queries, run_outputs(plan, own, bindings, engine, until, engine_options), strict=True))


def plan_from_json(text: str, classes: Iterable[type] = ()) -> Node:
    """Return the plan that `plan.to_json()` has encoded: equal to it, with the same shared nodes.

    `classes` are the payload classes that the text may name. Nothing is imported or unpickled; modules are looked up by name in
    the repository (`sd.udm`). Raises `QueryError` for another version, and for text that does not encode a plan.

    >>> import streamdsl as sd
    >>> query = sd.source("trips").where(lambda e: e.fare > 10).tumbling_window(60).aggregate(n=sd.count())
    >>> sd.composing.plan_from_json(query.plan().to_json()) == query.plan()
    True
    >>> sd.Stream(sd.composing.plan_from_json(query.plan().to_json())).run({"trips": [(1, 2, {"fare": 12})]}).cht()
    CHT
      [0, 60) n=1
    >>> sd.composing.plan_from_json('{"format": "streamdsl plan", "version": 99}')
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the text holds a plan of version 99, and this is streamdsl with version 2
    Hint: write it again with this version, or read it with the one that wrote it
    """
    from streamdsl.plan.json import from_json

    return from_json(text, classes)
