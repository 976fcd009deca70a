"""Published streams: what a running query keeps of its sources and its output for queries that are attached later."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.coalesce import coalesced
from streamdsl.engine.consolidate import consolidated
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.operator import Piece, figures
from streamdsl.engine.row_batch import size_of
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal import INFINITY, MIN_TIME, Rejections

LEAST: Final = 256
"""The changes that may be kept beyond four times the live rows."""


class Published:
    """The live rows of a stream, which are those that can still change (RE >= CTI), and its CTI.

    Batches are kept as they come. Once they have four times as many changes as rows were live the last time, or half of those
    rows have ended, all are consolidated: amortized O(1) for each change.
    """

    def __init__(self) -> None:
        self.cti = MIN_TIME
        self.events_in = 0
        """The number of changes so far."""
        self._batches: list[Batch] = []
        self._changes = 0
        self._live = 0
        self._half_ended = INFINITY
        """The time by which half of the rows that were live the last time have ended."""

    def take(self, piece: Piece) -> None:
        """Add the next changes, and the CTI after them."""
        self.count(piece)
        if size := size_of(piece.batch):
            self._batches.append(piece.batch)
            self._changes += size
        if self._changes > 4 * self._live + LEAST or (self._live > LEAST and self.cti > self._half_ended):
            self.flush()

    def count(self, piece: Piece) -> None:
        """Count the next changes without keeping them: no query will read them."""
        batch, self.cti = piece
        self.events_in += size_of(batch)

    def replay(self) -> Piece:
        """Return the live rows as insertions, and the CTI."""
        self.flush()
        return Piece(self._batches[0] if self._batches else EMPTY, self.cti)

    @property
    def changes_out(self) -> int:
        """The number of changes so far: none is dropped."""
        return self.events_in

    @property
    def rejected(self) -> Rejections:
        """Empty: events that a source rejects are not published."""
        return Rejections()

    def stats(self) -> dict[str, int]:
        """Return the stream's figures for `stats()`. Its events are the live rows."""
        self.flush()
        told = figures(self.events_in, self.events_in, self.cti, self.cti, self._changes)
        return {**told, "state_bytes": MemoryMeter().bytes_of([self])}

    def flush(self) -> None:
        """Consolidate all changes into the rows that are live, in columns."""
        live = live_rows(Batch.concat(coalesced(self._batches)), self.cti)
        self._batches, self._changes, self._live = [live] if len(live) else [], len(live), len(live)
        self._half_ended = int(np.partition(live.re_new, len(live) // 2)[len(live) // 2]) if len(live) else INFINITY


def live_rows(changes: Batch, cti: int) -> Batch:
    """Return the rows that these changes leave and that a change after the CTI may reach, as insertions."""
    rows = consolidated(changes)
    return rows.only(flatnonzero(rows.re_new >= cti))
