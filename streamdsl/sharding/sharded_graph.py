"""A plan whose stages run in workers: it takes the pieces of the sources, and returns those of the output, as a graph does."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from streamdsl.engine.batch import EMPTY, SLICE, Batch, JoinedBatches, together
from streamdsl.engine.lower import Graph, Options, lower
from streamdsl.engine.operator import EmitPolicy, Piece
from streamdsl.engine.row_batch import RowBatch
from streamdsl.errors import UserCodeError, WorkerError
from streamdsl.expr.table import object_column
from streamdsl.io.binding import Bound
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source
from streamdsl.sharding.local_cut import runs_here
from streamdsl.sharding.part_reader import PartsOf, Place, ReadInput, ReadWork
from streamdsl.sharding.plan_stages import PlanStage, StageInput, cut_into_stages
from streamdsl.sharding.routing import Router
from streamdsl.sharding.sent_columns import alone
from streamdsl.sharding.shard_session import ShardHost, ShardOutput, ShardStep, StageWork
from streamdsl.sharding.workers import Crew
from streamdsl.temporal import MIN_TIME, Unit

_AT_ONCE: Final = SLICE
"""The rows of a run that are sent at once: while a worker runs them, the next are on their way."""
_AHEAD: Final = 4
"""So many parts of a piece are sent before an answer is waited for."""
_BEFORE: Final = ShardOutput(EMPTY, MIN_TIME, MIN_TIME)


class RunningStage:
    """A stage with its shards, and how far each has come."""

    def __init__(self, number: int, stage: PlanStage, names: Mapping[int, str], policy: EmitPolicy, shards: int) -> None:
        self.number = number
        self.stage = stage
        self.is_here = runs_here(stage)
        self.shards = 1 if self.is_here else shards
        self.inputs: list[tuple[StageInput, Router]] = []
        self.read: list[tuple[StageInput, ReadInput]] = []
        """The inputs of sources, as workers read them."""
        for each in stage.inputs:
            known = {id(node): names[id(stage.written(node))] for node in each.pushed_down.walk_all() if node.inputs}
            pushed = each.pushed_down if isinstance(each.origin, Source) else _source_of(each)
            self.inputs.append((each, Router(pushed, each.partitioning, known)))
            if isinstance(each.origin, Source):
                texts = tuple(known.get(id(node), "") for node in pushed.walk_all())
                self.read.append((each, ReadInput(number, each.name, pushed, each.partitioning, texts, self.shards)))
        waits = policy.by_end or (not policy.final and any(node.opens_cells for node in stage.plan.walk_all()))
        self._tells_high_water = waits and self.shards > 1
        self.sent: list[ShardOutput] = [_BEFORE] * self.shards
        self._ctis: dict[str, int] = {}

    def work(self, names: Mapping[int, str], policy: EmitPolicy, options: Options) -> StageWork:
        """Return what its shards run, under the labels of the whole plan."""
        known = (names.get(id(self.stage.written(node)), "") for node in self.stage.plan.walk_all())
        return StageWork(self.stage.plan, tuple(known), policy, options)

    def steps(
        self, given: Mapping[int, ShardOutput], read: PartsOf | None, ending: bool, at_once: int | None
    ) -> Iterator[ShardStep]:
        """Yield the steps for what its origins have sent, the last one with the CTIs; none if nothing has changed.

        `read` has the rows that workers have read for shards of others, None where none have read any.
        """
        ctis = {each.name: given[id(each.origin)].cti for each, _ in self.inputs}
        finals = {each.name: given[id(each.origin)].final for each, _ in self.inputs}
        before = {name: self._ctis.get(name, MIN_TIME) for name in ctis}
        rows_of: dict[int, dict[str, Batch]] = defaultdict(dict)
        for each, router in self.inputs:
            *parts, last = _parts(given[id(each.origin)].batch, at_once)
            for part in parts:
                yield ShardStep(self.number, self._split(each.name, router, part), before, {}, False)
            for shard, named in self._split(each.name, router, last).items():
                rows_of[shard].update(named)
        for (_, shard), read_rows in (read or {}).items():
            rows_of[shard].update({name: JoinedBatches(parts) for name, parts in read_rows.items()})
        if ending or read is not None or ctis != self._ctis:
            for shard in range(self.shards):
                rows_of.setdefault(shard, {})
        self._ctis = ctis
        if rows_of:
            yield ShardStep(self.number, dict(rows_of), ctis, finals, ending)

    def _split(self, name: str, router: Router, rows: Batch) -> dict[int, dict[str, Batch]]:
        """Return the rows of each shard that has some."""
        parts = router.split(rows, self.shards, self._tells_high_water)
        return {shard: {name: alone(part)} for shard, part in parts.items()}

    def take(self, answers: Iterable[Mapping[int, ShardOutput]]) -> ShardOutput:
        """Return what all shards together have sent, given the answers to steps."""
        batches: list[Batch] = []
        for answer in answers:
            for shard in sorted(answer):
                batches.append(answer[shard].batch)
                self.sent[shard] = answer[shard]
        parts = [each.columns if type(each) is RowBatch else each for each in batches if len(each)]
        found = together(parts)
        return ShardOutput(found, min(each.cti for each in self.sent), min(each.final for each in self.sent))

    def restore(self, sent: list[tuple[int, int]], ctis: Mapping[str, int]) -> None:
        """Go on from what `reached` has returned."""
        self.sent = [ShardOutput(EMPTY, cti, final) for cti, final in sent]
        self._ctis = dict(ctis)

    def reached(self) -> tuple[list[tuple[int, int]], dict[str, int]]:
        """Return how far its shards and inputs have come."""
        return [(each.cti, each.final) for each in self.sent], self._ctis


def _source_of(each: StageInput) -> Source:
    return Source(each.name, each.pushed_down.schema, each.pushed_down.unit)


def _parts(rows: Batch, size: int | None) -> Iterator[Batch]:
    """Yield rows in parts of at most so many; an empty batch as one."""
    if size is None or len(rows) <= size:
        yield rows
        return
    for start in range(0, len(rows), size):
        yield rows.take(slice(start, start + size))


class ShardedGraph(Graph):
    """The operators of a plan, which run elsewhere: those here have no state, and say what each is called and what it needs."""

    def __init__(
        self, plan: Node, policy: EmitPolicy, options: Options, workers: int, shards: int, in_parts: bool = False
    ) -> None:
        whole = lower(plan, policy, options)
        super().__init__(whole.stages, whole.sources, whole.outputs, whole.key_tables, whole.frontiers)
        names = labels(plan)
        self.shards = shards
        # An outer join is shown rows without a match only where the match may still come.
        is_cut = in_parts and not any(node.shows_unmatched for node in plan.walk_all())
        self._at_once = _AT_ONCE if is_cut else None
        self._final = MIN_TIME
        self._ctis = dict.fromkeys(whole.sources, MIN_TIME)
        self._early: list[Batch] = []
        self._due: dict[int, None] = {}
        self._read: list[PartsOf | None] = []
        self.running = [RunningStage(n, each, names, policy, shards) for n, each in enumerate(cut_into_stages(plan, True).all())]
        self.works = [each.work(names, policy, options) for each in self.running]
        self.crew = Crew(workers)
        self._here: ShardHost

    def open(self, states: Mapping[Place, bytes], types: Iterable[type] = (), trust: bool = False) -> None:
        """Open the shards, before all else, with their states if there are any."""
        here: dict[Place, bytes | None] = {}
        there: list[dict[Place, bytes | None]] = [{} for _ in self.crew.workers]
        for each in self.running:
            for shard in range(each.shards):
                place = each.number, shard
                (here if each.is_here else there[self._worker_of(shard)])[place] = states.get(place)
        self._here = ShardHost(self.works, here, types, trust)
        table = weakref.WeakMethod(self.table)
        self.crew.know(lambda label: table()(label))  # type: ignore[misc]  # a crew does not keep its graph
        self.crew.ask_each("open", {place: (self.works, mine, types, trust) for place, mine in enumerate(there)})

    def _worker_of(self, shard: int) -> int:
        return shard % len(self.crew.workers)

    def read(self, source: Source, unit: Unit | None, bounds: Sequence[Bound]) -> None:
        """Let workers read a source, each some of its inputs; what they send comes out with the next step."""
        inputs = [how for stage in self.running for each, how in stage.read if each.origin == source]
        numbered = list(enumerate(bounds))
        n = len(self.crew.workers)
        works: list[ReadWork | None] = [ReadWork(source, unit, numbered[place::n], inputs, place) for place in range(n)]
        try:
            self._ask_to_read(works)
            while (read := self._take_read()) is not None:
                self._ask_to_read([None] * n)
                self._early.append(self._stepped({}, self._ctis, read).batch)
        except BaseException:
            self.crew.release()
            raise

    def _ask_to_read(self, works: Sequence[ReadWork | None]) -> None:
        for worker, work in zip(self.crew.workers, works, strict=True):
            worker.ask("read", work)
        self._due = dict.fromkeys(range(len(works)))

    def _take_read(self) -> PartsOf | None:
        """Return what workers have read for shards of others, None where all have come to their ends."""
        for place in list(self._due):
            self._take_due(place)
        answers, self._read = [each for each in self._read if each is not None], []
        found: PartsOf = defaultdict(lambda: defaultdict(list))
        for answer in answers:
            for shard_place, named in answer.items():
                for name, rows in named.items():
                    found[shard_place][name] += rows
        return found if answers else None

    def _take_due(self, place: int) -> None:
        """Take the answer of a worker that was asked to read before all else."""
        if place in self._due:
            del self._due[place]
            self._read.append(self.crew.workers[place].answer())

    def step(self, pieces: Mapping[str, Piece], ctis: Mapping[str, int]) -> list[Piece]:
        try:
            batch, cti = self._stepped(pieces, ctis)
            early, self._early, self._ctis = self._early, [], dict(ctis)
            return [Piece(JoinedBatches([*early, batch]) if any(map(len, early)) else batch, cti)]
        except BaseException as error:  # the session has failed, and answers may be on their way
            try:
                if isinstance(error, UserCodeError):
                    self.crew.settle()
            finally:
                self.crew.release()
            raise

    def _stepped(self, pieces: Mapping[str, Piece], ctis: Mapping[str, int], read: PartsOf | None = None) -> Piece:
        ending = any(operator.ending for operator in self.operators)
        found: dict[int, ShardOutput] = {}
        for stage in self.running:
            for each in stage.stage.inputs:
                if isinstance(each.origin, Source):
                    name = each.origin.source
                    batch = pieces[name].batch if name in pieces else EMPTY
                    found[id(each.origin)] = ShardOutput(batch, ctis[name], MIN_TIME)
                elif len(found[id(each.origin)].batch):
                    sent = found[id(each.origin)]
                    found[id(each.origin)] = sent._replace(batch=_spelled(sent.batch))
            mine = None if read is None or not stage.read else {place: read[place] for place in read if place[0] == stage.number}
            found[id(stage.stage)] = stage.take(self._answers(stage, stage.steps(found, mine, ending, self._at_once)))
        last = found[id(self.running[-1].stage)]
        self._final = last.final
        return Piece(last.batch, last.cti)

    def _answers(self, stage: RunningStage, steps: Iterator[ShardStep]) -> Iterator[Mapping[int, ShardOutput]]:
        """Yield the answers of shards to steps: of those in workers, some steps are on their way at a time."""
        if stage.is_here:
            for step in steps:
                yield self._here.step(step)
            return
        asked: list[list[int]] = []
        for step in steps:
            rows: dict[int, dict[int, Mapping[str, Batch]]] = defaultdict(dict)
            for shard, each in step.rows.items():
                rows[self._worker_of(shard)][shard] = each
            for place, mine in rows.items():
                self.crew.workers[place].ask("step", step._replace(rows=mine))
            asked.append(list(rows))
            if len(asked) > _AHEAD:
                yield self._answer(asked.pop(0))
        for places in asked:
            yield self._answer(places)

    def _answer(self, places: list[int]) -> dict[int, ShardOutput]:
        found: dict[int, ShardOutput] = {}
        for place in places:
            self._take_due(place)
            found.update(self.crew.workers[place].answer())
        return found

    def final_frontier(self, ctis: Mapping[str, int], finals: Mapping[str, int] | None = None) -> int:
        return self._final

    def snapshot(self, types: Iterable[type], trust: bool) -> dict[Place, bytes]:
        """Return the state of each shard."""
        found = dict(self._here.snapshot(types, trust))
        for states in self.crew.ask_all("snapshot", tuple(types), trust):
            found.update(states)
        return found

    def figures(self, sizes: bool) -> list[dict[str, dict[str, int]]]:
        """Return the figures of the operators of each shard, none of those whose workers are gone or have been given back."""
        there: list[Any] = []
        if self.crew.release.alive:
            with suppress(WorkerError):  # the next push tells of it
                there = self.crew.ask_all("figures", sizes)
        return [*self._here.figures(sizes), *(each for figures in there for each in figures)]


def _spelled(batch: Batch) -> Batch:
    """Return rows with ids that refer to no operator of their stage."""
    return batch if isinstance(batch.ids, np.ndarray) else batch.with_ids(object_column(batch.ids.tolist()))
