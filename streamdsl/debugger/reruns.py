"""A run again, on some of the recorded rows, with the CTIs that there were."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from streamdsl.debugger.input_rows import At, InputRow, RecordedInput, is_ended
from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.engine.operator import Piece
from streamdsl.engine.outcome import Outcome
from streamdsl.engine.query_session import Session
from streamdsl.engine.step_output import StepOutput
from streamdsl.plan.node import Node, Source
from streamdsl.plan.outputs import Outputs, outputs_of
from streamdsl.temporal import CHT, INFINITY, Cti, Event, Insert, Unit


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


def without_clocks(plan: Node) -> tuple[Node, list[str]]:
    """Return a plan none of whose sources goes by a clock or by another source, and the names of those that did."""
    clocked: list[str] = []

    def change(node: Node) -> Node:
        if not isinstance(node, Source) or node.progress is None or node.progress.kind not in ("wall", "imported"):
            return node
        clocked.append(node.source)
        return replace(node, progress=None)

    return plan.mapped(change), clocked


def without_policies(plan: Node) -> Node:
    """Return a plan whose sources take CTIs as they come: in a rerun they are those that there were."""

    def change(node: Node) -> Node:
        return replace(node, progress=None, on_violation="error") if isinstance(node, Source) else node

    return plan.mapped(change)


def run_again(
    plans: Sequence[Node],
    rows: Iterable[InputRow],
    inputs: RecordedInput,
    emit: EmitMode | Emit,
    until: int,
    end: int | None,
    unit: Unit | None,
    mute: Collection[str] = (),
    ended: Collection[str] = (),
) -> list[CHT[Any]]:
    """Return the outputs of plans over rows; sources may be `mute`, without their CTIs, or `ended`.

    What a session has sent so far depends on the order of arrival, which is kept. What a run gives that has ended does not, by
    the law, so its rows are given at once.
    """
    session = Rerun(Outputs(tuple(plans)) if len(plans) > 1 else plans[0], mode_of(emit), until)
    known = set(session.sources)
    chosen = [row for row in rows if row.source in known]
    if is_ended(end):
        for name in session.sources:
            session.push([Insert(r.number, r.le, r.re, r.payload) for r in chosen if r.source == name and r.le < r.re], name)
    else:
        for name, events in _pushes(chosen, [each for each in inputs.promises if each[1] in known and each[1] not in mute]):
            session.push(events, name)
        for name in known.intersection(ended):
            session.push([Cti(INFINITY)], name)
    if end is not None:
        session.end(end)
    return session.histories(unit)


def _pushes(rows: Iterable[InputRow], promises: Iterable[tuple[At, str, Cti]]) -> Iterator[tuple[str, list[Event[Any]]]]:
    """Yield the pushes of rows, in order; of CTIs between which no row changes, the last of each source."""
    arrivals = sorted([*((at, row.source, change) for row in rows for at, change in row.changes), *promises], key=itemgetter(0))
    waiting: dict[str, list[Event[Any]]] = {}
    for (_, name), pushed in groupby(arrivals, key=lambda arrival: (arrival[0][0], arrival[1])):
        events: list[Event[Any]] = [event for _, _, event in pushed]
        if len(events) == 1 and isinstance(events[0], Cti):
            waiting[name] = events
            continue
        yield from waiting.items()
        waiting.clear()
        yield name, events
    yield from waiting.items()
