"""The promise of the output policy time-bound: a change of the input at time s changes no output before s (paper 001, III.C)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

from streamdsl.engine.frames.causes import breach
from streamdsl.engine.general.group import GroupWindows
from streamdsl.engine.general.window_index import OutputRow, WindowEntry
from streamdsl.temporal.change import pair
from streamdsl.temporal.lifetime import Lifetime

Row = TypeVar("Row", "OutputRow", "Fresh")


class Fresh(NamedTuple):
    """A computed result, and its window."""

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
    causes = group.causes | {entry.le: group.cause_of(entry) for entry in group.dirty.values()}
    old, new = _by_window(group.gone), _by_window(fresh)
    for window, cause in causes.items():
        for before, after in pair(old.get(window, []), new.get(window, [])):
            if before and after and before.re == after.re:
                continue
            rows = [row for row in (before, after) if row]
            if cause > min(row.re if before and after else row.le for row in rows):
                raise breach(module, cause, [Lifetime(row.le, row.re) for row in rows], window)


def _by_window(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.window, []).append(row)
    return found
