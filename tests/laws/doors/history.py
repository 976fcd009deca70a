"""What a source is sent, drawn event by event with the fold in hand: legal, or late, or malformed on purpose."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Event, Insert, Retract
from tests.laws.doors.fold import Fold, Late, Use

Draw: TypeAlias = Callable[[Any], Any]
POOL: tuple[Hashable, ...] = ("a", "b")


ROW = "row"


def is_row(id: Hashable) -> bool:
    """Say whether an id is of a row that has none where it comes in."""
    return isinstance(id, tuple) and id[0] == ROW


@dataclass(frozen=True)
class Rules:
    """What a source can be sent, and what its history shall have in it.

    `ids` is "rows" (insertions alone), "once", "corrected" (retractions too), "again" (ids come back) or "edges" (they do, and
    each event has no end at first); `numbered` ids are ints. If `finite`, each row has ended when all has come.
    """

    ids: str
    late: str
    finite: bool
    numbered: bool = False


@dataclass
class Writer:
    """Draws the pushes of one source."""

    draw: Draw
    rules: Rules
    payloads: Any
    fold: Fold
    now: int = 0
    pushes: list[list[Event[Any]]] = field(default_factory=lambda: [[]])
    fresh: int = 0
    rows: int = 0
    as_rows: bool = False
    """Whether the push that is written is one of rows, where others are of objects."""

    def write(self, most: int) -> list[list[Event[Any]]]:
        """Return the pushes."""
        acts = [self.insert]
        if self.rules.ids not in ("rows", "once"):
            acts += [self.retract]
        acts += [self.cti, self.cut]
        if self.rules.late != "none":
            acts += [self.late, self.late]
        if self.rules.ids in ("again", "edges"):
            acts += [self.again, self.again]
        self.cut()
        if self.number(0, 3) < 3:
            self.begin()
        for _ in range(self.draw(st.integers(0, most))):
            self.draw(st.sampled_from(acts))()
        if self.rules.finite:
            self.finish()
        return [push for push in self.pushes if push]

    def begin(self) -> None:
        """Let the first events be what the rules are for, so that the simplest history has it."""
        if self.rules.numbered:
            self.as_rows = True
            self.insert()
            self.leave_rows()
        self.insert()
        if self.rules.ids == "corrected":
            self.retract()
        if self.rules.ids in ("again", "edges"):
            self.again()
        if self.rules.late != "none":
            self.cti()
            self.late()

    def add(self, event: Event[Any]) -> None:
        """Send an event that is taken, perhaps as one that is late."""
        self.fold.take(event)
        self.pushes[-1].append(event)

    def cut(self) -> None:
        """Begin another push; where rows and objects are mixed it is of either."""
        self.pushes.append([])
        self.as_rows = self.rules.numbered and self.number(0, 1) == 1

    def leave_rows(self) -> None:
        """Begin a push of objects, if rows are written."""
        if self.as_rows:
            self.pushes.append([])
            self.as_rows = False

    def number(self, low: int, high: int) -> int:
        found: int = self.draw(st.integers(low, high))
        return found

    def insert(self) -> None:
        id = self.free_id()
        if id is None:
            return
        self.now += self.number(0, 3)
        floor = self.now - 3 if self.fold.cti == MIN_TIME else max(self.fold.cti, self.now - 3)
        le = max(self.now - self.number(0, 3), floor)
        self.add(Insert(id, le, self.end(le), self.draw(self.payloads)))

    def end(self, le: int) -> int:
        if self.rules.ids == "edges":
            return INFINITY
        length = self.number(0, 7)
        stays = self.as_rows or self.rules.ids in ("rows", "once")
        return INFINITY if length == 7 and not (self.rules.finite and stays) else le + length

    def free_id(self) -> Hashable | None:
        """Return an id that may be used now; rows that have none get one that nothing else has."""
        if self.as_rows:
            self.rows += 1
            return ROW, self.rows
        if self.rules.ids in ("again", "edges"):
            ids = [n for n, _ in enumerate(POOL)] if self.rules.numbered else list(POOL)
            return next((id for id in ids if self.fold.is_free(id)), None)
        self.fresh += 1
        return self.fresh - 1 if self.rules.numbered else f"e{self.fresh}"

    def living(self) -> list[tuple[Hashable, Use]]:
        """Return the ids whose rows can still change."""
        return [
            (id, use)
            for id, use in self.fold.uses.items()
            if not is_row(id) and not use.is_over and use.re >= self.fold.cti and use.re > use.le
        ]

    def retract(self) -> None:
        """Move an end, within what no CTI has passed."""
        self.leave_rows()
        if living := self.living():
            id, use = self.draw(st.sampled_from(living))
            self.end_at(id, use, self.number(0, 6))

    def end_at(self, id: Hashable, use: Use, length: int) -> None:
        low = max(self.fold.cti, use.le + (self.rules.ids == "edges"))
        end = INFINITY if length == 6 and self.rules.ids != "edges" else low + length
        self.add(Retract(id, use.le, use.re, end))

    def cti(self) -> None:
        self.now = max(self.now, self.fold.cti) + self.number(0, 5)
        self.add(Cti(self.now))

    def again(self) -> None:
        """Let an id come again as soon as it may: after its end, and a CTI that has passed it."""
        self.leave_rows()
        used = [(id, use) for id, use in self.fold.uses.items() if not is_row(id)]
        if not used:
            return self.insert()
        id, use = self.draw(st.sampled_from(used))
        if not self.fold.is_free(id):
            if use.last_time == INFINITY:
                if use.is_over or use.re != INFINITY or (use.row and use.row.re != INFINITY):
                    return None
                self.end_at(id, use, self.number(0, 3))
            if self.number(0, 2) == 2:
                self.cut()
                self.leave_rows()
            if use.last_time == INFINITY:
                return None
            self.add(Cti(use.last_time + 1))
            self.now = max(self.now, self.fold.cti)
            if self.number(0, 2) == 2:
                self.cut()
            self.leave_rows()
        le = max(self.fold.cti, self.now) + self.number(0, 2)
        self.add(Insert(id, le, self.end(le), self.draw(self.payloads)))
        return None

    def late(self) -> None:
        """Send an event that breaks the CTI; in a push of its own where that is refused."""
        if self.fold.cti == MIN_TIME:
            return
        event = self.late_event()
        if event is None:
            return
        if self.fold.late != "error":
            self.add(event)
            return
        self.pushes += [[event], []]

    def late_event(self) -> Event[Any] | None:
        cti = self.fold.cti
        wanted = [
            (id, use)
            for id, use in self.living()
            if use.le < cti and not (self.rules.finite and use.row and use.row.re == INFINITY)
        ]
        if wanted and self.rules.ids not in ("rows", "once", "edges") and self.number(0, 1):
            id, use = self.draw(st.sampled_from(wanted))
            self.leave_rows()
            return Retract(id, use.le, use.re, max(use.le, cti - self.number(1, 4)))
        id = self.free_id()
        le = cti - self.number(1, 4)
        return None if id is None else Insert(id, le, le + self.number(1, 7), self.draw(self.payloads))

    def finish(self) -> None:
        """End what has no end."""
        self.leave_rows()
        for id, use in list(self.fold.uses.items()):
            if use.re == INFINITY and not use.is_over:
                self.add(Retract(id, use.le, use.re, max(self.fold.cti, use.le) + self.number(1, 3)))


def pushes(draw: Draw, rules: Rules, payloads: Any, fold: Fold, now: int = 0, most: int = 9) -> list[list[Event[Any]]]:
    """Draw the pushes of a source whose fold, still empty, has its policies; those that are refused are among them."""
    written = Writer(draw, rules, payloads, copy.deepcopy(fold), now).write(most)
    if rules.ids != "rows" and not rules.numbered:
        return written
    return [part for push in written for part in _cut_at_ctis(push)]


def _cut_at_ctis(push: list[Event[Any]]) -> list[list[Event[Any]]]:
    """Return a push in parts that are rows alone, or one CTI."""
    parts: list[list[Event[Any]]] = [[]]
    for event in push:
        parts += [[event], []] if isinstance(event, Cti) else []
        if not isinstance(event, Cti):
            parts[-1].append(event)
    return [part for part in parts if part]


def late_of(name: str) -> Late:
    """Return what a source does with late events."""
    return "drop" if name == "drop" else "adjust" if name == "adjust" else "error"
