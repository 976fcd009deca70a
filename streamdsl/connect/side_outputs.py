"""What comes of a job beside its output, such as dead letters: its rows go to sinks of their own, in the same micro-batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamdsl.connect.bad_records import text_of
from streamdsl.connect.outbox import Outbox
from streamdsl.connect.position_ledger import Progressed
from streamdsl.connect.protocols import BadRecord, Sink
from streamdsl.redaction import without_secrets
from streamdsl.temporal import INFINITY, MISSING, Insert, Rejected, Unit, fields_of, format_time, is_calendar
from streamdsl.temporal.pandas_frames import column_names

FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "letters": ("source", "place", "record", "reason"),
    "late": ("source", "record", "reason", "cti", "origin"),
}
"""The fields of the rows of each side output, all of them texts."""
_TIMES: Final = ("le", "re", "re_new")


class SideOutput:
    """Rows as point events at their numbers. Micro-batches that have none are not written; the others have their own numbers."""

    def __init__(self, kind: str, folder: Path, sinks: Sequence[Sink]) -> None:
        self._kind, self._one, self._outbox = kind, kind.removesuffix("s"), Outbox(folder, sinks)
        self._waiting: tuple[int, Any] | None = None

    def store(self, rows: Sequence[Mapping[str, Any]], progressed: Progressed, stream: str) -> Progressed:
        """Keep the rows of a micro-batch that is about to be committed, and count them."""
        if not rows:
            return progressed
        first, batch = self._counted(progressed)
        self._outbox.check(batch, stream)
        self._waiting = batch, self._table(rows, first)
        self._outbox.store(*self._waiting)
        counted: dict[str, Any] = {self._kind: first + len(rows), f"{self._one}_batches": batch + 1}
        return replace(progressed, **counted)

    def deliver(self, stream: str) -> None:
        """Write the rows of the micro-batch that has been committed."""
        if self._waiting is not None:
            self._outbox.deliver(*self._waiting, stream)
            self._waiting = None

    def resume(self, progressed: Progressed, stream: str) -> None:
        """Write the rows of the last micro-batch that has some to the sinks that lack them."""
        _, batches = self._counted(progressed)
        if batches:
            self._outbox.resume(batches - 1, stream)

    def _counted(self, progressed: Progressed) -> tuple[int, int]:
        """Return how many rows there were, and how many micro-batches had some."""
        return getattr(progressed, self._kind), getattr(progressed, f"{self._one}_batches")

    def _table(self, rows: Sequence[Mapping[str, Any]], first: int) -> Any:
        """Return rows, numbered from `first`, as a table of physical events."""
        fields = [*((name, pa.string()) for name in ("kind", "id")), *((name, pa.int64()) for name in _TIMES)]
        schema = pa.schema([*fields, *((name, pa.string()) for name in FIELDS[self._kind])])
        events = [
            {"kind": "insert", "id": f"{self._one} {number}", "le": number, "re": number + 1, **row}
            for number, row in enumerate(rows, first)
        ]
        return pa.Table.from_pylist(events, schema)


def letter_row(source: str, bad: BadRecord) -> dict[str, Any]:
    """Return a bad record of a source as a row of the dead letters."""
    place, reason = without_secrets(bad.where), without_secrets(bad.reason)
    return {"source": source, "place": place, "record": text_of(bad.record), "reason": reason}


def late_row(source: str, late: Rejected, unit: Unit | None) -> dict[str, Any]:
    """Return a late event of a source as a row; its record is a line of JSON that sources of JSON lines read.

    >>> from streamdsl.temporal import CtiOrigin
    >>> late = Rejected(Insert("b", 9, 12, {"fare": 5}), 11, "dropped", CtiOrigin("trips", "Progress.slack(2)", 3))
    >>> row = late_row("trips", late, None)
    >>> row["record"], row["cti"], row["origin"]
    ('{"kind": "insert", "id": "b", "le": 9, "re": 12, "fare": 5}', '11', "Progress.slack(2) of 'trips', push 3")
    """
    event = late.event
    times: dict[str, Any] = {name: getattr(event, name) for name in _TIMES if hasattr(event, name)}
    for name, time in times.items():
        times[name] = None if time == INFINITY else format_time(time, unit) if is_calendar(unit) else time
    fields = {} if event.payload is MISSING else dict(fields_of(event.payload))
    payload = dict(zip(column_names(list(fields), ("kind", "id", *_TIMES)), fields.values(), strict=True))
    kind = "insert" if isinstance(event, Insert) else "retract"
    record = {"kind": kind, "id": event.id, **times, **payload}
    return {
        "source": source,
        "record": json.dumps(record, default=str, ensure_ascii=False),
        "reason": late.reason,
        "cti": format_time(late.cti, unit),
        "origin": str(late.origin),
    }
