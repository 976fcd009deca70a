"""A plan for each key by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdsl.expr.nodes import Expr
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, Keeps, Open, fields_read
from streamdsl.plan.nodes.rows import projected


@dataclass(frozen=True, slots=True)
class GroupApply(Node):
    """`body`, a plan over its own `Group`, run for each key by itself; `projection` makes the payload of key and result.

    In the projection `Key()` is the key and `Whole()` the body's payload.
    """

    row_wise = False
    passes_payload = False
    opens_cells = False

    input: Node
    key: Expr
    body: Node
    projection: Expr

    @property
    def schema(self) -> Schema | None:
        return projected(self.projection, self.body)

    @property
    def follows_ctis(self) -> bool:
        """Its own; what the body does is the body's."""
        return True

    def describe(self) -> str:
        return ""

    @property
    def keeps(self) -> Keeps:
        return Keeps.NOTHING

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)

    @property
    def fixed_duration(self) -> int | None:
        return self.body.fixed_duration

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        """What the body reads is needed besides, by its `Group`."""
        return fields_read([self.key])

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]
