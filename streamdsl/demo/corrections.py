"""Statistics of early results and their corrections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    final = _timelines(cht)
    changes = (_change(event, final) for event in events if isinstance(event, sd.Insert))
    return max(changes, key=lambda change: (change.size, -change.moment, change.carrier), default=None)


def _change(event: sd.Insert[Any], final: Mapping[str, _Timeline]) -> CountChange:
    carrier = event.payload.carrier
    held = final[carrier].at(event.le) if carrier in final else 0
    return CountChange(carrier, event.le, event.payload.aloft, held)


class _Timeline:
    """The final counts of a carrier over time."""

    def __init__(self, rows: Sequence[sd.CHTRow[Any]]) -> None:
        self.starts = np.array([row.le for row in rows], dtype=np.int64)
        self.rows = rows

    def at(self, moment: int) -> int:
        place = int(np.searchsorted(self.starts, moment, side="right")) - 1
        return int(self.rows[place].payload.aloft) if place >= 0 and moment < self.rows[place].re else 0


def _timelines(cht: sd.CHT[Any]) -> dict[str, _Timeline]:
    rows: dict[str, list[sd.CHTRow[Any]]] = {}
    for row in cht:
        rows.setdefault(row.payload.carrier, []).append(row)
    return {carrier: _Timeline(found) for carrier, found in rows.items()}
