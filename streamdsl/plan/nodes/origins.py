"""Operators that bring rows into a plan: sources, the rows of one group, and the calendar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from streamdsl.expr.predicates import check_function
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Keeps, Open
from streamdsl.temporal import INFINITY, LifetimeColumns, OnViolation, Unit, format_time
from streamdsl.temporal.lifetime_columns import DEFAULT
from streamdsl.temporal.progress_policy import Progress


@dataclass(frozen=True, slots=True)
class Origin(Node):
    """The base of operators that bring rows into a plan; nothing is assumed about payloads and lifetimes."""

    passes_payload = False
    opens_cells = False
    keeps = Keeps.NOTHING


class Declared(Origin):
    """The base of origins whose rows have a declared payload and unit of time."""

    __slots__ = ()

    payload: Schema | None
    time_unit: Unit | None

    @property
    def schema(self) -> Schema | None:
        return self.payload

    @property
    def unit(self) -> Unit | None:
        return self.time_unit

    def describe(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Source(Declared):
    """An input stream, bound by its name; the rows of a `table` are read before those of all other sources."""

    row_wise = True
    level = -1

    source: str
    payload: Schema | None = None
    time_unit: Unit | None = None
    progress: Progress | None = None
    on_violation: OnViolation = "error"
    table: bool = field(default=False, repr=False)
    lifetime_columns: LifetimeColumns = field(default=DEFAULT, repr=False)

    def __post_init__(self) -> None:
        if self.progress is not None and self.progress.clock is not None:
            check_function(self.progress.clock, "the time", instead="return the nanoseconds since 1970")

    @property
    def may_reject(self) -> bool:
        """Whether events may be dropped or adjusted, and so come out of `rejected()`."""
        return self.on_violation != "error" or (self.progress is not None and self.progress.max_jump is not None)

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return Open(self, depends_on_data=True)


@dataclass(frozen=True, slots=True)
class Group(Declared):
    """Inside a `GroupApply`: the rows of one group. `level` is the nesting depth, 0 for the outermost group-apply."""

    row_wise = False
    follows_ctis = True

    payload: Schema | None
    time_unit: Unit | None
    level: int = 0

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """Groups have the rows of the group-apply's input."""
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Calendar(Origin):
    """One row, with the payload None, from `start` (None: the first LE of the input's rows) until `end`."""

    row_wise = False
    keeps = Keeps.FIRST_START
    one_at_a_time = True

    input: Node
    start: int | None
    end: int

    @property
    def schema(self) -> Schema | None:
        return Schema.scalar()

    def describe(self) -> str:
        start = "the first LE" if self.start is None else format_time(self.start)
        return f"from {start} to {format_time(self.end)}"

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return Open(self) if self.end == INFINITY else None


def sources(plan: Node) -> dict[str, Source]:
    """Return the sources that a plan reads, by name.

    >>> list(sources(Source("trips")))
    ['trips']
    """
    return {node.source: node for node in plan.walk_all() if isinstance(node, Source)}
