"""The operator that changes lifetimes: each change of a row becomes a change of its output, without state (paper 001, II.D.1)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.operator import Operator
from streamdsl.engine.row_batch import Change, RowBatch
from streamdsl.errors import TimeOverflow, UnitError
from streamdsl.expr.evaluate import Inputs, RowError
from streamdsl.expr.table import flatnonzero
from streamdsl.plan.end_expressions import LE
from streamdsl.plan.node import AlterLifetime
from streamdsl.temporal import MIN_TIME, Lifetime, plain
from streamdsl.temporal.time import Ticks

_FEW: Final = 4
"""The ends of so few rows are computed in Python sooner than in columns."""


class AlterLifetimeOperator(Operator):
    """Gives each row the lifetime that its ends are. A change that moves LE is a full retraction and an insertion."""

    kind = "alter_lifetime (columnar)"

    def __init__(self, label: str, node: AlterLifetime) -> None:
        super().__init__(label)
        self.ends = node.in_unit(node.unit)

    def change_rows(self, batch: RowBatch, cti: int) -> Batch | None:
        """Compute new REs in Python; a row whose LE moves needs columns, as its id has the LE that it came with."""
        if self.ends.le != LE:
            return None
        payloads = batch.payloads() if self.ends.are_computed else [None] * len(batch.changes)
        changes: list[Change] = []
        kept: list[int] = []
        try:
            for row, (id, version, le, *ends) in enumerate(batch.changes):
                re_old, re_new = [max(le, self.ends.of(Lifetime(le, re), payloads[row])[1]) if re > le else le for re in ends]
                if re_old != re_new:
                    changes.append((id, version, le, re_old, re_new))
                    kept.append(row)
        except Exception:  # columns say which row it is
            return None
        if not changes:
            return EMPTY
        groups = None if batch.groups is None else [batch.groups[row] for row in kept]
        return RowBatch(changes, [batch.values[row] for row in kept], batch.schema, groups, batch.origin)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        if batch.are_insertions or (batch.re_old == batch.le).all():
            new_le, new_re = self._lifetimes(batch, batch.re_new)
            return batch.with_lifetimes(new_le, new_le, np.maximum(new_le, new_re))
        old_le, old_re = self._lifetimes(batch, batch.re_old)
        changes = bool((batch.re_old != batch.re_new).any())
        new_le, new_re = self._lifetimes(batch, batch.re_new) if changes else (old_le, old_re)
        # A row that is not there starts where it does when it is: coming and going move nothing.
        old_le = np.where(batch.re_old > batch.le, old_le, new_le)
        new_le = np.where(batch.re_new > batch.le, new_le, old_le)
        old_re, new_re = np.maximum(old_le, old_re), np.maximum(new_le, new_re)
        moved = old_le != new_le
        if not moved.any():
            return batch.with_lifetimes(new_le, old_re, new_re)
        gone = batch.with_lifetimes(old_le, old_re, np.where(moved, old_le, new_re))
        come = batch.take(flatnonzero(moved))
        return Batch.concat([gone, come.with_lifetimes(new_le[moved], new_le[moved], new_re[moved])])

    def _lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        """Return the new ends of rows with these REs; the RE of a row that is not there is the smallest time."""
        is_there = re > batch.le
        if batch.are_points or is_there.all():
            return self._present(batch, re)
        start, end = batch.le.copy(), np.full(len(batch), MIN_TIME)
        rows = flatnonzero(is_there)
        if len(rows):  # only these are computed: what would overflow for a row that is not there is no error
            start[rows], end[rows] = self._present(batch.take(rows), re[rows])
        return start, end

    def _present(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        """Return the new ends of rows that are all there; an error for what is no time names operator and event."""
        if len(batch) <= _FEW and not self.ends.are_computed:
            with suppress(TimeOverflow):  # then columns say of which row
                lives = map(Lifetime, batch.le.tolist(), re.tolist())
                found = np.array([self.ends.of(life) for life in lives], dtype=np.int64)
                return found[:, 0], found[:, 1]
        try:
            return self.ends.over(Inputs((batch.table,), len(batch), le=batch.le, re=re))
        except RowError as error:
            if isinstance(error.cause, (UnitError, TimeOverflow)):
                event = plain(batch.ids[error.row])
                raise type(error.cause)(f"operator {self.label}, event {event!r}: {error.cause}") from None
            raise self.user_error(error, batch.ids) from error.cause

    @property
    def brings_rows_back(self) -> bool:
        return not self.ends.keep_rows_in_place

    @property
    def trails_cti(self) -> bool:
        return self.cti > MIN_TIME

    def output_cti(self, ctis: list[int]) -> int:
        return self.ends.cti(ctis[0])

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        ((cti, final),) = inputs
        return self.ends.final(cti, final)
