"""Bounded runs: a speculative session from the first input to the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streamdsl.engine.lower import Options, lower
from streamdsl.engine.operator import Piece
from streamdsl.engine.outcome import Outcome
from streamdsl.engine.query_session import Session
from streamdsl.engine.running_query import Lowered
from streamdsl.engine.step_output import StepOutput
from streamdsl.errors import QueryError
from streamdsl.io.binding import Bound
from streamdsl.plan.node import Node, sources
from streamdsl.plan.outputs import Outputs
from streamdsl.result import Result
from streamdsl.temporal import INFINITY, MIN_TIME, Rejections, all_rejected

PART_ROWS: Final = 2**20
"""The rows of an input that are taken at once."""


def run(
    plan: Node, bindings: Mapping[str, Bound], until: int | None = None, engine_options: Options | None = None
) -> Result[Any]:
    """Push each source, tables first, and close with the last push; with `until` window operators make windows up to it.

    Where rows without a match go out, sources are pushed together: the projection of an outer join may fail for such a row, which
    it would be until the source with its match comes. An input in columns is pushed in parts of many rows, so that a large one
    need not be in memory whole.
    """
    return run_outputs(Outputs((plan,)), bindings, until, engine_options)[0]


def run_outputs(
    plan: Outputs,
    bindings: Mapping[str, Bound],
    until: int | None = None,
    engine_options: Options | None = None,
    lowered: Lowered = lower,
) -> list[Result[Any]]:
    """Run several plans as one graph, as `run` does one, and return their results in order."""
    limit = INFINITY if until is None else until
    session = _Run(plan, bindings, engine_options, limit, lowered)
    missing = [name for name in session.sources if name not in bindings]
    if missing:
        raise QueryError(f"nothing is bound to the source {missing[0]!r}", hint=f"query.run({{{missing[0]!r}: events_or_frame}})")
    session.load({name: bound for name, bound in bindings.items() if name in session.tables})
    live = {name: bound for name, bound in bindings.items() if name in session.sources and name not in session.tables}
    together, parts = any(node.shows_unmatched for part in plan.parts for node in part.walk_all()), {}
    for name, bound in live.items():
        parts[name] = session.push_all_but_last(name, bound)
        if not together and len(parts) < len(live):
            session.push(parts.pop(name), name)
    session.end_with(parts, INFINITY)
    return [
        Result(Outcome(steps, session.unit), session.rejected_by(list(sources(part))))
        for part, steps in zip(plan.parts, session.steps, strict=True)
    ]


class _Run(Session[Any]):
    """A session of several outputs, which keeps the steps of each; what is not final yet is not wanted."""

    undoes = False

    def __init__(
        self, plan: Outputs, bindings: Mapping[str, Bound], options: Options | None, until: int, lowered: Lowered
    ) -> None:
        super().__init__(plan, bindings, "final", options, until, lowered=lowered)
        self._until = until
        self.steps: list[list[Piece]] = [[] for _ in plan.parts]

    def _imported(self, pieces: Mapping[str, Piece]) -> dict[str, Piece]:
        return {}  # the sources are pushed one after the other, and none must wait

    def _tick(self) -> list[StepOutput]:
        return []  # what a bounded input means depends on no clock

    def _sent(self, pieces: Mapping[str, Piece], outputs: Sequence[Piece]) -> StepOutput:
        for steps, (batch, cti) in zip(self.steps, outputs, strict=True):
            # What is bounded has ended, so that nothing waits for a change beyond; but its last CTI is the bound.
            last = max(self._until, steps[-1].cti if steps else MIN_TIME)
            steps.append(Piece(batch, min(cti, last) if cti == INFINITY else cti))
        return StepOutput([], None)

    def push_all_but_last(self, source: str, bound: Bound) -> object:
        """Push the parts of an input as they are read, and return the last."""
        parts = bound.parts(PART_ROWS)
        last = next(parts)
        for part in parts:
            self.push(last, source)
            last = part
        return last

    def rejected_by(self, sources: Iterable[str]) -> Rejections:
        """Return what some sources have dropped or adjusted."""
        return all_rejected(self._sources[source].rejected for source in sources)
