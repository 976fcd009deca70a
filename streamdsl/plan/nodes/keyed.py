"""Operators over one input in which rows with equal keys, or payloads, meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.expr import describe
from streamdsl.expr.nodes import Expr, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, FilterBelow, Keeps, Open, all_of, fields_read
from streamdsl.plan.pattern import PatternStep, check_pattern
from streamdsl.udm.methods import check_methods
from streamdsl.udm.stream_operator import UDSO


@dataclass(frozen=True, slots=True)
class Keyed(Node):
    """The base of these operators; of the lifetimes that they make nothing is known, but that open rows stay open.

    What is so unless a class says otherwise: a row may decide about others, so no filter moves; payloads are read as wholes.
    """

    row_wise = False
    passes_payload = False
    opens_cells = False

    input: Node

    @property
    def follows_ctis(self) -> bool:
        return True

    def describe(self) -> str:
        return ""

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class ByPayload(Keyed):
    """The base of operators for which rows with equal payloads are one thing: all or none pass a filter."""

    @property
    def keeps(self) -> Keeps:
        return Keeps.ROWS

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (Whole(),)

    @property
    def filter_below(self) -> FilterBelow | None:
        return "more rows"


@dataclass(frozen=True, slots=True)
class Distinct(ByPayload):
    """Each payload once, for the time that some row has it, as maximal pieces."""


@dataclass(frozen=True, slots=True)
class Stitch(ByPayload):
    """Rows with equal payloads that meet, made one: at each time those that end there, by LE, with those that start, by RE."""


@dataclass(frozen=True, slots=True)
class ToEdges(Keyed):
    """RE becomes the next strictly later LE of the same key, else INFINITY; simultaneous rows share their end."""

    passes_payload = True

    key: Expr | None

    def describe(self) -> str:
        return f"per {describe(self.key)}" if self.key is not None else ""

    @property
    def keeps(self) -> Keeps:
        return Keeps.LAST_ROWS

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return wanted if self.key is None else all_of(wanted, fields_read([self.key]))

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """The last row of each key has no end."""
        return Open(self)


@dataclass(frozen=True, slots=True)
class Scan(Keyed):
    """What a stream operator makes of each row, in order of (LE, payload, RE), with its lifetime."""

    module: UDSO[Any, Any, Any]

    def __post_init__(self) -> None:
        check_methods(type(self.module))

    @property
    def keeps_schema(self) -> bool:
        return self.module.keeps_payloads

    @property
    def schema(self) -> Schema | None:
        return self.input.schema if self.keeps_schema else None

    @property
    def fixed_duration(self) -> int | None:
        return self.input.fixed_duration

    def describe(self) -> str:
        return self.module.label

    @property
    def keeps(self) -> Keeps:
        return Keeps.ROWS


@dataclass(frozen=True, slots=True)
class Match(Keyed):
    """Per key the events that are the steps of a pattern one after the other, less than `within` ticks apart.

    A payload is a record of the steps; a match lives from its last LE until `within` after its first. None of `unless` between.
    """

    steps: tuple[PatternStep, ...]
    within: int
    key: Expr | None = None
    unless: tuple[PatternStep, ...] = ()
    overlapping: bool = False

    def __post_init__(self) -> None:
        check_pattern(self.steps, self.unless, self.within)

    @property
    def schema(self) -> Schema:
        return Schema.record([step.name for step in self.steps])

    def describe(self) -> str:
        parts = [f"{' then '.join(map(_describe_step, self.steps))} within {self.within}"]
        if self.unless:
            parts.append(f"unless {' or '.join(map(_describe_step, self.unless))}")
        if self.key is not None:
            parts.append(f"per {describe(self.key)}")
        return ", ".join([*parts, "overlapping"] if self.overlapping else parts)

    @property
    def keeps(self) -> Keeps:
        return Keeps.MATCHES

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return None


def _describe_step(step: PatternStep) -> str:
    tests = [describe(test, ("e", "m")) for test in (*step.tests, *step.over)]
    return f"{step}[{', '.join(tests)}]" if tests else str(step)
