"""Windows as rules for lifetimes: at which instant a tuple comes into the relation, and at which it leaves (paper 002, 4.5).

A window has two parts. `Leaving` says when a tuple that came leaves again; a `Gate` says at which instants the relation takes a
new state: what came and left in between is seen at the next such instant, if it is still there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.papers.cql.timeline import Timeline
from streamdsl.stream import Stream
from streamdsl.temporal import INFINITY, CHTRow, Insert, Retract


@dataclass(slots=True, eq=False)
class Member:
    """A tuple of a window's stream: the instant at which it came, the one at which it leaves, and since when it is seen."""

    id: int
    payload: Any
    t: int
    came: int
    left: int = INFINITY
    le: int | None = None


class Leaving(ABC):
    """When tuples leave."""

    counts = True
    """Whether the order of simultaneous tuples counts."""

    @abstractmethod
    def start(self) -> RunningLeaving:
        """Return the rule, with no tuple seen yet."""


class RunningLeaving(ABC):
    """A rule with the tuples that have not left."""

    @abstractmethod
    def admit(self, members: Sequence[Member], timeline: Timeline) -> list[Member]:
        """Take the tuples that come in a part of the timeline, in order; return those that leave in it, `left` set."""

    @property
    def held(self) -> int:
        """How many tuples have not left, of those that will."""
        return 0


class Gate(ABC):
    """When the relation takes a new state."""

    @abstractmethod
    def start(self) -> RunningGate:
        """Return the gate, with no tuple seen yet."""

    slides = True
    """Whether a window with this gate has a slide."""


class RunningGate(ABC):
    """A gate with what it knows of the past."""

    @abstractmethod
    def move(self, members: Sequence[Member], timeline: Timeline) -> bool:
        """Go on to a part of the timeline, with the tuples that come in it; say whether a state forms in it."""

    @abstractmethod
    def first(self, place: int) -> int | None:
        """Return the first instant of this part, at or after another, at which a state forms."""

    @abstractmethod
    def forming(self) -> Sequence[int]:
        """Return every instant of this part at which a state forms."""


@dataclass(frozen=True)
class Window:
    """A window on a stream of a group."""

    stream: str
    leaving: Leaving
    gate: Gate
    origin: Derivation | None = None
    """How the stream is made, if it is derived from a relation."""

    def start(self) -> RunningWindow:
        """Return the window, with no tuple seen yet."""
        return RunningWindow(self.leaving.start(), self.gate.start())


@dataclass(frozen=True, eq=False)
class Derivation:
    """How a stream is derived from a relation: the relation's query and windows, and how its rows are read."""

    stream: Stream[Any]
    windows: Mapping[str, Window | Static]
    read: Callable[[Sequence[CHTRow[Any]], Timeline], list[tuple[int, Any]]] | None
    """None where what comes out at a batch is not known before later ones."""


@dataclass(frozen=True)
class Static:
    """The rows of a table, which are there at every instant."""

    rows: tuple[Any, ...]

    def events(self) -> list[Insert[Any]]:
        """Return the insertions of the rows, from the first instant on."""
        return [Insert(n, 0, INFINITY, row) for n, row in enumerate(self.rows)]


class RunningWindow:
    """A window that is fed with one part of the timeline after another, and says how the lifetimes of its rows change.

    What comes is inserted for ever, and shortened when it leaves. It holds the tuples that are in the window, and those that wait
    for the gate.
    """

    def __init__(self, leaving: RunningLeaving, gate: RunningGate) -> None:
        self._leaving = leaving
        self._gate = gate
        self._waiting: list[Member] = []
        self._room = 64

    def step(self, members: Sequence[Member], timeline: Timeline) -> list[Insert[Any] | Retract]:
        """Take a part of the timeline and the tuples that come in it, in order; return the changes of the window's rows."""
        left = self._leaving.admit(members, timeline)
        formed = self._gate.move(members, timeline)
        self._waiting += members
        self._waiting += [member for member in left if member.le is not None]
        if not formed and len(self._waiting) < self._room:
            return []
        settled = [(member, self._settle(member)) for member in self._waiting]
        waiting = [member for member, change in settled if _waits(member, change)]
        self._waiting, self._room = waiting, 2 * len(waiting) + 64
        return [change for _, change in settled if change is not None]

    @property
    def held(self) -> int:
        """How many tuples are held: in the window, or waiting for the gate."""
        return max(self._leaving.held, len(self._waiting))

    def forming(self) -> Sequence[int]:
        """Return the instants of the last part at which a state formed."""
        return self._gate.forming()

    def _settle(self, member: Member) -> Insert[Any] | Retract | None:
        """Return the change that a waiting tuple makes; None while the gate is shut, and if it is never seen."""
        re = None if member.left == INFINITY else self._gate.first(member.left)
        if member.le is not None:
            return None if re is None else Retract(member.id, member.le, INFINITY, re)
        le = self._gate.first(member.came)
        if le is None or le == re:
            return None
        member.le = le
        return Insert(member.id, le, INFINITY if re is None else re, member.payload)


def _waits(member: Member, change: Insert[Any] | Retract | None) -> bool:
    """Say whether a tuple still waits for the gate: to be seen, or to be gone."""
    if member.le is None:
        return member.left == INFINITY
    return member.left != INFINITY and (change is None or (isinstance(change, Insert) and change.re == INFINITY))
