"""Runs and sessions whose stages run in worker processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.lower import Options
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.opened_plan import OpenedPlan
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.query_session import Session
from streamdsl.engine.run import run_outputs
from streamdsl.engine.state.checkpoint import OF_SHARDS, Checkpoint
from streamdsl.errors import CheckpointError
from streamdsl.io.binding import Bound, Piece
from streamdsl.plan.node import Node, Source, sources
from streamdsl.plan.outputs import Outputs, outputs_of
from streamdsl.result import Result
from streamdsl.sharding.local_cut import uses_workers
from streamdsl.sharding.sharded_graph import ShardedGraph
from streamdsl.temporal import Event

SHARDS: Final = 8
"""The shards of each stage of a session, or as many as it has workers if these are more: a checkpoint keeps the number."""
_LENGTH_BYTES: Final = 8


def run_sharded(
    plan: Outputs, bindings: Mapping[str, Bound], until: int | None, options: Options | None, workers: int
) -> list[Result[Any]]:
    """Run a plan over its bounded inputs in workers, each of which has a shard of every stage."""
    graphs: list[ShardedGraph] = []

    def lowered(plan: Node, policy: EmitPolicy, options: Options | None) -> ShardedGraph:
        (only,) = outputs_of(plan)
        graphs.append(ShardedGraph(only, policy, options or {}, workers, workers, in_parts=True))
        graphs[0].open({})
        return graphs[0]

    def read(source: Source, bound: Bound) -> Bound:
        """Return an input that workers read when it would be pushed, if it is made of several."""
        (only,) = plan.parts
        if bound.apart is None or source.progress is not None or any(node.shows_unmatched for node in only.walk_all()):
            return bound
        if len(parts := bound.apart()) < 2:
            return bound

        def pieces() -> Iterator[Piece]:
            graphs[0].read(source, source.time_unit or bound.unit, parts)
            return iter(())

        return replace(bound, reader=pieces)

    named = sources(plan.parts[0])
    bindings = {name: read(named[name], bound) if name in named else bound for name, bound in bindings.items()}
    try:
        return run_outputs(plan, bindings, until, options, lowered)
    finally:
        for graph in graphs:
            graph.crew.release()


class ShardedSession(Session[Any]):
    """A session whose stages run in shards, in worker processes: sources are read, and output is sent, in this process."""

    _internal = Session._internal | {"go_on"}
    undoes = False
    _graph: ShardedGraph

    def __init__(
        self, opened: OpenedPlan, bindings: Mapping[str, Bound], emit: EmitMode | Emit, options: Mapping[str, Any], lowered: Any
    ) -> None:
        super().__init__(opened.plan, bindings, opened.emit, opened.options, written=opened.written, lowered=lowered)
        self.emit, self.options = emit, dict(options)
        _ = self.described

    @property
    def worker_pids(self) -> list[int]:
        """The processes of its workers."""
        return [worker.pid for worker in self._graph.crew.workers]

    def end_with(self, last: Mapping[str, Iterable[Event[Any]] | Any], time: int) -> list[Event[Any]]:
        out = super().end_with(last, time)
        self.release()
        return out

    def release(self) -> None:
        self._graph.crew.release()

    def snapshot(self, types: Iterable[type] = (), trust: bool = False) -> bytes:
        types = tuple(types)
        with self._lock:
            own, states = super().snapshot(types, trust), self._graph.snapshot(types, trust)
        reached = [each.reached() for each in self._graph.running]
        sections = [own, *states.values()]
        head = {"shards": self._graph.shards, "reached": reached, "places": list(states), "sizes": list(map(len, sections))}
        text = json.dumps(head).encode()
        return b"".join([OF_SHARDS, len(text).to_bytes(_LENGTH_BYTES, "little"), text, *sections])

    def go_on(self, head: Mapping[str, Any], states: Sequence[bytes], trust: bool, types: Sequence[type]) -> None:
        """Give the shards their states, of a head that `snapshot` has written."""
        saved = {(stage, shard): state for (stage, shard), state in zip(head["places"], states, strict=True)}
        self._graph.open(saved, types, trust)
        for running, (sent, ctis) in zip(self._graph.running, head["reached"], strict=True):
            running.restore([(cti, final) for cti, final in sent], ctis)

    def _operator_figures(self, held: MemoryMeter | None) -> dict[str, dict[str, int]]:
        figures: dict[str, dict[str, int]] = {}
        with self._lock:  # another thread may ask
            shards = self._graph.figures(sizes=held is not None)
        for shard in shards:
            for label, found in shard.items():
                figures[label] = _summed(figures[label], found) if label in figures else found
        return {**super()._operator_figures(held), **figures}


def _summed(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return the figures of an operator in two shards: sums, and the CTI that both have reached."""
    return {name: min(one[name], other[name]) if name.endswith("cti") else one[name] + other[name] for name in one}


def open_in_workers(
    plan: Node, bindings: Mapping[str, Bound], emit: EmitMode | Emit, options: Mapping[str, Any] | None, workers: int
) -> Session[Any] | None:
    """Return a new session whose stages run in workers, None where none would; raises `QueryError` for what cannot be cut."""
    if not uses_workers(OpenedPlan.of(plan, emit, options).plan):
        return None
    session = _fresh(plan, bindings, workers, max(workers, SHARDS), emit, options or {})
    session._graph.open({})
    session.load({name: bound for name, bound in bindings.items() if name in session.tables})
    return session


def _fresh(
    plan: Node, bindings: Mapping[str, Bound], workers: int, shards: int, emit: EmitMode | Emit, options: Mapping[str, Any]
) -> ShardedSession:
    opened = OpenedPlan.of(plan, emit, options)

    def lowered(plan: Node, policy: EmitPolicy, options: Options | None) -> ShardedGraph:
        return ShardedGraph(plan, policy, options or {}, min(workers, shards), shards)

    return ShardedSession(opened, bindings, emit, options, lowered)


def restored_in_workers(
    plan: Node, bindings: Mapping[str, Bound], data: bytes, trust: bool, types: Iterable[type], workers: int
) -> Session[Any] | None:
    """Return the session of a plan that `ShardedSession.snapshot` has saved, with any number of workers; None for another one.

    With 0 its shards run in this process.
    """
    if not data.startswith(OF_SHARDS):
        if uses_workers(plan):
            raise CheckpointError(
                "the checkpoint is of a session without workers, whose state is not cut by key",
                hint="restore(path), without workers=",
            )
        return None
    head, (own, *states) = _parts(data)
    saved = Checkpoint(own)
    session = saved.fresh(partial(_fresh, plan, bindings, workers, int(head["shards"])))
    assert isinstance(session, ShardedSession)
    with collector_paused():
        saved.lay_over(session, trust, types)
    session.go_on(head, states, trust, tuple(types))
    return session


def _parts(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the head of a checkpoint of shards, and its parts, each a checkpoint that is checked when it is read."""
    try:
        start = len(OF_SHARDS) + _LENGTH_BYTES
        at = start + int.from_bytes(data[len(OF_SHARDS) : start], "little")
        head = json.loads(data[start:at])
        parts = []
        for size in head["sizes"]:
            parts.append(data[at : at + size])
            at += size
        return head, parts
    except Exception as error:
        raise CheckpointError("the checkpoint is damaged: it is not what was written", hint="use an earlier one") from error
