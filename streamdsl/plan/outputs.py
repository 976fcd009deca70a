"""Several outputs of one plan, for `sd.composing.run_all`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdsl.plan.base import Node
from streamdsl.plan.facts import Open, surely
from streamdsl.plan.nodes.rows import RowWise


@dataclass(frozen=True, slots=True)
class Outputs(RowWise):
    """The root of a plan with several outputs, one per query. Nodes that several queries share are in the plan once.

    >>> from streamdsl.plan.node import Source, shift
    >>> trips = Source("trips")
    >>> len(list(Outputs((shift(trips, 1), shift(trips, 2))).walk()))
    4
    """

    passes_payload = False
    schema = None

    parts: tuple[Node, ...]

    def describe(self) -> str:
        return ""

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return surely(inputs)


def outputs_of(plan: Node) -> tuple[Node, ...]:
    """Return the plan of each output: the parts of an `Outputs`, or the plan itself.

    >>> from streamdsl.plan.node import Source
    >>> outputs_of(Source("trips")) == (Source("trips"),)
    True
    """
    return plan.parts if isinstance(plan, Outputs) else (plan,)
