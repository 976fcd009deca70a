"""Composition of queries: binds parameters to values, and sources to inputs or other queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from streamdsl.building import merge_bindings
from streamdsl.errors import QueryError, SchemaError, UnitError
from streamdsl.expr.expression_functions import checked_value
from streamdsl.expr.nodes import Constant
from streamdsl.plan.node import Node, Source
from streamdsl.plan.parameters import bound_to, parameters, with_sources
from streamdsl.plan.units import in_unit
from streamdsl.running import runnable_sources

if TYPE_CHECKING:
    from streamdsl.io.binding import Bound

Query: TypeAlias = tuple[Node, Mapping[str, "Bound"]]
"""A plan, and the bound inputs of its sources."""


def bind(query: Query, named: Mapping[str, Any], queries: Mapping[str, Query]) -> Query:
    """Return a query with parameters and sources bound to `named` values; `queries` are those of them that are queries."""
    from streamdsl.io.readers import bind as bind_input

    plan, bindings = query[0], dict(query[1])
    open_sources, open_parameters = runnable_sources(plan), parameters(plan)
    values: dict[str, Constant] = {}
    inputs: dict[str, Any] = {}
    for name, value in named.items():
        if name in open_sources and name in open_parameters:
            raise QueryError(f"{name!r} is both a source and a parameter of this query", hint="give one of them another name")
        if name in open_parameters:
            values[name] = checked_value(open_parameters[name], value)
        elif name in open_sources:
            inputs[name] = value
        else:
            listed = [f"{what}: {', '.join(names) or '(none)'}" for what, names in _open(open_sources, open_parameters)]
            raise QueryError(
                f"the query leaves no {name!r} open; it has the {'; the '.join(listed)}",
                hint="bind(name=value) takes these names",
            )
    streams = {name: queries[name] for name in inputs if name in queries}
    for name in inputs:
        bindings.pop(name, None)
        if name not in streams:
            bindings[name] = bind_input(inputs[name], open_sources[name])
    plan = bound_to(plan, values)
    plan = with_sources(plan, {name: _fitting(node, open_sources[name]) for name, (node, _) in streams.items()})
    plan = in_unit(plan, plan.unit)
    return plan, merge_bindings(plan, bindings, *(own for _, own in streams.values()))


def _open(*kinds: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    return [(what, list(names)) for what, names in zip(("sources", "parameters"), kinds, strict=True)]


def _fitting(input: Node, source: Source) -> Node:
    """Return the plan that replaces a source; raises if its unit or payloads are not those that the source declares."""
    what = f"the source {source.source!r}"
    if source.progress is not None or source.on_violation != "error":
        raise QueryError(
            f"{what} has progress= or on_violation=, which a query that is bound to it sets at its own sources",
            hint="give progress= and on_violation= to the sources of the query that is bound",
        )
    if None not in (source.time_unit, input.unit) and source.time_unit != input.unit:
        raise UnitError(f"{what} counts time in {source.time_unit}, the query that is bound to it in {input.unit}")
    if None not in (source.payload, input.schema) and source.payload != input.schema:
        raise SchemaError(
            f"{what} has payloads of {source.payload!r}, the query that is bound to it gives {input.schema!r}",
            hint="end it with a select(...) that makes them",
        )
    return in_unit(input, source.time_unit)
