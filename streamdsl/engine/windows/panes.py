"""Panes: parts of overlapping windows whose states are merged, so that an event is added once and not once per window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from streamdsl.engine.index import EventIndex, EventRow, WindowEntry
from streamdsl.udm.bases import UDM
from streamdsl.udm.incremental import Held, merge
from streamdsl.windows import Hopping

Build: TypeAlias = Callable[[Sequence[EventRow]], Held]

MOST_PANES: Final = 64
"""Panes in a window: with more of them, merging would cost what it spares."""


class Panes:
    """The states of one mergeable module for the events that start in each pane; one that changes is built again when needed.

    The members of a window are the events that start in its panes, and those that start before it and reach into it.
    """

    def __init__(self, grid: Hopping, events: EventIndex) -> None:
        self.events = events
        self.width = _width(grid)
        self.offset = grid.offset % self.width
        self.states: dict[int, Held] = {}

    def changed(self, row: EventRow) -> None:
        """Drop the state of the pane in which an event starts that has come or gone."""
        self.states.pop(row.le - (row.le - self.offset) % self.width, None)

    def state(self, module: Any, entry: WindowEntry, build: Build) -> Held:
        """Return the state of a window, merged from its panes; `build` makes one of events."""
        held = build([row for row in self.events.overlapping(entry.le, entry.le + 1) if row.le < entry.le])
        for start in range(entry.le, entry.re, self.width):
            if start not in self.states:
                self.states[start] = build([row for row in self.events.overlapping(start, start + self.width) if row.le >= start])
            held = merge(module, held, self.states[start])
        return held

    def forget(self, before: int) -> None:
        """Drop the panes that start before a time."""
        self.states = {start: held for start, held in self.states.items() if start >= before}


def use_panes(grid: Hopping, module: UDM) -> bool:
    """Say whether windows overlap enough, and in few enough panes, for a module's states to be merged from those.

    >>> from streamdsl.udm.builtin import Count
    >>> use_panes(Hopping(10, 5), Count())
    False
    """
    overlap = grid.size > grid.hop and grid.size // _width(grid) <= MOST_PANES
    return overlap and module.incremental and module.mergeable and not module.time_sensitive


def _width(grid: Hopping) -> int:
    return math.gcd(grid.size, grid.hop)
