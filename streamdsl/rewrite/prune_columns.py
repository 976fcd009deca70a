"""Projection pushdown: a projection above each source drops the fields that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from streamdsl.expr.nodes import Field, Make
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.facts import Keeps
from streamdsl.plan.node import Node, Select, Source
from streamdsl.rewrite.demand import demands
from streamdsl.rewrite.rule import RuleContext


def prune_columns(node: Node, setting: RuleContext) -> Node | None:
    """Project a source to the fields that are read, if joins or other operators would keep its whole payloads in their state.

    Lifetimes, CTIs and ids stay. Payloads that are read as a whole, by an opaque function, by a module or as a result, keep all
    fields. Runs also read only the used columns from Parquet and CSV files and from frames (`input_projection.py`).

    Law: `join(l, r) == join(select(fields that are read of l)(l), r)`, if the join's projection reads fields.

    Before and after:

    >>> from typing import TypedDict
    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Trip(TypedDict):
    ...     zone: str
    ...     fare: int
    ...     notes: str
    >>> class Rain(TypedDict):
    ...     zone: str
    ...     mm: int
    >>> trips, rain = sd.source("trips", Trip), sd.source("rain", Rain)
    >>> before = trips.join(rain, on="zone", select=lambda t, r: {"fare": t.fare, "mm": r.mm}).plan()
    >>> print(explain(before, "reference"))
    join_1 on e.zone == e.zone, select {fare: l.fare, mm: r.mm}  (fare, mm)  <denotation>
    ├─ source:trips  (zone, fare, notes)  <denotation>
    └─ source:rain  (zone, mm)  <denotation>
    >>> print(explain(prune_columns(before.left, RuleContext.of(before, "run")), "reference"))
    select_1 {zone: e.zone, fare: e.fare}  (zone, fare)  <denotation>
    └─ source:trips  (zone, fare, notes)  <denotation>

    Must not fire: if all fields or whole payloads are read, or if no operator keeps them.

    >>> pairs = trips.join(rain, on="zone").plan()
    >>> total = trips.tumbling_window(10).aggregate(fares=sd.sum(lambda e: e.fare)).plan()
    >>> [prune_columns(source, RuleContext.of(plan, "run")) for plan, source in ((before, before.right), (pairs, pairs.left))]
    [None, None]
    >>> prune_columns(total.input, RuleContext.of(total, "run"))
    """
    if not isinstance(node, Source) or node.schema is None or setting.plan is None or not _is_kept(node, setting.plan):
        return None
    wanted = demands(setting.plan).get(id(node))
    if wanted is None or node.schema.shape is not Shape.RECORD or not wanted < set(node.schema.names):
        return None
    kept = tuple(name for name in node.schema.names if name in wanted)
    return Select(node, Make(Schema.record(kept), tuple(map(Field, kept))))


def _is_kept(source: Node, plan: Node) -> bool:
    """Say whether some operator keeps the payloads of a source in its state, unchanged."""
    keeping = [node for node in plan.walk_all() if node.keeps in (Keeps.ROWS, Keeps.LAST_ROWS)]
    return any(source is found for node in keeping for found in _carried(node.inputs))


def _carried(inputs: tuple[Node, ...]) -> Iterator[Node]:
    """Yield the nodes whose payloads reach one of these inputs unchanged."""
    for node in inputs:
        yield node
        if node.passes_payload:
            yield from _carried(node.inputs)
