"""Windows of a sequence: rows of a partition are counted by position, a window exists while it is the last one (paper 003)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.group_times import GroupTimes
from streamdsl.engine.buffered.members import MemberPairs, Members
from streamdsl.engine.buffered.runs import Order
from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.data_driven.timeline import Touched
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.creation import CreatedWindows, creation_of
from streamdsl.engine.frames.frame import ChangedRows, DisjointFrame, Policy, RowUpdate, WindowColumns
from streamdsl.engine.frames.positions import Positions
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.index.pair_index import longer
from streamdsl.engine.pairs import distinct, spread
from streamdsl.engine.sorting import sorted_integers
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Sequenced

_TIMES: Final = ("_origin", "_coming", "_last", "_starts", "_since")
_COUNTS: Final = ("_dropped", "_stops")
"""What is kept of partitions: times, and numbers of rows."""


class _Step(NamedTuple):
    """The rows of the partitions in a step, the windows that are created, and those that go on from before."""

    positions: Positions
    made: CreatedWindows
    going_on: Rows


class SequenceFrame(DisjointFrame):
    """The windows that have begun by the clock; `table.starting` has the position of each one's first row.

    What is seen at an instant depends on the rows with LE <= it alone. So a change at LE = s leaves all before s as it is, and
    the windows that are created from s on are found again.
    """

    by_point: ClassVar[bool] = True
    by_period: ClassVar[bool] = False

    def __init__(self, policy: Policy, windows: Sequenced) -> None:
        super().__init__(policy, windows)
        self._spec = windows
        self._creation = creation_of(windows, policy.budget)
        self._until = policy.emit_policy.until
        self._dropped: Ticks = np.empty(0, dtype=np.int64)
        """For each partition the number of its first rows that have been dropped."""
        self._origin: Ticks = np.empty(0, dtype=np.int64)
        """For each partition the LE of its first row, if that has been dropped."""
        self._stops: Ticks = np.empty(0, dtype=np.int64)
        """For each partition the number of rows so far."""
        self._coming: Ticks = np.empty(0, dtype=np.int64)
        """For each partition when the next window may begin, INFINITY if none does until a row arrives."""
        self._last: Ticks = np.empty(0, dtype=np.int64)
        """For each partition the LE of its last row, INFINITY if there is none."""
        self._starts: Ticks = np.empty(0, dtype=np.int64)
        """For each partition when its query starts."""
        self._since: Ticks = np.empty(0, dtype=np.int64)
        """For each partition the instant from which on windows are computed again in this step, INFINITY if none are."""
        self._first: Ticks = np.empty(0, dtype=np.int64)
        """The position of the first row of each computed window."""
        self._differ: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        """Which of these may have other rows than before."""
        self._step: _Step | None = None
        self._is_over: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        """For each partition whether no more windows begin, so that only the rows of hidden windows are needed."""

    # Which windows change

    @property
    def _limit(self) -> int:
        """The last instant at which windows that are made begin."""
        return min(self.clock, self._until, INFINITY - 1)

    def opens(self) -> bool:
        return bool((self._coming <= self._limit).any())

    def n_waiting(self, rows: Arrangement) -> int:
        return len(self.table.codes)

    def _grow(self) -> None:
        size = len(self.table.codes)
        if len(self._since) < size:
            new = slice(len(self._since), None)
            for name in (*_TIMES, *_COUNTS):
                setattr(self, name, longer(getattr(self, name), 2 * size))
            self._reset(new)

    def _reset(self, codes: Rows | slice) -> None:
        for name in _TIMES:
            getattr(self, name)[codes] = INFINITY
        self._dropped[codes] = self._stops[codes] = 0

    def around(self, changed: ChangedRows, rows: Arrangement) -> Stretches:
        self._grow()
        at, since = self._counted(changed), self._since
        due = flatnonzero(self._coming <= self._limit)
        since[due] = self._coming[due]
        np.minimum.at(since, changed.codes[at], changed.le[at])
        codes = flatnonzero(since < INFINITY)
        if not len(codes):
            return Stretches(codes, since[codes], since[codes], since[codes], since[codes])
        lo = np.maximum(since[codes], MIN_TIME + 1) - 1
        self.table.fit(int(lo.min()), int(since[codes].max()))
        around = self._widened(codes, lo, np.full(len(codes), INFINITY))
        self._step = step = self._remade(codes, rows, self._going_on(around))
        times = np.concatenate([around.lo, step.made.le, step.made.re])
        self.table.fit(int(times.min()), int(times[times < INFINITY].max()))
        return self.table.stretches(around.codes, around.lo, around.hi)

    def _counted(self, changed: ChangedRows) -> Rows:
        """Return the changed rows that are inserted or retracted, of those that count."""
        counts = ~changed.stay
        if self._spec.start is not None:
            counts &= changed.le >= self._spec.start
        return flatnonzero(counts)

    def _going_on(self, around: Stretches) -> Rows:
        """Return the windows that go on from before all changes, with the same rows."""
        table, portion = self.table, self.table.portion(around)
        slots = portion.slots[flatnonzero(around.holds(portion.numbers))]
        return slots[table.le[slots] < self._since[table.code[slots]]]

    def _remade(self, codes: Rows, rows: Arrangement, going_on: Rows) -> _Step:
        """Compute the windows that are created in some partitions from an instant on."""
        positions = self._by_position(codes, rows, self._rows_of(codes, rows))
        goes_on = np.zeros(len(codes), dtype=np.bool_)
        goes_on[np.searchsorted(codes, self.table.code[going_on])] = True
        try:
            made = self._creation.windows_from(positions, self._since[codes], goes_on, self._limit)
        except StreamDslError:
            raise
        except Exception as error:  # raised by a bound that is a function
            raise UserCodeError(error, operator=self.policy.budget.label) from error
        self._starts[codes], self._last[codes] = positions.origin, positions.last_times
        self._stops[codes] = positions.dropped + positions.sizes
        self._coming[codes] = np.where(made.coming < self._until, made.coming, INFINITY)
        return _Step(positions, made, going_on)

    def _rows_of(self, codes: Rows, rows: Arrangement) -> Rows:
        """Return where all rows of some partitions are."""
        always, places_of = [np.full(len(codes), time) for time in (MIN_TIME, INFINITY)], self.table.any_places
        return rows.overlapping(Stretches(codes, *always, *(places_of(codes, times) for times in always)), places_of)

    def _by_position(self, codes: Rows, rows: Arrangement, places: Rows) -> Positions:
        if self._spec.start is not None:
            places = places[rows.rows.le[places] >= self._spec.start]
        order = Order.PAYLOAD if self._spec.by_position else Order.ANY
        origin = self._origin[codes] if self._spec.start is None else np.full(len(codes), self._spec.start)
        return Positions(codes, rows.rows, places, order, self._dropped[codes], origin)

    def windows(self, changed: ChangedRows, around: Stretches, portion: Portion, rows: Arrangement) -> WindowColumns:
        assert self._step is not None
        table, codes, (positions, made, before) = self.table, around.codes, self._step
        goes_on = np.searchsorted(codes, table.code[before])
        columns = (goes_on, table.le[before], made.ends[goes_on], table.starting[before], table.rows[before])
        of, le, re, first, sizes = (np.concatenate(pair) for pair in zip(columns, made[:5], strict=True))
        order, low = sorted_integers(table.places(codes[of], le))
        found = WindowColumns(low, codes[of[order]], le[order], re[order], sizes[order])
        self._first, self._differ = first[order], np.zeros(len(order), dtype=np.bool_)
        new, moved = flatnonzero(order >= len(before)), self._counted(changed)
        if len(new) and len(moved) and len(portion.slots):
            known = np.searchsorted(portion.numbers, found.low[new])
            was = table.starting[portion.slots.take(known, mode="clip")]
            come = ChangedRows(*(column[moved] for column in changed))
            self._differ[new] = _have_others(positions, found.take(new), self._first[new], was, come)
        self._since[codes] = INFINITY
        return found

    def differ(self, changed: ChangedRows, found: WindowColumns) -> NDArray[np.bool_]:
        return self._differ

    def _replace(self, around: Stretches, portion: Portion, found: WindowColumns, differ: NDArray[np.bool_]) -> Touched:
        touched = super()._replace(around, portion, found, differ)
        self.table.starting[self._made] = self._first
        return touched

    def end_step(self) -> None:
        super().end_step()
        self._step, self._first, self._differ = None, self._first[:0].copy(), self._differ[:0].copy()

    # Row by row: one that comes last may have to wait until the first window begins that it is in.

    def takes(self, rows: Sequence[tuple[int, int, int]], high_water: int, held: Arrangement) -> bool:
        if self.opens() or len({code for code, _, _ in rows}) < len(rows):
            return False
        return all(self._wait(code, le) is not None for code, le, _ in rows)

    def _wait(self, code: int, le: int) -> int | None:
        """Return the start of the first window with a row; None if that is now, or if the row is not the last one."""
        if code >= len(self._last) or le <= self._last.item(code):
            return None
        begins = self._creation.begins_with(le, self._stops.item(code), self._starts.item(code))
        return None if begins is None or begins <= self.clock else begins

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        begins = self._wait(code, le)
        if begins is not None and begins < self._until:
            self._coming[code] = min(self._coming.item(code), begins)
        self._last[code] = le
        self._stops[code] += 1
        return RowUpdate([])

    # Members

    def members(self, slots: Rows, rows: Arrangement) -> Members:
        table = self.table
        codes = distinct(table.code[slots], len(table.codes))
        positions = self._by_position(codes, rows, self._rows_of(codes, rows))
        lo = positions.rows_at(np.searchsorted(codes, table.code[slots]), table.starting[slots])
        hi = lo + table.rows[slots]
        if not ((lo[1:] >= lo[:-1]).all() and (hi[1:] >= hi[:-1]).all()):  # of functions, or as rows come together
            windows, at = spread(lo, hi)
            return Members.of_pairs(MemberPairs(windows, positions.places[at]), len(slots))
        at = np.arange(len(positions.places))
        first, last = np.searchsorted(hi, at, side="right"), np.searchsorted(lo, at, side="right")
        members = Members(positions.places, first, last, len(slots))
        return members.only(flatnonzero(first < last))

    # Time: all before a CTI is closed. A window that ends at the CTI is open: the row that ends it may still be retracted.

    def closed_until(self, cti: int, rows: Arrangement) -> Ticks:
        return np.full(max(1, len(self.table.codes)), max(cti, MIN_TIME + 1) - 1)

    def settled_output(self, cti: int, rows: Arrangement) -> int:
        return cti

    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        """Say which rows are needed, by windows that begin from the CTI on, or by hidden ones."""
        self._grow()
        table, slots = self.table, self.table.all()
        positions = self._by_position(np.arange(len(table.codes)), rows, flatnonzero(rows.rows.alive))
        first = self._creation.first_needed(positions, max(cti, MIN_TIME + 1) - 1)
        waits = slots[(table.re[slots] >= cti) & ~table.results.is_emitted[slots]]
        codes, stop = table.code[waits], np.zeros(len(first), dtype=np.int64)
        np.maximum.at(stop, codes, table.starting[waits] + table.rows[waits])
        # Where no window will begin any more the rows behind those that wait go, and the others keep their positions.
        self._is_over = (first == INFINITY) & (stop > 0)
        np.minimum.at(first, codes, table.starting[waits])
        is_kept = np.zeros(len(rows.rows), dtype=np.bool_)
        if len(positions.places):
            of, numbers = positions.of, positions.numbers
            is_kept[positions.places] = np.where(self._is_over[of], numbers < stop[of], numbers >= first[of])
        return is_kept[places]

    def before_sweep(self, rows: Arrangement, gone: Rows) -> None:
        codes, le = rows.rows.groups[gone], rows.rows.le[gone]
        if self._spec.start is not None:
            codes = codes[le >= self._spec.start]
        else:
            np.minimum.at(self._origin, codes, le)
        np.add.at(self._dropped, codes[~self._is_over[codes]], 1)

    def needed_codes(self, cti: int, rows: Arrangement) -> Rows:
        codes = [super().needed_codes(cti, rows)]
        if self._spec.start is None or self._spec.by_position:
            codes.append(flatnonzero(self._dropped))
        return distinct(np.concatenate(codes), len(self.table.codes))

    @property
    def n_kept(self) -> int:
        # Partitions may have no window.
        return super().n_kept + self.table.codes.n_held

    def forget_partitions(self, codes: Rows) -> None:
        self._reset(codes[codes < len(self._since)])


def _have_others(
    positions: Positions, windows: WindowColumns, first: Ticks, was: Ticks, changed: ChangedRows
) -> NDArray[np.bool_]:
    """Say which windows may have other rows than one that stood there, which began with the position `was`.

    A row between the first and the last one has changed, or the first one has moved further than rows before it have come.
    """
    of = np.searchsorted(positions.codes, windows.codes)
    begins, ends = (positions.le[positions.rows_at(of, place)] for place in (first, first + windows.rows - 1))
    times = GroupTimes(changed.codes, changed.le)
    order, keys = sorted_integers(times.pack(changed.codes, changed.le))
    inside, behind = times.ranges(keys, windows.codes, begins, ends + 1)
    start, _ = times.ranges(keys, windows.codes, np.full(len(of), MIN_TIME), ends)
    come = np.concatenate([[0], np.cumsum(np.where(changed.re_new > changed.re_old, 1, -1)[order])])
    have_others: NDArray[np.bool_] = (inside < behind) | (first - was != come[inside] - come[start])
    return have_others
