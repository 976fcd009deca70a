"""The rows that recorded input means: each with its physical events, and what its source did to those that were late."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from streamdsl.debugger.pushes import Push, Recording
from streamdsl.errors import EventError
from streamdsl.expr.schema import as_payload
from streamdsl.temporal import CHTRow, Cti, Event, EventReader, Insert, Rejected, Retract, Unit, plain
from streamdsl.temporal.rejected import LE_MOVED


@dataclass(slots=True)
class InputRow:
    """One row of a source: an insertion and its retractions. `le` and `re` are as they count, `sent` is what its sender meant.

    A row that was dropped, or fully retracted, has no lifetime: `re` is `le`.
    """

    number: int
    source: str
    le: int
    re: int
    payload: Any
    sent: tuple[int, int]
    events: list[Event[Any]]
    rejected: list[Rejected] = field(default_factory=list)
    is_dropped: bool = False

    @property
    def row(self) -> CHTRow[Any]:
        """The row of the CHT."""
        return CHTRow(self.le, self.re, self.payload)

    @property
    def as_sent(self) -> InputRow:
        """The row as it would count if none of its events had been late."""
        return InputRow(self.number, self.source, *self.sent, self.payload, self.sent, self.events)


@dataclass(slots=True)
class Inputs:
    """What the input of a recording means after some of its pushes: rows, and how far each source has come."""

    rows: list[InputRow] = field(default_factory=list)
    ctis: dict[str, int] = field(default_factory=dict)
    orphans: int = 0
    """Retractions of rows that the recording does not have."""


def inputs_of(recording: Recording, pushes: Iterable[Push]) -> Inputs:
    """Return the rows of pushes, by the rules of their sources: what was late is dropped or adjusted as it was in the run."""
    found, current = Inputs(), dict[tuple[str, Hashable], InputRow]()
    for push in pushes:
        late = {source: deque(r for name, r in push.rejected if name == source) for source, _ in push.batches}
        for source, events in push.batches:
            for event in ticked(events, recording.unit):
                if not isinstance(event, Cti):
                    waiting = late[source]
                    broke = waiting.popleft() if waiting and _is_same(waiting[0].event, event) else None
                    take(found, current, source, event, broke)
        found.ctis.update(push.ctis)
    return found


def with_first_events(row: InputRow, n: int) -> InputRow:
    """Return a row as it would be if only its first events had come."""
    found, current = Inputs(), dict[tuple[str, Hashable], InputRow]()
    for event in row.events[:n]:
        assert not isinstance(event, Cti)
        take(found, current, row.source, event, next((each for each in row.rejected if each.event == event), None))
    (shorter,) = found.rows
    shorter.number = row.number
    return shorter


def ticked(events: Iterable[Event[Any]], unit: Unit | None) -> Iterable[Event[Any]]:
    """Return events with their times in ticks."""
    return map(EventReader(unit).event, events)


def _is_same(late: Insert[Any] | Retract, event: Insert[Any] | Retract) -> bool:
    if type(late) is not type(event) or (late.id, late.le, late.re) != (event.id, event.le, event.re):
        return False
    return isinstance(late, Insert) or (isinstance(event, Retract) and late.re_new == event.re_new)


def take(
    found: Inputs,
    current: dict[tuple[str, Hashable], InputRow],
    source: str,
    event: Insert[Any] | Retract,
    broke: Rejected | None,
) -> None:
    """Take an event of a source in; `broke` says what the source did to it if it was late."""
    slot = source, event.id
    if isinstance(event, Insert):
        le, re = event.le, event.re
        is_dropped = broke is not None and broke.reason != LE_MOVED
        if broke is not None:
            le, re = (le, le) if is_dropped else (broke.cti, re)
        row = InputRow(len(found.rows), source, le, re, as_payload(plain(event.payload)), (event.le, event.re), [event])
        row.is_dropped = is_dropped
        found.rows.append(row)
        current[slot] = row
    elif slot not in current:
        found.orphans += 1
        return
    else:
        row = current[slot]
        if row.sent[0] != event.le:
            raise EventError(event, f"the recording has the row {row.row} of its id")
        row.events.append(event)
        row.sent = (event.le, event.re_new)
        if broke is None:
            row.re = max(event.re_new, row.le)
        elif broke.reason.startswith("adjusted"):
            row.re = max(broke.cti, row.le)
    if broke is not None:
        row.rejected.append(broke)
