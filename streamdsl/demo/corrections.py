"""Statistics of early results and their corrections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import streamdsl as sd


@dataclass(frozen=True, slots=True)
class Corrections:
    """The numbers of insertions, of full retractions (`withdrawn`) and of moved REs in a query's output."""

    insertions: int
    withdrawn: int
    moved: int

    @classmethod
    def of(cls, events: Iterable[sd.Event[Any]]) -> Corrections:
        """Count the events of an output.

        >>> Corrections.of([sd.Insert("a", 1, 9, "x"), sd.Retract("a", 1, 9, 5), sd.Retract("a", 1, 5, 1), sd.Cti(9)])
        Corrections(insertions=1, withdrawn=1, moved=1)
        """
        events = list(events)
        retractions = [event for event in events if isinstance(event, sd.Retract)]
        withdrawn = sum(event.re_new == event.le for event in retractions)
        insertions = sum(isinstance(event, sd.Insert) for event in events)
        return cls(insertions, withdrawn, len(retractions) - withdrawn)

    @property
    def retractions(self) -> int:
        """The number of retractions: rows withdrawn, and ends moved."""
        return self.withdrawn + self.moved


@dataclass(frozen=True, slots=True)
class CountChange:
    """A count at a moment that was emitted too `early`, and its `final` value."""

    carrier: str
    moment: int
    early: int
    final: int

    @property
    def size(self) -> int:
        """By how much the count changed."""
        return abs(self.final - self.early)


def largest_change(events: Iterable[sd.Event[Any]], cht: sd.CHT[Any]) -> CountChange | None:
    """Return the count of query (a) whose first value, at its LE, differs most from the final one."""
    final: dict[str, list[sd.CHTRow[Any]]] = {}
    for row in cht:
        final.setdefault(row.payload.carrier, []).append(row)
    inserted = (event for event in events if isinstance(event, sd.Insert))
    changes = (
        CountChange(e.payload.carrier, e.le, e.payload.aloft, _count_at(final.get(e.payload.carrier, []), e.le)) for e in inserted
    )
    return max(changes, key=lambda change: (change.size, -change.moment, change.carrier), default=None)


def _count_at(rows: Sequence[sd.CHTRow[Any]], moment: int) -> int:
    """Return a carrier's final count at a moment; its rows are in order of time."""
    place = bisect_right(rows, moment, key=lambda row: row.le) - 1
    return int(rows[place].payload.aloft) if place >= 0 and moment < rows[place].re else 0
