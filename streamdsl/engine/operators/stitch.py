"""Stitch: rows with equal payloads that meet become one row."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.engine.store import PayloadStore, SlotChange
from streamdsl.expr import key_values
from streamdsl.expr.nodes import Whole
from streamdsl.expr.table import flatnonzero
from streamdsl.plan.node import Stitch
from streamdsl.temporal import INFINITY
from streamdsl.temporal.change import pair

Value = tuple[Any, Hashable]
"""The group that a row is in, and its payload's key."""


@dataclass(slots=True, eq=False)
class Link:
    """A row in its chain. The first one knows where the chain starts, and the id of the output row that stands for it.

    `joined` is the LE of the row before it that has left the chain, INFINITY if there was none.
    """

    id: Hashable
    le: int
    re: int
    slot: int
    start: int
    joined: int = INFINITY
    before: Link | None = None
    after: Link | None = None
    out: Hashable = None


class Chain(NamedTuple):
    """A chain as an output row."""

    le: int
    re: int
    key: None
    head: Link
    id: Hashable


@dataclass(slots=True)
class Line:
    """The rows of one payload, by id and LE, and by where they start and end."""

    rows: dict[tuple[Hashable, int], Link] = field(default_factory=dict)
    starts: dict[int, list[Link]] = field(default_factory=dict)
    ends: dict[int, list[Link]] = field(default_factory=dict)

    def meeting(self, times: Iterable[int]) -> list[Link]:
        """Return the rows that start or end at these times."""
        return [link for time in times for link in (*self.ends.get(time, ()), *self.starts.get(time, ()))]

    def add(self, link: Link) -> None:
        """Add a row."""
        self.rows[link.id, link.le] = link
        self.starts.setdefault(link.le, []).append(link)
        self.ends.setdefault(link.re, []).append(link)

    def remove(self, link: Link) -> None:
        """Remove a row, and its bonds with it."""
        del self.rows[link.id, link.le]
        _drop(self.starts, link.le, link)
        _drop(self.ends, link.re, link)
        if link.before is not None:
            _part(link.before, link)
        if link.after is not None:
            _part(link, link.after)

    def bind(self, time: int) -> None:
        """Join the rows that end at a time, in order of LE, with those that start there, in order of RE."""
        ending, starting = self.ends.get(time, []), sorted(self.starts.get(time, []), key=lambda link: link.re)
        past = sorted((link.joined, link.start) for link in starting)
        for link, (joined, start) in zip(starting, past, strict=True):
            link.joined, link.start = joined, start
        for link in ending:
            if link.after is not None:
                _part(link, link.after)
        for link in starting:
            if link.before is not None:
                _part(link.before, link)
        for earlier, later in zip(sorted(ending, key=lambda link: link.le), starting, strict=False):
            earlier.after, later.before = later, earlier


def _part(earlier: Link, later: Link) -> None:
    earlier.after, later.before = None, None


def _drop(places: dict[int, list[Link]], time: int, link: Link) -> None:
    rows = places[time]
    rows.remove(link)
    if not rows:
        del places[time]


class StitchOperator(Operator):
    """Per payload the chains of rows that meet. A change touches the chains that meet where it starts and ends.

    Rows that can no longer change are taken out of their chain, whose next row then knows where the chain starts.
    """

    kind = "stitch (indexed)"

    def __init__(self, label: str, node: Stitch) -> None:
        super().__init__(label)
        self.lines: dict[Value, Line] = {}
        self.store = PayloadStore()
        self._deaths: list[tuple[int, int, Value, Link]] = []
        self._tickets = itertools.count()
        self._numbers = itertools.count()

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        batch = batch.changed()
        if not len(batch):
            return EMPTY
        slots = iter(self.store.put(batch.table.take(flatnonzero(batch.re_old == batch.le))))
        columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist())
        by_value: dict[Value, list[tuple[Hashable, int, int, int, int]]] = {}
        keys = zip(batch.group_keys(), key_values(Whole(), inputs_of(batch)), strict=True)
        for id, le, re_old, re_new, value in zip(*columns, keys, strict=True):
            slot = next(slots) if re_old == le else -1
            by_value.setdefault(value, []).append((id, le, re_old, re_new, slot))
        freed: list[int] = []
        changes = [change for value, moves in by_value.items() for change in self._redo(value, moves, freed)]
        out = self.store.batch(changes, self.is_grouped)
        self.store.free(freed)
        return out

    def _redo(self, value: Value, moves: list[tuple[Hashable, int, int, int, int]], freed: list[int]) -> list[SlotChange]:
        line = self.lines.setdefault(value, Line())
        times = sorted({time for _, *ends, _ in moves for time in ends if time < INFINITY})
        moved = [line.rows[id, le] for id, le, re_old, _, _ in moves if (id, le) in line.rows]
        touched = [*line.meeting(times), *moved]
        gone = _chains(touched)
        for chain in gone:
            chain.head.out = None
        for id, le, re_old, re_new, slot in moves:
            self._move(value, line, id, le, re_old, re_new, slot, freed)
        for time in times:
            line.bind(time)
        there = [link for link in touched if line.rows.get((link.id, link.le)) is link]
        fresh = _chains([*there, *line.meeting(times), *(line.rows[m[0], m[1]] for m in moves if (m[0], m[1]) in line.rows)])
        if not line.rows:
            del self.lines[value]
        return [self._change(before, after, value[0]) for before, after in pair(gone, fresh)]

    def _move(
        self, value: Value, line: Line, id: Hashable, le: int, re_old: int, re_new: int, slot: int, freed: list[int]
    ) -> None:
        if re_old > le:
            link = line.rows[id, le]
            line.remove(link)
        else:
            link = Link(id, le, re_new, slot, le)
        if re_new == le:
            freed.append(link.slot)
            return
        link.re = re_new
        line.add(link)
        heapq.heappush(self._deaths, (re_new, next(self._tickets), value, link))

    def _change(self, before: Chain | None, after: Chain | None, group: Any) -> SlotChange:
        if after is None:
            assert before is not None
            return SlotChange(before.id, before.le, before.re, before.le, before.head.slot, group)
        after.head.out = before.id if before else (self.label, next(self._numbers))
        return SlotChange(after.head.out, after.le, before.re if before else after.le, after.re, after.head.slot, group)

    def forget(self, cti: int) -> None:
        freed = []
        while self._deaths and self._deaths[0][0] < cti:
            re, _, value, link = heapq.heappop(self._deaths)
            line = self.lines.get(value)
            if line is None or link.re != re or line.rows.get((link.id, link.le)) is not link:
                continue
            after = link.after
            if after is not None:
                after.start, after.out, after.joined = link.start, link.out, link.le
            line.remove(link)
            freed.append(link.slot)
            if not line.rows:
                del self.lines[value]
        self.store.free(freed)

    def held_groups(self) -> Iterable[int | None]:
        return (group for group, _ in self.lines)

    def state(self) -> dict[str, int]:
        events = sum(len(line.rows) for line in self.lines.values())
        return {"windows": 0, "events": events}


def _chains(links: Iterable[Link]) -> list[Chain]:
    """Return the chains that some rows are in."""
    heads: dict[int, Link] = {}
    for link in links:
        while link.before is not None:
            link = link.before
        heads[id(link)] = link
    return [Chain(head.start, _end(head), None, head, head.out) for head in heads.values()]


def _end(link: Link) -> int:
    while link.after is not None:
        link = link.after
    return link.re
