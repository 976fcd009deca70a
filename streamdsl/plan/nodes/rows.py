"""Operators on single rows that keep their lifetimes: filters and projections; and the base of all row-wise operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Expr, Whole, reads_lifetime, schema_of
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, Keeps, Open, all_of, fields_read


@dataclass(frozen=True, slots=True)
class RowWise(Node):
    """The base of operators that process each row independently; by default they keep no state."""

    row_wise = True
    opens_cells = False
    follows_ctis = True
    keeps = Keeps.NOTHING


@dataclass(frozen=True, slots=True)
class PerRow(RowWise):
    """The base of operators that turn each row into any number of rows with the same lifetime."""

    passes_lifetime = True

    input: Node

    @property
    @abstractmethod
    def function(self) -> Expr:
        """The expression that is evaluated for each row."""

    def describe(self) -> str:
        return describe(self.function)

    @property
    def fixed_duration(self) -> int | None:
        return self.input.fixed_duration

    @property
    def one_at_a_time(self) -> bool:
        return self.input.one_at_a_time

    @property
    def moves_starts_as_ctis(self) -> bool:
        """Not if the expression reads lifetimes: then CTIs may lag behind the LEs of rows."""
        return not reads_lifetime(self.function)

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """A filter is assumed to keep some open rows, even if it tests ends."""
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Where(PerRow):
    """The rows for which `bool(predicate)` is true; lifetimes and CTIs stay."""

    passes_payload = True
    removes = "rows as they are"

    predicate: Expr

    @property
    def function(self) -> Expr:
        return self.predicate

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return all_of(wanted, fields_read([self.predicate]))


@dataclass(frozen=True, slots=True)
class Select(PerRow):
    """Each row's payload replaced by the projection; lifetimes and CTIs stay."""

    passes_payload = False

    projection: Expr

    @property
    def schema(self) -> Schema | None:
        return projected(self.projection, self.input)

    @property
    def function(self) -> Expr:
        return self.projection

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return fields_read([self.projection])


@dataclass(frozen=True, slots=True)
class SelectMany(PerRow):
    """One row per item of the iterable that the expression gives for a row; lifetimes and CTIs stay."""

    passes_payload = False
    schema = None
    one_at_a_time = False
    """The rows from one input row have the same lifetime."""

    items: Expr

    @property
    def function(self) -> Expr:
        return self.items

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return fields_read([self.items])


def projected(projection: Expr, *inputs: Node) -> Schema | None:
    """Return the schema of a projection's values. Input schemas, costly to compute, are computed only for whole payloads."""
    return schema_of(projection, tuple(node.schema if isinstance(projection, Whole) else None for node in inputs))
