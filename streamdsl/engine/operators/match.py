"""Pattern matching: runs that rows advance from step to step. A change is replayed from its instant on, while it has effects."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sortedcontainers import SortedDict

from streamdsl.engine.batch import EMPTY, Batch, Changes
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.ids import name
from streamdsl.engine.operator import MatchKey, Operator, inputs_of
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.nodes import Expr
from streamdsl.expr.row_evaluator import holds_row
from streamdsl.expr.table import flatnonzero
from streamdsl.plan.node import Match
from streamdsl.plan.pattern_steps import PatternStep
from streamdsl.temporal import Record, add_time, payload_key, payload_order
from streamdsl.temporal.change import pair


@dataclass(slots=True, eq=False)
class PatternRow:
    """A row that some step may take; for each step, whether the tests over the row alone hold."""

    id: Hashable
    payload: Any
    fits: tuple[bool, ...]
    order: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class PartialMatch:
    """What a partial match has taken since its start, with the positions of the steps. Runs are compared by identity."""

    start: int
    step: int
    taken: tuple[tuple[int, PatternRow], ...]
    record: Record | None = None


@dataclass(slots=True, eq=False)
class Out:
    """An output row: a complete run."""

    le: int
    re: int
    key: Hashable
    run: PartialMatch
    id: Hashable = None


@dataclass(slots=True, eq=False)
class Instant:
    """The rows of a key that start at one time; the runs that are open before and after it, and those that it completes.

    `moves` says what became here of the runs that did not stay as they were, None if they ended. It holds as long as the rows do:
    then `fitting` has those that each step may take, in payload order.
    """

    after: tuple[PartialMatch, ...]
    before: tuple[PartialMatch, ...] = ()
    rows: dict[Hashable, PatternRow] = field(default_factory=dict)
    moves: dict[PartialMatch | None, PartialMatch | None] = field(default_factory=dict)
    fitting: list[list[PatternRow]] | None = None
    out: list[Out] = field(default_factory=list)


@dataclass(slots=True)
class Track:
    """The instants of a key that may still change, and the runs that are open before them."""

    runs: tuple[PartialMatch, ...] = ()
    instants: Any = field(default_factory=SortedDict)

    def runs_before(self, time: int) -> tuple[PartialMatch, ...]:
        """Return the runs that are open before an instant."""
        earlier = next(self.instants.irange(maximum=time, inclusive=(True, False), reverse=True), None)
        return self.runs if earlier is None else self.instants[earlier].after


class MatchOperator(Operator):
    """A change is replayed from its instant on, until the open runs are as before. What starts earlier never changes."""

    kind = "match (runs)"
    numbers_rows = True

    def __init__(self, label: str, node: Match) -> None:
        super().__init__(label)
        self.node = node
        self.steps = (*node.steps, *node.unless)
        self.last = len(node.steps) - 1
        self.reach = [_reachable(node.steps, position) for position in range(-1, len(node.steps))]
        self.unless = range(self.last + 1, len(self.steps))
        self.later = {*self.unless, *itertools.chain(*self.reach[1:])}
        self.tracks: dict[MatchKey, Track] = {}
        self._due: list[tuple[int, int, MatchKey]] = []
        self._tickets = itertools.count()
        self._numbers = itertools.count()

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        came = (batch.re_old == batch.le) & (batch.re_new > batch.le)
        went = (batch.re_new == batch.le) & (batch.re_old > batch.le)
        batch = batch.take(flatnonzero(came | went))
        if not len(batch):
            return EMPTY
        changed = self._take(batch)
        changes = Changes()
        for key, times in changed.items():
            self._follow(key, sorted(times), changes)
        return changes.batch(self.is_grouped)

    def _take(self, batch: Batch) -> dict[MatchKey, set[int]]:
        """Apply changed rows, and return the instants of each key that have changed."""
        changed: dict[MatchKey, set[int]] = {}
        columns = (batch.ids.tolist(), batch.le.tolist(), (batch.re_old == batch.le).tolist(), batch.table.payloads())
        for id, le, comes, payload, key, fits in zip(*columns, self.keys(self.node.key, batch), self._fits(batch), strict=True):
            if not any(fits):
                continue
            track = self.tracks.setdefault(key, Track())
            if le not in track.instants:
                track.instants[le] = Instant(track.runs_before(le))
                heapq.heappush(self._due, (le, next(self._tickets), key))
            instant = track.instants[le]
            if comes:
                instant.rows[id] = PatternRow(id, payload, fits, payload_order(payload))
            else:
                del instant.rows[id]
            instant.fitting = None
            changed.setdefault(key, set()).add(le)
        return changed

    def _fits(self, batch: Batch) -> list[tuple[bool, ...]]:
        """Return for each row and step whether the tests hold; a test is asked where those before it hold."""
        found = np.ones((len(batch), len(self.steps)), dtype=np.bool_)
        for n, step in enumerate(self.steps):
            for test in step.tests:
                rows = flatnonzero(found[:, n])
                part = batch.take(rows)
                found[rows, n] = self.holds(test, inputs_of(part), part)
        return list(map(tuple, found.tolist()))

    def _follow(self, key: MatchKey, changed: Sequence[int], changes: Changes) -> None:
        track = self.tracks[key]
        done: int | None = None
        for first in changed:
            if done is not None and first <= done:
                continue
            runs = track.runs_before(first)
            for time in track.instants.irange(minimum=first):
                instant = track.instants[time]
                known = instant.after
                self._redo(instant, time, runs, key[0], changes)
                runs, done = instant.after, time
                if runs == known:
                    break
        for time in changed:
            if not track.instants[time].rows:
                del track.instants[time]
        self._drop_if_empty(key)

    def _redo(self, instant: Instant, time: int, runs: tuple[PartialMatch, ...], group: Any, changes: Changes) -> None:
        """Advance the runs that are open before an instant by its rows, and emit the differences in complete runs."""
        known: set[PartialMatch | None] = set() if instant.fitting is None else {None, *instant.before}
        if instant.fitting is None:
            rows = sorted(instant.rows.values(), key=lambda row: row.order)
            instant.fitting = [[row for row in rows if row.fits[n]] for n in range(len(self.steps))]
        alive = self._alive(runs, time)
        moves: dict[PartialMatch | None, PartialMatch | None] = {}
        for run in (*(alive if any(instant.fitting[n] for n in self.later) else ()), None):
            if run in known:
                moved = instant.moves.get(run, run)
            else:
                moved = _same(self._moved(instant.fitting, time, run), instant.moves.get(run))
            if moved is not run:
                moves[run] = moved
        followed = [moved for run in (*alive, None) if (moved := moves.get(run, run)) is not None] if moves else alive
        complete = [run for run in followed if run.step == self.last] if moves else []
        still_open = tuple(run for run in followed if run.step != self.last) if complete else tuple(followed)
        if complete and not self.node.overlapping:
            complete, still_open = complete[:1], ()
        instant.moves, instant.before = moves, runs
        instant.after = runs if still_open == runs else still_open
        self._send(instant, time, complete, group, changes)

    def _alive(self, runs: tuple[PartialMatch, ...], time: int) -> tuple[PartialMatch, ...]:
        """Return the runs that an event at this time can still advance. Runs are in order of their starts."""
        return runs[bisect_right(runs, time - self.node.within, key=lambda run: run.start) :]

    def _moved(self, fitting: list[list[PatternRow]], time: int, run: PartialMatch | None) -> PartialMatch | None:
        """Return what an event makes of a run, or of none: it may start one.

        If it does not advance the run, that itself is returned.
        """
        start, position, taken = (time, -1, ()) if run is None else (run.start, run.step, run.taken)
        moved = run
        for n in self.reach[position + 1]:
            rows = self._satisfying(fitting, n, run)
            if rows:
                moved = PartialMatch(start, n, (*taken, *((n, row) for row in (rows if self.steps[n].many else rows[:1]))))
                break
        is_open = moved is not None and moved.step < self.last
        ended = run is not None and is_open and any(self._satisfying(fitting, n, run) for n in self.unless)
        return None if ended else moved

    def _satisfying(self, fitting: list[list[PatternRow]], n: int, run: PartialMatch | None) -> list[PatternRow]:
        """Return the rows that a step can take after what a run has taken, in payload order."""
        rows = fitting[n]
        if rows and self.steps[n].over:
            so_far = self._record(run)
            for test in self.steps[n].over:
                rows = [row for row in rows if self._holds(test, row, so_far)]
        return rows

    def _holds(self, test: Expr, row: PatternRow, so_far: Record) -> bool:
        try:
            return holds_row(test, (row.payload, so_far))
        except StreamDslError:
            raise
        except Exception as error:
            raise UserCodeError(error, operator=self.label, event=name(row.id), payloads=(row.payload,)) from error

    def _record(self, run: PartialMatch | None) -> Record:
        """Return what a run has taken for each step: a payload or None, of a many step a tuple of payloads."""
        if run is not None and run.record is not None:
            return run.record
        found: list[list[Any]] = [[] for _ in self.node.steps]
        for n, row in () if run is None else run.taken:
            found[n].append(row.payload)
        parts = zip(self.node.steps, found, strict=True)
        record = Record((step.name, tuple(rows) if step.many else rows[0] if rows else None) for step, rows in parts)
        if run is not None:
            run.record = record
        return record

    def _send(self, instant: Instant, time: int, complete: list[PartialMatch], group: Any, changes: Changes) -> None:
        if [out.run for out in instant.out] == complete:
            return
        ends = [add_time(run.start, self.node.within) for run in complete]
        fresh = [Out(time, re, payload_key(self._record(run)), run) for run, re in zip(complete, ends, strict=True)]
        for before, after in pair(instant.out, fresh):
            if after is None:
                assert before is not None
                changes.add(before.id, time, before.re, time, self._record(before.run), group)
            else:
                after.id = before.id if before else (self.label, next(self._numbers))
                changes.add(after.id, time, before.re if before else time, after.re, self._record(after.run), group)
        instant.out = fresh

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        """No change moves the end of a row that begins before it."""
        return self.cti

    def forget(self, cti: int) -> None:
        """Drop the instants before a CTI, and of the runs those that no later event can move."""
        keys: dict[MatchKey, None] = {}
        while self._due and self._due[0][0] < cti:
            keys[heapq.heappop(self._due)[2]] = None
        for key in keys:
            track = self.tracks.get(key, Track())
            while track.instants and track.instants.peekitem(0)[0] < cti:
                track.runs = track.instants.popitem(0)[1].after
            track.runs = self._alive(track.runs, cti)
            if track.runs:
                heapq.heappush(self._due, (track.runs[0].start + self.node.within - 1, next(self._tickets), key))
            self._drop_if_empty(key)

    def _drop_if_empty(self, key: MatchKey) -> None:
        track = self.tracks.get(key)
        if track is not None and not track.instants and not track.runs:
            del self.tracks[key]

    def held_groups(self) -> Iterable[int | None]:
        return (group for group, _ in self.tracks)

    def state(self) -> dict[str, int]:
        events = sum(len(instant.rows) for track in self.tracks.values() for instant in track.instants.values())
        events += sum(len(run.taken) for track in self.tracks.values() for run in track.runs)
        return {"windows": 0, "events": events}


def _reachable(steps: Sequence[PatternStep], position: int) -> list[int]:
    """Return the steps that may follow a step, the furthest first, the step itself last."""
    reach = [position] if position >= 0 and steps[position].many else []
    for following in range(position + 1, len(steps)):
        reach.append(following)
        if not steps[following].optional:
            break
    return reach[::-1]


def _same(moved: PartialMatch | None, known: PartialMatch | None) -> PartialMatch | None:
    """Return the run that was known if the other one has taken the same; what is open later is then known too."""
    same = moved is not None and known is not None and (moved.step, moved.taken) == (known.step, known.taken)
    return known if same else moved
