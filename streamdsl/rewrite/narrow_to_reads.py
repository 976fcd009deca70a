"""Projection below windows: only the fields that modules read reach them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from streamdsl.expr.nodes import Expr, Field, Make, reads
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.node import Node, Select, WindowAggregate, WindowApply
from streamdsl.rewrite.rule import RuleContext
from streamdsl.udm.bases import AnyModule
from streamdsl.udm.builtin import Count


class Use(NamedTuple):
    """A module of a window operator, its argument (None: the payload), and the filter of its rows (None: all rows)."""

    module: AnyModule
    argument: Expr | None
    where: Expr | None


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
    if not isinstance(node, (WindowAggregate, WindowApply)) or not node.takes_any_order:
        return None
    schema, needed = node.input.schema, fields_read(uses(node))
    if schema is None or schema.shape is not Shape.RECORD or needed is None or not needed < set(schema.names):
        return None
    kept = tuple(name for name in schema.names if name in needed)
    return replace(node, input=Select(node.input, Make(Schema.record(kept), tuple(map(Field, kept)))))


def uses(node: WindowAggregate | WindowApply) -> Sequence[Use]:
    """Return the modules of a window operator.

    >>> from streamdsl.plan.node import Source
    >>> from streamdsl.udm.aggregates import BoundAgg
    >>> from streamdsl.windows import Clip, Hopping, Output
    >>> counts = WindowAggregate(Source("s"), Hopping(5, 5), Clip.NONE, Output.ALIGN, (BoundAgg(Count()),), Field("a0"))
    >>> [use.module.label for use in uses(counts)]
    ['count']
    """
    if isinstance(node, WindowApply):
        return [Use(node.module, node.argument, None)]
    return [Use(agg.function, agg.argument, agg.where) for agg in node.aggregates]


def fields_read(uses: Sequence[Use]) -> set[str] | None:
    """Return the fields of a record that modules read; None if some are unknown, or if no module declares `reads`."""
    found: set[str] = set()
    if all(use.argument is not None or use.module.reads is None for use in uses):
        return None
    for use in uses:
        fields = [given(use), frozenset() if use.where is None else reads(use.where)]
        if any(names is None for names in fields):
            return None
        found.update(*(names for names in fields if names is not None))
    return found


def given(use: Use) -> frozenset[str] | None:
    """Return the fields of a row that a module's argument reads, None if they are not known.

    >>> given(Use(Count(), None, None)), given(Use(Count(), Field("fare"), None))
    (frozenset(), frozenset({'fare'}))
    """
    if use.argument is not None:
        return reads(use.argument)
    if isinstance(use.module, Count):  # a record is counted whatever it holds
        return frozenset()
    return None if use.module.reads is None else frozenset(use.module.reads)
