"""The rows that recorded input means: each with its physical events, and what its source did to those that were late."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from streamdsl.debugger.pushes import Push, Recording
from streamdsl.expr.schema import as_payload
from streamdsl.temporal import INFINITY, MIN_TIME, CHTRow, Cti, Event, EventReader, Insert, Rejected, Retract, Unit, plain
from streamdsl.temporal.cht import dated_row
from streamdsl.temporal.events import dated
from streamdsl.temporal.rejected import LE_MOVED

At: TypeAlias = tuple[int, int]
"""A place in the order of arrival: the number of a push, and of an event in it."""
Arrival: TypeAlias = tuple[At, str, Event[Any]]
"""What took effect: where it stands in the order of arrival, its source, and the event with the row's number as its id."""
_FIRST: At = (-1, 0)


@dataclass(slots=True)
class InputRow:
    """One row of a source: an insertion and its retractions. `le` and `re` are as they count, `sent` is what its sender meant.

    A row that was fully retracted has no lifetime: `re` is `le`. Of one that was dropped nothing counts.

    `events` are as they came, `changes` as they took effect, with the row's number as the id.
    """

    number: int
    source: str
    le: int
    re: int
    payload: Any
    sent: tuple[int, int]
    events: list[Event[Any]]
    unit: Unit | None = None
    changes: list[tuple[At, Event[Any]]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def row(self) -> CHTRow[Any]:
        """The row of the CHT."""
        return dated_row(CHTRow(self.le, self.re, self.payload), self.unit)

    @property
    def as_sent(self) -> InputRow:
        """The row as it would count if it had come in time."""
        le, re = self.sent
        return replace(self, le=le, re=re, changes=[(_FIRST, Insert(self.number, le, re, self.payload))])

    def before(self, event: Event[Any]) -> InputRow:
        """Return the row as it would be without a retraction, and those after it."""
        place = next(n for n, each in enumerate(self.events) if each is event or each == event)
        n_dropped = sum(each.event in self.events[:place] and each.reason.startswith("dropped") for each in self.rejected)
        changes = self.changes[: place - n_dropped]
        last = changes[-1][1]
        re = last.re_new if isinstance(last, Retract) else last.re if isinstance(last, Insert) else self.re
        return replace(self, re=re, changes=changes)


@dataclass(slots=True)
class RecordedInput:
    """What the input of a recording means after some of its pushes: rows, and how far each source has come.

    `promises` are the CTIs in order of arrival, those that a policy gave at the end of their push.
    """

    unit: Unit | None = None
    rows: list[InputRow] = field(default_factory=list)
    promises: list[tuple[At, str, Cti]] = field(default_factory=list)
    ctis: dict[str, int] = field(default_factory=dict)
    _current: dict[tuple[str, Hashable], InputRow] = field(default_factory=dict)

    def take(self, number: int, push: Push) -> list[Arrival]:
        """Take a push in, and return what took effect of it: changes of rows, and CTIs, in order.

        The rules are those of the sources: what was late is dropped or adjusted as it was in the run. Retractions of rows that
        the recording does not have are left out.
        """
        late: dict[Hashable, deque[Rejected]] = {}
        for source, rejected in push.rejected:
            late.setdefault((source, _key(rejected.event)), deque()).append(rejected)
        took: list[Arrival | None] = []
        at = 0
        for source, events in push.batches:
            for event in ticked(events, self.unit):
                at += 1
                if isinstance(event, Cti):
                    # One that is no later than another promises nothing, but cuts the push.
                    took.append(self._promise((number, at), source, event.time) or ((number, at), source, event))
                    continue
                waiting = late.get((source, _key(event)))
                took.append(self._change((number, at), source, event, waiting.popleft() if waiting else None))
        took += [self._promise((number, at + 1), source, cti) for source, cti in push.ctis.items()]
        return [each for each in took if each is not None]

    def _promise(self, at: At, source: str, cti: int) -> tuple[At, str, Cti] | None:
        if cti <= self.ctis.get(source, MIN_TIME):
            return None
        self.ctis[source] = cti
        self.promises.append((at, source, Cti(cti)))
        return self.promises[-1]

    def _change(self, at: At, source: str, event: Insert[Any] | Retract, broke: Rejected | None) -> Arrival | None:
        """Take an event of a source in; `broke` says what the source did to it if it was late."""
        slot, is_dropped = (source, event.id), broke is not None and broke.reason.startswith("dropped")
        if isinstance(event, Insert):
            le = broke.cti if broke is not None and broke.reason == LE_MOVED else event.le
            payload, sent = as_payload(plain(event.payload)), (event.le, event.re)
            row = InputRow(len(self.rows), source, le, event.re, payload, sent, [event], self.unit)
            self.rows.append(row)
            self._current[slot] = row
            change: Event[Any] = Insert(row.number, le, event.re, row.payload)
            if is_dropped:
                row.re = le
        elif slot not in self._current or self._current[slot].sent[0] != event.le:
            return None  # the recording lacks the insertion
        else:
            row = self._current[slot]
            row.events.append(event)
            row.sent = (event.le, event.re_new)
            re = max(event.re_new if broke is None else broke.cti, row.le)
            change = Retract(row.number, row.le, row.re, re, row.payload)
            if not is_dropped:
                row.re = re
        if broke is not None:
            row.rejected.append(broke)
        if is_dropped:
            return None
        row.changes.append((at, change))
        return at, source, change


def inputs_of(recording: Recording, pushes: Iterable[Push]) -> RecordedInput:
    """Return what the input of some pushes means."""
    found = RecordedInput(recording.unit)
    for number, push in enumerate(pushes):
        found.take(number, push)
    return found


def ticked(events: Iterable[Event[Any]], unit: Unit | None) -> Iterator[Event[Any]]:
    """Return events with their times in ticks, which they print as dates where the unit has some."""
    return iter(dated(list(map(EventReader(unit).event, events)), unit))


def _key(event: Insert[Any] | Retract) -> Hashable:
    """Return what tells an event from the others of its push."""
    return type(event), event.id, event.le, event.re, event.re_new if isinstance(event, Retract) else None


def is_ended(end: int | None) -> bool:
    """Say whether nothing can come any more: then the output depends on rows alone, and not on the order in which they came."""
    return end == INFINITY
