"""A sink that appends physical events to an Iceberg table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from streamdsl.extras import need
from streamdsl.sinks.lakehouse import LakehouseEvents

_BATCH: Final = "streamdsl.batch"
_TRIES: Final = 5


class IcebergEvents(LakehouseEvents):
    """An Iceberg table of the physical events of a stream, each micro-batch a snapshot, with its number (extra `iceberg`).

    `catalog` returns a catalog of the package `pyiceberg`, and `table` is a name in it, such as `"db.trips"`. The number is
    a property of the table, which is set in the snapshot's transaction, so a repeated micro-batch changes nothing, and which
    stays when snapshots expire. The table is made if it is not there; fields that come later are columns that are added.
    Raises `SinkError` for a table that is another stream's, that no stream has written, or that was lost, and for values that
    do not fit its columns.

    >>> import tempfile, streamdsl as sd
    >>> from pyiceberg.catalog.sql import SqlCatalog
    >>> from streamdsl.sinks import IcebergEvents
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     catalog = SqlCatalog("here", uri=f"sqlite:///{folder}/catalog", warehouse=f"file://{folder}")
    ...     catalog.create_namespace("db")
    ...     table = IcebergEvents(lambda: catalog, "db.trips")
    ...     out = session.feed([sd.point("a", 3, "A"), sd.Cti(20)])
    ...     for _ in range(2):
    ...         table.write(out, 0)
    ...     catalog.load_table("db.trips").scan().to_arrow().select(["kind", "le", "re", "n"]).slice(0, 1).to_pylist()
    [{'kind': 'insert', 'le': 0, 're': 10, 'n': 1}]
    """

    def __init__(self, catalog: Callable[[], Any], table: str) -> None:
        need("pyiceberg", "Iceberg tables", "iceberg")
        super().__init__()
        self.catalog = catalog
        self.label = table

    def __repr__(self) -> str:
        return f"IcebergEvents({self.label!r})"

    def _open(self) -> Any:
        catalog = self.catalog()
        return catalog.load_table(self.label) if catalog.table_exists(self.label) else None

    def _properties(self) -> tuple[Mapping[str, Any], int | None]:
        properties = self._table.properties
        return properties, int(properties[_BATCH]) if _BATCH in properties else None

    def _create(self, schema: Any, properties: Mapping[str, str]) -> Any:
        return self.catalog().create_table(self.label, schema, properties=dict(properties))

    def _columns(self) -> Any:
        return pa.schema([(field.name, field.type) for field in self._table.schema().as_arrow()])

    def _widen(self, fields: Sequence[Any]) -> None:
        with self._table.update_schema() as change:
            change.union_by_name(pa.schema(fields))

    def _creator(self) -> Callable[[str], Any]:
        return partial(_create_file, self._table.io, self._folder)

    @property
    def _folder(self) -> str:
        return f"{self._table.location()}/data"

    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int) -> None:
        from pyiceberg.exceptions import CommitFailedException

        paths = [f"{self._folder}/{file['name']}" for file in files]
        for left in reversed(range(_TRIES)):
            # pyiceberg would try again by itself, blind to what the other one has committed: that may be this micro-batch.
            self._table.metadata.properties["commit.retry.num-retries"] = "0"
            try:
                with self._table.transaction() as change:
                    change.set_properties({_BATCH: str(batch)})
                    change.add_files(paths, check_duplicate_files=False)
                return
            except CommitFailedException:
                if not left:
                    raise
                self._table = self._open()
                self._check()


def _create_file(io: Any, folder: str, name: str) -> Any:
    return io.new_output(f"{folder}/{name}").create()
