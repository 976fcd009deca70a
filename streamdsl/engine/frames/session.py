"""Session windows: rows of a partition that follow one another without a long pause."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import Changed, DisjointFrame, Found, Policy
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks
from streamdsl.windows import Output, Session


class SessionFrame(DisjointFrame):
    """Sessions that are not cut: each has the rows that start in it."""

    by_point: ClassVar[bool] = True

    def __init__(self, policy: Policy, windows: Session) -> None:
        super().__init__(policy)
        self._spec = windows

    def _reach(self, re: Ticks) -> Ticks:
        """Return the times before which a next row must start to join rows that end then."""
        ends = re[re != INFINITY]
        if len(ends):
            self._spec.reach(int(ends.max()))
        return np.where(re == INFINITY, INFINITY, re + np.where(re == INFINITY, 0, self._spec.gap))

    def around(self, changed: Changed) -> Stretches:
        reach = self._reach(np.maximum(changed.re_old, changed.re_new))
        return self._widened(changed.codes, changed.le, reach, touching=False)

    def windows(self, around: Stretches, rows: Arrangement) -> Found:
        table = self.table
        places = rows.overlapping(around, table.any_places)
        if not len(places):
            nothing = np.empty(0, dtype=np.int64)
            return Found(around.low[:0], nothing, nothing, nothing, nothing)
        codes, le = rows.rows.groups[places], rows.rows.le[places]
        order, starts = sorted_integers(table.any_places(codes, le))
        codes, le, reach = codes[order], le[order], self._reach(rows.rows.re[places[order]])
        furthest = np.maximum.accumulate(table.any_places(codes, reach))
        first = flatnonzero(np.concatenate([[True], starts[1:] >= furthest[:-1]]))
        sizes = np.diff(first, append=len(starts))
        return Found(starts[first], codes[first], le[first], np.maximum.reduceat(reach, first), sizes)

    def differ(self, changed: Changed, found: Found) -> NDArray[np.bool_]:
        if not self.policy.time_sensitive:
            moved = flatnonzero(~changed.stay)
            changed = Changed(*(column[moved] for column in changed))
        at = np.searchsorted(found.low, self.table.any_places(changed.codes, changed.le), side="right") - 1
        differ = np.zeros(len(found.low), dtype=np.bool_)
        differ[at[at >= 0]] = True
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

    def output_cti(self, cti: int, rows: Arrangement) -> int:
        table, slots = self.table, self.open_windows(cti, rows)
        settled = self.settled(cti, rows)[table.code[slots]]
        going_on = slots[table.le[slots] <= settled]
        times = table.re[going_on] if self.policy.output is Output.POINT_AT_END else table.le[going_on]
        return int(times.min(initial=cti))
