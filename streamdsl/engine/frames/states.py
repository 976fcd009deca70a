"""What long windows keep of their members, updated by batch: module states, and totals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.members import MemberPairs, Members
from streamdsl.engine.buffered.modules import AggregatedWindows, Sees, StateAggregate
from streamdsl.engine.buffered.runs import Order
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.terms import Terms
from streamdsl.engine.frames.arrangement import Arrangement, Moves
from streamdsl.engine.frames.frame import ChangedRows, Frame
from streamdsl.expr.table import Column, Rows, flatnonzero, object_column
from streamdsl.temporal.time import Ticks
from streamdsl.udm.bases import can_remove


class RequestedWindows(AggregatedWindows, Protocol):
    """Windows whose aggregates are requested. Any subset of them can be requested too."""

    def at(self, windows: Rows) -> RequestedWindows:
        """Return some of the windows."""


class MemberChanges:
    """Which rows have entered and left the windows with an emitted result, in one step."""

    def __init__(self, frame: Frame, rows: Arrangement) -> None:
        self.frame = frame
        self._rows = rows
        self._changed: ChangedRows | None = None
        self._moves: Moves | None = None
        self._are_known = False

    def begin(self, changed: ChangedRows | None, moves: Moves | None) -> None:
        """Begin a step with these changed rows."""
        self._changed, self._moves, self._are_known = changed, moves, False

    def begin_applied(self) -> None:
        """Begin a step whose changes the accumulators contain already."""
        self.begin(None, None)
        self._are_known = True

    @property
    def changed(self) -> ChangedRows | None:
        """The changed rows, None if there are none."""
        return self._changed

    @property
    def n_changed(self) -> int:
        """The number of changed rows."""
        return 0 if self._changed is None else len(self._changed.le)

    def copies(self, slots: Rows) -> tuple[Rows, Rows]:
        """Return which windows were split from others, and from which: they start with the members of these."""
        new, before = self.frame.split
        if not self.frame.are_uniform or not len(new):
            return new[:0], before[:0]
        wanted = np.isin(new, slots)
        return new[wanted], before[wanted]

    def _ends(self, slots: Rows) -> tuple[Rows, Ticks]:
        """Return the windows that have a state, or a copy of one, and their ends as of that state, ascending."""
        table, (new, before) = self.frame.table, self.frame.split
        ends, has_one = table.results.re.copy(), table.results.is_emitted.copy()
        ends[new], has_one[new] = table.results.re[before], table.results.is_emitted[before]
        known = flatnonzero(has_one[slots])
        return known, ends[slots[known]]

    def have_moved(self, slots: Rows) -> NDArray[np.bool_]:
        """Say which windows end elsewhere than when their results were emitted."""
        table = self.frame.table
        have_moved: NDArray[np.bool_] = (table.results.re[slots] != table.re[slots]) & (not self._are_known)
        return have_moved

    def since(self, slots: Rows, sees: Sees = Sees.NOTHING) -> tuple[Members, Members]:
        """Return the members that have left windows, and those that have entered them, since their results were emitted.

        If a module sees ends, a member whose lifetime changes leaves with the old one, and enters with the new one.
        """
        if self._are_known:
            nobody = Members.of_pairs(MemberPairs(slots[:0], slots[:0]), len(slots))
            return nobody, nobody
        gone, come = self._of_changed(slots, sees)
        if not self.frame.are_uniform and sees is Sees.NOTHING:
            out, into = self._of_moved(slots)
            gone, come = (MemberPairs(*map(np.concatenate, zip(*pair, strict=True))) for pair in ((gone, out), (come, into)))
        return Members.of_pairs(gone, len(slots)), Members.of_pairs(come, len(slots))

    def _of_changed(self, slots: Rows, sees: Sees) -> tuple[MemberPairs, MemberPairs]:
        """Return the changed rows that have left windows, and those that have entered them or read differently there."""
        nothing = MemberPairs(slots[:0], slots[:0])
        if self._changed is None or self._moves is None:
            return nothing, nothing
        changed, frame, rows, table = self._changed, self.frame, np.arange(len(self._changed.le)), self.frame.table
        known, ends_before = self._ends(slots)
        if not len(known):
            return nothing, nothing
        windows_re, pairs = table.re[slots], list[Rows]()
        slots = slots[known]
        for ends, re in ((ends_before, changed.re_old), (table.re[slots], changed.re_new)):
            windows = table.stretches(table.code[slots], table.le[slots], ends)
            found = frame.spans(windows, changed.codes, self._rows.extents_of(changed.le, re), rows)
            at, among = found.pairs()
            pairs.append(known[at] * len(rows) + found.places[among])
        before, after = pairs
        left, came = (np.setdiff1d(before, after, True), np.setdiff1d(after, before, True)) if len(before) else (before, after)
        if sees is not Sees.NOTHING and len(before):
            stay = np.intersect1d(before, after, True)
            if sees is Sees.INSIDE:
                at, among = np.divmod(stay, len(rows))
                stay = stay[np.minimum(changed.re_old, changed.re_new)[among] < windows_re[at]]
            left, came = np.concatenate([left, stay]), np.concatenate([came, stay])
        return _unpacked(left, self._moves.before), _unpacked(came, self._moves.after)

    def _of_moved(self, slots: Rows) -> tuple[MemberPairs, MemberPairs]:
        """Return the unchanged rows that have left or entered windows because the ends of these have moved."""
        table, frame = self.frame.table, self.frame
        re_old, re_new = table.results.re[slots], table.re[slots]
        lo, hi = np.minimum(re_old, re_new), np.maximum(re_old, re_new)
        windows = flatnonzero((lo < hi) & table.results.is_emitted[slots])
        nothing = MemberPairs(slots[:0], slots[:0])
        if not len(windows):
            return nothing, nothing
        stretches = table.stretches(table.code[slots[windows]], lo[windows], hi[windows])
        rows = self._rows
        places = rows.overlapping(stretches.merged(), table.any_places)
        if self._moves is not None:
            are_others = np.ones(len(rows.rows), dtype=np.bool_)
            are_others[self._moves.after[self._moves.after >= 0]] = False
            places = places[flatnonzero(are_others[places])]
        found = frame.spans(stretches, rows.rows.groups[places], rows.extents(places), places)
        at, among = found.pairs()
        windows, places = windows[at], found.places[among]
        grows = re_new[windows] > re_old[windows]
        return MemberPairs(windows[~grows], places[~grows]), MemberPairs(windows[grows], places[grows])


class WindowStates:
    """A column of states for each module, by slot. None: the state must be computed from all members.

    Invariant: a state is that of the window's emitted result. It is updated by each step that changes the window, or dropped.
    """

    def __init__(self, changes: MemberChanges, modules: list[StateAggregate]) -> None:
        self._changes = changes
        self._table = changes.frame.table
        self.modules = modules
        self._table.states = [object_column([]) for _ in modules]

    def of(self, module: StateAggregate, found: RequestedWindows, slots: Rows) -> list[Any]:
        """Return the up-to-date states of windows, which are in order."""
        column = self._column(module)
        if module.sees is Sees.NOTHING:
            self._copy(module, column, found, slots)
        is_known = column[slots] != None  # noqa: E711
        if module.sees is not Sees.NOTHING:  # it knows its window
            is_known &= ~self._changes.have_moved(slots)
        gone, come = self._changes.since(slots, module.sees)
        if not can_remove(module.function):
            is_known &= gone.sizes == 0
        known, new = flatnonzero(is_known), flatnonzero(~is_known)
        held = column[slots]
        if len(known):
            requested = found.at(known)
            held[known] = object_column(module.advanced(requested, held[known].tolist(), gone.at(known), come.at(known)))
        if len(new):
            requested = found.at(new)
            members = requested.members(module.order)
            nothing = members.only(new[:0])
            held[new] = object_column(module.advanced(requested, [None] * len(new), nothing, members))
        column[slots] = held
        return list(held.tolist())

    def forget(self, module: StateAggregate, slots: Rows) -> None:
        """Drop the states of a module that windows have."""
        self._column(module)[slots] = None

    def _column(self, module: StateAggregate) -> Column:
        return self._table.states[self.modules.index(module)]

    def _copy(self, module: StateAggregate, column: Column, found: AggregatedWindows, slots: Rows) -> None:
        new, before = self._changes.copies(slots)
        known = flatnonzero(column[before] != None)  # noqa: E711
        if len(known):
            window_of = np.empty(self._table.capacity, dtype=np.intp)
            window_of[slots] = np.arange(len(slots))
            column[new[known]] = module.copied(column[before[known]], found, window_of[new[known]])


class WindowSums:
    """The totals of windows, by slot, updated by each step as states are."""

    def __init__(self, changes: MemberChanges) -> None:
        self._changes = changes

    def of(self, found: RequestedWindows, slots: Rows, terms_of: Callable[[Rows], Terms]) -> AccumulatorColumns:
        """Return the up-to-date totals of windows, which are in order. `terms_of` returns what rows add."""
        table = self._changes.frame.table
        totals = table.totals
        new, before = self._changes.copies(slots)
        copied = flatnonzero(table.has_totals[before])
        totals.copy(new[copied], before[copied])
        table.has_totals[new[copied]] = True
        known, unknown = flatnonzero(table.has_totals[slots]), flatnonzero(~table.has_totals[slots])
        gone, come = self._changes.since(slots)
        for members, sign in ((gone, -1), (come, 1)):
            inside = members.at(known)
            if len(inside.places):
                terms = terms_of(inside.places)
                totals.add(slots[known[inside.first]], terms if sign == 1 else -terms)
        if len(unknown):
            totals.clear(slots[unknown])
            members = found.at(unknown).members(Order.ANY)
            totals.merge(
                slots[unknown], AccumulatorColumns.of_spans(members.first, members.last, len(unknown), terms_of(members.places))
            )
        table.has_totals[slots] = True
        return totals.take(slots)


def _unpacked(pairs: Rows, places: Rows) -> MemberPairs:
    windows, rows = np.divmod(pairs, max(len(places), 1))
    found = places[rows]
    known = flatnonzero(found >= 0)
    return MemberPairs(windows[known], found[known])
