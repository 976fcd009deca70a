"""Stitch: rows with equal payloads that meet become one row."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.keys import payload_parts
from streamdsl.engine.operators.keyed_operator import KeyedOperator
from streamdsl.engine.pairs import all_but, distinct_values
from streamdsl.engine.sorted import Probe, StoredRows
from streamdsl.engine.sorted.chains import ChainRows, followed, in_step
from streamdsl.expr.nodes import Whole
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.plan.node import Stitch
from streamdsl.temporal import INFINITY, MIN_TIME
from streamdsl.temporal.time import Ticks


class Chains(NamedTuple):
    """Chains of rows: the number of the value, the slot of the first row, and LE and RE of the chain."""

    numbers: Column
    heads: Rows
    le: Ticks
    re: Ticks

    def take(self, rows: Rows) -> Chains:
        """Return these."""
        return Chains(*(column[rows] for column in self))


class StitchOperator(KeyedOperator):
    """The rows by value. A change recomputes the chains of its value; the first row of a chain notes the number of the chain.

    A row that is final is kept while the one after it in its chain is not; it then knows where the chain begins.
    """

    kind = "stitch (sorted runs)"
    numbers_rows = True
    rows_class: ClassVar[type[StoredRows]] = ChainRows
    n_sides: ClassVar[int] = 1

    def __init__(self, label: str, node: Stitch) -> None:
        super().__init__(label, payload_parts(Whole(), node.input.schema))
        (self.rows,) = self.sides
        self._chains = 0
        self._cti = MIN_TIME

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        self.rows.take(batch, partial(self.numbers_of, self.key))
        out = self._recompute() if len(self.rows.changed) else EMPTY
        self.end_step()
        return out

    def _recompute(self) -> Batch:
        """Return the changes of the chains whose values have changed."""
        rows, changed = self.rows.rows, self.rows.changed
        numbers = distinct_values(rows.numbers.take(changed))
        every = np.full(len(numbers), MIN_TIME), np.full(len(numbers), INFINITY)
        _, living = self.rows.living(Probe(numbers, *every))
        if self._meet_none(living):
            slots = changed
        else:
            gone = changed[flatnonzero(rows.re.take(changed) <= rows.le.take(changed))]
            slots = self._rows.in_order(np.concatenate([living, gone]))
        before, now = (self._found(slots, ends.take(slots)) for ends in (rows.was, rows.re))
        stays, again = in_step((before.numbers, before.le, before.re), (now.numbers, now.le, now.re))
        ids = np.full(len(now.le), -1)
        ids[again] = rows.notes.take(before.heads[stays])
        come = flatnonzero(ids < 0)
        ids[come] = np.arange(self._chains, self._chains + len(come))
        self._chains += len(come)
        out = []
        if len(stays) < len(before.le):
            left_over = before.take(all_but(stays, len(before.le)))
            out.append(self._batch(left_over, rows.notes.take(left_over.heads), left_over.re, left_over.le))
        if len(stays):
            moved = flatnonzero(before.re[stays] != now.re[again])
            known = now.take(again[moved])
            out.append(self._batch(known, ids[again[moved]], before.re[stays[moved]], known.re))
        out.append(self._batch(now.take(come), ids[come], now.le[come], now.re[come]))
        rows.notes.put(now.heads, ids)
        return Batch.concat(out)

    def _meet_none(self, living: Rows) -> bool:
        """Say whether a single row has changed, and none of its value ends where it starts, or starts where it ends or ended."""
        rows, changed = self.rows.rows, self.rows.changed
        if len(changed) > 1:
            return False
        le, ends = rows.le.take(living), rows.re.take(living)
        meet = ends == rows.le.take(changed)
        meet |= le == rows.re.take(changed)
        meet |= (le == rows.was.take(changed)) & (living != changed)
        return not meet.any()

    def _found(self, slots: Rows, ends: Ticks) -> Chains:
        """Return the chains of rows with these ends."""
        rows = self.rows.rows
        there = flatnonzero(ends > rows.le.take(slots))
        slots, ends = slots[there], ends[there]
        if len(slots) < 2:  # a row does not meet itself
            return Chains(rows.numbers.take(slots), slots, self._rows.starts.take(slots), ends)
        before, after = self._bonds(slots, ends)
        last = flatnonzero(after < 0)
        heads = slots[followed(before)[last]]
        return Chains(rows.numbers.take(heads), heads, self._rows.starts.take(heads), ends[last])

    def _bonds(self, slots: Rows, ends: Ticks) -> tuple[Rows, Rows]:
        """Return for each row the one before it in its chain, and the one behind it, -1 if there is none.

        At each time the rows that end there, in order of LE, are joined with those that start there, in order of RE.
        """
        numbers, le = self.rows.rows.numbers.take(slots), self.rows.rows.le.take(slots)
        ending, starting = flatnonzero(ends < INFINITY), flatnonzero(self._rows.starts.take(slots) == le)
        earlier, later = in_step((numbers[ending], ends[ending], le[ending]), (numbers[starting], le[starting], ends[starting]))
        before, after = np.full(len(slots), -1), np.full(len(slots), -1)
        before[starting[later]], after[ending[earlier]] = ending[earlier], starting[later]
        return before, after

    @property
    def _rows(self) -> ChainRows:
        rows = self.rows.rows
        assert isinstance(rows, ChainRows)
        return rows

    def _batch(self, chains: Chains, ids: Ticks, re_old: Ticks, re_new: Ticks) -> Batch:
        if not len(ids):
            return EMPTY
        never_again = VersionedIds(WindowIds(self.label, None, ids), np.zeros(len(ids), dtype=np.int64))
        return self.rows.rows.batch(never_again, chains.heads, chains.le, re_old, re_new)

    def forget(self, cti: int) -> None:
        self._cti = max(cti, self._cti)
        rows = self.rows.rows
        if self.rows.earn_cleanup_credit() >= len(rows) and 4 * self._can_change(slice(None)).sum() <= len(
            rows
        ):  # at least half can be dropped
            self._sweep()
        self.forget_numbers()

    def _sweep(self) -> None:
        """Drop the rows that are final, unless they are just before one that is not."""
        rows = self._rows
        slots = rows.in_order(flatnonzero(rows.re.values > rows.le.values))
        before, after = self._bonds(slots, rows.re.take(slots))
        can_change = self._can_change(slots)
        kept = can_change | ((after >= 0) & can_change[after])
        heads = slots[followed(before)]
        cut = flatnonzero(kept & (before >= 0) & ~kept[before])
        starts, notes = rows.starts.take(heads[cut]), rows.notes.take(heads[cut])
        needed = np.zeros(len(rows), dtype=np.bool_)
        needed[slots[kept]] = True
        places = np.cumsum(needed)[slots[cut]] - 1
        if self.rows.sweep(needed):
            rows.starts.put(places, starts)
            rows.notes.put(places, notes)

    def _can_change(self, slots: Rows | slice) -> NDArray[np.bool_]:
        can_change: NDArray[np.bool_] = self.rows.rows.re.take(slots) >= max(self._cti, MIN_TIME + 1)
        return can_change

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": int(self._can_change(slice(None)).sum())}
