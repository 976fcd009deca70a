"""One side of a two-sided operator: the rows that can still meet a partner, in columns, indexed by key and time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import Ids
from streamdsl.engine.sorted.overlap import OverlapIndex, Probe, magnitudes
from streamdsl.engine.sorted.sort_keys import SortKeyEncoding
from streamdsl.engine.sorted.stored_rows import Row, StoredRows
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import MIN_TIME, Ticks

_CREDIT_PER_STEP: Final = 1024
"""The cleanup credit of a step, in rows that may be scanned."""
_LOOK: Final = 4
"""A scan costs at least the credit of this many steps, however few rows there are."""
_LEAST: Final = 16
"""A step of single rows costs less than one in columns, and earns this many times less credit. `n_late` tells such steps."""
_NONE: Final = np.empty(0, dtype=np.intp)


class OverlapPairs(NamedTuple):
    """Pairs of slots, one of each side, with the LE of the overlap and its end before and after the step."""

    mine: Rows
    others: Rows
    le: Ticks
    re_old: Ticks
    re_new: Ticks

    def take(self, rows: Rows) -> OverlapPairs:
        """Return the pairs at these indices, in this order."""
        return self if len(rows) == len(self.le) else OverlapPairs(*(column[rows] for column in self))

    def swapped(self) -> OverlapPairs:
        """Return the pairs with the sides exchanged."""
        return self._replace(mine=self.others, others=self.mine)


def both_of(found: list[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """Concatenate pairs of columns."""
    if len(found) == 1:
        return found[0]
    if not found:
        return _NONE, _NONE
    first, second = map(np.concatenate, zip(*found, strict=True))
    return first, second


class SortedSide:
    """Rows by slot, with an index by key and time.

    `take` begins a step, `end_step` ends it; in between rows have old and new ends.

    A row is dropped when its RE is before the CTIs of both inputs: only then can neither it nor a partner change. Each step earns
    *cleanup credit*; when that pays for a scan, and half of the rows can be dropped, they are. So cleanup costs amortized O(1)
    for each row.
    """

    def __init__(self, encoding: SortKeyEncoding, rows: StoredRows | None = None) -> None:
        self.rows = StoredRows() if rows is None else rows
        self.encoding = encoding
        encoding.rows.append(self.rows)
        self.index = OverlapIndex(self.rows, encoding)
        self.changed: Rows = _NONE
        self._only_new = True
        self._slots: dict[Hashable, int] | None = None
        self.moves = 0
        self._cti = MIN_TIME
        self._cleanup_credit = 0
        self._gone = 0

    def take(self, batch: Batch, numbers_of: Callable[[Batch], Column]) -> None:
        """Apply the changes of a step. `changed` are then their slots."""
        changes = batch.re_old != batch.re_new
        comes = changes if batch.are_insertions else batch.re_old == batch.le
        self._only_new = bool(comes.all() and changes.all())
        if self._only_new:
            self.changed = self._add(batch, numbers_of)
            return
        known = batch.take(flatnonzero(~comes & changes))
        changed = self._change(self._find(known.ids), known.re_new) if len(known) else _NONE
        added = self._add(batch.take(flatnonzero(comes & changes)), numbers_of)
        self.changed = np.concatenate([changed, added])

    def _add(self, batch: Batch, numbers_of: Callable[[Batch], Column]) -> Rows:
        if not len(batch):
            return _NONE
        self._cleanup_credit += 2 * len(batch)
        numbers = numbers_of(batch)
        slots = self.rows.append(batch, numbers)
        self.encoding.follow(numbers, batch.le, batch.re_new)
        if self._slots is not None:
            self._slots.update(zip(batch.ids.tolist(), slots.tolist(), strict=True))
        return slots

    def put(self, batch: Batch, numbers: Column) -> None:
        """Insert more rows in this step."""
        self.changed = np.concatenate([self.changed, self._add(batch, lambda _: numbers)])

    def end(self, slots: Rows, ends: Ticks) -> None:
        """Change the ends of the rows in some other slots in this step."""
        if len(slots):
            self._only_new = False
            self.changed = np.concatenate([self.changed, self._change(slots, ends)])

    def _change(self, slots: Rows, ends: Ticks) -> Rows:
        le, was = self.rows.le.take(slots), self.rows.re.take(slots)
        self.rows.re.put(slots, ends)
        longer = flatnonzero((ends > was) & (slots < self.index.indexed))
        if not len(longer):
            return slots
        was, re = (self.rows.found_until(le, each) for each in (was, ends))
        longer = longer[re[longer] > was[longer]]
        if len(longer):
            slots[longer] = self._reindex(slots[longer])
            self._gone += len(longer)
            self.index.gone(le[longer], was[longer])
        return slots

    def _find(self, ids: Ids) -> Rows:
        """Return the slots of rows by id. The dictionary is made at the first use; of equal ids it has the last."""
        if self._slots is None:
            self._slots = self._slots_by_id()
        return np.fromiter(map(self._slots.__getitem__, ids.tolist()), dtype=np.intp, count=len(ids))

    def _slots_by_id(self) -> dict[Hashable, int]:
        there = flatnonzero(self.rows.ends(np.arange(len(self.rows))) > self.rows.le.values)
        return dict(zip(self.rows.ids(there).tolist(), there.tolist(), strict=True))

    def _reindex(self, slots: Rows) -> Rows:
        """Move rows to new slots, as their magnitude of duration has changed, and return these."""
        ids = self.rows.ids(slots).tolist()
        new = self.rows.again(slots)
        if self._slots is not None:
            self._slots.update(zip(ids, new.tolist(), strict=True))
        return new

    def partners(self, other: SortedSide) -> Iterator[OverlapPairs]:
        """Yield pairs of a changed row here and a row there whose overlap has changed, in parts."""
        if not len(self.changed) or not len(other.rows):
            return
        slots = slice(int(self.changed[0]), None) if self._only_new else self.changed
        probe = Probe(self.rows.numbers.take(slots), self.rows.le.take(slots), self.rows.ends(slots))
        for at, others in other.index.candidates(probe):
            yield self._met(other, probe, at, others)

    def _met(self, other: SortedSide, probe: Probe, at: Rows, others: Rows) -> OverlapPairs:
        """Return the candidates whose lifetimes overlap, before or after."""
        lo, hi, le, re = probe.lo[at], probe.hi[at], other.rows.le.take(others), other.rows.re.take(others)
        was = other.rows.was.take(others) if len(other.changed) else re
        meet = (np.maximum(re, was) > lo) & (le < hi)
        meet &= self.has_key(probe, at, other.rows, others)
        mine = self.changed[at]
        le = np.maximum(lo, le)
        if self._only_new:
            re_old, re_new = le, np.maximum(le, np.minimum(hi, re))
        else:
            re_old = np.maximum(le, np.minimum(self.rows.was.take(mine), was))
            re_new = np.maximum(le, np.minimum(self.rows.re.take(mine), re))
        return OverlapPairs(mine, others, le, re_old, re_new).take(flatnonzero(meet & (re_old != re_new)))

    def has_key(self, probe: Probe, at: Rows, rows: StoredRows, slots: Rows) -> NDArray[np.bool_] | np.bool_:
        """Say which candidates have the key of the probe, and do not just share its block."""
        return probe.numbers[at] == rows.numbers.take(slots) if self.encoding.mixes else np.True_

    def living(self, probe: Probe) -> tuple[Rows, Rows]:
        """Return the pairs of a probe and the slot of a row with its key that now overlaps it."""
        rows = self.rows
        found = []
        for at, slots in self.index.candidates(probe) if len(probe.lo) and len(rows) else ():
            le, re = rows.le.take(slots), rows.re.take(slots)
            meet = le < re
            meet &= le < probe.hi[at]
            meet &= re > probe.lo[at]
            meet &= self.has_key(probe, at, rows, slots)
            found.append((at[meet], slots[meet]))
        return both_of(found)

    def probe_one(self, number: int, lo: int, hi: int) -> list[tuple[int, Row]] | None:
        """Return the rows with a key that overlap `[lo, hi)`, with their slots, between two steps; None if there may be many."""
        slots = self.index.of_one(number, lo, hi)
        return None if slots is None else self.rows.living(slots, number, lo, hi)

    def add_one(self, row: Row, note: Any = None) -> int:
        """Insert a single row, as a step of its own, and return its slot."""
        self._cleanup_credit += 2
        slot = self.rows.add_one(row, note)
        id, le, re, _, number, _ = row
        self.encoding.follow_one(number, le, re)
        self.index.note(slot, number)
        if self._slots is not None:
            self._slots[id] = slot
        return slot

    def end_one(self, slot: int, re: int) -> None:
        """Change the end of a single row, as a step of its own."""
        if slot < self.index.indexed or not self.rows.end_one(slot, re):
            self.end(np.array([slot]), np.array([re]))
            self.end_step()

    def slot_of(self, id: Hashable) -> int:
        """Return the slot of a row."""
        if self._slots is None:
            self._slots = self._slots_by_id()
        return self._slots[id]

    def untouched(self, slots: Rows) -> Rows:
        """Return which rows have not changed in this step."""
        if not len(self.changed):
            return np.arange(len(slots))
        return flatnonzero(self.rows.was.take(slots) == self.rows.re.take(slots))

    def end_step(self) -> None:
        """End a step: drop retracted rows, index rows again that have become much shorter, and forget the old ends."""
        slots, rows, self.changed = self.changed, self.rows, _NONE
        only_new, self._only_new = self._only_new, True
        if not len(slots):
            return
        if only_new:
            rows.was.follow(rows.re, int(slots[0]))
            return
        le, was, re = rows.le.take(slots), rows.was.take(slots), rows.re.take(slots)
        rows.was.put(slots, re)
        was, re = rows.found_until(le, was), rows.found_until(le, re)
        left, indexed = re <= le, slots < self.index.indexed
        shorter = flatnonzero(indexed & ~left & (re < was))
        if not len(shorter) and not left.any():
            return
        moved = shorter[magnitudes(le[shorter], re[shorter]) < magnitudes(le[shorter], was[shorter])]
        if len(moved):
            self._reindex(slots[moved])
        if left.any():
            rows.drop(slots[left])
        gone = np.concatenate([flatnonzero(left & indexed), moved])
        self._note_removed(int(left.sum()) + len(moved), le[gone], was[gone])

    def _note_removed(self, count: int, le: Ticks, was: Ticks) -> None:
        """Count slots that have become empty, and the indexed lifetimes among them; compact once half of the slots are empty."""
        self._gone += count
        if len(le):
            self.index.gone(le, was)
        if 2 * self._gone > len(self.rows) + _CREDIT_PER_STEP:
            self._keep(flatnonzero(self.rows.re.values > MIN_TIME))

    def forget(self, cti: int) -> None:
        """Drop the rows with RE < `cti`, once they are about half of all."""
        self._cti = max(cti, self._cti)
        if self.earn_cleanup_credit() >= self.cleanup_cost():
            self.sweep(self.needed())

    def earn_cleanup_credit(self) -> int:
        """Add the credit of a step, and return the credit."""
        self._cleanup_credit += _CREDIT_PER_STEP // _LEAST if self.rows.n_late else _CREDIT_PER_STEP
        return self._cleanup_credit

    def cleanup_cost(self) -> int:
        """Return the credit that a scan of all rows costs."""
        return len(self.rows) + _LOOK * _CREDIT_PER_STEP

    def needed(self) -> NDArray[np.bool_]:
        """Say which rows may still meet a partner in a legal change."""
        is_needed: NDArray[np.bool_] = self.rows.re.values >= self._least_end
        return is_needed

    def sweep(self, needed: NDArray[np.bool_]) -> bool:
        """Spend the credit: drop the rows that are not needed, if these are half of all, and say whether they are."""
        self._cleanup_credit = 0
        kept = flatnonzero(needed)
        is_worth_it = 2 * len(kept) <= len(self.rows)
        if is_worth_it:
            self._keep(kept)
        return is_worth_it

    @property
    def _least_end(self) -> int:
        return max(self._cti, MIN_TIME + 1)

    def _keep(self, kept: Rows) -> None:
        self._gone = 0
        self.moves += 1
        places = np.full(len(self.rows), -1, dtype=np.intp)
        places[kept] = np.arange(len(kept))
        self.index.move(places)
        self.rows.keep(kept)
        if self._slots is not None:
            self._slots = self._slots_by_id()

    def groups(self) -> list[int]:
        """Return the groups of the rows."""
        groups = self.rows.groups
        return [] if groups is None else np.unique(groups.values).tolist()

    @property
    def n_events(self) -> int:
        """The number of rows that may still meet a partner in a legal change."""
        return int(np.count_nonzero(self.needed()))
