"""Projection pushdown into inputs: runs read only the columns that are used above the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.facts import NO_FIELDS, Fields, all_of
from streamdsl.plan.node import Node, Source
from streamdsl.rewrite.choice import chosen
from streamdsl.rewrite.demand import demands
from streamdsl.rewrite.prune_columns import prune_columns

if TYPE_CHECKING:
    from streamdsl.io.binding import Bound


def project_inputs(plan: Node, bindings: Mapping[str, Bound], options: Mapping[str, Any] | None) -> tuple[Node, dict[str, Bound]]:
    """Return a plan, and its columnar inputs without the columns that nothing reads; the rule is `prune_columns`.

    Lifetimes and ids stay. A source that drops or adjusts late events reads all columns, as `rejected()` returns whole payloads.

    >>> import pandas as pd
    >>> import streamdsl as sd
    >>> query = sd.from_pandas(pd.DataFrame({"le": [1], "zone": ["A"], "km": [7]})).select(lambda e: e.km)
    >>> name, bound = next(iter(query._bindings.items()))
    >>> less = project_inputs(query.plan(), {name: bound}, None)[1][name]
    >>> [event.payload for event in bound.events()], [event.payload for event in less.events()]
    ([Record(zone='A', km=7)], [Record(km=7)])
    """
    names = chosen((options or {}).get("rewrite", "on"))
    less = dict(bindings)
    if names is not None and prune_columns.__name__ not in names:
        return plan, less
    wanted = fields_read_of_sources(plan)
    for name, bound in bindings.items():
        sources = [node for node in plan.walk_all() if isinstance(node, Source) and node.source == name]
        if name not in wanted or any(source.may_reject for source in sources):
            continue
        schema = narrowed(bound.schema, wanted[name])
        if schema is None or bound.narrow is None:
            continue
        less[name] = bound.narrow(schema)
        for source in sources:
            plan = plan.replaced(source, source if source.payload is None else replace(source, payload=schema))
    return plan, less


def fields_read_of_sources(plan: Node) -> dict[str, frozenset[str]]:
    """Return the fields that are read of each source, by its name, but for sources whose payloads are read as a whole.

    >>> import streamdsl as sd
    >>> trips, rain = sd.source("trips"), sd.source("rain")
    >>> fields_read_of_sources(trips.where(lambda e: e.km > 5).select(lambda e: e.km).union(rain).plan())
    {'trips': frozenset({'km'})}
    """
    wanted, found = demands(plan), dict[str, Fields]()
    for node in plan.walk_all():
        if isinstance(node, Source):
            found[node.source] = all_of(found.get(node.source, NO_FIELDS), wanted.get(id(node)))
    return {name: fields for name, fields in found.items() if fields is not None}


def narrowed(schema: Schema | None, wanted: frozenset[str]) -> Schema | None:
    """Return the schema of records with only the wanted fields, None if no field is dropped or the fields are unknown."""
    if schema is None or schema.shape not in (Shape.RECORD, Shape.CLASS) or not wanted < set(schema.names):
        return None
    return Schema.record([name for name in schema.names if name in wanted])
