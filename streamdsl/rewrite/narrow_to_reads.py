"""Projection below windows: only the fields that modules read reach them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamdsl.expr.nodes import Field, Make
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.facts import Fields, all_of, fields_read
from streamdsl.plan.node import Node, Select, Windowed
from streamdsl.rewrite.rule import RuleContext
from streamdsl.udm.bound_agg import BoundAgg


def narrow_to_reads(node: Node, setting: RuleContext) -> Node | None:
    """Project records to the fields that a window's modules read, below the window; in groups inside the body, above the key.

    Lifetimes, CTIs and the ids of rows stay. At least one module must take whole payloads and declare what it `reads`; a module
    that returns payloads reads all their fields. Payloads other than records stay: a module may expect their class.

    Law: `apply(M)(w(s)) == apply(M)(w(select(fields that M reads)(s)))`.

    Before and after:

    >>> from typing import TypedDict
    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Takings(sd.UDA[sd.Record, int]):
    ...     reads = ("fare",)
    ...     def compute_result(self, trips):
    ...         return sum(trip.fare for trip in trips)
    >>> class Trip(TypedDict):
    ...     zone: str
    ...     taxi: str
    ...     fare: int
    >>> trips = sd.source("trips", Trip)
    >>> before = trips.tumbling_window(10).aggregate(Takings)
    >>> print(explain(before.plan(), "reference"))
    window_aggregate_1 tumbling(10), a0 = Takings(), -> e.a0 [duration 10]  <denotation>
    └─ source:trips  (zone, taxi, fare)  <denotation>
    >>> after = narrow_to_reads(before.plan(), RuleContext())
    >>> print(explain(after, "reference"))
    window_aggregate_1 tumbling(10), a0 = Takings(), -> e.a0 [duration 10]  <denotation>
    └─ select_1 {fare: e.fare}  (fare)  <denotation>
       └─ source:trips  (zone, taxi, fare)  <denotation>

    Must not fire: if the module may expect a class, or if the order of members matters, which depends on whole payloads.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Ride:
    ...     zone: str
    ...     fare: int
    >>> class InOrder(Takings):
    ...     order_insensitive = False
    >>> of_class = sd.source("rides", Ride).tumbling_window(10).aggregate(Takings)
    >>> in_order = trips.tumbling_window(10).aggregate(InOrder)
    >>> [narrow_to_reads(query.plan(), RuleContext()) for query in (of_class, in_order)]
    [None, None]
    """
    if not isinstance(node, Windowed) or not node.takes_any_order:
        return None
    schema, needed = node.input.schema, _fields_read(node.given())
    if schema is None or schema.shape is not Shape.RECORD or needed is None or not needed < set(schema.names):
        return None
    kept = tuple(name for name in schema.names if name in needed)
    return replace(node, input=Select(node.input, Make(Schema.record(kept), tuple(map(Field, kept)))))


def _fields_read(aggregates: Sequence[BoundAgg]) -> Fields:
    """Return the fields of a record that modules read; None if some are unknown, or if no module declares `reads`."""
    if all(agg.argument is not None or agg.function.reads is None for agg in aggregates):
        return None
    return all_of(
        *(fields for agg in aggregates for fields in (_fields_given(agg), fields_read([] if agg.where is None else [agg.where])))
    )


def _fields_given(agg: BoundAgg) -> Fields:
    """Return the fields of a row that a module's argument reads, None if they are not known."""
    declared = agg.function.reads if agg.argument is None else None
    return fields_read([agg.given]) if declared is None else frozenset(declared)
