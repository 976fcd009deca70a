"""Scan: a stream operator with a state over rows in order of (LE, payload, RE)."""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from sortedcontainers import SortedDict

from streamdsl.engine.batch import EMPTY, Batch, payload_table
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.operator import Operator
from streamdsl.engine.store import PayloadStore, SlotChange
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.plan.node import Scan
from streamdsl.temporal.payload import payload_key, payload_order
from streamdsl.udm.stream_operator import processed

R = TypeVar("R")
Place: TypeAlias = tuple[int, tuple[Any, ...]]
"""Where a row stands in the order: its LE, and its payload's place."""

MARK_EVERY: Final = 32
"""After so many places the state is kept, and later ones can be computed anew from there."""


@dataclass(slots=True, eq=False)
class Shown:
    """A result that is out, and its slot."""

    payload: Any
    key: Hashable
    slot: int = -1


@dataclass(slots=True)
class Entry:
    """The rows of one LE and payload: their REs in order, and the results of each."""

    payload: Any
    ends: list[int] = field(default_factory=list)
    results: list[list[Shown]] = field(default_factory=list)

    def rows(self) -> dict[tuple[int, int, Shown], int]:
        """Return the results by their numbers, and where they end."""
        return {(i, j, shown): self.ends[i] for i, row in enumerate(self.results) for j, shown in enumerate(row)}


@dataclass(slots=True)
class Line:
    """The rows of a group in order, and states: `base` after the `settled` ones, `marks` after some places, `tail` after all."""

    base: Any
    tail: Any
    settled: Place | None = None
    entries: Any = field(default_factory=SortedDict)
    marks: Any = field(default_factory=SortedDict)


class Touched(NamedTuple):
    """An entry that a change may have changed, and what was out of it before."""

    entry: Entry
    before: dict[tuple[int, int, Shown], int]


Changes: TypeAlias = dict[tuple[int | None, Place], Touched]


class ScanOperator(Operator):
    """A change computes anew what comes after it in its group, from the nearest state that is kept before it."""

    kind = "scan (in order)"

    def __init__(self, label: str, node: Scan) -> None:
        super().__init__(label)
        self.module = node.module
        self.lines: dict[int | None, Line] = {}
        self.store = PayloadStore()
        self._unsettled: set[int | None] = set()
        self._deaths: list[tuple[int, int, int | None, Place]] = []
        self._tickets = itertools.count()

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_same_ends(inputs[0], self.cti)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        batch = batch.changed()
        if not len(batch):
            return EMPTY
        touched: Changes = {}
        for group, first in self._take(batch, touched).items():
            self._redo(group, first, touched)
        changes = self._changes(touched)
        out = self.store.batch(changes, self.is_grouped)
        self.store.free([change.slot for change in changes if change.re_new == change.le])
        return out

    def _take(self, batch: Batch, touched: Changes) -> dict[int | None, Place]:
        """Put rows in, take them out, change their ends; return from where on each group is to be computed anew."""
        first: dict[int | None, Place] = {}
        columns = (batch.group_keys(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist(), batch.table.payloads())
        for group, le, re_old, re_new, payload in zip(*columns, strict=True):
            place = (le, payload_order(payload))
            entry = self._line(group).entries.setdefault(place, Entry(payload))
            _touch(touched, (group, place), entry)
            if re_old > le:
                entry.ends.remove(re_old)
            if re_new > le:
                bisect.insort(entry.ends, re_new)
                heapq.heappush(self._deaths, (re_new, next(self._tickets), group, place))
            if (re_old > le) != (re_new > le):
                first[group] = min(first.get(group, place), place)
        return first

    def _line(self, group: int | None) -> Line:
        if group not in self.lines:
            self.lines[group] = Line(*(self._called(self.module.create_state) for _ in range(2)))
        return self.lines[group]

    def _redo(self, group: int | None, first: Place, touched: Changes) -> None:
        """Run the module over a group's rows from a place on."""
        line = self.lines[group]
        state = self._state_before(line, first)
        for n, place in enumerate(list(line.entries.irange(minimum=first)), 1):
            entry = line.entries[place]
            _touch(touched, (group, place), entry)
            state = self._run(state, place[0], entry)
            if not entry.ends:
                del line.entries[place]
            elif n % MARK_EVERY == 0 or len(line.entries) % MARK_EVERY == 0:
                line.marks[place] = self._called(self.module.copy_state, state)
        line.tail = state
        self._unsettled.add(group)

    def _state_before(self, line: Line, first: Place) -> Any:
        """Return the state before a place; those that were kept after it no longer count."""
        if first == line.entries.peekitem()[0] and not line.entries[first].results:
            return line.tail
        for place in list(line.marks.irange(minimum=first)):
            del line.marks[place]
        mark = next(line.marks.irange(maximum=first, reverse=True), None)
        state = self._called(self.module.copy_state, line.base if mark is None else line.marks[mark])
        known = line.settled if mark is None else mark
        for place in line.entries.irange(minimum=known, maximum=first, inclusive=(False, False)):
            for _ in line.entries[place].ends:
                state, _ = self._step(state, place[0], line.entries[place].payload)
        return state

    def _run(self, state: Any, le: int, entry: Entry) -> Any:
        """Compute an entry's results anew, and return the state after it; results that are as they were stay."""
        before, entry.results = entry.results, []
        for n, _ in enumerate(entry.ends):
            state, payloads = self._step(state, le, entry.payload)
            fresh = [Shown(payload, payload_key(payload)) for payload in payloads]
            known = before[n] if n < len(before) else []
            kept = [old if old.key == new.key else new for old, new in zip(known, fresh, strict=False)]
            entry.results.append([*kept, *fresh[len(kept) :]])
        return state

    def _changes(self, touched: Changes) -> list[SlotChange]:
        now = {where: change.entry.rows() for where, change in touched.items()}
        fresh = [shown for rows in now.values() for _, _, shown in rows if shown.slot < 0]
        for shown, slot in zip(fresh, self.store.put(payload_table([shown.payload for shown in fresh])), strict=True):
            shown.slot = slot
        return [
            SlotChange((self.label, *where, i, j), where[1][0], *ends, shown.slot, where[0])
            for where, (_, before) in touched.items()
            for (i, j, shown), ends in _ends(before, now[where], where[1][0])
        ]

    def _step(self, state: Any, le: int, payload: Any) -> tuple[Any, list[Any]]:
        return self._called(processed, self.module, state, payload, le, event=(le, payload))

    def _called(self, call: Callable[..., R], *arguments: Any, event: object = None) -> R:
        self.udm_calls += 1
        try:
            return call(*arguments)
        except StreamDslError:
            raise
        except Exception as error:
            raise UserCodeError(error, operator=self.label, event=event) from error

    def forget(self, cti: int) -> None:
        freed: list[int] = []
        for group in list(self._unsettled):
            freed += self._settle(group, cti)
        while self._deaths and self._deaths[0][0] < cti:
            _, _, group, place = heapq.heappop(self._deaths)
            line = self.lines.get(group)
            if line is not None and place in line.entries and line.settled is not None and place <= line.settled:
                freed += self._buried(line, place, cti)
                self._leave(group)
        self.store.free(freed)

    def _settle(self, group: int | None, cti: int) -> list[int]:
        """Move a group's base as far as a state is known that can no longer change; return the slots that get free."""
        line = self.lines[group]
        last = line.entries.peekitem()[0] if line.entries else None
        if last is None or last[0] < cti:
            self._unsettled.discard(group)
            place, line.base = last, self._called(self.module.copy_state, line.tail)
        else:
            place = next(line.marks.irange(maximum=(cti,), reverse=True), None)
            line.base = line.base if place is None else line.marks[place]
        if place is None:
            self._leave(group)
            return []
        for mark in list(line.marks.irange(maximum=place)):
            del line.marks[mark]
        passed = list(line.entries.irange(minimum=line.settled, maximum=place, inclusive=(False, True)))
        line.settled = place
        freed = [slot for passing in passed for slot in self._buried(line, passing, cti)]
        self._leave(group)
        return freed

    @staticmethod
    def _buried(line: Line, place: Place, cti: int) -> list[int]:
        """Drop a settled entry if none of its rows can change any more; return the slots that get free."""
        entry = line.entries[place]
        if entry.ends[-1] >= cti:
            return []
        del line.entries[place]
        return [shown.slot for row in entry.results for shown in row]

    def _leave(self, group: int | None) -> None:
        line = self.lines[group]
        if not line.entries and group not in self._unsettled and self._called(self.module.is_empty, line.base):
            del self.lines[group]

    def held_groups(self) -> Iterable[int | None]:
        return self.lines

    def state(self) -> dict[str, int]:
        events = sum(len(entry.ends) for line in self.lines.values() for entry in line.entries.values())
        return {"windows": 0, "events": events}


def _touch(touched: Changes, where: tuple[int | None, Place], entry: Entry) -> None:
    if where not in touched:
        touched[where] = Touched(entry, entry.rows())


def _ends(was: dict[R, int], now: dict[R, int], le: int) -> Iterator[tuple[R, tuple[int, int]]]:
    """Yield each row that was there or is, with where it ended and where it ends; `le` where it is not there."""
    for row in {**was, **now}:
        yield row, (was.get(row, le), now.get(row, le))
