"""The causes of new results: for each window the earliest time at which something of it changes (paper 001, III.C)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdsl.engine.buffered.holistic import extreme
from streamdsl.engine.buffered.members import Members, Values
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import ChangedRows, Frame
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.errors import TIME, TimestampViolation
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks


def causes(frame: Frame, rows: Arrangement, changed: ChangedRows, out: Rows, made: Rows) -> Ticks:
    """Return by slot the time of the first change of a row that is, or was, in the window; MIN_TIME if there is none.

    `out` are windows with an emitted result, `made` are new ones. An end that moves is a change too.
    """
    table = frame.table
    found, ends = np.full(table.capacity, INFINITY), table.results.re
    there = np.concatenate([out[table.rows[out] > 0], made])
    for slots, re in ((out, ends), (there, table.re)):
        slots = slots[np.lexsort((table.le[slots], table.code[slots]))]
        if len(slots):
            windows = table.stretches(table.code[slots], table.le[slots], re[slots])
            found[slots] = np.minimum(found[slots], _first_changes(frame, rows, changed, windows))
    moved = out[ends[out] != table.re[out]]
    found[moved] = np.minimum(found[moved], np.minimum(ends[moved], table.re[moved]))
    return np.where(found == INFINITY, MIN_TIME, found)


def _first_changes(frame: Frame, rows: Arrangement, changed: ChangedRows, windows: Stretches) -> Ticks:
    """Return for each of some windows, which are in order, when the first change was of a row in it; INFINITY without one."""
    codes, times, everyone = changed.codes, np.minimum(changed.re_old, changed.re_new), np.arange(len(changed.le))
    # A row that stays, and of which ends beyond the window are not seen, looks as before in windows that it reaches out of.
    later = np.searchsorted(windows.high, frame.table.any_places(codes, times), side="right")
    looks_otherwise_from = np.where(changed.stay & (not frame.policy.sees_ends), later, 0)
    parts = [frame.spans(windows, codes, rows.extents_of(changed.le, re), everyone) for re in (changed.re_old, changed.re_new)]
    places, first, last = (np.concatenate(columns) for columns in zip(*((p.places, p.first, p.last) for p in parts), strict=True))
    first = np.maximum(first, looks_otherwise_from[places])
    inside = flatnonzero(first < last)
    members = Members(places[inside], first[inside], last[inside], len(windows))
    return first_of(members, times[members.places])


def first_of(members: Members, times: Ticks) -> Ticks:
    """Return the smallest of its members' times for each window, INFINITY where there is none.

    >>> first_of(Members(np.arange(2), np.array([0, 0]), np.array([1, 2]), 3), np.array([5, 7])).tolist()[:2]
    [5, 7]
    """
    if not len(times):
        return np.full(members.n_windows, INFINITY)
    return extreme(np.minimum, INFINITY, Values(times, members))


def breach(module: str, cause: int, results: Sequence[Lifetime], window: int) -> TimestampViolation:
    """Return what is wrong if a change at time `cause` changes an earlier result of the window that starts at `window`."""
    return TimestampViolation(
        f"{module} claims to be time-bound, but a change of its input at {TIME} changes its output "
        f"{' to '.join(f'[{TIME}, {TIME})' for _ in results)} of the window that starts at {TIME}",
        times=(cause, *(time for life in results for time in (life.le, life.re)), window),
        hint="a change of the input at time s may change no output before s; use another output policy",
    )
