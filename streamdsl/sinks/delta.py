"""A sink that appends physical events to a Delta table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow.fs import PyFileSystem

from streamdsl.errors import SinkError
from streamdsl.extras import need
from streamdsl.sinks.lakehouse import STREAM, LakehouseEvents
from streamdsl.sinks.paths import is_local, local_path


class DeltaEvents(LakehouseEvents):
    """A Delta table of the physical events of a stream, each micro-batch a transaction that has its number too (extra `delta`).

    The number is Delta's `txn` action, whose application is the stream, so a repeated micro-batch changes nothing. The table is
    made if it is not there; fields that come later are columns that are added. `path` is a path or a URI of an object store,
    and `storage_options` are those of the package `deltalake`. Raises `SinkError` for a table that is another stream's, that no
    stream has written, or that was lost, and for values that do not fit its columns.

    >>> import tempfile, streamdsl as sd
    >>> from deltalake import DeltaTable
    >>> from streamdsl.sinks import DeltaEvents
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = DeltaEvents(f"{folder}/trips")
    ...     out = session.feed([sd.point("a", 3, "A"), sd.Cti(20)])
    ...     for _ in range(2):
    ...         table.write(out, 0)
    ...     DeltaTable(table.path).to_pyarrow_table().select(["kind", "le", "re", "n"]).slice(0, 1).to_pylist()
    [{'kind': 'insert', 'le': 0, 're': 10, 'n': 1}]
    """

    def __init__(self, path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        need("deltalake", "Delta tables", "delta")
        super().__init__()
        text = os.fspath(path)
        self.path = os.fspath(local_path(text).absolute()) if is_local(text) else text
        self.storage_options = dict(storage_options or {})
        self.label = self.path

    def __repr__(self) -> str:
        return f"DeltaEvents({self.path!r})"

    def _open(self) -> Any:
        from deltalake import DeltaTable

        there = DeltaTable.is_deltatable(self.path, self.storage_options)
        return DeltaTable(self.path, storage_options=self.storage_options) if there else None

    def _properties(self) -> tuple[Mapping[str, Any], int | None]:
        properties = self._table.metadata().configuration
        return properties, self._table.transaction_version(properties.get(STREAM, ""))

    def _create(self, schema: Any, properties: Mapping[str, str]) -> Any:
        from deltalake import DeltaTable

        self._fields(schema)
        return DeltaTable.create(
            self.path,
            schema,
            configuration=properties,
            storage_options=self.storage_options,
            raise_if_key_not_exists=False,
        )

    def _columns(self) -> Any:
        return pa.schema(self._table.schema().to_arrow())

    def _widen(self, fields: Sequence[Any]) -> None:
        self._table.alter.add_columns(self._fields(pa.schema(fields)))

    def _creator(self) -> Callable[[str], Any]:
        return partial(_create_file, self.path, self.storage_options)

    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int) -> None:
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction

        now = int(time.time() * 1000)
        added = [AddAction(each["name"], each["size"], {}, now, True, json.dumps({"numRecords": each["rows"]})) for each in files]
        number = Transaction(self._table.metadata().configuration[STREAM], batch)
        properties = CommitProperties(app_transactions=[number])
        self._table.create_write_transaction(added, "append", self._table.schema(), commit_properties=properties)

    def _fields(self, schema: Any) -> Any:
        """Return the columns of a schema as Delta's fields. Raises `SinkError` for a type that Delta has not."""
        from deltalake import Schema

        for field in schema:
            try:
                Schema.from_arrow(pa.schema([field]))
            except Exception as error:  # a plain one, with a trace of the library in its text
                raise SinkError(
                    f"the column {field.name!r} of the table {self.label} is {field.type}, which Delta tables cannot hold",
                    hint="select a value of another type, such as a number or a text",
                ) from error
        return Schema.from_arrow(schema).fields


def _create_file(path: str, storage_options: Mapping[str, str], name: str) -> Any:
    from deltalake.fs import DeltaStorageHandler

    return PyFileSystem(DeltaStorageHandler(path, storage_options)).open_output_stream(name)
