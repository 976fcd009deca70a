"""As-of join: each left row with the matching right rows that start nearest to its own start."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sortedcontainers import SortedDict, SortedSet

from streamdsl.engine.batch import Batch
from streamdsl.engine.index import EventRow
from streamdsl.engine.operator import MatchKey, Operator
from streamdsl.engine.operators.join import PAIR
from streamdsl.engine.store import PayloadStore, SlotChange
from streamdsl.errors import UserCodeError
from streamdsl.expr import Inputs, RowError, project, truth, without_row
from streamdsl.expr.evaluate import evaluate
from streamdsl.expr.table import flatnonzero
from streamdsl.plan.asof import Distance
from streamdsl.plan.node import AsofJoin


@dataclass(slots=True, eq=False)
class Left:
    """A left row with the nearness of its matches, and by right row (None: no match) the slots of its output payloads."""

    row: EventRow
    key: MatchKey
    ticket: int
    is_there: bool = True
    best: Distance | None = None
    out: dict[EventRow | None, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Before:
    """What a left row was before a change, and whether its matches are to be found anew."""

    left: Left
    re: int
    out: dict[EventRow | None, int]
    is_stale: bool = False

    def changes(self) -> Iterator[SlotChange]:
        """Yield one change for each output row that is there, or was."""
        row, group = self.left.row, self.left.key[0]
        now = self.left.out if self.left.is_there else {}
        for right, slot in {**self.out, **now}.items():
            old, new = (self.re if right in self.out else row.le), (row.re if right in now else row.le)
            yield SlotChange((row.id, None if right is None else right.id), row.le, old, new, slot, group)

    def freed(self) -> list[int]:
        """Return the slots of the output rows that are no longer there."""
        return [slot for right, slot in self.out.items() if not self.left.is_there or right not in self.left.out]


@dataclass(slots=True)
class Rows:
    """The rows of one key: the left ones, and the right ones, by LE."""

    left: Any = field(default_factory=SortedDict)
    right: Any = field(default_factory=SortedDict)


class AsofJoinOperator(Operator):
    """A right row that comes or goes changes the left rows to which none is nearer; a left row's end changes its own rows."""

    kind = "asof_join (indexed)"

    def __init__(self, label: str, node: AsofJoin) -> None:
        super().__init__(label)
        self.node = node
        self.near = node.near
        self.pair = node.projection or PAIR
        self.alone = without_row(self.pair, 1)
        self.rows: dict[MatchKey, Rows] = {}
        self.stores = (PayloadStore(), PayloadStore())
        self.shown = PayloadStore()
        self._unsettled: Any = SortedSet()
        self._settling: list[tuple[int, int, Left]] = []
        self._deaths: list[tuple[int, int, Left]] = []
        self._tickets = itertools.count()

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        left, right = batches
        touched: dict[Left, Before] = {}
        self._take_left(left, touched)
        self._take_right(right, touched)
        self._match([left for left, before in touched.items() if before.is_stale and left.is_there])
        changes = [change for before in touched.values() for change in before.changes()]
        out = self.shown.batch(changes, self.is_grouped)
        self.shown.free([slot for before in touched.values() for slot in before.freed()])
        return out

    def _entries(self, side: int, batch: Batch) -> Iterator[tuple[MatchKey, EventRow, int]]:
        """Yield the changed rows of a side; of a known row its id, LE and new RE."""
        batch = batch.changed()
        slots = iter(self.stores[side].put(batch.table.take(flatnonzero(batch.re_old == batch.le))))
        columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist())
        key = (self.node.matching.left_key, self.node.matching.right_key)[side]
        for id, le, re_old, re_new, found in zip(*columns, self.keys(key, batch), strict=True):
            yield found, EventRow(id, le, re_new, next(slots) if re_old == le else None), re_old

    def _take_left(self, batch: Batch, touched: dict[Left, Before]) -> None:
        for key, row, re_old in self._entries(0, batch):
            here = self.rows.setdefault(key, Rows()).left.setdefault(row.le, {})
            is_new = re_old == row.le
            left = here.setdefault(row.id, Left(row, key, next(self._tickets)))
            touched.setdefault(left, Before(left, re_old, dict(left.out), is_new))
            left.row.re = row.re
            if row.re == row.le:
                self._leave(left)
            else:
                heapq.heappush(self._deaths, (row.re, next(self._tickets), left))

    def _take_right(self, batch: Batch, touched: dict[Left, Before]) -> None:
        changed: dict[MatchKey, set[int]] = {}
        for key, row, re_old in self._entries(1, batch):
            rows = self.rows.setdefault(key, Rows())
            if re_old == row.le:
                rows.right.setdefault(row.le, {})[row.id] = row
            elif row.re == row.le:
                gone = _drop(rows.right, row.le, row.id)
                self.stores[1].free([gone.payload])
            else:
                continue
            changed.setdefault(key, set()).add(row.le)
        for key, starts in changed.items():
            for left in self._affected(self.rows[key], sorted(starts)):
                touched.setdefault(left, Before(left, left.row.re, dict(left.out))).is_stale = True

    def _affected(self, rows: Rows, starts: Sequence[int]) -> Iterator[Left]:
        """Yield the left rows that have nothing nearer than the right rows that start here; each looks at its neighbours only."""
        for before, start, after in zip([None, *starts], starts, [*starts[1:], None], strict=False):
            yield from self._concerned(rows, start, rows.left.irange(start, after, inclusive=(True, False)))
            yield from self._concerned(rows, start, rows.left.irange(before, start, inclusive=(False, False), reverse=True))

    def _concerned(self, rows: Rows, start: int, lefts: Iterator[int]) -> Iterator[Left]:
        """Yield the left rows, from the nearest on, to which a right row that starts here is as near as what they have."""
        for le, nearness in self._in_reach(lefts, start, is_left=True):
            concerned = [left for left in rows.left[le].values() if left.best is None or nearness <= left.best]
            yield from concerned
            if not concerned and self.node.matching.where is None:
                return  # what is nearer to these is nearer to all beyond them

    def _in_reach(self, starts: Iterator[int], start: int, is_left: bool) -> Iterator[tuple[int, Distance]]:
        """Yield the starts of one side, from the other side's outwards, with their nearness, as far as there is any."""
        for other in starts:
            nearness = self.near.of(other, start) if is_left else self.near.of(start, other)
            if nearness is None:
                return
            yield other, nearness

    def _match(self, stale: list[Left]) -> None:
        """Find the matches of rows anew."""
        found = self._best(stale)
        wanted = [(left, right) for left, rights in zip(stale, found, strict=True) for right in rights if right not in left.out]
        slots = dict(zip(wanted, self._payloads(wanted), strict=True))
        for left, rights in zip(stale, found, strict=True):
            left.out = {right: slots[left, right] if (left, right) in slots else left.out[right] for right in rights}
            self._unsettled.add((left.row.le, left.ticket))
            heapq.heappush(self._settling, (self.near.settles(left.row.le, left.best), next(self._tickets), left))

    def _best(self, stale: list[Left]) -> list[list[EventRow | None]]:
        """Return the matches of each row: of the right rows of one LE, the nearest that has a match."""
        found: list[list[EventRow | None]] = [[] for _ in stale]
        for left in stale:
            left.best = None
        levels = {n: self._levels(left) for n, left in enumerate(stale)}
        while levels:
            asked = {n: level for n, steps in levels.items() if (level := next(steps, None)) is not None}
            pairs = [(n, right) for n, (_, rights) in asked.items() for right in rights]
            for (n, right), match in zip(pairs, self._matches([(stale[n], right) for n, right in pairs]), strict=True):
                if match:
                    found[n].append(right)
                    stale[n].best = asked[n][0]
            levels = {n: levels[n] for n in asked if not found[n]}
        return [rights or ([None] if self.node.outer else []) for rights in found]

    def _levels(self, left: Left) -> Iterator[tuple[Distance, list[EventRow]]]:
        """Yield the right rows in reach of a row, those of one LE at a time, the nearest first."""
        rights, le = self.rows[left.key].right, left.row.le
        sides = (rights.irange(maximum=le, reverse=True), rights.irange(minimum=le, inclusive=(False, True)))
        reached = [self._in_reach(starts, le, is_left=False) for starts in sides]
        for start, nearness in heapq.merge(*reached, key=lambda step: step[1]):
            yield nearness, list(rights[start].values())

    def _matches(self, pairs: list[tuple[Left, EventRow]]) -> list[bool]:
        where = self.node.matching.where
        if where is None or not pairs:
            return [True] * len(pairs)
        found: list[bool] = self._evaluated(lambda inputs: truth(evaluate(where, inputs)), pairs).tolist()
        return found

    def _payloads(self, wanted: list[tuple[Left, EventRow | None]]) -> list[int]:
        """Store the output payloads of rows with their matches, and return their slots."""
        slots = [-1] * len(wanted)
        pairs = {n: (left, right) for n, (left, right) in enumerate(wanted) if right is not None}
        alone = {n: (left, None) for n, (left, right) in enumerate(wanted) if right is None}
        for rows, expr in ((pairs, self.pair), (alone, self.alone)):
            if rows:
                table = self._evaluated(partial(project, expr), list(rows.values()))
                for n, slot in zip(rows, self.shown.put(table), strict=True):
                    slots[n] = slot
        return slots

    def _evaluated(self, compute: Callable[[Inputs], Any], pairs: Sequence[tuple[Left, EventRow | None]]) -> Any:
        """Return what is computed of left rows with their right rows, or of left rows alone."""
        tables = [self.stores[0].take([left.row.payload for left, _ in pairs])]
        rights = [right.payload for _, right in pairs if right is not None]
        tables += [self.stores[1].take(rights)] if rights else []
        try:
            return compute(Inputs(tuple(tables), len(pairs)))
        except RowError as error:
            left, right = pairs[error.row]
            event = (left.row.id, None if right is None else right.id)
            raise UserCodeError(error.cause, operator=self.label, event=event) from error.cause

    def forget(self, cti: int) -> None:
        for left in [*self._passed(self._settling, cti + 1), *self._passed(self._deaths, cti)]:
            if self.near.settles(left.row.le, left.best) > cti:
                continue
            self._unsettled.discard((left.row.le, left.ticket))
            if left.is_there and left.row.re < cti:
                self._leave(left)
                self.shown.free(list(left.out.values()))
        bound = min([cti, *(le for le, _ in self._unsettled[:1])])
        for key, rows in list(self.rows.items()):
            self._forget_rights(rows, bound)
            if not rows.left and not rows.right:
                del self.rows[key]

    def _forget_rights(self, rows: Rows, bound: int) -> None:
        """Drop the right rows that no left row that starts at the bound or later can have: too far, or another is nearer."""
        first = bound if self.near.direction == "forward" else bound - self.near.tolerance
        if self.node.matching.where is None:
            first = max(first, next(rows.right.irange(maximum=bound, inclusive=(True, False), reverse=True), bound))
        for start in list(rows.right.irange(maximum=first, inclusive=(True, False))):
            self.stores[1].free([row.payload for row in rows.right.pop(start).values()])

    @staticmethod
    def _passed(waiting: list[tuple[int, int, Left]], cti: int) -> Iterator[Left]:
        """Take the rows out of a heap whose time is before `cti`."""
        while waiting and waiting[0][0] < cti:
            yield heapq.heappop(waiting)[2]

    def _leave(self, left: Left) -> None:
        """Let go of a left row."""
        left.is_there = False
        self._unsettled.discard((left.row.le, left.ticket))
        self.stores[0].free([left.row.payload])
        _drop(self.rows[left.key].left, left.row.le, left.row.id)

    def output_cti(self, ctis: list[int]) -> int:
        return min([*ctis, *(int(le) for le, _ in self._unsettled[:1])])

    def held_groups(self) -> Iterable[int | None]:
        return (group for group, _ in self.rows)

    def state(self) -> dict[str, int]:
        sides = [side for rows in self.rows.values() for side in (rows.left, rows.right)]
        events = sum(len(here) for side in sides for here in side.values())
        return {"windows": 0, "events": events, "state_bytes": 300 * events}


def _drop(places: Any, start: int, id: Hashable) -> Any:
    rows = places[start]
    gone = rows.pop(id)
    if not rows:
        del places[start]
    return gone
