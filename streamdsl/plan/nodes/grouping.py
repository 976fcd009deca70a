"""Group-apply: a plan that runs for each key separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamdsl.expr.nodes import Expr
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, Keeps, Open, fields_read
from streamdsl.plan.nodes.rows import projected


@dataclass(frozen=True, slots=True)
class GroupApply(Node):
    """Runs `body`, a plan over its own `Group`, for each key; `projection` builds payloads from the key and the body's rows.

    In the projection `Key()` is the key and `Whole()` the body's payload.
    """

    row_wise = False
    passes_payload = False
    opens_cells = False
    keeps = Keeps.NOTHING
    follows_ctis = True
    """This is about grouping alone; the nodes of the body state their own facts."""

    input: Node
    key: Expr
    body: Node
    projection: Expr

    @property
    def below(self) -> tuple[Node, ...]:
        return self.input, self.body

    def map_below(self, change: Callable[[Node], Node]) -> Node:
        over: Any = self.map_inputs(change)
        body = change(self.body)
        return over if body is self.body else replace(over, body=body)  # type: ignore[no-any-return]

    @property
    def schema(self) -> Schema | None:
        return projected(self.projection, self.body)

    def describe(self) -> str:
        return ""

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)

    @property
    def fixed_duration(self) -> int | None:
        return self.body.fixed_duration

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        """Only the key; the demand of the body reaches the input through its `Group` (`rewrite/demand.py`)."""
        return fields_read([self.key])

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]
