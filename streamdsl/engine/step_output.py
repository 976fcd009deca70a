"""What steps emit: physical events, kept in columns until they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdsl.engine.batch import Batch, Changes
from streamdsl.engine.collector import collector_paused
from streamdsl.temporal import Cti, Event, Insert, Unit
from streamdsl.temporal.events import dated, inserts, retracts


@dataclass(slots=True)
class StepOutput:
    """What one step emits: rows in output order, under their output ids, as events or as changes; then the CTI.

    The CTI is None if it has not advanced. Ids are distinct, and retractions come first.
    """

    rows: list[Event[Any]] | Batch
    cti: int | None

    def __len__(self) -> int:
        return len(self.rows) + (self.cti is not None)

    def retractions(self) -> int:
        """Return the number of retractions among the rows."""
        if isinstance(self.rows, Batch):
            return _n_gone(self.rows)
        for place, event in enumerate(self.rows):
            if isinstance(event, Insert):
                return place
        return len(self.rows)

    def last_insertions(self, most: int) -> list[Insert[Any]]:
        """Return the last of its rows that are insertions, which may be none."""
        rows = self.rows[-most:] if isinstance(self.rows, list) else _events_of(self.rows.take(np.arange(len(self.rows))[-most:]))
        return [event for event in rows if isinstance(event, Insert)]

    def events(self) -> list[Event[Any]]:
        """Return the physical events."""
        events = self.rows if isinstance(self.rows, list) else _events_of(self.rows)
        return events if self.cti is None else [*events, Cti(self.cti)]

    def changes(self) -> Batch:
        """Return the rows as changes."""
        return self.rows if isinstance(self.rows, Batch) else _changes_of(self.rows)


def output_events(sent: Sequence[StepOutput], unit: Unit | None = None) -> list[Event[Any]]:
    """Return the physical events of several steps, which print times of a calendar unit as dates."""
    if len(sent) == 1:
        return dated(sent[0].events(), unit)
    return dated([event for step in sent for event in step.events()], unit)


def _events_of(changes: Batch) -> list[Event[Any]]:
    with collector_paused():
        n_gone = _n_gone(changes)
        ids, le, re_old, re = changes.ids.tolist(), changes.le.tolist(), changes.re_old.tolist(), changes.re_new.tolist()
        columns: Sequence[Any] = (ids, le, re_old, re, changes.table.payloads())
        if not n_gone:
            return list(inserts(ids, le, re, columns[-1]))
        gone = retracts(*(column[:n_gone] for column in columns))
        ids, le, _, re, payloads = (column[n_gone:] for column in columns)
        return [*gone, *inserts(ids, le, re, payloads)]


def _n_gone(changes: Batch) -> int:
    return 0 if changes.re_old is changes.le else int(np.count_nonzero(changes.re_old != changes.le))


def _changes_of(events: list[Event[Any]]) -> Batch:
    changes = Changes()
    for event in events:
        assert not isinstance(event, Cti)
        if isinstance(event, Insert):
            changes.add(event.id, event.le, event.le, event.re, event.payload)
        else:
            changes.add(event.id, event.le, event.re, event.re_new, event.payload)
    return changes.batch(keyed=False)
