"""Scan: a stateful user-defined operator over rows in order of (LE, payload, RE)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.operator import Kept, Operator
from streamdsl.engine.order import by_columns
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.table import Rows, flatnonzero, payload_table
from streamdsl.plan.node import Scan
from streamdsl.temporal.payload import AS_THEY_ARE, payload_key, payload_order
from streamdsl.temporal.time import MIN_TIME, Ticks
from streamdsl.udm.stream_operator import UDSO, taken

R = TypeVar("R")

MARK_EVERY: Final = 32
"""The state is kept after every so many rows, so that later ones can be recomputed from there."""
_CREDIT_PER_STEP: Final = 1024
"""The cleanup credit of a step, in rows that may be scanned."""


class NoState(Enum):
    """Stands for a state that is not kept."""

    KEPT = "no state"


_NONE: Final = NoState.KEPT
Numbers: TypeAlias = int | list[int]
"""The numbers of a row's results: the first, or all where they do not follow on it."""


@dataclass(slots=True, eq=False)
class Line:
    """The rows of a group in order, in columns: their results, the numbers of these, and the state after a row if it is kept.

    `base` is the state before the rows from `settled` on: before these, no other row can be inserted. `tail` is the state after
    all rows.
    """

    base: Any
    tail: Any
    settled: int = 0
    is_idle: bool = False
    """Whether there are no rows, but a state that must be kept."""
    le: list[int] = field(default_factory=list)
    re: list[int] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)

    def columns(self) -> tuple[list[Any], ...]:
        """Return all columns."""
        return self.le, self.re, self.payloads, self.results, self.numbers, self.states

    def like(self, le: int, payload: Any) -> tuple[int, int]:
        """Return the range of rows with an LE and a payload, or where they would be inserted."""
        first, last = bisect_left(self.le, le), bisect_right(self.le, le)
        if first == last:
            return first, first
        place = payload_order(payload)
        first = bisect_left(self.payloads, place, first, last, key=payload_order)
        return first, bisect_right(self.payloads, place, first, last, key=payload_order)

    def put(self, place: int, le: int, re: int, payload: Any) -> None:
        """Insert a row, without results."""
        for column, value in zip(self.columns(), (le, re, payload, [], 0, _NONE), strict=True):
            column.insert(place, value)

    def numbers_of(self, place: int) -> list[int]:
        """Return the numbers of a row's results."""
        numbers = self.numbers[place]
        return list(range(numbers, numbers + len(self.results[place]))) if type(numbers) is int else numbers  # type: ignore[return-value]


class ResultChange(NamedTuple):
    """A result that is inserted, retracted, or ends elsewhere."""

    number: int
    le: int
    re_old: int
    re_new: int
    payload: Any
    group: int | None


class ScanOperator(Operator):
    """Rows that are appended to their group continue from the last state. Any other change recomputes what comes after it.

    Recomputation begins at the nearest state that is kept. Results have numbers of their own, which are never used again.
    """

    kind = "scan (in order)"
    numbers_rows = True

    def __init__(self, label: str, node: Scan) -> None:
        super().__init__(label)
        self.module = node.module
        self.lines: dict[int | None, Line] = {}
        self._n_results = 0
        self._n_rows = 0
        self._cleanup_credit = 0
        self._cti = MIN_TIME

    @property
    def _ages(self) -> bool:
        """Whether a state may become as a new one while nothing happens to its group."""
        return type(self.module).fresh_from is not UDSO.fresh_from

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_same_ends(inputs[0], self.cti)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        batch = batch.changed()
        if not len(batch):
            return EMPTY
        self._cleanup_credit += 2 * len(batch)
        order = by_columns(batch.table, batch.le if batch.keys is None else batch.keys, batch.le)
        return self._taken(batch if order is None else batch.take(order))

    def _taken(self, batch: Batch) -> Batch:
        """Apply changes that are in order of group, LE and payload, and return the changes of results."""
        groups, les, res, payloads = batch.group_keys(), batch.le.tolist(), batch.re_new.tolist(), batch.table.payloads()
        comes, ends = batch.re_old == batch.le, batch.re_old.tolist()
        firsts = [0]
        if batch.keys is not None:
            firsts += (flatnonzero(batch.keys[1:] != batch.keys[:-1]) + 1).tolist()
        tied = batch.le[1:] == batch.le[:-1]
        if batch.keys is not None:
            tied &= batch.keys[1:] == batch.keys[:-1]
        for row in flatnonzero(tied).tolist():  # equal rows share a payload, and are in order of RE
            comes[row] &= payload_order(payloads[row]) != payload_order(payloads[row + 1])
        all_come = np.logical_and.reduceat(comes, firsts).tolist()
        changed: list[ResultChange] = []
        results: list[list[Any]] = []
        behind: list[tuple[Line, int, int]] = []
        for first, last, only_new in zip(firsts, [*firsts[1:], len(les)], all_come, strict=True):
            group = groups[first]
            line = self._line(group)
            if only_new and (not line.le or line.le[-1] < les[first]):
                behind.append((line, first, last))
                results += self._append(line, les[first:last], payloads[first:last])
                line.re += res[first:last]
            else:
                rows = list(zip(les[first:last], ends[first:last], res[first:last], payloads[first:last], strict=True))
                changed += self._recompute(line, group, rows)
                results += [[]] * (last - first)
        return Batch.concat([self._of(changed), self._append_results(batch, behind, results)])

    def _line(self, group: int | None) -> Line:
        line = self.lines.get(group)
        if line is None:
            line = self.lines[group] = Line(*(self._called(self.module.create_state) for _ in range(2)))
        line.is_idle = False
        return line

    def _append(self, line: Line, les: list[int], payloads: list[Any]) -> list[list[Any]]:
        """Append rows to a group, and return their results."""
        module, state, count = self.module, line.tail, len(line.le)
        process, results = module.process, []
        self.udm_calls += len(les)
        states: list[Any] = [_NONE] * len(les)
        next_mark = MARK_EVERY - 1 - count % MARK_EVERY
        at = 0
        try:
            for start in range(next_mark - MARK_EVERY + 1, len(les), MARK_EVERY):
                stop = min(start + MARK_EVERY, len(les))
                for at in range(max(start, 0), stop):
                    state, found = taken(module, process(state, payloads[at], les[at]))
                    results.append(found)
                if stop == start + MARK_EVERY:
                    states[stop - 1] = self._called(module.copy_state, state)
        except StreamDslError:
            raise
        except Exception as error:
            raise UserCodeError(error, operator=self.label, le=les[at], payloads=(payloads[at],)) from error
        line.tail = state
        line.le += les
        line.payloads += payloads
        line.results += results
        line.states += states
        self._n_rows += len(les)
        return results

    def _append_results(self, batch: Batch, behind: Sequence[tuple[Line, int, int]], results: list[list[Any]]) -> Batch:
        """Return the results of appended rows, with numbers of their own."""
        sizes = np.fromiter(map(len, results), dtype=np.int64, count=len(results))
        stops = np.cumsum(sizes)
        numbers = (self._n_results + stops - sizes).tolist()
        for line, first, last in behind:
            line.numbers += numbers[first:last]
        count = int(stops[-1])
        if not count:
            return EMPTY
        rows = np.repeat(np.arange(len(results)), sizes)
        ids = np.arange(self._n_results, self._n_results + count)
        self._n_results += count
        le, groups = batch.le[rows], None if batch.keys is None else batch.keys[rows]
        return self._batch(ids, le, le, batch.re_new[rows], list(chain.from_iterable(results)), groups)

    def _of(self, changed: list[ResultChange]) -> Batch:
        """Return changes of results, retractions before insertions."""
        if not changed:
            return EMPTY
        changed.sort(key=lambda change: change.re_old == change.le)
        numbers, le, re_old, re_new, payloads, groups = zip(*changed, strict=True)
        at, starts, was, ends = (np.array(each, dtype=np.int64) for each in (numbers, le, re_old, re_new))
        return self._batch(at, starts, was, ends, payloads, np.array(groups, dtype=np.int64) if self.is_grouped else None)

    def _batch(
        self, numbers: Rows, le: Ticks, re_old: Ticks, re_new: Ticks, payloads: Sequence[Any], groups: Rows | None
    ) -> Batch:
        ids = VersionedIds(WindowIds(self.label, None, numbers), np.zeros(len(numbers), dtype=np.int64))
        return Batch(ids, le, re_old, re_new, payload_table(payloads), groups)

    def _recompute(self, line: Line, group: int | None, rows: Sequence[tuple[int, int, int, Any]]) -> list[ResultChange]:
        """Apply changed rows, which are in order; return the changes of the group's results."""
        start = bisect_left(line.le, rows[0][0])
        shown, count, again = line.re[start:], len(line.le), None
        changed: list[ResultChange] = []
        touched: set[int] = set()
        for le, re_old, re_new, payload in rows:
            first, last = line.like(le, payload)
            ends = line.re[first:last]
            if re_old > le:
                ends.remove(re_old)
            if re_new > le:
                insort(ends, re_new)
            if len(ends) > last - first:
                line.put(last, le, re_new, line.payloads[first] if first < last else payload)
                shown.insert(last - start, le)
                self._n_rows += 1
            elif len(ends) < last - first:
                end = shown.pop(last - 1 - start)
                gone = zip(line.numbers_of(last - 1), line.results[last - 1], strict=True)
                changed += [ResultChange(number, le, end, le, result, group) for number, result in gone]
                for column in line.columns():
                    del column[last - 1]
                self._n_rows -= 1
            else:
                touched.update(range(first, last))
            if len(ends) != last - first:
                again = first if again is None else min(first, again)
            line.re[first : first + len(ends)] = ends
        if again is not None:
            changed += self._rerun(line, group, again, shown, start, count)
        for place in sorted(touched) if again is None else range(start, again):
            was, re = shown[place - start], line.re[place]
            if was != re:
                known = zip(line.numbers_of(place), line.results[place], strict=True)
                changed += [ResultChange(number, line.le[place], was, re, result, group) for number, result in known]
        return changed

    def _rerun(self, line: Line, group: int | None, first: int, shown: list[int], start: int, count: int) -> list[ResultChange]:
        """Run the module over a group's rows from a place on, and return the changes of their results.

        `shown` is where the results of the rows from `start` on end, of which there were so many.
        """
        changed: list[ResultChange] = []
        state = line.tail if first == count else self._state_before(line, first)
        for place in range(first, len(line.le)):
            le, re, was, before = line.le[place], line.re[place], shown[place - start], line.results[place]
            state, results = self._step(state, le, line.payloads[place])
            line.states[place] = self._called(self.module.copy_state, state) if (place + 1) % MARK_EVERY == 0 else _NONE
            numbers = line.numbers_of(place)
            stays = len(results) == len(before) and all(map(_are_same, before, results))
            if stays and was == re:
                continue
            for n, (number, result) in enumerate(zip(numbers, before, strict=True)):
                if n < len(results) and _are_same(result, results[n]):
                    results[n] = result
                    changed.append(ResultChange(number, le, was, re, result, group))
                else:
                    changed.append(ResultChange(number, le, was, le, result, group))
                    if n < len(results):
                        numbers[n] = -1
            numbers = [*numbers[: len(results)], *([-1] * (len(results) - len(numbers)))]
            for n, number in enumerate(numbers):
                if number < 0:
                    numbers[n], self._n_results = self._n_results, self._n_results + 1
                    changed.append(ResultChange(numbers[n], le, le, re, results[n], group))
            line.results[place], line.numbers[place] = results, numbers
        line.tail = state
        return [change for change in changed if change.re_old != change.re_new]

    def _state_before(self, line: Line, first: int) -> Any:
        """Return the state before a place."""
        known = first - 1
        while known >= line.settled and line.states[known] is _NONE:
            known -= 1
        state = self._called(self.module.copy_state, line.states[known] if known >= line.settled else line.base)
        for place in range(max(known + 1, line.settled), first):
            state, _ = self._step(state, line.le[place], line.payloads[place])
        return state

    def _step(self, state: Any, le: int, payload: Any) -> tuple[Any, list[Any]]:
        return self._called(lambda: taken(self.module, self.module.process(state, payload, le)), row=(le, payload))

    def _called(self, call: Callable[..., R], *arguments: Any, row: tuple[int, Any] | None = None) -> R:
        self.udm_calls += 1
        try:
            return call(*arguments)
        except StreamDslError:
            raise
        except Exception as error:
            le, payloads = (None, ()) if row is None else (row[0], row[1:])
            raise UserCodeError(error, operator=self.label, le=le, payloads=payloads) from error

    def forget(self, cti: int) -> None:
        self._cti = cti
        self._cleanup_credit += _CREDIT_PER_STEP
        if self._cleanup_credit >= self._n_rows + len(self.lines):
            self._sweep()

    def flush_deferred(self) -> None:
        if self._cleanup_credit:  # else no CTI has risen since the last sweep, and the module would be asked the same again
            self._sweep()

    def _sweep(self) -> None:
        """Drop rows that are final, and groups whose state need not be kept."""
        self._cleanup_credit = self._n_rows = 0
        for group, line in [each for each in self.lines.items() if self._ages or not each[1].is_idle]:
            if not line.is_idle:
                self._advance_base(line)
                self._n_rows += len(line.le)
                line.is_idle = not line.le
            if line.is_idle and self._is_as_new(line.base):
                del self.lines[group]

    def _is_as_new(self, state: Any) -> bool:
        """Say whether the rows that may still come go on from a state as they would from a new one."""
        if self._called(self.module.is_empty, state):
            return True
        fresh = self._called(self.module.fresh_from, state) if self._ages else None
        return fresh is not None and fresh <= self._cti

    def _advance_base(self, line: Line) -> None:
        """Advance a group's base as far as a known state is final, and drop the rows before it that have ended."""
        settled = bisect_left(line.le, self._cti)
        if settled == len(line.le) > line.settled:
            line.base = self._called(self.module.copy_state, line.tail)
        else:
            while settled > line.settled and line.states[settled - 1] is _NONE:
                settled -= 1
            if settled > line.settled:
                line.base = line.states[settled - 1]
        line.settled = max(settled, line.settled)
        line.states[: line.settled] = [_NONE] * line.settled
        kept = [place for place, re in enumerate(line.re[: line.settled]) if re >= self._cti]
        for column in line.columns():
            column[: line.settled] = [column[place] for place in kept]
        line.settled = len(kept)

    def held_groups(self) -> Iterable[int | None]:
        return self.lines

    def kept(self) -> Iterator[Kept]:
        return (Kept(group, None, self.module.label, line.tail) for group, line in self.lines.items())

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": sum(len(line.le) for line in self.lines.values())}


def _are_same(one: Any, other: Any) -> bool:
    """Say whether two results are equal as payloads."""
    kind = type(one)
    return bool(one == other) if kind is type(other) and kind in AS_THEY_ARE else payload_key(one) == payload_key(other)
