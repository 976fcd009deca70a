"""The files of a table in a folder: which file a row is in, and how a file's next form is written beside it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamdsl.errors import SinkError
from streamdsl.sinks.net import in_utc, living, net

OWN: Final = "_streamdsl"
"""What the table needs for itself: readers of Parquet pass by names that begin so."""
COLUMNS: Final = "columns.parquet"
"""A file without rows: whoever reads the folder finds its columns first, of types that hold those of all other files."""
_STAGED: Final = "staged"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a file for each stretch of `every` ticks of LEs; without it, with one file."""

    path: Path
    every: int | None

    @property
    def staged(self) -> Path:
        """Where files are written before they are moved to their places."""
        return self.path / OWN / _STAGED

    def name(self, place: int) -> str:
        """Return the name of the file of a stretch."""
        return "rows.parquet" if self.every is None else f"le_{place}.parquet"

    def parts(self, events: Any) -> Iterator[tuple[int, Any]]:
        """Yield an Arrow table of events in parts, each with its stretch."""
        if self.every is None:
            yield 0, events
            return
        places = events.column("le").cast(pa.int64()).to_numpy() // self.every
        for place in sorted(set(places.tolist())):
            yield place, events.take(pa.array(np.flatnonzero(places == place)))

    def stage(self, place: int, events: Any) -> str | None:
        """Write the next form of a stretch's file; return where it is, "" if no row is left, None if nothing changes."""
        changed = plain(net(plain(events)))
        if not changed.num_rows:
            return None
        before = self._read(place, changed.schema)
        schema = widened(before.schema, changed.schema, str(self.path))
        kept = before.filter(pc.invert(pc.is_in(before.column("id"), changed.column("id"))))
        rows = pa.concat_tables([kept.cast(schema), living(changed).cast(schema)])
        if not rows.num_rows:
            return ""
        return self.write(rows.sort_by([("le", "ascending"), ("id", "ascending")]))

    def write(self, rows: Any) -> str:
        """Write rows to a file that has no place yet, so that they outlast a crash, and return its name."""
        name = uuid.uuid4().hex
        with open(self.staged / name, "wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
        return name

    def _read(self, place: int, schema: Any) -> Any:
        path = self.path / self.name(place)
        if not path.exists():
            return schema.empty_table()
        return pq.ParquetFile(path).read()


def widened(before: Any, now: Any, what: str) -> Any:
    """Return the Arrow schema that holds what was there and what comes; raises `SinkError` where there is none.

    >>> widened(pa.schema({"n": pa.null()}), pa.schema({"n": pa.int64()}), "trips").field("n").type
    DataType(int64)
    """
    if before.names != now.names:
        raise SinkError(
            f"{what} has the columns {', '.join(before.names)}, and the stream {', '.join(now.names)}",
            hint="a changed query writes to a table of its own",
        )
    try:
        return pa.unify_schemas([before, now], promote_options="permissive")
    except pa.ArrowException as error:
        raise SinkError(
            f"{what} cannot hold what the stream sends: {error}", hint="a changed query writes to a table of its own"
        ) from None


def plain(table: Any) -> Any:
    """Return an Arrow table without what tells equal tables apart: zones of a session, notes, whether nulls are allowed."""
    table = in_utc(table).replace_schema_metadata(None)
    return table.cast(pa.schema([pa.field(field.name, field.type) for field in table.schema]))
