"""The files of a table in a folder: which file holds a row, and staging of the next version of a file."""

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
from streamdsl.sinks.commit_file import as_sink_errors
from streamdsl.sinks.row_changes import KEY, RowChanges, begin_one_after_another, normalized, row_changes
from streamdsl.sinks.schemas import cast_table

INTERNAL_FOLDER: Final = "_streamdsl"
"""The folder of commits and staged files; readers of Parquet skip names that begin with an underscore."""
COLUMNS: Final = "columns.parquet"
"""A file without rows, so that readers find the schema first, also of an empty table."""
LOST: Final = "restore the table as it was with its checkpoint, or remove both to begin anew"
_STAGED: Final = "staged"


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder with one file per stretch of `every` ticks of LEs, or a single file for None.

    `files` maps the names of the table's files to their sizes; all files have the schema `schema`.
    """

    path: Path
    every: int | None
    schema: Any = None
    files: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The table's name in errors."""
        return f"the table {self.path}"

    @property
    def staged(self) -> Path:
        """The folder of files that are not committed yet."""
        return self.path / INTERNAL_FOLDER / _STAGED

    def name(self, stretch: int) -> str:
        """Return the name of the file of a stretch."""
        return "rows.parquet" if self.every is None else f"le_{stretch}.parquet"

    def check(self) -> None:
        """Raise `SinkError` unless the folder has exactly the committed files, with their sizes."""
        there = {path.name: path.stat().st_size for path in self.path.glob("*.parquet")}
        for name in sorted(self.files.keys() | there.keys()):
            if self.files.get(name) != there.get(name):
                what = "is gone" if name not in there else "was not written by it" if name not in self.files else "was changed"
                raise SinkError(f"the file {name} of {self.label} {what} since its last micro-batch", hint=LOST)

    def by_stretch(self, events: Any) -> Iterator[tuple[int, Any]]:
        """Yield the events of each stretch."""
        if self.every is None:
            yield 0, events
            return
        stretches = events.column("le").cast(pa.int64()).to_numpy() // self.every
        for stretch in np.unique(stretches).tolist():
            of_it = stretches == stretch
            yield stretch, events if of_it.all() else events.filter(pa.array(of_it))

    def stage(self, stretch: int, events: Any) -> str | None:
        """Stage the next version of a stretch's file; return its name, "" if no row is left, None if nothing changes."""
        with as_sink_errors(self.label):
            changes = row_changes(normalized(events))
            if not changes.num_rows:
                return None
            name = self.name(stretch)
            before = self._read(name) if name in self.files else self.schema.empty_table()
            kept, changed = self._apply(before, changes)
            rows = pa.concat_tables([kept, changed, cast_table(changes.inserted, self.schema, self.label)])
            if not begin_one_after_another(rows):
                rows = rows.sort_by([("le", "ascending"), ("id", "ascending")])
            return self.write(rows) if rows.num_rows else ""

    def restage(self, name: str) -> str:
        """Stage a file again, with the table's current schema."""
        with as_sink_errors(self.label):
            return self.write(self._read(name))

    def write(self, rows: Any) -> str:
        """Write rows to a staged file durably (with fsync), and return its name."""
        name = uuid.uuid4().hex
        with open(self.staged / name, "wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
        return name

    def _apply(self, before: Any, changes: RowChanges) -> tuple[Any, Any]:
        """Return the rows of a file that a micro-batch leaves unchanged, and those that it updates, with their new REs.

        Raises `SinkError` where the file lacks an updated row or has an inserted one: then somebody else has changed it.
        """
        if not before.num_rows and not pc.any(changes.existed, min_count=0).as_py():
            return before, before
        rows = cast_table(changes.rows, self.schema, self.label)
        facts = rows.select([*KEY, "re"]).rename_columns([*KEY, "re_new"])
        times = self.schema.field("re").type
        facts = facts.append_column("was", changes.old_ends.cast(times)).append_column("is_there", changes.existed)
        facts = facts.append_column("lives", changes.remain)
        numbered = before.select([*KEY, "re"]).append_column("row", pa.array(np.arange(before.num_rows)))
        found = numbered.join(facts, list(KEY), join_type="inner")
        same = pc.or_(
            pc.fill_null(pc.equal(found.column("re"), found.column("was")), False),
            pc.and_(pc.is_null(found.column("re")), pc.is_null(found.column("was"))),
        )
        fit = pc.and_(found.column("is_there"), same)
        if found.num_rows != pc.sum(changes.existed).as_py() or not pc.all(fit, min_count=0).as_py():
            raise SinkError(
                f"{self.label} is not as the last micro-batch left it: {self._mismatch(found, fit, changes)}", hint=LOST
            )
        living = found.filter(found.column("lives"))
        touched = np.zeros(before.num_rows, dtype=np.bool_)
        touched[found.column("row").to_numpy()] = True
        changed = before.take(living.column("row"))
        changed = changed.set_column(changed.column_names.index("re"), self.schema.field("re"), living.column("re_new"))
        return before.filter(pa.array(~touched)), changed

    def _mismatch(self, found: Any, fit: Any, changes: RowChanges) -> str:
        """Return a text about the first row that does not match the changes."""
        for row in found.filter(pc.invert(fit)).slice(0, 1).to_pylist():
            return f"it has the row {row['id']!r} with LE {row['le']} and RE {row['re']}"
        (row, *_) = changes.before.join(found.select(KEY), list(KEY), join_type="left anti").to_pylist()
        return f"it lacks the row {row['id']!r} with LE {row['le']}"

    def _read(self, name: str) -> Any:
        return cast_table(pq.ParquetFile(self.path / name).read(), self.schema, self.label)
