"""A recording as it stood after some of its pushes: its rows, what they gave at each operator, and what parts of them give."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from streamdsl.debugger.answers import Cause, InputCause, Why
from streamdsl.debugger.input_rows import InputRow, RecordedInput, inputs_of
from streamdsl.debugger.lineage import Lineage, Rows, copies
from streamdsl.debugger.pushes import Push, Recording
from streamdsl.debugger.reruns import run_again, without_policies
from streamdsl.debugger.searching import smallest
from streamdsl.denote import evaluate
from streamdsl.denote.environment import Environment
from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import StreamDslError
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source
from streamdsl.plan.units import in_unit
from streamdsl.temporal import CHT, CHTRow, is_calendar, sort_rows


class Moment:
    """What a recording means after its first pushes.

    Whatever is said of causes is tried: the query runs again without some rows, from `run_again`, and the outputs are compared.
    """

    def __init__(self, recording: Recording, pushes: Sequence[Push]) -> None:
        self.recording = recording
        self.pushes = pushes
        self.plan = plan_of(recording)
        self.end = self.pushes[-1].end if self.pushes else None

    @cached_property
    def inputs(self) -> RecordedInput:
        """The rows of all sources, and how far these have come."""
        return inputs_of(self.recording, self.pushes)

    @property
    def rows(self) -> list[InputRow]:
        """The rows of all sources, also those that were dropped or deleted, which count for nothing."""
        return self.inputs.rows

    def output(
        self,
        rows: Iterable[InputRow] | None = None,
        plan: Node | None = None,
        mute: Collection[str] = (),
        ended: Collection[str] = (),
    ) -> CHT[Any]:
        """Return the output of a run on some rows, by default all; sources may be without CTIs (`mute`), or be ended."""
        return self._run([plan or self.plan], self.recording.emit, rows, mute, ended)[0]

    def at_operators(
        self, rows: Iterable[InputRow] | None = None, plan: Node | None = None, ended: Collection[str] = ()
    ) -> dict[int, Rows]:
        """Return what is out of each operator outside of groups, by the node's `id()`."""
        nodes = operators_of(plan or self.plan)
        found = self._run(nodes, speculative(self.recording.emit), rows, ended=ended) if nodes else []
        return {id(node): history.rows for node, history in zip(nodes, found, strict=True)}

    def _run(
        self,
        plans: Sequence[Node],
        emit: EmitMode | Emit,
        rows: Iterable[InputRow] | None,
        mute: Collection[str] = (),
        ended: Collection[str] = (),
    ) -> list[CHT[Any]]:
        chosen, of = self.rows if rows is None else rows, self.recording
        return run_again(plans, chosen, self.inputs, emit, of.until, self.end, of.unit, mute, ended)

    def gives(self, row: CHTRow[Any], rows: Iterable[InputRow], mute: Collection[str] = ()) -> bool:
        """Say whether a run on some rows gives a row; not if the query's code fails on them."""
        try:
            return copies(self.output(rows, mute=mute), row) > 0
        except StreamDslError:
            return False

    def without(self, numbers: Collection[int]) -> list[InputRow]:
        """Return all rows but some."""
        return [row for row in self.rows if row.number not in numbers]

    @cached_property
    def lineage(self) -> Lineage:
        """How the rows at each operator came to be there."""
        return self.lineage_of(self.plan, self.rows)

    def lineage_of(self, plan: Node, inputs: Sequence[InputRow], ended: Collection[str] = ()) -> Lineage:
        """Return the lineage of another plan over some rows, with some sources ended."""
        return lineage_over(plan, inputs, self.at_operators(inputs, plan, ended), self.recording)

    def tree(self, row: CHTRow[Any]) -> Cause | None:
        """Return the causes of a row of the output, None if no operator is known to have made it."""
        rows = self.lineage.rows[id(self.plan)]
        at = next((index for index, each in enumerate(rows) if copies([each], row)), None)
        return None if at is None else self.lineage.of(self.plan, at)

    def why(self, row: CHTRow[Any]) -> Why:
        """Return where a row of the output comes from; rows are added to what its lineage says until a run gives it."""
        tree = self.tree(row)
        named = {} if tree is None else {c.input.number: c.input for c in tree.walk() if c.input is not None}
        kept = [row for row in self.rows if row.number in named]
        others = self.without(named)
        context: list[InputRow] = []
        is_complete = self.gives(row, kept)
        if not is_complete and self.gives(row, self.rows):
            is_complete = True
            context = smallest(others, lambda part: self.gives(row, self._in_order([*kept, *part])))
        numbers = {each.number for each in context}
        causes = tuple(self.cause(row, each, each.number in numbers) for each in self._in_order([*kept, *context]))
        return Why(
            row,
            tree,
            causes,
            is_complete,
            len(self.pushes) - 1,
            self.inputs.ctis,
            self.recording.unit,
            limits=tuple(self.recording.limits()),
            _needs=lambda source: self._needs_cti(row, source),
        )

    def cause(self, row: CHTRow[Any], input: InputRow, is_context: bool) -> InputCause:
        """Return a row of a source as a cause of a row of the output."""
        return InputCause(
            input.source,
            input.row,
            tuple(input.events),
            is_context,
            input.number,
            lambda: self.gives(row, self.without({input.number})),
        )

    def _needs_cti(self, row: CHTRow[Any], source: str) -> bool:
        """Say whether a row would not be out without the CTI of a source."""
        return self.end is None and not self.gives(row, self.rows, mute=[source])

    @staticmethod
    def _in_order(rows: Iterable[InputRow]) -> list[InputRow]:
        return sorted(rows, key=lambda row: row.number)


def plan_of(recording: Recording) -> Node:
    """Return the plan of a recording as its parts are run again: in its unit of time, with the CTIs that there were."""
    plan = in_unit(recording.plan, recording.unit) if is_calendar(recording.unit) else recording.plan
    return without_policies(plan)


def operators_of(plan: Node) -> list[Node]:
    """Return the operators of a plan outside of groups, along the flow."""
    return [node for node in plan.walk() if not isinstance(node, Source)]


def speculative(emit: EmitMode | Emit) -> EmitMode:
    """Return the way to emit in which each operator shows what it has, though a row may still change."""
    return "watermark" if emit == "watermark" else "speculative"


def lineage_over(plan: Node, inputs: Iterable[InputRow], made: Mapping[int, Rows], recording: Recording) -> Lineage:
    """Return the lineage of a plan over some rows of sources, and those that operators made of them."""
    sources: dict[str, list[InputRow]] = {}
    for row in inputs:
        if row.le < row.re:
            sources.setdefault(row.source, []).append(row)
    for found in sources.values():
        sort_rows(found)
    rows = dict(made)
    for node in plan.walk():
        if isinstance(node, Source):
            rows[id(node)] = [row.row for row in sources.get(node.source, ())]
    known = {name: CHT((row.row for row in found), recording.unit) for name, found in sources.items()}
    scope = Environment(evaluate, known, recording.until, labels(plan))
    return Lineage(scope, rows, recording.unit, sources)
