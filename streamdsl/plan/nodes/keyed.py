"""Operators over one input that combine rows with equal keys or payloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Expr, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, Keeps, Open, Removes, all_of, fields_read
from streamdsl.plan.pattern_steps import PatternStep, check_pattern
from streamdsl.udm.methods import check_methods
from streamdsl.udm.stream_operator import UDSO


@dataclass(frozen=True, slots=True)
class Keyed(Node):
    """The base of these operators. Nothing is assumed about their lifetimes, except that open rows stay open.

    By default a row may affect the output of others, so filters are not pushed down, and whole payloads are read.
    """

    row_wise = False
    passes_payload = False
    opens_cells = False
    follows_ctis = True

    input: Node

    def describe(self) -> str:
        return ""

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class ByPayload(Keyed):
    """The base of operators that combine rows with equal payloads. A filter keeps all or none of them, so it may move below."""

    keeps = Keeps.ROWS
    partition_by = (Whole(),)
    filter_below = "more rows"


@dataclass(frozen=True, slots=True)
class Distinct(ByPayload):
    """Each payload once, for the time that some row has it, as maximal pieces."""


@dataclass(frozen=True, slots=True)
class Stitch(ByPayload):
    """Chains of rows with equal payloads, one ending as the next starts, joined into one row each.

    At a time at which several rows end or start, the ending ones in order of LE are paired with the starting ones in order of RE.
    """


@dataclass(frozen=True, slots=True)
class ToEdges(Keyed):
    """RE becomes the next strictly later LE of the same key, else INFINITY; simultaneous rows share their end."""

    passes_payload = True
    keeps = Keeps.LAST_ROWS

    key: Expr | None

    def describe(self) -> str:
        return f"per {describe(self.key)}" if self.key is not None else ""

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return wanted if self.key is None else all_of(wanted, fields_read([self.key]))

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """The last row of each key never ends."""
        return Open(self)


@dataclass(frozen=True, slots=True)
class Scan(Keyed):
    """The results of a user-defined stream operator for each row, in order of (LE, payload, RE), with the row's lifetime."""

    keeps = Keeps.ROWS

    module: UDSO[Any, Any, Any]

    def __post_init__(self) -> None:
        check_methods(type(self.module))

    passes_lifetime = True

    @property
    def keeps_schema(self) -> bool:
        return self.module.keeps_payloads

    @property
    def removes(self) -> Removes | None:
        """What a module that keeps payloads does not let pass it has seen others instead of."""
        return "rows with others" if self.keeps_schema else None

    @property
    def schema(self) -> Schema | None:
        return self.input.schema if self.keeps_schema else None

    @property
    def fixed_duration(self) -> int | None:
        return self.input.fixed_duration

    def describe(self) -> str:
        return self.module.label


@dataclass(frozen=True, slots=True)
class Match(Keyed):
    """Per key, the events that take the steps of a pattern in order, the last less than `within` ticks after the first.

    A payload is a record of the steps; a match lives from its last LE until `within` after its first. An event that fits a step
    of `unless` ends a run without a match.
    """

    keeps = Keeps.MATCHES

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
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return None


def _describe_step(step: PatternStep) -> str:
    tests = [describe(test, ("e", "m")) for test in (*step.tests, *step.over)]
    return f"{step}[{', '.join(tests)}]" if tests else str(step)
