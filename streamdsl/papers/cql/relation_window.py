"""Windows as functions from tuples to lifetimes in the relation (paper 002, 4.5).

A window has two parts. Its `Expiry` says when a tuple expires; its `Slide` says at which instants the relation takes a new state:
arrivals and expiries in between show at the next such instant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.papers.cql.group_timeline import Timeline
from streamdsl.stream import Stream
from streamdsl.temporal import INFINITY, CHTRow, Insert, Retract


@dataclass(slots=True, eq=False)
class WindowTuple:
    """A tuple of a window's stream: the instants at which it arrives and expires, and the LE of its row once it has one."""

    id: int
    payload: Any
    t: int
    came: int
    left: int = INFINITY
    le: int | None = None


class Expiry:
    """Decides when tuples expire, and holds those that have not; this one, that none does."""

    counts = False
    """Whether the order of simultaneous tuples counts."""

    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        """Add the tuples of a part of the timeline, in order; return those that expire in it, with `left` set."""
        return []

    @property
    def held(self) -> int:
        """The number of tuples that have not expired, of those that will."""
        return 0


class Slide(ABC):
    """Decides at which instants the relation takes a new state."""

    slides = True
    """Whether the window has a slide."""

    @abstractmethod
    def move(self, members: Sequence[WindowTuple], timeline: Timeline) -> bool:
        """Advance to a part of the timeline, with its tuples; say whether the relation takes a new state in it."""

    @abstractmethod
    def first(self, place: int) -> int | None:
        """Return the first instant of this part, at or after another, with a new state; None if there is none."""

    @abstractmethod
    def forming(self) -> Sequence[int]:
        """Return all instants of this part with a new state."""


@dataclass(frozen=True)
class RelationWindow:
    """A window on a stream of a group: how its parts are made, for each run anew."""

    stream: str
    expiry: Callable[[], Expiry]
    slide: Callable[[], Slide]
    origin: Derivation | None = None
    """How the stream is made, if it is derived from a relation."""

    def start(self) -> RunningWindow:
        """Return the window without tuples."""
        return RunningWindow(self.expiry(), self.slide())


@dataclass(frozen=True, eq=False)
class Derivation:
    """How a stream is derived from a relation: the relation's query and windows, and how its rows are read."""

    stream: Stream[Any]
    windows: Mapping[str, RelationWindow | TableRows]
    read: Callable[[Sequence[CHTRow[Any]], Timeline], list[tuple[int, Any]]] | None
    """None where the output at a batch depends on later batches."""


@dataclass(frozen=True)
class TableRows:
    """The rows of a table, which are alive at every instant."""

    rows: tuple[Any, ...]

    def events(self) -> list[Insert[Any]]:
        """Return the insertions of the rows, from the first instant on."""
        return [Insert(n, 0, INFINITY, row) for n, row in enumerate(self.rows)]


class RunningWindow:
    """The state of a window: it receives one part of the timeline after another, and returns the changes of its rows.

    A tuple is inserted with RE INFINITY and retracted when it expires. Memory: the tuples in the window, and those that wait for
    the next new state.
    """

    def __init__(self, expiry: Expiry, slide: Slide) -> None:
        self.expiry = expiry
        self.slide = slide
        self._waiting: list[WindowTuple] = []
        self._room = 64

    def step(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[Insert[Any] | Retract]:
        """Process a part of the timeline and its tuples, in order; return the changes of the window's rows."""
        left = self.expiry.admit(members, timeline)
        formed = self.slide.move(members, timeline)
        self._waiting += members
        self._waiting += [member for member in left if member.le is not None]
        if not formed and len(self._waiting) < self._room:
            return []
        settled = [(member, self._settle(member)) for member in self._waiting]
        waiting = [member for member, change in settled if _is_pending(member, change)]
        self._waiting, self._room = waiting, 2 * len(waiting) + 64
        return [change for _, change in settled if change is not None]

    @property
    def held(self) -> int:
        """The number of tuples in the window, or waiting for the next new state."""
        return max(self.expiry.held, len(self._waiting))

    def _settle(self, member: WindowTuple) -> Insert[Any] | Retract | None:
        """Return the change of a waiting tuple; None before the next new state, and if the tuple expires before that."""
        re = None if member.left == INFINITY else self.slide.first(member.left)
        if member.le is not None:
            return None if re is None else Retract(member.id, member.le, INFINITY, re)
        le = self.slide.first(member.came)
        if le is None or le == re:
            return None
        member.le = le
        return Insert(member.id, le, INFINITY if re is None else re, member.payload)


def _is_pending(member: WindowTuple, change: Insert[Any] | Retract | None) -> bool:
    """Say whether the insertion or the retraction of a tuple still waits for a new state."""
    if member.le is None:
        return member.left == INFINITY
    return member.left != INFINITY and (change is None or (isinstance(change, Insert) and change.re == INFINITY))
