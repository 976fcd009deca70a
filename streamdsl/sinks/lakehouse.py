"""Sinks of lakehouse formats: each transaction appends the physical events of a micro-batch, and records its number."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.errors import SinkError
from streamdsl.sinks.commit_file import AGAIN
from streamdsl.sinks.last_batch import LastBatch
from streamdsl.sinks.names import distinct_columns
from streamdsl.sinks.row_changes import event_table, normalized, row_events
from streamdsl.sinks.schemas import cast_table, row_schema, widened_schema
from streamdsl.sinks.statements import driver_errors

WRITTEN: Final = pa.schema([("name", pa.string()), ("size", pa.int64()), ("rows", pa.int64())])
"""What is told of a file that was written: its name in the table's folder, its bytes, its rows."""
STREAM: Final = "streamdsl.stream"
"""The property of a table that names its stream."""
UNNAMED: Final = "streamdsl"
"""The name of a stream that has no id."""


@dataclass(frozen=True, slots=True)
class EventFiles:
    """Writes files of events into a table's folder, here or on Spark's workers; readers see them once they are committed.

    `create` opens a new file of a name for writing, `columns` are those of the events, in order, and `schema` is the table's.
    """

    create: Callable[[str], Any]
    columns: Sequence[str]
    schema: Any
    label: str

    def write(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Write Arrow batches of events to one file, and yield what is told of it; no rows make no file."""
        full = [batch for batch in batches if batch.num_rows]
        if not full:
            return
        with driver_errors(self.label):
            rows = normalized(pa.Table.from_batches(full).rename_columns(self.columns))
            rows, name = cast_table(rows, self.schema, f"the table {self.label}"), f"{uuid.uuid4()}.parquet"
            with self.create(name) as file:
                pq.write_table(rows, file)
                size = file.tell()
        yield pa.record_batch([[name], [size], [rows.num_rows]], WRITTEN)


class LakehouseEvents(ABC):
    """A table of a lakehouse format that physical events are appended to. Raises `SinkError`, as `ParquetEvents` does."""

    label: str
    promise: Final = "exactly_once"

    def __init__(self) -> None:
        self._table: Any = None
        self._seen: int | None = None

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        if not self.has(batch, stream):
            rows = event_table(events)
            files = self.files(rows.schema, stream, comes=row_events(rows).num_rows > 0)
            self.commit([told for each in files.write(rows.to_batches()) for told in each.to_pylist()], batch)

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Open the table as it is now, and say whether it holds a micro-batch."""
        with driver_errors(self.label):
            self._table = self._open()
            properties, self._seen = ({}, None) if self._table is None else self._properties()
        last = LastBatch() if self._table is None else self._last(properties)
        return not last.needs(batch, stream, self.label)

    def files(self, events: Any, stream: str | None, *, comes: bool = True) -> EventFiles:
        """Return what writes events of a schema into the table, which is made first, or gets the columns that it lacks.

        `comes` says whether there are insertions or retractions. What `has` has seen of the table is what `commit` builds on.
        """
        now = _event_schema(events)
        with driver_errors(self.label):
            if self._table is None:
                self._table = self._create(pa.schema(_known(now)), {STREAM: stream or UNNAMED})
            before = normalized(self._columns().empty_table()).schema
            wide = widened_schema(before, now, f"the table {self.label}", has_rows=True, comes=comes)
            if new := _known(field for field in wide if field.name not in before.names):
                self._widen(new)
            return EventFiles(self._creator(), now.names, pa.schema([*before, *new]), self.label)

    def commit(self, files: Sequence[Mapping[str, Any]], batch: int) -> None:
        """Add files, and the micro-batch's number, in one transaction, which fails if another one has added that meanwhile."""
        with driver_errors(self.label):
            self._check()
            self._commit(files, batch)

    def _check(self) -> None:
        """Raise `SinkError` if the table, as it is open now, has other micro-batches than `has` has seen."""
        _, now = self._properties()
        if now != self._seen:
            raise SinkError(f"another process has written micro-batch {now} of the table {self.label} meanwhile", hint=AGAIN)

    def _last(self, properties: Mapping[str, Any]) -> LastBatch:
        owner = properties.get(STREAM)
        if owner is None:
            raise SinkError(
                f"a table {self.label} exists, and no stream has written it", hint="name another, or drop it to begin anew"
            )
        return LastBatch(-1 if self._seen is None else self._seen, None if owner == UNNAMED else owner)

    @abstractmethod
    def _open(self) -> Any:
        """Return the library's table, or None if there is none."""

    @abstractmethod
    def _properties(self) -> tuple[Mapping[str, Any], int | None]:
        """Return the properties of the table, and the number of its last micro-batch."""

    @abstractmethod
    def _create(self, schema: Any, properties: Mapping[str, str]) -> Any:
        """Make the table, without rows."""

    @abstractmethod
    def _columns(self) -> Any:
        """Return the Arrow schema of the table."""

    @abstractmethod
    def _widen(self, fields: Sequence[Any]) -> None:
        """Add columns to the table."""

    @abstractmethod
    def _creator(self) -> Callable[[str], Any]:
        """Return the function that opens a new file of the table; it travels to Spark's workers."""

    @abstractmethod
    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int) -> None:
        """Commit files and the number of the micro-batch."""


def _event_schema(events: Any) -> Any:
    """Return the schema of events in the columns of a table, with known types of times and ids."""
    now = normalized(events.empty_table()).schema.remove_metadata()
    known = row_schema(now)
    fixed = {"kind": pa.string(), "id": known.field("id").type, **dict.fromkeys(("le", "re", "re_new"), known.field("le").type)}
    return pa.schema(
        [(column, fixed.get(field.name, field.type)) for column, field in zip(distinct_columns(now.names), now, strict=True)]
    )


def _known(fields: Iterable[Any]) -> list[Any]:
    """Return the fields whose type is known: tables have no columns without one."""
    return [field for field in fields if not pa.types.is_null(field.type)]
