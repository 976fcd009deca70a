"""Egress: net changes leave as physical events, at once or when they are final (docs/semantics.md)."""

from __future__ import annotations

import operator
from collections.abc import Hashable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, Changes
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.held_rows import FEW, HeldRows, RowHeap
from streamdsl.engine.ids import Ids, VersionedIds, name, names, of_spelled, recurs
from streamdsl.engine.order import ordered, row_order
from streamdsl.engine.row_batch import RowBatch
from streamdsl.engine.step_output import StepOutput
from streamdsl.engine.versions import Named, OutRow, Versions
from streamdsl.expr.table import every, flatnonzero
from streamdsl.temporal import INFINITY, MIN_TIME, Event
from streamdsl.temporal.time import add_time


def rows_of(batch: Batch) -> list[OutRow]:
    """Return the changes of a batch as rows, in output order."""
    return in_order(out_rows(batch)) if len(batch) < FEW else out_rows(ordered(batch))


def out_rows(batch: Batch) -> list[OutRow]:
    """Return the changes of a batch as rows, in their order."""
    if isinstance(batch, RowBatch):
        return batch.rows()
    columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist(), batch.table.payloads())
    return list(map(partial(tuple.__new__, OutRow), zip(*columns, strict=True)))


def _in_columns(rows: list[OutRow]) -> Batch:
    """Return rows as insertions in columns. Their ids are turned back into the ones that they were spelled from."""
    changes = Changes([(id, le, le, re, payload) for id, le, _, re, payload in rows], [None] * len(rows))
    batch = changes.batch(keyed=False)
    return batch.with_ids(of_spelled(batch.ids.tolist()))


def in_order(rows: list[OutRow]) -> list[OutRow]:
    """Return retractions first, then insertions, each by (LE, RE, payload). Only ties are compared by payload, which is slow."""
    if len(rows) < 2:
        return rows
    order = row_order([row.lifetime_order for row in rows], lambda: [row.payload for row in rows])
    return rows if order is None else [rows[place] for place in order]


class Egress:
    """What all egresses count: the rows that have left, retractions among them."""

    def __init__(self) -> None:
        self.cti = MIN_TIME
        self.events_out = 0
        self.retractions_out = 0


class SpeculativeEgress(Egress):
    """Emits every change at once; `counted`: rows that count their versions never come again under one of these."""

    n_held: ClassVar[int] = 0
    """The number of rows that are held back."""

    def __init__(self, in_step: bool = False, counted: bool = True) -> None:
        super().__init__()
        self._versions = Versions(in_step)
        self._counted = counted

    def send(self, batch: Batch, cti: int) -> StepOutput:
        """Return what a piece emits, with the CTI if it has advanced."""
        rows = self._row_events(batch) if type(batch) is RowBatch else [] if batch is EMPTY else self._rows(batch.changed())
        if cti <= self.cti:
            return StepOutput(rows, None)
        self.cti = cti
        self._versions.forget(cti)
        return StepOutput(rows, cti)

    def _rows(self, batch: Batch) -> list[Event[Any]] | Batch:
        if not len(batch):
            return []
        if self._counted and isinstance(batch.ids, VersionedIds):
            return [row.event(row.id) for row in rows_of(batch)] if len(batch) < FEW else ordered(batch)
        if len(batch) < FEW:
            return _events(self._versions, rows_of(batch))
        batch = ordered(batch)
        if self._versions.keeps(recurs(batch.ids)) and every(batch.re_old == batch.le):
            return batch.with_ids(names(batch.ids))
        return batch.with_ids(_names(self._versions, batch))

    def _row_events(self, batch: RowBatch) -> list[Event[Any]]:
        is_kept = batch.origin is None and self._versions.keeps(recurs=True) and batch.are_insertions
        batch = batch.in_order()
        return batch.events(None if is_kept or (self._counted and batch.counts_versions) else self._names(batch))

    def _names(self, batch: RowBatch) -> list[Hashable]:
        """Return the output ids of changed rows, retractions first."""
        ids = batch.row_ids()
        _, _, le, re_old, re_new = zip(*batch.changes, strict=True)
        return self._versions.names(Named(ids, list(map(name, ids)), le, re_old, re_new))


def _events(versions: Versions, rows: list[OutRow]) -> list[Event[Any]]:
    return versions.events(rows, [name(row.id) for row in rows])


def _names(versions: Versions, batch: Batch) -> Ids:
    """Return the output ids of changed rows, in columns. Where a name is taken, the id has a version too."""
    with collector_paused():
        ids, given = batch.ids.tolist(), names(batch.ids)
        called = given.tolist() if recurs(batch.ids) else ids
        rows = Named(ids, called, batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist())
        found = versions.names(rows)
        if all(map(operator.is_, found, called)):
            return given
        pairs = zip(found, called, strict=True)
        return VersionedIds(given, np.array([0 if each is name else each.version for each, name in pairs]))  # type: ignore[attr-defined]


class FinalEgress(Egress):
    """Holds each row back until it is final, so that no retraction is ever emitted."""

    sees_input: ClassVar[bool] = False
    """Whether `send` is given the input's high water and number of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.final = MIN_TIME
        """The final frontier: rows with RE <= it are final."""
        self.final_at: list[int] = []
        """The CTIs of the sources when `final` was computed."""
        self._settled = MIN_TIME
        self._held = HeldRows()
        self._versions = Versions()

    def send(self, batch: Batch, cti: int, final: int, now: int = INFINITY, came: int = 0) -> StepOutput:
        """Return the rows that have become final, and the CTI, which does not pass the first row that is held.

        `final` is the final frontier, `now` the high water of the input, `came` the number of its changes.
        """
        self._advance(cti, final)
        batch = batch.changed()
        if not len(batch) and not self._held:
            return self._with_cti([])
        if len(batch) < FEW:
            return self._with_cti(self._going(batch))
        are_final = batch.re_new <= self.final
        are_final &= batch.re_old == batch.le
        if not every(are_final):
            self._held.take(batch.take(flatnonzero(~are_final)))
            batch = batch.take(flatnonzero(are_final))
        single, held = self._held.pop_ending(self.final)
        return self._with_cti(self._together(single, batch if held is None else Batch.concat([batch, held])))

    def _going(self, batch: Batch) -> list[Event[Any]] | Batch:
        """Take a few changes, row by row, and return the rows that are final."""
        going = []
        for row in out_rows(batch) if len(batch) else ():
            if row.is_insertion and self._is_final(row.re_new):
                going.append(row)
            else:
                self._held.put(row)
        single, held = self._held.pop_ending(self.final)
        if held is not None:
            return self._together(going + single, held)
        return self._inserted(in_order(going + single))

    def _together(self, single: list[OutRow], rows: Batch) -> list[Event[Any]] | Batch:
        """Return final rows, some of them in columns, as they leave."""
        if len(single) + len(rows) < FEW:
            return self._inserted(in_order([*single, *rows_of(rows)]))
        rows = ordered(Batch.concat([rows, _in_columns(single)]) if single else rows)
        return rows if self._versions.keeps(recurs(rows.ids)) else rows.with_ids(_names(self._versions, rows))

    @property
    def _single_rows(self) -> RowHeap:
        """The rows that are held one by one."""
        return self._held.heap

    def _advance(self, cti: int, final: int) -> None:
        self._settled = max(self._settled, cti)
        self.final = max(self.final, final)

    def _inserted(self, rows: list[OutRow]) -> list[Event[Any]]:
        """Return rows as insertions; each is emitted once."""
        return _events(self._versions, [row._replace(re_old=row.le) for row in rows])

    def _with_cti(self, rows: list[Event[Any]] | Batch) -> StepOutput:
        cti = min(self._settled, self._held.first_start())
        if cti <= self.cti:
            return StepOutput(rows, None)
        self.cti = cti
        self._versions.forget(cti)
        return StepOutput(rows, cti)

    @property
    def n_held(self) -> int:
        """The number of rows that are held back."""
        return len(self._held)

    def held_ends(self) -> list[int]:
        """Return the REs of the rows that are held back."""
        return self._held.ends()

    def _is_final(self, re: int) -> bool:
        return re <= self.final


class SmoothEgress(FinalEgress):
    """Emits final rows at a steady rate: one for every so many input changes, and at once those that have waited too long."""

    sees_input = True

    def __init__(self, every: int, max_delay: int) -> None:
        super().__init__()
        self._every = every
        self._max_delay = max_delay
        self._came = 0

    def send(self, batch: Batch, cti: int, final: int, now: int = INFINITY, came: int = 0) -> StepOutput:
        """Return the rows whose turn it is, and the CTI, which does not pass the first row that waits.

        The changes arrived before the CTI: the turns that they bring go to rows that were final before it.
        """
        for row in rows_of(batch.changed()):
            self._single_rows.put(row)
        turns, self._came = divmod(self._came + came, self._every)
        going = self._leave(turns)
        self._advance(cti, final)
        going = in_order(going + self._leave(0))
        return self._with_cti(self._inserted(going))

    def _leave(self, turns: int) -> list[OutRow]:
        """Return the final rows with the least REs: as many as there are turns, and all that are overdue."""
        going: list[OutRow] = []
        while (re := self._single_rows.first_end()) is not None and self._is_final(re):
            if len(going) >= turns and not self._is_overdue(re):
                break
            going.append(self._single_rows.pop_first_ending())
        return going

    def _is_overdue(self, re: int) -> bool:
        return self.final == INFINITY or self._is_final(add_time(re, self._max_delay))


class HoldingEgress(FinalEgress):
    """Holds each row back until it is final, or until the high water is `hold` past its LE.

    After that, corrections are emitted at once.
    """

    sees_input = True

    def __init__(self, hold: int) -> None:
        super().__init__()
        self._hold_for = hold

    def send(self, batch: Batch, cti: int, final: int, now: int = INFINITY, came: int = 0) -> StepOutput:
        """Return the corrections of emitted rows, the rows that are released, and the CTI."""
        going = []
        for row in rows_of(batch.changed()):
            if row.is_insertion or row.id in self._single_rows:
                self._single_rows.put(row)
            else:
                going.append(row)
        self._advance(cti, final)
        going += self._single_rows.pop_ending(self.final) + self._single_rows.pop_starting(now - self._hold_for)
        return self._with_cti(_events(self._versions, in_order(going)))

    def first_release(self) -> int:
        """Return the high water at which the next row is released, unless it is final before."""
        return min(self._single_rows.first_start() + self._hold_for, INFINITY)
