"""Readers of Parquet, Arrow and JSON Lines files, piece by piece."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from streamdsl.errors import QueryError, SchemaError
from streamdsl.extras import need_pyarrow
from streamdsl.io.columns import Columns, RowColumns
from streamdsl.io.times import Where, no_start
from streamdsl.temporal.json_text import loads

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
PIECE_ROWS: Final = 65_536
_OBJECTS: Final = 'each line is an object in UTF-8, such as {"le": 1, "v": 7}'


class Files(Protocol):
    """Files of one format, with the same columns."""

    def peek(self) -> tuple[Columns, str]:
        """Return the first rows, and the name of their file."""

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield pieces with at least the needed columns, each with its file and the number of its first row in that file."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is known only after reading the files."""

    @property
    def in_columns(self) -> bool:
        """Whether the format is columnar, so that columns that are not needed are skipped cheaply."""


def are_paths(given: object) -> bool:
    """Say whether a value is a path, or a non-empty list of paths."""
    listed = given if isinstance(given, (list, tuple)) else [given]
    return bool(listed) and all(isinstance(each, (str, os.PathLike)) for each in listed)


def paths_of(paths: Paths, suffix: str) -> list[str]:
    """Return the paths of files; a directory stands for the files in it with this suffix, in order of name."""
    if not isinstance(paths, (str, os.PathLike, Sequence)):
        raise QueryError(
            f"files are given by a path, or by several in a list, not by a {type(paths).__name__}", hint='["a.csv", "b.csv"]'
        )
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if isinstance(paths, bytes) or not all(isinstance(path, (str, os.PathLike)) for path in listed):
        raise QueryError(f"a path is a text or a pathlib.Path, not one of {paths!r}", hint='["a.csv", "b.csv"]')
    found = [name for path in listed for name in _in_directory(os.fspath(path), suffix)]
    if not found:
        raise QueryError(
            f"there is no file to read in {paths!r}", hint=f"give a file, several, or a directory with *{suffix} files"
        )
    return found


def _in_directory(path: str, suffix: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(str(found) for found in Path(path).rglob(f"*{suffix}") if found.is_file())


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet files, read in batches of rows; only needed columns are read."""

    paths: Sequence[str]

    in_columns = True

    def peek(self) -> tuple[Columns, str]:
        """Return the first rows, and the name of their file."""
        with _opened(self.paths[0]) as file:
            from streamdsl.io.arrow_columns import ArrowColumns

            batch = next(file.iter_batches(batch_size=1024), None)
            return ArrowColumns(file.schema_arrow.empty_table() if batch is None else batch), self.paths[0]

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield the files' batches."""
        from streamdsl.io.arrow_columns import ArrowColumns

        for path in self.paths:
            row = 0
            with _opened(path) as file:
                for batch in file.iter_batches(batch_size=PIECE_ROWS, columns=_projection(needed)):
                    yield ArrowColumns(batch), path, row
                    row += batch.num_rows

    @property
    def rows(self) -> int | None:
        """The number of rows, from the files' footers."""
        return sum(int(_opened(path).metadata.num_rows) for path in self.paths)


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """Arrow files, in the IPC file or stream format; they are memory-mapped, and read batch by batch."""

    paths: Sequence[str]

    in_columns = False

    def peek(self) -> tuple[Columns, str]:
        """Return the first rows, and the name of their file."""
        from streamdsl.io.arrow_columns import ArrowColumns

        schema, batches = _ipc(self.paths[0])
        batch = next(batches, None)
        return ArrowColumns(schema.empty_table() if batch is None else batch), self.paths[0]

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield the files' batches; a large batch is split."""
        from streamdsl.io.arrow_columns import ArrowColumns

        for path in self.paths:
            row = 0
            for batch in _ipc(path)[1]:
                for first in range(0, batch.num_rows, PIECE_ROWS):
                    part = batch.slice(first, PIECE_ROWS)
                    yield ArrowColumns(part), path, row
                    row += part.num_rows

    @property
    def rows(self) -> int | None:
        """None: an Arrow file stores the number of rows per batch only."""
        return None


def _ipc(path: str) -> tuple[Any, Iterator[Any]]:
    """Return the schema of an Arrow file, and its batches."""
    need_pyarrow("Arrow files")
    import pyarrow as pa

    source = pa.memory_map(path)
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        try:
            stream = pa.ipc.open_stream(source)
        except pa.ArrowInvalid as error:
            hint = "from_parquet, from_csv and from_jsonl read other files"
            raise SchemaError(f"{path} is no Arrow file: {error}", hint=hint) from None
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(number) for number in range(file.num_record_batches))


def _projection(needed: Sequence[str]) -> list[str] | None:
    """Return the columns to read; None (all) if a name has a dot, which pyarrow would take for a nested field."""
    return None if any("." in name for name in needed) else list(needed)


def _opened(path: str) -> Any:
    need_pyarrow("Parquet files")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise SchemaError(f"{path} is no Parquet file: {error}", hint="from_csv and from_jsonl read texts") from None


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Files with one JSON object per line, all with the same keys; `extras` allows keys that are not needed.

    A line without the field `start` is refused as an event with a null LE.
    """

    paths: Sequence[str]
    start: str = "le"
    extras: bool = False

    rows = None
    in_columns = False

    def peek(self) -> tuple[Columns, str]:
        """Return the first row, and the name of its file."""
        for path in self.paths:
            for _, row in _json_rows(path):
                return RowColumns(list(row), [row]), path
        return RowColumns([], []), self.paths[0]

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield the files' lines in pieces of at most `PIECE_ROWS` rows."""
        check = self._check(needed)
        for path in self.paths:
            rows: list[dict[str, Any]] = []
            first = 0
            for line, row in _json_rows(path):
                if self.start in needed and self.start not in row:
                    raise no_start(Where(self.start, path, first), len(rows))
                check(row, path, line)
                rows.append(row)
                if len(rows) == PIECE_ROWS:
                    yield RowColumns(needed, rows), path, first
                    first, rows = first + len(rows), []
            if rows:
                yield RowColumns(needed, rows), path, first

    def _check(self, needed: Sequence[str]) -> Callable[[dict[str, Any], str, int], None]:
        wanted = frozenset(needed)

        def check(row: dict[str, Any], path: str, line: int) -> None:
            keys = row.keys()
            if keys == wanted or (self.extras and keys >= wanted):
                return
            wrong = ", ".join(sorted(map(repr, wanted - keys or keys - wanted)))
            word = "lacks" if wanted - keys else "has also"
            raise SchemaError(
                f"{path}, line {line} {word} {wrong}; the fields are: {', '.join(needed)}",
                hint="every payload of a stream has the same fields; null is a value, and payload= picks fields",
            )

        return check


def _json_rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                row = loads(text)
            except ValueError as error:
                raise SchemaError(f"{path}, line {number} is no JSON: {error}", hint=_OBJECTS) from None
            if not isinstance(row, dict):
                raise SchemaError(f"{path}, line {number} holds no JSON object: {text.strip()[:80]}", hint=_OBJECTS)
            yield number, row
