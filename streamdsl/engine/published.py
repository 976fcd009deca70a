"""Published streams: what a running query keeps of its inputs and its output for the queries that are attached to it later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.ingress import Piece
from streamdsl.engine.outcome import rows_after
from streamdsl.temporal import MIN_TIME, Rejected

LEAST: Final = 4096
"""How many changes may wait before they are looked through for rows that are gone."""


class Published:
    """A stream as it stands: its rows that are live, which are those that can still change (RE >= its CTI), and its CTI.

    Changes are kept as they come; once there are twice as many as there were live rows, those that are gone are let go.
    """

    def __init__(self) -> None:
        self.cti = MIN_TIME
        self.events_in = 0
        self._batches: list[Batch] = []
        self._changes = 0
        self._kept = 0

    def take(self, piece: Piece) -> None:
        """Take the next changes, and the CTI that then holds."""
        self.cti = piece.cti
        if len(piece.batch):
            self.events_in += len(piece.batch)
            self._batches.append(piece.batch)
            self._changes += len(piece.batch)
            if self._changes > 2 * self._kept + LEAST:
                self._let_go()

    def replay(self) -> Piece:
        """Return the live rows as insertions, and the CTI."""
        self._let_go()
        return Piece(self._batches[0] if self._batches else EMPTY, self.cti)

    @property
    def changes_out(self) -> int:
        """The number of changes that have come, none of which was dropped."""
        return self.events_in

    @property
    def rejected(self) -> Sequence[Rejected]:
        """Nothing: what a source refuses is not published."""
        return ()

    def stats(self) -> dict[str, int]:
        """Return the stream's figures for `stats()`; its events are the changes that are kept."""
        sizes = {"windows": 0, "events": self._changes, "state_bytes": sum(map(_bytes_of, self._batches)), "udm_calls": 0}
        return {**sizes, "in": self.events_in, "out": self.events_in, "input_cti": self.cti, "output_cti": self.cti}

    def _let_go(self) -> None:
        live = live_rows(Batch.concat(self._batches), self.cti)
        self._batches = [live] if len(live) else []
        self._changes = self._kept = len(live)


def live_rows(changes: Batch, cti: int) -> Batch:
    """Return the rows that are there after these changes and that a change after the CTI may reach, as insertions."""
    rows = rows_after(changes)
    return rows.take(np.flatnonzero(rows.re_new >= cti))


def _bytes_of(batch: Batch) -> int:
    columns = [batch.ids, batch.le, batch.re_old, batch.re_new, *batch.table.columns.values()]
    return sum(column.nbytes for column in columns)
