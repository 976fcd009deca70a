"""How the events of a push come in: as objects, as rows, in frames of each library, in files of each kind; made when asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import streamdsl as sd
from streamdsl.io.formats import FORMATS
from streamdsl.io.readers import bind
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Retract
from tests.formats import entries, known
from tests.laws.doors.history import is_row
from tests.laws.doors.payloads import Kind

DOORS = {entry.name: entry.door or entry.name for entry in entries().values()}
FILES = {DOORS[entry.name]: entry for entry in entries().values()}
LIBRARIES = ("pandas", "polars", "Arrow", *FILES)
SOURCES = (
    "objects",
    "edges",
    "tuples",
    "frames and objects",
    *(f"{name}{how}" for name in LIBRARIES for how in ("", ", events")),
)
"""Frames and files come as rows, which have no ids, and as events."""
LATER = [name for name, entry in FILES.items() if entry not in known.FILES]
FIRST = [source for source in SOURCES if source.partition(", ")[0] not in LATER]
"""Those that are drawn first, so that a format that comes later leaves their cases as they are."""
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.float64(): pd.Float64Dtype()}
EPOCH = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
"""Where streams over dates begin, in seconds."""


def has_ids(source: str) -> bool:
    """Say whether what comes this way has ids, so that it can be retracted."""
    return source in ("objects", "edges") or source.endswith(", events")


@dataclass
class Door:
    """One source's way in; with `dates` its times are moments, a second each, else ticks."""

    source: str
    kind: Kind
    stream: sd.Stream[Any]
    dates: bool
    folder: Path
    style: int = 0

    def __post_init__(self) -> None:
        self.numbers = itertools.count()

    @property
    def unit(self) -> Any:
        return "s" if self.dates else None

    def value(self, events: Sequence[Event[Any]]) -> Any:
        """Return what is pushed."""
        if self.source in ("objects", "edges") or (isinstance(events[0], Cti) and not self.source.endswith(", events")):
            found = [self._dated(event) for event in events]
            return iter(found) if self.style % 3 == 2 else found
        if self.source == "tuples":
            rows = [(event.le, event.re, event.payload) for event in map(self._dated, events) if isinstance(event, Insert)]
            return bind(rows, self.stream._node).whole()  # type: ignore[arg-type]
        if self.source == "frames and objects":
            first = events[0]
            as_frame = isinstance(first, Insert) and is_row(first.id)
            return self._in(LIBRARIES[self.style % 3], events, ["le", "re"]) if as_frame else list(map(self._dated, events))
        library, _, physical = self.source.partition(", ")
        return self._in(library, events, ["kind", "id", "le", "re", "re_new"] if physical else ["le", "re"])

    def _in(self, library: str, events: Sequence[Event[Any]], leading: list[str]) -> Any:
        table = self._table(events, leading)
        if library in FILES:
            form = FILES[library]
            name = f"{self.stream._node.source}-{next(self.numbers)}"  # type: ignore[attr-defined]
            path = self.folder / f"{name}{FORMATS[form.name].suffixes[0]}"
            path.write_bytes(form.write(table, self.style + 1))
            end = None if "kind" in leading else "re"
            (bound,) = form.source(path, self.kind.declared, end=end, unit=self.unit)._bindings.values()
            return bound.whole()
        if library == "Arrow":
            return table
        if library == "polars":
            return pl.from_arrow(table)
        objects = pd.DataFrame({name: pd.Series(table.column(name).to_pylist(), dtype=object) for name in table.column_names})
        return objects if self.style % 2 or self.kind.name == "list" else table.to_pandas(types_mapper=NULLABLE.get)

    def _table(self, events: Sequence[Event[Any]], leading: list[str]) -> pa.Table:
        rows = self._rows(events, leading)
        time = pa.timestamp("s", "UTC") if self.dates else pa.int64()
        types = {"kind": pa.string(), "id": pa.string(), "le": time, "re": time, "re_new": time}
        assert self.kind.columns is not None
        schema = pa.schema([*((name, types[name]) for name in leading), *self.kind.columns.items()])
        return pa.Table.from_pylist(rows, schema=schema)

    def _rows(self, events: Sequence[Event[Any]], leading: list[str]) -> list[dict[str, Any]]:
        assert self.kind.columns is not None
        rows = []
        payloads = {}
        for event in events:
            if isinstance(event, Insert):
                payloads[event.id] = event.payload
            payload = event.payload if isinstance(event, Insert) else None
            fields = dict.fromkeys(self.kind.columns) if payload is None else self.kind.fields(payload)
            rows.append({**{name: self._column(name, event) for name in leading}, **fields})
        return rows

    def _column(self, name: str, event: Event[Any]) -> Any:
        if name == "kind":
            return type(event).__name__.lower()
        if isinstance(event, Cti):
            return self._time(event.time) if name == "le" else None
        if name == "id":
            return event.id
        time = getattr(event, name, None)
        return None if time is None else self._time(time)

    def _time(self, time: int | None) -> Any:
        if time is None or time == INFINITY:
            return None
        return datetime.fromtimestamp(time, UTC) if self.dates else time

    def _dated(self, event: Event[Any]) -> Event[Any]:
        """Return an event as it is sent: of a stream over dates with moments."""
        if not self.dates:
            return event
        at: Callable[[int], Any] = lambda time: time if time in (INFINITY, None) else self._time(time)  # noqa: E731
        if isinstance(event, Cti):
            return Cti(at(event.time))
        if isinstance(event, Insert):
            return Insert(event.id, at(event.le), at(event.re), event.payload)
        return Retract(event.id, at(event.le), at(event.re), at(event.re_new), event.payload)
