"""A run again, on some of the recorded rows: by the law it gives what these rows mean, in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamdsl.debugger.input_rows import InputRow
from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.engine.operator import Piece
from streamdsl.engine.outcome import Outcome
from streamdsl.engine.query_session import Session
from streamdsl.engine.step_output import StepOutput
from streamdsl.plan.node import Node, Source
from streamdsl.plan.outputs import Outputs, outputs_of
from streamdsl.temporal import CHT, MIN_TIME, Cti, Event, Insert, Unit


class Rerun(Session[Any]):
    """A session without clocks that keeps the steps of each output."""

    undoes = False

    def __init__(self, plan: Node, emit: EmitMode, until: int) -> None:
        super().__init__(plan, None, emit, None, until)
        self._is_final = emit == "final"
        self.steps: list[list[Piece]] = [[] for _ in outputs_of(plan)]

    def _sent(self, pieces: Mapping[str, Piece], outputs: Sequence[Piece]) -> StepOutput:
        for steps, out in zip(self.steps, outputs, strict=True):
            steps.append(out)
        return StepOutput([], None)

    def histories(self, unit: Unit | None) -> list[CHT[Any]]:
        """Return what is out of each output."""
        self._flush()
        found = [Outcome(steps, unit).cht() for steps in self.steps]
        if not self._is_final or self._closed:
            return found
        final = self._graph.final_frontier(self._ctis)
        return [CHT((row for row in rows if row.re <= final), unit) for rows in found]


def without_policies(plan: Node) -> Node:
    """Return a plan whose sources take CTIs as they come: in a rerun they are those that there were."""

    def change(node: Node) -> Node:
        return replace(node, progress=None, on_violation="error") if isinstance(node, Source) else node

    return plan.mapped(change)


def run_again(
    plans: Sequence[Node],
    rows: Iterable[InputRow],
    ctis: Mapping[str, int],
    emit: EmitMode | Emit,
    until: int,
    end: int | None,
    unit: Unit | None,
) -> list[CHT[Any]]:
    """Return the outputs of plans over rows, with the CTIs that the sources have reached; `end` ends all of them."""
    session = Rerun(Outputs(tuple(plans)) if len(plans) > 1 else plans[0], mode_of(emit), until)
    events: dict[str, list[Event[Any]]] = {name: [] for name in session.sources}
    for row in rows:
        if row.source in events and not row.is_dropped:
            events[row.source].append(Insert(row.number, row.le, max(row.le, row.re), row.payload))
    for name, pushed in events.items():
        # A CTI that a table has from its beginning would end a source, which an end does.
        cti = ctis.get(name, MIN_TIME)
        session.push([*pushed, Cti(cti)] if cti > MIN_TIME else pushed, source=name)
    if end is not None:
        session.end(end)
    return session.histories(unit)
