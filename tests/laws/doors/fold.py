"""What the events of a source mean, event by event, as docs/semantics.md says it; nothing of the engine is asked."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from streamdsl.temporal import CHT, INFINITY, MIN_TIME, CHTRow, Cti, Event, Insert, Retract

Late: TypeAlias = Literal["error", "drop", "adjust"]


class Refused(Exception):
    """The event is malformed, or breaks a CTI at a source that takes none that does."""


@dataclass
class Use:
    """One use of an id: what its sender believes, and its row, which is not there if the insertion was dropped."""

    le: int
    re: int
    row: CHTRow[Any] | None
    is_over: bool = False

    @property
    def last_time(self) -> int:
        """The time that a CTI has to pass before the id may be used again."""
        ends = [(self.le, self.re)] + ([(self.row.le, self.row.re)] if self.row else [])
        return max(le if re <= le else re for le, re in ends)


@dataclass
class Fold:
    """A source's history so far, its CTI, and what it has rejected; `slack` and `every` are its progress policy."""

    late: Late = "error"
    slack: int | None = None
    every: tuple[int, int] | None = None
    cti: int = MIN_TIME
    largest: int = MIN_TIME
    seen: int = 0
    rejected: int = 0
    uses: dict[Hashable, Use] = field(default_factory=dict)
    gone: list[Use] = field(default_factory=list)

    def take_all(self, events: Sequence[Event[Any]]) -> None:
        """Take a push: all of it, or nothing if it raises `Refused`."""
        tried = copy.deepcopy(self)
        for event in events:
            tried.take(event)
        self.__dict__ |= tried.__dict__

    def take(self, event: Event[Any]) -> None:
        if isinstance(event, Cti):
            self.cti = max(self.cti, event.time)
            return
        if isinstance(event, Insert):
            self._insert(event)
            self.largest = max(self.largest, event.le)
        else:
            self._retract(event)
        self.seen += 1
        self._progress()

    def rows(self) -> CHT[Any]:
        """Return the history."""
        return CHT(use.row for use in [*self.gone, *self.uses.values()] if use.row is not None)

    def is_free(self, id: Hashable) -> bool:
        """Say whether an id may be used: for the first time, or after a CTI has passed what it was used for."""
        return id not in self.uses or self.uses[id].last_time < self.cti

    def _insert(self, event: Insert[Any]) -> None:
        if not self.is_free(event.id) or event.le > event.re or event.le == INFINITY:
            raise Refused(event)
        le = event.le
        if event.le < self.cti:
            self._is_late()
            le = self.cti if self.late == "adjust" and event.re > self.cti else INFINITY
        if event.id in self.uses:
            self.gone.append(self.uses[event.id])
        row = None if le == INFINITY else CHTRow(le, event.re, event.payload)
        self.uses[event.id] = Use(event.le, event.re, row)

    def _retract(self, event: Retract) -> None:
        use = self.uses.get(event.id)
        if use is None or use.is_over or (event.le, event.re) != (use.le, use.re) or event.re_new < event.le:
            raise Refused(event)
        if use.last_time < self.cti and self.late == "error":
            raise Refused(event)
        is_late = min(event.re, event.re_new) < self.cti
        if is_late:
            self._is_late()
        if use.row is None or event.re != use.row.re or (is_late and (self.late == "drop" or event.re < self.cti)):
            self.rejected += not is_late
        else:
            end = max(event.re_new, self.cti) if is_late else event.re_new
            use.row = use.row._replace(re=max(end, use.row.le))
        use.re = event.re_new
        use.is_over = event.re_new == event.le

    def _is_late(self) -> None:
        if self.late == "error":
            raise Refused("it is late")
        self.rejected += 1

    def _progress(self) -> None:
        if self.largest == MIN_TIME:
            return
        if self.slack is not None:
            self.cti = max(self.cti, self.largest - self.slack)
        if self.every is not None and self.seen % self.every[0] == 0:
            self.cti = max(self.cti, self.largest - self.every[1])
