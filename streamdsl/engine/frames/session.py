"""Session windows: rows of a partition without a long gap between them."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import ChangedRows, DisjointFrame, Policy, RowUpdate, WindowColumns
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks
from streamdsl.windows import Output, Session


class Extents(NamedTuple):
    """Periods of partitions, and the number of rows in each."""

    codes: Rows
    le: Ticks
    reach: Ticks
    rows: Ticks


class SessionFrame(DisjointFrame):
    """Sessions that are not cut. The members of each are the rows that start in it."""

    by_point: ClassVar[bool] = True

    def __init__(self, policy: Policy, windows: Session) -> None:
        super().__init__(policy, windows)
        self._spec = windows

    def _reach(self, re: Ticks) -> Ticks:
        """Return the times before which a next row must start to join a session that ends then."""
        gap, is_endless = self._spec.gap, re == INFINITY
        if gap == INFINITY:
            return np.full(len(re), INFINITY, dtype=np.int64)
        ends = re[~is_endless]
        if len(ends):
            self._spec.reach(int(ends.max()))
        return np.where(is_endless, INFINITY, re + np.where(is_endless, 0, gap))

    def around(self, changed: ChangedRows, rows: Arrangement) -> Stretches:
        reach = self._reach(np.maximum(changed.re_old, changed.re_new))
        return self._widened(changed.codes, changed.le, reach)

    def windows(self, changed: ChangedRows, around: Stretches, portion: Portion, rows: Arrangement) -> WindowColumns:
        # A session that has lost no row is merged as one extent; of one that has, all rows are read.
        table, places_of = self.table, self.table.any_places
        starts = places_of(changed.codes, changed.le)
        at = np.searchsorted(portion.numbers, starts, side="right") - 1
        is_whole = around.holds(portion.numbers)
        lost = at[flatnonzero((changed.re_new < changed.re_old) & (at >= 0))]
        broken = flatnonzero(np.bincount(lost, minlength=len(is_whole)).astype(np.bool_) & is_whole)
        is_whole[broken] = False
        parts = [self._known(portion.slots[is_whole])]
        grown = changed.re_new > changed.re_old
        if len(broken):
            slots = portion.slots[broken]
            stretches = table.stretches(table.code[slots], table.le[slots], table.re[slots])
            parts.append(self.known_without_rows(slots))
            left = rows.overlapping(stretches.merged(), places_of)
            parts.append(Extents(rows.rows.groups[left], rows.rows.le[left], self._reach(rows.rows.re[left]), np.ones_like(left)))
            grown &= ~stretches.holds(starts)
        new = flatnonzero(grown)
        is_new = (changed.re_old <= changed.le)[new].astype(np.int64)
        parts.append(Extents(changed.codes[new], changed.le[new], self._reach(changed.re_new[new]), is_new))
        return self._joined(Extents(*map(np.concatenate, zip(*parts, strict=True))))

    def known_without_rows(self, slots: Rows) -> Extents:
        """Return sessions as far as they are held together by rows that have been dropped."""
        return self._known(slots[:0])

    def end(self, re: int) -> int:
        gap = self._spec.gap
        return INFINITY if INFINITY in (re, gap) else self._spec.reach(re)

    def joined(self, code: int, le: int, re: int) -> list[int]:
        """Return the sessions that a single row joins."""
        table = self.table
        return self._around(code, table.place(code, le), table.place(code, self.end(re)), le)

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        table, end, joined = self.table, self.end(re), self.joined(code, le, re)
        last = table.re.item(joined[-1]) if joined else end
        if not joined or table.le.item(joined[0]) > le:
            slot = table.make_one(code, le, max(end, last), table.place(code, le))
            step, others = RowUpdate([slot], [slot], [], [], []), joined
        else:
            slot, *others = joined
            step = RowUpdate([slot], [], [], [], [])
            table.re[slot] = max(table.re.item(slot), end, last)
        for other in others:
            table.rows[slot] += table.rows[other]
            table.index.remove_one(table.place(code, table.le.item(other)))
            step.gone.append((other, slot))
        table.rows[slot] += 1
        return step

    def _known(self, slots: Rows) -> Extents:
        table = self.table
        return Extents(table.code[slots], table.le[slots], table.re[slots], table.rows[slots])

    def _joined(self, extents: Extents) -> WindowColumns:
        """Merge rows and whole sessions into sessions: one begins where those before have ended."""
        if not len(extents.codes):
            return WindowColumns(self.table.any_places(extents.codes, extents.le), *extents)
        order, starts = sorted_integers(self.table.any_places(extents.codes, extents.le))
        codes, le, reach, rows = (column[order] for column in extents)
        furthest = np.maximum.accumulate(self.table.any_places(codes, reach))
        first = flatnonzero(np.concatenate([[True], starts[1:] >= furthest[:-1]]))
        return WindowColumns(
            starts[first], codes[first], le[first], np.maximum.reduceat(reach, first), np.add.reduceat(rows, first)
        )

    def differ(self, changed: ChangedRows, found: WindowColumns) -> NDArray[np.bool_]:
        if not self.policy.time_sensitive:
            moved = flatnonzero(~changed.stay)
            changed = ChangedRows(*(column[moved] for column in changed))
        at = np.searchsorted(found.low, self.table.any_places(changed.codes, changed.le), side="right") - 1
        differ = np.zeros(len(found.low), dtype=np.bool_)
        # A row that was a session of its own is in none any more.
        inside = (at >= 0) & (found.codes.take(at, mode="clip") == changed.codes) if len(differ) else at >= 0
        differ[at[inside]] = True
        return differ

    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        table = self.table
        slots = self.open_windows(cti, rows)
        needed = np.zeros(len(places), dtype=np.bool_)
        if len(slots):
            starts = table.places(table.code[slots], table.le[slots])
            codes, le = rows.rows.groups[places], rows.rows.le[places]
            at = np.searchsorted(starts, table.any_places(codes, le), side="right") - 1
            window = slots[np.maximum(at, 0)]
            needed = (at >= 0) & (table.code[window] == codes) & (le < table.re[window])
        return needed

    def settled_output(self, cti: int, rows: Arrangement) -> int:
        table, slots = self.table, self.open_windows(cti, rows)
        settled = self.closed_until(cti, rows)[table.code[slots]]
        going_on = slots[table.le[slots] <= settled]
        times = table.re[going_on] if self.policy.output is Output.POINT_AT_END else table.le[going_on]
        return int(times.min(initial=cti))
