"""A recording that is run once, push by push: after each, the rows at every operator, and what each operator holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from streamdsl.debugger.input_rows import Arrival, RecordedInput, is_ended
from streamdsl.debugger.lineage import Lineage, Rows
from streamdsl.debugger.moment import lineage_over, operators_of, plan_of, speculative
from streamdsl.debugger.pushes import Push, Recording
from streamdsl.debugger.reruns import Rerun
from streamdsl.engine.batch import Batch
from streamdsl.engine.consolidate import consolidated
from streamdsl.engine.operator import Operator, Piece
from streamdsl.errors import shortened
from streamdsl.pictures import cut
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Source
from streamdsl.plan.outputs import Outputs
from streamdsl.temporal import MIN_TIME, Cti, format_time

_KEYS: Final = 4
"""The keys of groups that are named, and the states and totals that are shown."""
_LONGEST: Final = 80
"""The most characters of a state, or of totals."""


class HeldState(NamedTuple):
    """What an operator, or a source, holds: open windows, rows that a change may still need, and the groups of these.

    `came` and `went` are the changes of rows that it has taken and sent, the CTIs are those of its input and its output. `kept`
    are the first states of modules and totals of aggregates, each with its group and its window.
    """

    windows: int
    rows: int
    groups: int
    keys: str
    came: int
    went: int
    input_cti: str
    output_cti: str
    bytes: int
    kept: list[str]


class RunningMoment:
    """A recording after its first pushes, of which there may come more: the rows of sources and of operators, and the state."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.plan = plan_of(recording)
        self.inputs = RecordedInput(recording.unit)
        self._nodes = operators_of(self.plan)
        self._run = RecordedRun(self._nodes or [self.plan], recording)
        self._count = 0

    def take(self, push: Push) -> None:
        """Go on by a push."""
        took = self.inputs.take(self._count, push)
        self._count += 1
        # All sources end at once: what one that ends before the others would make has no bound.
        self._run.take([each for each in took if not (is_ended(push.end) and isinstance(each[2], Cti))])
        if push.end is not None:
            self._run.end(push.end)

    @property
    def lineage(self) -> Lineage:
        """How the rows that are at each operator now came to be there."""
        found = self._run.histories(self.recording.unit) if self._nodes else []
        rows: dict[int, Rows] = {id(node): history.rows for node, history in zip(self._nodes, found, strict=True)}
        return lineage_over(self.plan, self.inputs.rows, rows, self.recording)

    def held(self) -> Mapping[str, HeldState]:
        """Return what each source and each operator holds, by its label, those inside of groups among them."""
        return dict(self._run.held())


class RecordedRun(Rerun):
    """A session of all operators' outputs, of which each keeps what its steps amount to."""

    def __init__(self, nodes: Any, recording: Recording) -> None:
        super().__init__(Outputs(tuple(nodes)), speculative(recording.emit), recording.until)
        self._time_unit = recording.unit

    def take(self, arrivals: list[Arrival]) -> None:
        """Push what took effect, the events of a source that follow each other at once."""
        for name, found in groupby(arrivals, key=lambda each: each[1]):
            if name in self._sources:
                self.push([event for _, _, event in found], name)

    def histories(self, unit: Any) -> Any:
        for steps in self.steps:
            if len(steps) > 1:
                steps[:] = [Piece(consolidated(Batch.concat(step.batch for step in steps)), steps[-1].cti)]
        return super().histories(unit)

    def held(self) -> Iterator[tuple[str, HeldState]]:
        """Yield what each source and operator holds. A group-apply holds nothing itself, but where its rows enter they come."""
        figures, names = self.stats(), labels(self.plan)
        for node in self.plan.walk():
            if isinstance(node, Source):
                yield names[id(node)], self._of(figures[f"source:{node.source}"])
        for operator in self._graph.operators:
            yield operator.label, self._of(figures[operator.label], operator)

    def _of(self, figures: Mapping[str, int], operator: Operator | None = None) -> HeldState:
        groups = set() if operator is None or operator.key_table is None else {g for g in operator.held_groups() if g is not None}
        keys = [self._key(operator, g) for g in sorted(groups)[:_KEYS]] if operator else []
        named = ", ".join(keys) + ", …" * (len(groups) > _KEYS)
        ctis = [self._shown(figures[name]) for name in ("input_cti", "output_cti")]
        found = list(islice(self._kept(operator), _KEYS + 1)) if operator else []
        kept = [*found[:_KEYS], *["…"] * (len(found) > _KEYS)]
        sizes = figures["windows"], figures["events"], len(groups), named
        return HeldState(*sizes, figures["in"], figures["out"], ctis[0], ctis[1], figures["state_bytes"], kept)

    def _kept(self, operator: Operator) -> Iterator[str]:
        """Yield a line for each group and window of which something is kept: its key, its lifetime, and the values."""
        for (group, window), found in groupby(operator.kept(), key=lambda each: each[:2]):
            of = [] if group is None else [self._key(operator, group)]
            if window is not None:
                of.append(f"[{format_time(window.le, self._time_unit)}, {format_time(window.re, self._time_unit)})")
            yield ": ".join([" ".join(of)] * bool(of) + ["; ".join(f"{each.name} {cut(each.value, _LONGEST)}" for each in found)])

    def _key(self, operator: Operator, group: int) -> str:
        assert operator.key_table is not None
        key = operator.key_table.key(group)
        return shortened(key[0] if len(key) == 1 else key)

    def _shown(self, cti: int) -> str:
        return "" if cti == MIN_TIME else format_time(cti, self._time_unit)
