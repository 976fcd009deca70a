"""The promise of the output policy time-bound: a change of the input at time s changes no output before s (paper 001, III.C)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from streamdsl.engine.index import OutputRow, WindowEntry
from streamdsl.engine.windows.group import GroupWindows
from streamdsl.errors import TimestampViolation
from streamdsl.temporal.change import pair
from streamdsl.temporal.time import INFINITY, MIN_TIME


class Fresh(NamedTuple):
    """A result that is right now, and its window."""

    le: int
    re: int
    payload: Any
    key: Hashable
    entry: WindowEntry

    @property
    def window(self) -> int:
        return self.entry.le


def check_time_bound(module: str, group: GroupWindows, fresh: list[Fresh]) -> None:
    """Refuse a change of the results before the sync time of its cause: the module called so breaks its promise."""
    by_window = group.causes | {entry.le: group.cause_of(entry) for entry in group.dirty.values()}
    gone = [row for row in group.gone if by_window[row.window] > MIN_TIME]
    new = [row for row in fresh if by_window[row.window] > MIN_TIME]
    causes: dict[tuple[int, Hashable], int] = {}
    rows: list[OutputRow | Fresh] = [*gone, *new]
    for row in rows:
        causes[row.le, row.key] = min(by_window[row.window], causes.get((row.le, row.key), INFINITY))
    for before, after in pair(gone, new):
        if before and after and before.re == after.re:
            continue
        rows = [row for row in (before, after) if row]
        cause = causes[rows[0].le, rows[0].key]
        if cause > min(row.re if before and after else row.le for row in rows):
            raise TimestampViolation(
                f"{module} claims to be time-bound, but a change of its input at {cause} changes its output "
                f"{' to '.join(f'[{row.le}, {row.re})' for row in rows)} of the window that starts at {rows[-1].window}",
                hint="a change of the input at time s may change no output before s; use another output policy",
            )
