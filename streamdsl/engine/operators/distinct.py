"""Distinct: each value while some row has it, as maximal pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.window_ids import PieceIds, WindowIds
from streamdsl.engine.keys import payload_parts
from streamdsl.engine.operators.keyed_operator import KeyedOperator
from streamdsl.engine.row_batch import Change, RowBatch
from streamdsl.engine.sorted import Probe, Row, StoredRows
from streamdsl.engine.sorted.periods import Patches, Periods
from streamdsl.engine.sorted.pieces import piece_changes
from streamdsl.expr.nodes import Make, Whole
from streamdsl.expr.row_program import Values
from streamdsl.expr.table import Column, Rows
from streamdsl.plan.node import Distinct
from streamdsl.temporal.time import MIN_TIME, Ticks


class DistinctOperator(KeyedOperator):
    """The rows by value, and the emitted pieces. A change recomputes only the stretch of its value that it touches."""

    kind = "distinct (sorted runs)"

    def __init__(self, label: str, node: Distinct) -> None:
        super().__init__(label, payload_parts(Whole(), node.input.schema))
        self.rows, self.pieces = self.sides

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        self.rows.take(batch, partial(self.numbers_of, self.key))
        out = self._recompute() if len(self.rows.changed) else EMPTY
        self.end_step()
        return out

    def change_rows(self, batch: RowBatch, cti: int) -> Batch | None:
        if len(batch.changes) > 1 or not (self.rows.rows.takes(batch) and self.pieces.rows.takes(batch)):
            return None
        ((_, _, le, re_old, re),), (values,), groups = batch.changes, batch.values, batch.groups
        if re_old != le or le == MIN_TIME or (isinstance(self.key, Make) and batch.schema != self.key.schema):
            return None
        parts = values if isinstance(self.key, Make) else batch.payloads()
        number = self.key_numbers.number(parts, groups[0] if groups else None)
        (id,), group = batch.row_ids(), groups[0] if groups else None
        met = self.pieces.probe_one(number, le - 1, re + 1)
        if met is None:
            return None
        self.rows.add_one((id, le, re, values, number, group))
        found = self._joined(met, (le, le, re, values, number, group))
        if not found:
            return EMPTY
        changes, payloads = zip(*found, strict=True)
        ids = PieceIds(self.label, self.key_numbers)
        return RowBatch(changes, payloads, batch.schema, groups and [groups[0]] * len(found), ids)

    def _joined(self, met: Sequence[tuple[int, Row]], come: Row) -> list[tuple[Change, Values]]:
        """Insert a row, and return the changes of pieces, a retraction first: it is merged with the pieces that it touches."""
        _, le, re, values, number, group = come
        for _, (_, start, end, _, _, _) in met:
            le, re = min(le, start), max(re, end)
        leaves = self.key_numbers.leaves_of(number)
        found: list[tuple[Change, Values]] = []
        is_new = True
        for slot, (_, start, end, known, _, _) in met:
            is_new = is_new and start != le
            stop = re if start == le else start
            if stop != end:
                found.append((((start, *leaves), 0, start, end, stop), known))
                self.pieces.end_one(slot, stop)
        if is_new:
            found.append((((le, *leaves), 0, le, le, re), values))
            self.pieces.add_one((le, le, re, values, number, group))
        return found

    def _recompute(self) -> Batch:
        """Recompute the pieces of the stretches that have changed, and return their changes."""
        rows, slots = self.rows.rows, self.rows.changed
        was, re = rows.was.take(slots), rows.re.take(slots)
        stretches = Patches(rows.numbers.take(slots), np.minimum(was, re), np.maximum(was, re)).by_owner()
        at, living = self.rows.living(Probe(*stretches))
        covered = Periods(at, rows.le.take(living), rows.re.take(living)).inside(stretches)
        _, moved, ends, come = piece_changes(self.pieces, stretches.owners, stretches, covered)
        like = slots[_some(rows.numbers.take(slots), stretches.owners)[come.at]]
        return self._changed(moved, ends, come, like)

    def _changed(self, moved: Rows, ends: Ticks, come: Periods, like: Rows) -> Batch:
        """Apply other ends and new pieces, whose values are those of some rows; return both."""
        rows, pieces = self.rows.rows, self.pieces.rows
        le = pieces.le.take(moved)
        old = self._batch(pieces, moved, le, pieces.re.take(moved), ends)
        new = self._batch(rows, like, come.le, come.le, come.re)
        self.pieces.end(moved, ends)
        self.pieces.put(new.with_ids(come.le), rows.numbers.take(like))
        return Batch.concat([old, new])

    def _batch(self, rows: StoredRows, slots: Rows, le: Ticks, re_old: Ticks, re_new: Ticks) -> Batch:
        """Return changes of pieces with the values of some rows."""
        if not len(slots):
            return EMPTY
        ids = WindowIds(self.label, self.key_numbers, le, *self.key_numbers.leaves(rows.numbers.take(slots)))
        return rows.batch(ids, slots, le, re_old, re_new)

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": self.rows.n_events}


def _some(numbers: Column, distinct: Column) -> Rows:
    """Return a row for each of the distinct numbers, which are in order."""
    rows = np.empty(len(distinct), dtype=np.intp)
    rows[np.searchsorted(distinct, numbers)] = np.arange(len(numbers))
    return rows
