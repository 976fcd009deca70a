"""The files of a table in a folder: which file a row is in, and how a file's next form is written beside it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamdsl.errors import SinkError
from streamdsl.sinks.guard import failing
from streamdsl.sinks.net import KEY, Net, net, plain
from streamdsl.sinks.schemas import fitted

OWN: Final = "_streamdsl"
"""What the table needs for itself: readers of Parquet pass by names that begin so."""
COLUMNS: Final = "columns.parquet"
"""A file without rows: whoever reads the folder finds its columns first, also where there is no row."""
LOST: Final = "restore the table as it was with its checkpoint, or remove both to begin anew"
_STAGED: Final = "staged"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a file for each stretch of `every` ticks of LEs; without it, with one file.

    `files` are those that there are, with their sizes; `schema` is that of all files.
    """

    path: Path
    every: int | None
    schema: Any = None
    files: Mapping[str, int] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The table's name in errors."""
        return f"the table {self.path}"

    @property
    def staged(self) -> Path:
        """Where files are written before they are moved to their places."""
        return self.path / OWN / _STAGED

    def name(self, place: int) -> str:
        """Return the name of the file of a stretch."""
        return "rows.parquet" if self.every is None else f"le_{place}.parquet"

    def check(self) -> None:
        """Raise `SinkError` unless the folder has the files that it should have, and no other."""
        there = {path.name: path.stat().st_size for path in self.path.glob("*.parquet")}
        for name in sorted(self.files.keys() | there.keys()):
            if self.files.get(name) != there.get(name):
                what = "is gone" if name not in there else "was not written by it" if name not in self.files else "was changed"
                raise SinkError(f"the file {name} of {self.what} {what} since its last micro-batch", hint=LOST)

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
        with failing(self.what):
            changes = net(plain(events))
            if not changes.num_rows:
                return None
            name = self.name(place)
            before = self._read(name) if name in self.files else self.schema.empty_table()
            kept, changed = self._after(before, changes)
            rows = pa.concat_tables([kept, changed, fitted(changes.new, self.schema, self.what)])
            return self.write(rows.sort_by([("le", "ascending"), ("id", "ascending")])) if rows.num_rows else ""

    def restage(self, name: str) -> str:
        """Write a file again with the table's columns as they are now."""
        with failing(self.what):
            return self.write(self._read(name))

    def write(self, rows: Any) -> str:
        """Write rows to a file that has no place yet, so that they outlast a crash, and return its name."""
        name = uuid.uuid4().hex
        with open(self.staged / name, "wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
        return name

    def _after(self, before: Any, changes: Net) -> tuple[Any, Any]:
        """Return the rows of a file that a micro-batch leaves as they are, and those that it changes, with their new ends.

        Raises `SinkError` where the file lacks a row that is changed, or has one that is new: then it is not what was written.
        """
        rows = fitted(changes.rows, self.schema, self.what)
        facts = rows.select([*KEY, "re"]).rename_columns([*KEY, "re_new"])
        times = self.schema.field("re").type
        facts = facts.append_column("was", changes.ends.cast(times)).append_column("is_there", changes.is_there)
        facts = facts.append_column("lives", changes.lives)
        numbered = before.select([*KEY, "re"]).append_column("row", pa.array(np.arange(before.num_rows)))
        found = numbered.join(facts, list(KEY), join_type="inner")
        same = pc.or_(
            pc.fill_null(pc.equal(found.column("re"), found.column("was")), False),
            pc.and_(pc.is_null(found.column("re")), pc.is_null(found.column("was"))),
        )
        fit = pc.and_(found.column("is_there"), same)
        if found.num_rows != pc.sum(changes.is_there).as_py() or not pc.all(fit, min_count=0).as_py():
            raise SinkError(
                f"{self.what} is not as the last micro-batch left it: {self._stranger(found, fit, changes)}", hint=LOST
            )
        living = found.filter(found.column("lives"))
        touched = np.zeros(before.num_rows, dtype=np.bool_)
        touched[found.column("row").to_numpy()] = True
        changed = before.take(living.column("row"))
        changed = changed.set_column(changed.column_names.index("re"), self.schema.field("re"), living.column("re_new"))
        return before.filter(pa.array(~touched)), changed

    def _stranger(self, found: Any, fit: Any, changes: Net) -> str:
        """Return what is said of the first row that is not as it should be."""
        for row in found.filter(pc.invert(fit)).slice(0, 1).to_pylist():
            return f"it has the row {row['id']!r} with LE {row['le']} and RE {row['re']}"
        (row, *_) = changes.before.join(found.select(KEY), list(KEY), join_type="left anti").to_pylist()
        return f"it lacks the row {row['id']!r} with LE {row['le']}"

    def _read(self, name: str) -> Any:
        return fitted(pq.ParquetFile(self.path / name).read(), self.schema, self.what)
