"""The windows of one group: what changes make of them, which results may show, and what a CTI closes (paper 001, V.C-F)."""

from __future__ import annotations

import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sortedcontainers import SortedSet

from streamdsl.engine.general.event_index import EventIndex, EventRow
from streamdsl.engine.general.window_index import OutputRow, WindowEntry, WindowIndex
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.window_budget import MOST, WindowBudget
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.udm import incremental
from streamdsl.udm.bases import UDM
from streamdsl.udm.incremental import Held, MemberChange
from streamdsl.udm.invoke import guarded
from streamdsl.windows import Output, Windows

_MOST_CHANGES = 64
"""A state is built again if more changes of members wait than this, and than twice their number."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the groups of one window operator share."""

    emit_policy: EmitPolicy
    output: Output
    time_sensitive: bool
    sees_ends: bool
    """Whether a module sees where a member ends outside of the window: it is time-sensitive and nothing clips to the right."""
    stateful: Mapping[int, UDM] = field(default_factory=dict)
    """The modules that keep states, by their position."""
    label: str = ""
    """The operator's, for errors."""
    budget: WindowBudget = field(default_factory=lambda: WindowBudget("", "windows", MOST))

    def copy_states(self, entry: WindowEntry) -> list[Held | None] | None:
        """Return copies of a window's states, for another with the same members."""
        held = entry.states
        if held is None:
            return None

        def copies() -> list[Held | None]:
            return [None if state is None else incremental.copied(self.stateful[i], state) for i, state in enumerate(held)]

        return guarded(self.label, entry.period, copies)

    @property
    def states_know_period(self) -> bool:
        """Whether a module that keeps states is time-sensitive: they must be built anew when the window's period changes."""
        return any(module.time_sensitive for module in self.stateful.values())


class GroupWindows(ABC):
    """The state of a window operator for one group. Subclasses, one per kind of window, keep the windows up to date.

    `dirty` are the windows whose results must be computed anew, `gone` the results that are no longer right; the operator
    takes both after each piece of input. `cause` is the sync time of the change being taken, `causes` holds the earliest one
    that has touched each window, by its LE; MIN_TIME if the high water has opened it, or closed it again.
    """

    windows_grow: ClassVar[bool] = False
    """Whether a window's end may move away."""

    def __init__(self, setting: Setting, windows: Windows) -> None:
        self.setting = setting
        self.path: Hashable = None
        self.windows = WindowIndex()
        self.events = EventIndex()
        self.dirty: dict[int, WindowEntry] = {}
        self.gone: list[OutputRow] = []
        self.cause = MIN_TIME
        self.causes: dict[int, int] = {}
        self.ordinals: dict[int, set[int]] = {}
        self.high_water = MIN_TIME
        self.scheduled: int | None = None
        self._alive: list[tuple[int, int, EventRow]] = []
        self._tickets = itertools.count()

    def take(self, row: EventRow, re_old: int, re_new: int) -> None:
        """Take the change of one event's RE; an end equal to LE means that it is not there."""
        self.cause = min(re_old, re_new)
        self.change(row, re_old, re_new)

    def cause_of(self, entry: WindowEntry) -> int:
        """Return the earliest sync time of what has changed a window; if it has opened, of all that made it."""
        cause = self.causes[entry.le]
        return min(row.le for row in self.members(entry)) if entry.shown and cause == MIN_TIME else cause

    @abstractmethod
    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        """Keep the windows up to date with the change of one event's RE."""

    @abstractmethod
    def reveal(self, high_water: int) -> None:
        """Raise the high water: windows that it opens become dirty."""

    @abstractmethod
    def next_reveal(self) -> int | None:
        """Return the high water at which the next hidden window opens, None if there is none."""

    @abstractmethod
    def members(self, entry: WindowEntry) -> list[EventRow]:
        """Return the events that belong to a window."""

    @abstractmethod
    def forget(self, cti: int) -> list[WindowEntry]:
        """Drop and return the closed windows, and drop the events that only they needed."""

    @abstractmethod
    def output_cti(self, cti: int) -> int:
        """Return how far the output CTI may advance for this group."""

    def closed(self, cti: int) -> int:
        """Return the time until which windows are closed: those with W.RE <= it are."""
        return MIN_TIME

    @abstractmethod
    def hidden_windows(self, high_water: int) -> Iterator[WindowEntry]:
        """Yield the windows with members that have begun by the high water but are not open yet."""

    @abstractmethod
    def earliest_start(self, cti: int) -> int:
        """Return a time before which no window will start again."""

    def new_ordinal(self, le: int) -> int:
        """Return a number for a row of the window at `le` that no row with a known id has."""
        used = self.ordinals.setdefault(le, set())
        ordinal = next(n for n in itertools.count() if n not in used)
        used.add(ordinal)
        return ordinal

    def free_ordinal(self, le: int, ordinal: int) -> None:
        """Release a number, as its row has been fully retracted."""
        self.ordinals.get(le, set()).discard(ordinal)

    def forget_ordinals(self, cti: int, closed: Iterable[WindowEntry]) -> None:
        """Forget the numbers of closed windows. Rows may have been paired across windows, so numbers are not released earlier."""
        for entry in closed:
            self.ordinals.pop(entry.le, None)
        if len(self.ordinals) > 2 * len(self.windows) + 8:
            start = self.earliest_start(cti)
            self.ordinals = {le: used for le, used in self.ordinals.items() if used and le >= start}

    def decide(self, entry: WindowEntry, promised: int) -> bool:
        """Say whether a dirty window's results are to be computed now; `promised` is the output CTI so far.

        A window that has emitted and then grown beyond the high water keeps its results if their retraction would violate that
        CTI.
        """
        must_stay = entry.shown and entry.le < promised and self.setting.output is not Output.POINT_AT_END
        is_open = must_stay or self.setting.emit_policy.is_open(entry.le, entry.re, self.high_water)
        entry.shown = is_open and entry.n_events > 0
        if not is_open:
            self.causes[entry.le] = MIN_TIME
        return entry.shown

    @property
    def is_empty(self) -> bool:
        """Say whether the group holds nothing that a later change can need."""
        return not len(self.events) and not any(entry.n_events for entry in self.windows)

    @property
    def n_windows(self) -> int:
        """The number of non-empty windows that are kept."""
        return sum(entry.n_events > 0 for entry in self.windows)

    @property
    def n_events(self) -> int:
        """The number of events that are kept."""
        return len(self.events)

    def touch(self, entry: WindowEntry, change: MemberChange | None = None) -> None:
        """Mark a window dirty: its results so far may be wrong. `change` is what has become of a member, for its states."""
        self._take_back(entry)
        entry.output = []
        self.dirty[entry.le] = entry
        if change is None:
            return
        entry.results = None
        if entry.states is None:
            return
        entry.changes.append(change)
        if len(entry.changes) > _MOST_CHANGES + 2 * entry.n_events:
            entry.forget_computed()

    def reshape(self, entry: WindowEntry, re: int) -> None:
        """Give a window another end; its members stay."""
        self.touch(entry)
        entry.re = re
        if self.setting.states_know_period:
            entry.forget_computed()

    def drop(self, entry: WindowEntry) -> None:
        """Remove a window."""
        self._take_back(entry)
        if not entry.shown:
            self.causes[entry.le] = MIN_TIME
        self.windows.remove(entry.le)
        self.dirty.pop(entry.le, None)

    def _take_back(self, entry: WindowEntry) -> None:
        self.gone.extend(entry.output)
        if self.setting.output is Output.TIME_BOUND:
            self.causes[entry.le] = min(self.cause, self.causes.get(entry.le, INFINITY))

    def settled(self) -> None:
        """Clear the dirty windows: the emitted results are right."""
        self.dirty.clear()
        self.gone.clear()
        self.causes.clear()
        self.cause = MIN_TIME

    def move(self, row: EventRow, re_old: int, re_new: int) -> EventRow:
        """Update the event index for one change, and return the event as it is kept there."""
        if re_old > row.le:
            row = self.events.remove(row.id, row.le)
        else:
            self.note_alive(row)
        row.re = re_new
        if re_new > row.le:
            self.events.add(row)
        return row

    def earliest_alive(self, cti: int) -> int:
        """Return the smallest LE of an event whose RE may still change, INFINITY if there is none. Amortised O(log n)."""
        while self._alive and self._alive[0][2].re < cti:
            heapq.heappop(self._alive)
        return self._alive[0][0] if self._alive else INFINITY

    def note_alive(self, row: EventRow) -> None:
        """Remember that an event's RE may change, if that matters to the module."""
        if self.setting.sees_ends:
            heapq.heappush(self._alive, (row.le, next(self._tickets), row))


class HiddenWindows(GroupWindows):
    """Kinds that know all their windows remember those that are not open yet, until the high water reaches them."""

    windows_grow: ClassVar[bool] = True

    def __init__(self, setting: Setting, windows: Windows) -> None:
        super().__init__(setting, windows)
        self.hidden: Any = SortedSet()

    def decide(self, entry: WindowEntry, promised: int) -> bool:
        is_open = super().decide(entry, promised)
        if is_open or not entry.n_events:
            self.hidden.discard(entry.le)
        else:
            self.hidden.add(entry.le)
        return is_open

    def drop(self, entry: WindowEntry) -> None:
        super().drop(entry)
        self.hidden.discard(entry.le)

    def reveal(self, high_water: int) -> None:
        self.high_water = max(self.high_water, high_water)
        while self.hidden:
            entry = self.windows.get(self.hidden[0])
            assert entry is not None
            if not self.setting.emit_policy.is_open(entry.le, entry.re, self.high_water):
                return
            self.hidden.discard(entry.le)
            self.touch(entry)

    def next_reveal(self) -> int | None:
        entry = self.windows.get(self.hidden[0]) if self.hidden else None
        if entry is None or entry.re > self.setting.emit_policy.until:
            return None
        return entry.re if self.setting.emit_policy.by_end else entry.le

    def close(self, until: int) -> list[WindowEntry]:
        """Remove and return the windows with RE <= `until`. Those that end after a bounded run never opened."""
        closed = self.windows.forget(until)
        self.hidden.difference_update([entry.le for entry in closed])
        return closed

    def hidden_windows(self, high_water: int) -> Iterator[WindowEntry]:
        for le in self.hidden.irange(maximum=high_water):
            entry = self.windows.get(le)
            assert entry is not None
            yield entry
