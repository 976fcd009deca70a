"""The timeline: the snapshot windows of all groups in order of time, kept up to date by sweeps over what changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.accumulator_columns import RowParts
from streamdsl.engine.data_driven.boundaries import Boundaries
from streamdsl.engine.data_driven.endpoints import Deltas, SignedRows, SummedWindows, deltas_of, spans_of
from streamdsl.engine.data_driven.group_codes import GroupCodes
from streamdsl.engine.data_driven.packing import Packing
from streamdsl.engine.data_driven.row_arguments import RowArguments
from streamdsl.engine.data_driven.sorted_index import Portion, SortedIndex
from streamdsl.engine.data_driven.sweep import Sweep
from streamdsl.engine.data_driven.timer_queue import TimerQueue
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

MOST: Final = 32
"""The row path takes rows only if they are in at most this many windows, all together."""
_SPARE: Final = 256
"""The boundaries that may be kept beyond those that are needed: a sweep has a cost too."""
_MANY: Final = 1024
"""If one group has more changed times than this, all that is between them is taken out too."""
_NONE: Final[Rows] = np.empty(0, dtype=np.intp)


class Touched(NamedTuple):
    """Windows that are open and have changed, which of them have other totals, and the boundaries that were removed."""

    slots: Rows
    summed: NDArray[np.bool_]
    gone: Rows


UNTOUCHED: Final = Touched(_NONE, np.empty(0, dtype=np.bool_), _NONE)


RowChange: TypeAlias = tuple[int, int, int, int]
"""A changed row: the code of its partition, LE, and RE before and after (LE: there is no row)."""


class TimelineStep(NamedTuple):
    """The changes of single rows, one after the other."""

    touched: dict[int, bool]
    """The windows that have changed, and whether their totals have."""
    opened: set[tuple[int, int]]
    """New boundaries after the previous high water, by partition and time."""
    less: list[int]
    """Boundaries that have lost an endpoint."""


class SnapshotTimeline:
    """The boundaries of all groups. Windows that start by the high water have totals, later ones differences.

    So a row updates the windows that it is in as far as they are open; after the high water it updates two boundaries only.
    """

    def __init__(self, by_end: bool) -> None:
        self.by_end = by_end
        self.high_water = MIN_TIME
        self.boundaries = Boundaries()
        self.codes = GroupCodes()
        self._packing = Packing()
        self._index = SortedIndex()
        self._timers = TimerQueue()
        self._most = _SPARE

    def take(self, changed: SignedRows | None, high_water: int) -> Touched:
        """Apply changed rows and the high water, and return what has changed. The caller drops the removed boundaries."""
        before, self.high_water = self.high_water, high_water
        deltas = None if changed is None else self._deltas(changed)
        due = self._timers.pop_until(high_water) if high_water > before else (_NONE, _NONE)
        is_end = self.by_end and before < high_water == INFINITY
        if deltas is None and not len(due[0]) and not is_end:
            return UNTOUCHED
        late, limits = _NONE, _NONE
        if deltas is not None and int(deltas.times.min()) <= before:
            late = flatnonzero((deltas.times <= before) & (deltas.around() > 0))
            limits = self._packing.limits(deltas.codes[late], before)
        portion = self._index.all() if is_end else self._portion(deltas, late, limits, self._packing.numbers(due[1], due[0]))
        sweep = Sweep(self.boundaries, portion, before, high_water, len(self.codes) <= 1)
        gone = _NONE if deltas is None else self._change(sweep, deltas, late, limits)
        return self._finish(sweep, portion, gone)

    # Row by row

    def takes(self, rows: Sequence[RowChange]) -> bool:
        """Say whether rows can be applied one by one."""
        low, high = min([row[1] for row in rows]), max([time for row in rows for time in row[1:] if time != INFINITY])
        if not self._packing.fits(len(self.codes), low, high):
            self._repack(low, high)
        if self._packing.is_wide:
            return False
        for code, le, re_old, re_new in rows:
            if self._index.has_more(self._place(code, le), self._place(code, max(re_old, re_new)), MOST // len(rows)):
                return False
        return self.boundaries.totals.are_numbers

    def take_rows(
        self, rows: Sequence[RowChange], arguments: Sequence[RowArguments], high_water: int
    ) -> tuple[dict[int, bool], list[int]]:
        """Apply rows one by one, and the high water.

        Return the windows that have changed, whether their totals have, and the removed boundaries.
        """
        step = TimelineStep({}, set(), [])
        for row, each in zip(rows, arguments, strict=True):
            self.boundaries.totals.count_reals(each.reals)
            self._take_row(row, each.parts, step)
        gone = [slot for slot in dict.fromkeys(step.less) if self.boundaries.endpoints.item(slot) == 0]
        for slot in gone:
            self._remove(slot, step)
        self.high_water = high_water
        step.opened.update((code, time) for time, code in self._timers.pop_each(high_water))
        for code, time in sorted(step.opened):
            if time > high_water:
                self._timers.add_one(time, code)
            else:
                self._open_one(code, time, step)
        return step.touched, gone

    def _take_row(self, row: RowChange, parts: RowParts, step: TimelineStep) -> None:
        code, le, re_old, re_new = row
        sign, lo, hi = (1, re_old, re_new) if re_old < re_new else (-1, re_new, re_old)
        # An LE is an endpoint more or less with its row; an RE that moves is one less at the old time.
        first = self._count(code, lo, sign if lo == le else -sign, step)
        last = None if hi == INFINITY else self._count(code, hi, sign, step)
        totals, starts = self.boundaries.totals, self.boundaries.le
        if last is not None and hi > self.high_water:
            totals.add_row(parts, last, -sign)
        if lo > self.high_water:
            totals.add_row(parts, first, sign)
            return
        low = self._place(code, lo)
        for number, slot in zip(*self._index.around(low, self._place(code, hi)), strict=True):
            if number >= low and starts.item(slot) <= self.high_water:
                totals.add_row(parts, slot, sign)
                step.touched[slot] = True

    def _count(self, code: int, time: int, sign: int, step: TimelineStep) -> int:
        """Add an endpoint to a boundary, or subtract one, and return the boundary, which is created if there is none."""
        boundaries, number = self.boundaries, self._place(code, time)
        numbers, slots = self._index.around(number, number + 1)
        if numbers and numbers[-1] == number:
            slot = slots[-1]
            boundaries.endpoints[slot] += sign
            if sign < 0:
                step.less.append(slot)
            return slot
        before = slots[0] if slots and boundaries.code.item(slots[0]) == code else None
        slot = boundaries.make_one(code, time, self._next_of(code, number) if before is None else boundaries.re.item(before))
        self._index.insert_one(number, slot)
        if before is not None:
            boundaries.re[before] = time
            step.touched.setdefault(before, False)
        if time > self.high_water:
            step.opened.add((code, time))
        else:
            step.touched.setdefault(slot, False)
            if before is not None:
                boundaries.totals.copy_one(slot, before)
        return slot

    def _remove(self, slot: int, step: TimelineStep) -> None:
        """Remove a boundary without endpoints: the window before it is extended."""
        boundaries = self.boundaries
        code, number = boundaries.code.item(slot), self._place(boundaries.code.item(slot), boundaries.le.item(slot))
        numbers, slots = self._index.around(number, number + 1)
        if len(numbers) > 1 and boundaries.code.item(slots[0]) == code:
            boundaries.re[slots[0]] = boundaries.re[slot]
            step.touched.setdefault(slots[0], False)
        self._index.remove_one(number)
        step.touched.pop(slot, None)

    def _next_of(self, code: int, number: int) -> int:
        """Return where the next window of a partition begins."""
        slot = self._index.following(number)
        return self.boundaries.le.item(slot) if slot is not None and self.boundaries.code.item(slot) == code else INFINITY

    def _open_one(self, code: int, time: int, step: TimelineStep) -> None:
        """Give totals to a window that the high water reaches, if it still exists."""
        number = self._place(code, time)
        numbers, slots = self._index.around(number, number + 1)
        if numbers and numbers[-1] == number:
            if len(slots) > 1 and self.boundaries.code.item(slots[0]) == code:
                self.boundaries.totals.add_one_from(slots[1], slots[0])
                if self.by_end:
                    step.touched.setdefault(slots[0], False)
            step.touched[slots[-1]] = True

    def _place(self, code: int, time: int) -> int:
        return self._packing.number(code, time)

    @property
    def is_empty(self) -> bool:
        """Whether there are no boundaries."""
        return not len(self._index)

    def spans(self, changed: SignedRows, until: int) -> SummedWindows:
        """Return the windows that rows make by themselves, up to a bound, without keeping any state."""
        return spans_of(self._deltas(changed), until)

    def _deltas(self, changed: SignedRows) -> Deltas:
        ends = changed.hi[changed.hi != INFINITY]
        low, high = int(changed.lo.min()), max(int(changed.lo.max()), int(ends.max(initial=MIN_TIME)))
        if not self._packing.fits(len(self.codes), low, high):
            self._repack(low, high)
        return deltas_of(changed, self._packing)

    def _repack(self, low: int, high: int) -> None:
        """Renumber all boundaries so that this span fits too."""
        slots = self._index.all().slots
        le = self.boundaries.le[slots]
        if len(le):
            low, high = min(low, int(le.min())), max(high, int(le.max()))
        self._packing.fit(len(self.codes), low, high)
        self._index.renumber(self._packing.numbers(self.boundaries.code[slots], le))

    def _portion(self, deltas: Deltas | None, late: Rows, limits: Column, due: Column) -> Portion:
        """Take out what a change touches: the times of deltas, the open windows between them, and what is due."""
        if deltas is None:
            return self._index.portion(due, due)
        places = deltas.numbers[deltas.times != INFINITY]
        low = np.concatenate([places, deltas.numbers[late], due])
        high = np.concatenate([places, np.minimum(deltas.numbers[late + 1], limits) if len(late) else limits, due])
        if len(self.codes) <= 1 and len(low) > _MANY:
            return self._index.portion(low.min(keepdims=True), high.max(keepdims=True))
        return self._index.portion(low, high)

    def _change(self, sweep: Sweep, deltas: Deltas, late: Rows, limits: Column) -> Rows:
        """Create and remove boundaries and update totals; return the removed ones."""
        placed, slots = sweep.place(deltas)
        times = deltas.times[placed]
        is_new = (self.boundaries.endpoints[slots] == 0) & (times > sweep.high_water)
        self._timers.add(times[is_new], deltas.codes[placed[is_new]])
        gone = sweep.count(slots, deltas.endpoints[placed], deltas.numbers[placed])
        ahead = times > sweep.before
        if not ahead.all():
            slots, placed = slots[ahead], placed[ahead]
        self.boundaries.totals.merge(slots, deltas.totals if len(placed) == len(deltas) else deltas.totals.take(placed))
        sweep.add_late(deltas, late, limits)
        return gone

    def _finish(self, sweep: Sweep, taken: Portion, gone: Rows) -> Touched:
        windows = sweep.finish(is_last=self._index.is_last(taken))
        if sweep.portion is not taken:
            self._index.put(sweep.portion)
        touched = windows.moved | sweep.summed
        if self.by_end:
            touched |= (windows.re > sweep.before) & (windows.re <= sweep.high_water)
        rows = flatnonzero(touched & (windows.le <= sweep.high_water))
        return Touched(sweep.portion.slots[rows], sweep.summed[rows], gone)

    def drop(self, gone: Rows) -> None:
        """Drop removed boundaries. Their timers stay in the queue until they are due, or until there are too many."""
        if not len(gone):
            return
        self.boundaries.drop(gone)
        if len(self._timers) > 2 * len(self._index) + _SPARE:
            slots = self._index.all().slots
            waiting = slots[self.boundaries.le[slots] > self.high_water]
            self._timers.clear()
            self._timers.add(self.boundaries.le[waiting], self.boundaries.code[waiting])

    def kept(self, cti: int) -> Rows:
        """Return the boundaries that changes from `cti` on can need: a window that ends there may still become longer.

        A group has none if all of its rows have ended before.
        """
        slots = self._index.all().slots
        le, re = self.boundaries.le[slots], self.boundaries.re[slots]
        return slots[(re >= cti) & ((re < INFINITY) | (le >= cti) | (self.boundaries.rows[slots] > 0))]

    def first_start(self, cti: int) -> int:
        """Return the LE of the first window with rows that is kept, `cti` if that is later."""
        kept = self.kept(cti)
        filled = kept[(self.boundaries.rows[kept] > 0) & (self.boundaries.le[kept] < cti)]
        return int(self.boundaries.le[filled].min(initial=cti))

    def forget(self, cti: int) -> None:
        """Drop the boundaries that are not needed, once they may be half of all."""
        results = self.boundaries.results
        if len(self._index) + results.n_gone <= self._most:
            return
        entries, kept = self._index.all(), self.kept(cti)
        is_kept = np.zeros(self.boundaries.totals.size, dtype=np.bool_)
        is_kept[kept] = True
        at = flatnonzero(~is_kept[entries.slots])
        self._index.put(entries.without(at))
        self.boundaries.drop(entries.slots[at])
        results.forget(cti)
        self.codes.keep(np.concatenate([self.boundaries.code[kept], results.groups_of_gone]))
        self._most = 2 * (len(kept) + results.n_gone) + _SPARE

    def sizes(self, cti: int) -> Ticks:
        """Return the number of rows in each window that is kept."""
        slots = self._index.all().slots
        rows, le, code = self.boundaries.rows[slots], self.boundaries.le[slots], self.boundaries.code[slots]
        follows = np.concatenate([[False], code[1:] == code[:-1]]) if len(slots) else np.zeros(0, dtype=np.bool_)
        earlier = np.where(follows & (le <= self.high_water), np.roll(rows, 1), 0)
        sums = np.cumsum(np.where(le <= self.high_water, rows - earlier, rows))
        starts = flatnonzero(~follows)
        base = np.repeat(np.concatenate([[0], sums[starts[1:] - 1]])[: len(starts)], np.diff(starts, append=len(slots)))
        found = np.zeros(self.boundaries.totals.size, dtype=np.int64)
        found[slots] = sums - base
        return found[self.kept(cti)]
