"""Published streams: what a running query keeps of its sources and its output for queries that are attached later."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.coalesce import NetChanges
from streamdsl.engine.consolidate import consolidated
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.operator import Piece
from streamdsl.engine.row_batch import RowBatch, size_of
from streamdsl.expr.table import flatnonzero, largest
from streamdsl.temporal import MIN_TIME, Rejections

LEAST: Final = 256
"""The changes that may be kept before rows that have ended are dropped."""
NEW: Final = 64
"""The batches that may be kept as they arrive, before they are merged."""
MOST: Final = 1024
"""The most rows of row batches that are kept row by row; more become columns."""


class Published:
    """The live rows of a stream, which are those that can still change (RE >= CTI), and its CTI.

    Batches in columns are kept until the CTI passes the last RE in them; of row batches the net changes are kept, row by row.
    Once there are four times as many changes as live rows, all are consolidated: amortized O(1) for each change.
    """

    def __init__(self) -> None:
        self.cti = MIN_TIME
        self._events_in = 0
        self._net = NetChanges()
        self._due = LEAST
        self._new: list[Batch] = []
        self._columns: list[Batch] = []
        self._n_columns = 0
        self._batches: dict[int, Batch] = {}
        self._ends: list[tuple[int, int]] = []
        self._number = itertools.count()
        self._changes = 0
        self._kept = 0

    def take(self, piece: Piece) -> None:
        """Add the next changes, and the CTI after them."""
        batch, self.cti = piece
        self._new.append(batch)
        if len(self._new) >= NEW or type(batch) is not RowBatch:
            self._take_new()

    def count(self, piece: Piece) -> None:
        """Count the next changes without keeping them: no query will read them."""
        batch, self.cti = piece
        self._events_in += size_of(batch)

    def replay(self) -> Piece:
        """Return the live rows as insertions, and the CTI."""
        self.flush()
        self._put_together()
        return Piece(next(iter(self._batches.values()), EMPTY), self.cti)

    @property
    def events_in(self) -> int:
        """The number of changes so far."""
        self._take_new()
        return self._events_in

    @property
    def changes_out(self) -> int:
        """The number of changes so far: none is dropped."""
        return self.events_in

    @property
    def rejected(self) -> Rejections:
        """Empty: events that a source rejects are not published."""
        return Rejections()

    def stats(self) -> dict[str, int]:
        """Return the stream's figures for `stats()`. Its events are the changes that are kept."""
        self.flush()
        sizes = {
            "windows": 0,
            "events": self._changes,
            "state_bytes": MemoryMeter().bytes_of([self]),
            "udm_calls": 0,
        }
        return {**sizes, "in": self.events_in, "out": self.events_in, "input_cti": self.cti, "output_cti": self.cti}

    def flush(self) -> None:
        """Merge the new batches, and bring all changes into columns."""
        self._take_new()
        self._flush_net_changes()
        self._keep_columns()

    def _take_new(self) -> None:
        """Merge the new batches, drop those that the CTI has passed, and consolidate if there are many."""
        new, self._new = self._new, []
        for batch in new:
            if type(batch) is RowBatch:
                self._events_in += len(batch.changes)
                self._take_row_batch(batch)
            elif len(batch):
                self._events_in += len(batch)
                self._flush_net_changes()
                self._columns.append(batch)
                self._n_columns += len(batch)
        if len(self._net) > self._due:
            self._net.forget(self.cti)
            self._due = max(LEAST, 2 * len(self._net))
            if len(self._net) > MOST:
                self._flush_net_changes()
        if self._n_columns >= NEW or (self._changes > LEAST and self._ends[0][0] < self.cti):
            self._keep_columns()

    def _take_row_batch(self, batch: RowBatch) -> None:
        """Add a row batch to the net changes; if it is of another kind, those so far become columns first."""
        taken = self._net.take(batch, self.cti)
        while taken < len(batch.changes):
            self._flush_net_changes()
            taken = self._net.take(batch, self.cti, taken)

    def _flush_net_changes(self) -> None:
        """Append the net changes of row batches to the batches in columns."""
        self._net.forget(self.cti)
        if len(self._net):
            self._columns.append(self._net.batch())
            self._n_columns += len(self._net)
        self._net.clear()
        self._due = LEAST

    def _keep_columns(self) -> None:
        for batch, end in zip(self._columns, _ends(self._columns), strict=True):
            if end >= self.cti:
                self._keep(batch, end)
        self._columns, self._n_columns = [], 0
        while self._ends and self._ends[0][0] < self.cti:
            self._changes -= len(self._batches.pop(heapq.heappop(self._ends)[1]))
        if self._changes > 4 * self._kept + LEAST:
            self._put_together()

    def _keep(self, batch: Batch, end: int) -> None:
        """Keep a batch whose last RE is given."""
        number = next(self._number)
        self._batches[number] = batch
        heapq.heappush(self._ends, (end, number))
        self._changes += len(batch)

    def _put_together(self) -> None:
        live = live_rows(Batch.concat(self._batches.values()), self.cti)
        self._batches, self._ends, self._changes, self._kept = {}, [], 0, len(live)
        if len(live):
            self._keep(live, largest(live.re_new))


def live_rows(changes: Batch, cti: int) -> Batch:
    """Return the rows that these changes leave and that a change after the CTI may reach, as insertions."""
    rows = consolidated(changes)
    return rows.only(flatnonzero(rows.re_new >= cti))


def _ends(batches: Sequence[Batch]) -> list[int]:
    """Return the last RE in each batch; none is empty."""
    if not batches:
        return []
    starts = np.cumsum([0, *map(len, batches[:-1])])
    old, new = np.concatenate([batch.re_old for batch in batches]), np.concatenate([batch.re_new for batch in batches])
    ends: list[int] = np.maximum.reduceat(np.maximum(old, new), starts).tolist()
    return ends
