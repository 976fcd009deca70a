"""Frames: a frame keeps the windows of one kind, in all partitions, and knows which of them a CTI closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.members import Members
from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.data_driven.timeline import UNTOUCHED, Touched
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.frames.window_table import WindowTable
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.pairs import distinct
from streamdsl.engine.window_budget import Arrivals, WindowBudget
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Output, Windows, unending

MOST: Final = 32
"""The row path takes rows only if they are in at most this many windows, all together."""
_SPARE: Final = 256
"""The windows that may be kept beyond those that are needed: a sweep has a cost too."""


class ChangedRows(NamedTuple):
    """Rows whose ends have changed, with the codes of their partitions. An end that equals LE means that there is no row."""

    codes: Rows
    le: Ticks
    re_old: Ticks
    re_new: Ticks

    @property
    def stay(self) -> NDArray[np.bool_]:
        """Which rows exist both before and after."""
        stay: NDArray[np.bool_] = (self.re_old > self.le) & (self.re_new > self.le)
        return stay


class WindowColumns(NamedTuple):
    """Windows, in order of partition and start, as columns;

    `low` are their numbers in the table, `rows` their numbers of members.
    """

    low: Column
    codes: Rows
    le: Ticks
    re: Ticks
    rows: Ticks

    def take(self, at: Rows) -> WindowColumns:
        """Return the windows at these indices, which are ascending."""
        return WindowColumns(*(column[at] for column in self))


class Split(NamedTuple):
    """New windows, and the window that each was part of before."""

    new: Rows
    before: Rows


class RowUpdate(NamedTuple):
    """The changes that a single inserted row makes to the windows."""

    entered: list[int]
    """The windows that the row is a member of."""
    new: list[int] = []
    """Those of them that are new and have no other member."""
    moved: list[int] = []
    """Windows whose end has changed, and whose members have not."""
    split: list[tuple[int, int]] = []
    """New windows, each with the one that it was split from, whose members it starts with."""
    gone: list[tuple[int, int]] = []
    """Windows that have been merged into others, each with that one."""


NO_SPLIT: Final = Split(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides which windows there are, and which are closed, besides their kind."""

    emit_policy: EmitPolicy
    budget: WindowBudget
    """How many windows may begin at once."""
    output: Output
    time_sensitive: bool
    sees_ends: bool
    """Whether a module reads the RE of a member where it lies outside of the window."""


def refuse_unending(windows: Windows, rows: Arrangement, places: Rows) -> None:
    """Raise `UnboundedOutputError` if one of the rows at some places has no end: it would be in infinitely many windows."""
    endless = places[flatnonzero(rows.rows.re[places] == INFINITY)]
    if len(endless):
        raise unending(windows, rows.rows.ids[endless[np.argmin(rows.rows.le[endless])]])


class Frame(ABC):
    """The windows of one kind, in all partitions.

    `change` applies changed rows and returns the windows that are touched; `members` returns who is in a window. `closed_until`
    and `output_cti` are the rules of time. A frame knows nothing of aggregates.
    """

    by_point: ClassVar[bool] = False
    """Whether a row belongs to a window by a point in time, not by overlap."""
    by_end = False
    """Whether that point is the RE of the row, not the LE."""
    starts_move: ClassVar[bool] = False
    """Whether windows appear and vanish as others start or end elsewhere. The change that causes this is before their starts."""
    are_uniform: ClassVar[bool] = False
    """Whether all members of a window live throughout it:

    then its members stay as its end moves, and its parts have the same ones.
    """

    by_period: ClassVar[bool] = True
    """Whether the members of a window follow from its period. Only then can accumulators be updated by what has entered and left.

    """

    def __init__(self, policy: Policy, windows: Windows) -> None:
        self.policy = policy
        self.table = WindowTable()
        self.is_grouped = True
        self.split: Split = NO_SPLIT
        """The windows of the last change that were split from others."""
        self.formed: Rows = np.empty(0, dtype=np.intp)
        """The windows that have a result because of a row of the last change that is not their first one.

        A result that is time-bound begins with the row that made its window.
        """
        self.due: Rows = np.empty(0, dtype=np.intp)
        """The windows whose timers are due in this step."""
        self.clock = MIN_TIME
        """The latest time seen, of rows or CTIs: windows have begun up to it."""
        self.cti = MIN_TIME
        self._most = _SPARE

    @abstractmethod
    def change(self, changed: ChangedRows, rows: Arrangement) -> Touched:
        """Update the windows for rows that have changed in the arrangement.

        Removed windows still have their slots: the caller drops them.
        """

    def opens(self) -> bool:
        """Say whether windows may begin in this step without a changed row."""
        return False

    def end_step(self) -> None:
        """End a step: drop what holds for its windows only."""
        self.formed = self.formed[:0]

    # Bounds

    def n_waiting(self, rows: Arrangement) -> int:
        """Return for how many rows or partitions windows may begin without a changed row."""
        return 0

    def max_new_windows(self, arrivals: Arrivals, high_water: int, rows: Arrangement) -> float:
        """Return an upper bound of the windows that some arrivals make; 0 if earlier input bounds it already."""
        return 0

    # Row by row

    def takes(self, rows: Sequence[tuple[int, int, int]], high_water: int, held: Arrangement) -> bool:
        """Say whether inserted rows, given as (code, LE, RE), can be added one by one; if so, such a step begins.

        A frame need not: then a few rows are columns too, at a higher cost of each push.
        """
        return False

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        """Update the windows for an inserted row, which is at a place of the arrangement."""
        raise AssertionError(f"{type(self).__name__} takes no single rows")

    # Members

    def members(self, slots: Rows, rows: Arrangement) -> Members:
        """Return the members of windows that are in order."""
        table = self.table
        windows = table.stretches(table.code[slots], table.le[slots], table.re[slots])
        places = rows.overlapping(windows.merged(), table.any_places)
        return self.spans(windows, rows.rows.groups[places], rows.extents(places), places)

    def spans(self, windows: Stretches, codes: Rows, extents: tuple[Ticks, Ticks], places: Rows) -> Members:
        """Return for each row the range of windows that it is in; starts and ends of the windows are ascending."""
        starts, ends = (self.table.any_places(codes, times) for times in extents)
        first = np.searchsorted(windows.high, starts, side="right")
        last = np.searchsorted(windows.low, ends, side="left")
        members, is_inside = Members(places, first, last, len(windows)), (first < last) & (starts < ends)
        return members if is_inside.all() else members.only(flatnonzero(is_inside))

    # Time

    def output_cti(self, cti: int, rows: Arrangement) -> int:
        """Return how far the output CTI may advance."""
        return cti if self.policy.output is Output.TIME_BOUND else self.settled_output(cti, rows)

    @abstractmethod
    def settled_output(self, cti: int, rows: Arrangement) -> int:
        """Return how far the output CTI may advance if a result may be replaced as a whole:

        to the start of the first open window.
        """

    @abstractmethod
    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        """Say which rows a change from a CTI on can need."""

    def open_windows(self, cti: int, rows: Arrangement) -> Rows:
        """Return the windows that a change from a CTI on can alter, by partition and start."""
        slots = self.table.all()
        return slots[self.table.re[slots] > self.closed_until(cti, rows)[self.table.code[slots]]]

    def first_start(self, cti: int, rows: Arrangement) -> int:
        """Return the LE of the first window with rows that is open at a CTI, the CTI if there is none before it."""
        slots = self.open_windows(cti, rows)
        return int(self.table.le[slots[self.table.rows[slots] > 0]].min(initial=cti))

    def needed_codes(self, cti: int, rows: Arrangement) -> Rows:
        """Return the codes of the partitions that are needed.

        A stream that is not grouped is one partition, which is always needed.
        """
        if not self.is_grouped:
            return np.arange(len(self.table.codes))
        places = flatnonzero(rows.rows.alive)
        places = places[self.is_needed(cti, rows, places)]
        codes = [self.table.code[self.open_windows(cti, rows)], rows.rows.groups[places]]
        return distinct(np.concatenate(codes), len(self.table.codes))

    def held_codes(self, cti: int, rows: Arrangement) -> Rows:
        """Return the codes of the partitions that are needed, or have removed windows whose versions are kept."""
        codes = [self.needed_codes(cti, rows), self.table.results.groups_of_gone]
        return distinct(np.concatenate(codes), len(self.table.codes))

    def forget(self, cti: int, rows: Arrangement) -> None:
        """Drop what no change from a CTI on can need, once that may be half of all: amortized O(1) for each row."""
        self.cti = cti
        rows.forget(lambda places: self._are_kept(cti, rows, places))
        table = self.table
        if self.n_kept <= self._most:
            return
        self.sweep(cti, rows)
        is_held = np.zeros(len(table.codes), dtype=np.bool_)
        is_held[self.held_codes(cti, rows)] = True
        self.forget_partitions(flatnonzero(~is_held))
        is_held[rows.rows.groups[flatnonzero(rows.rows.alive)]] = True
        table.codes.keep(flatnonzero(is_held))
        self._most = 2 * self.n_kept + _SPARE

    def _are_kept(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        needed = self.is_needed(cti, rows, places)
        self.before_sweep(rows, places[~needed])
        return needed

    def before_sweep(self, rows: Arrangement, gone: Rows) -> None:
        """Record what must be known of rows that are about to be dropped."""

    @property
    def n_kept(self) -> int:
        """The number of windows that are kept, with removed ones whose versions are kept."""
        return len(self.table) + self.table.results.n_gone

    def sweep(self, cti: int, rows: Arrangement) -> None:
        """Drop the windows that no change from a CTI on can need."""
        self.table.keep(self.is_kept(cti, rows, self.table.all()))
        self.table.results.forget(self.first_return(cti, rows))

    def slowest_code(self, cti: int, rows: Arrangement) -> Rows:
        """Return the code of a partition that holds back the output CTI, if one does."""
        table, slots = self.table, self.table.all()
        return table.code[slots[flatnonzero(table.le[slots] == self.output_cti(cti, rows))[:1]]]

    def first_return(self, cti: int, rows: Arrangement) -> int:
        """Return the first start of a removed window that may come back."""
        return cti

    def is_kept(self, cti: int, rows: Arrangement, slots: Rows) -> NDArray[np.bool_]:
        """Say which windows a change from a CTI on can need."""
        kept: NDArray[np.bool_] = self.table.re[slots] > self.closed_until(cti, rows)[self.table.code[slots]]
        return kept

    def forget_partitions(self, codes: Rows) -> None:
        """Drop what is kept of partitions that are no longer held."""

    def first_alive(self, cti: int, rows: Arrangement) -> Ticks:
        """Return for each partition the least LE of a row whose RE may still change, INFINITY if there is none."""
        first = np.full(max(len(self.table.codes), 1), INFINITY)
        if self.policy.sees_ends:
            alive = flatnonzero(rows.rows.alive & (rows.rows.re >= cti))
            np.minimum.at(first, rows.rows.groups[alive], rows.rows.le[alive])
        return first

    def closed(self, cti: int, rows: Arrangement) -> int:
        """Return the time until which windows are closed in every partition, also in future ones."""
        return int(self.closed_until(cti, rows).min())

    def closed_until(self, cti: int, rows: Arrangement) -> Ticks:
        """Return for each partition the time until which windows are closed: none with W.RE <= it changes, goes or comes."""
        return np.minimum(self.first_alive(cti, rows), cti)


class DisjointFrame(Frame):
    """Windows that do not overlap within a partition: those around a change are computed again."""

    starts_move: ClassVar[bool] = True

    def __init__(self, policy: Policy, windows: Windows) -> None:
        super().__init__(policy, windows)
        self._made: Rows = np.empty(0, dtype=np.intp)
        """The windows of the last change, in order."""
        self.new: Rows = np.empty(0, dtype=np.intp)
        """Those of them that are new."""
        self._looked_at: Members | None = None
        """The members of these, until something changes; None if not all rows around have been read."""

    def members(self, slots: Rows, rows: Arrangement) -> Members:
        if self._looked_at is not None:
            number = np.full(self.table.capacity, -1, dtype=np.intp)
            number[self._made] = np.arange(len(self._made))
            at = number[slots]
            if (at >= 0).all():
                return self._looked_at.at(at)
        return super().members(slots, rows)

    def end_step(self) -> None:
        super().end_step()
        self._looked_at = None
        self.new = self.new[:0]

    def change(self, changed: ChangedRows, rows: Arrangement) -> Touched:
        self._looked_at = None
        around = self.around(changed, rows)
        if not len(around):
            return UNTOUCHED
        portion = self.table.portion(around)
        found = self.windows(changed, around, portion, rows)
        return self._replace(around, portion, found, self.differ(changed, found))

    def takes(self, rows: Sequence[tuple[int, int, int]], high_water: int, held: Arrangement) -> bool:
        if self.policy.time_sensitive or type(self).take is Frame.take:
            return False
        table = self.table
        spans = [(code, le, self.end(re)) for code, le, re in rows]
        last = max([time for _, le, end in spans for time in (le, end) if time != INFINITY])
        if not table.fit(min([le for _, le, _ in spans]), last):
            return False
        for code, le, end in spans:
            if table.index.has_more(table.place(code, le), table.place(code, end), MOST // len(rows)):
                return False
        return True

    def end(self, re: int) -> int:
        """Return the time before which the windows of a row begin."""
        return re

    def _around(self, code: int, low: int, high: int, le: int) -> list[int]:
        """Return the windows of a partition with starts between two places, and the one before if it ends after `le`."""
        table = self.table
        numbers, slots = table.index.around(low, high)
        if numbers and numbers[0] < low and (table.code.item(slots[0]) != code or table.re.item(slots[0]) <= le):
            del slots[0]
        return slots

    def _widened(self, codes: Rows, lo: Ticks, hi: Ticks) -> Stretches:
        """Widen stretches until no window crosses their ends."""
        table = self.table
        spans = table.stretches(codes, lo, hi).merged()
        portion = table.portion(spans)
        slots = portion.slots
        if not len(slots):
            return spans
        before = np.searchsorted(portion.numbers, spans.low) - 1
        first = slots[np.maximum(before, 0)]
        ends = table.re[first]
        crosses = (before >= 0) & (table.code[first] == spans.codes) & (ends > spans.lo)
        lo = np.where(crosses, table.le[first], spans.lo)
        before = np.searchsorted(portion.numbers, spans.high) - 1
        last = slots[np.maximum(before, 0)]
        crosses = (before >= 0) & (table.code[last] == spans.codes) & (table.re[last] > spans.hi)
        return table.stretches(spans.codes, lo, np.where(crosses, table.re[last], spans.hi)).merged()

    def _span(self, changed: ChangedRows) -> tuple[Ticks, Ticks]:
        """Return the period in which a changed row is a member only before or only after, or reads differently to a module."""
        lo, hi = np.minimum(changed.re_old, changed.re_new), np.maximum(changed.re_old, changed.re_new)
        return np.where(changed.stay, changed.le, lo) if self.policy.sees_ends else lo, hi

    @abstractmethod
    def around(self, changed: ChangedRows, rows: Arrangement) -> Stretches:
        """Return the stretches, merged, in which windows that may change have their starts."""

    @abstractmethod
    def windows(self, changed: ChangedRows, around: Stretches, portion: Portion, rows: Arrangement) -> WindowColumns:
        """Compute the windows that start in some stretches. The portion has those that started there before."""

    @abstractmethod
    def differ(self, changed: ChangedRows, found: WindowColumns) -> NDArray[np.bool_]:
        """Say which windows may have other members, or members that read differently to a module."""

    def _replace(self, around: Stretches, portion: Portion, found: WindowColumns, differ: NDArray[np.bool_]) -> Touched:
        """Replace windows; one with the same start keeps its slot."""
        table = self.table
        inside = flatnonzero(around.holds(portion.numbers))
        numbers, slots = portion.numbers[inside], portion.slots[inside]
        at = np.searchsorted(numbers, found.low)
        is_known = numbers.take(at, mode="clip") == found.low if len(numbers) else np.zeros(len(found.low), dtype=np.bool_)
        now = np.empty(len(found.low), dtype=np.intp)
        known, new = flatnonzero(is_known), flatnonzero(~is_known)
        now[known] = slots[at[known]]
        now[new] = table.make(found.codes[new], found.le[new])
        self.split = self._split(now[new], slots[np.maximum(at[new] - 1, 0)], at[new] > 0) if len(slots) else NO_SPLIT
        moved = table.re[now] != found.re
        # As the end of a window moves, unchanged rows enter or leave it: then their number changes.
        summed = differ | ~is_known | (table.rows[now] != found.rows)
        table.re[now], table.rows[now] = found.re, found.rows
        if self.policy.time_sensitive:
            summed |= moved
        is_gone = np.ones(len(slots), dtype=np.bool_)
        is_gone[at[known]] = False
        table.replace(portion, around, found.low, now)
        self._made, self.new = now, now[new]
        touched = flatnonzero(summed | moved)
        return Touched(now[touched], summed[touched], slots[is_gone])

    def _split(self, new: Rows, before: Rows, has_one: NDArray[np.bool_]) -> Split:
        """Return the new windows that start inside of a previous one."""
        table = self.table
        inside = has_one & (table.code[before] == table.code[new]) & (table.re[before] > table.le[new])
        at = flatnonzero(inside)
        return Split(new[at], before[at])
