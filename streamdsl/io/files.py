"""Files of rows: their paths, what a format says of itself, and how files are read piece by piece."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from streamdsl.errors import QueryError, SchemaError
from streamdsl.extras import need
from streamdsl.io.columns import Columns, RowColumns

if TYPE_CHECKING:
    from streamdsl.io.layout import PayloadLike
    from streamdsl.result import Result

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
PIECE_ROWS: Final = 65_536
_FIRST_ROWS: Final = 1_024


@dataclass(frozen=True, slots=True)
class Files(ABC):
    """Files of one format, with the same columns; a format says how one of them is read.

    `payload` is the type of the payloads, and `start` the column of LEs, for formats whose columns depend on them.
    """

    paths: Sequence[str]
    payload: PayloadLike = None
    start: str = "le"

    in_columns: ClassVar[bool] = False
    """Whether columns that are not needed are skipped cheaply."""

    apart: ClassVar[bool] = True
    """Whether what a file is read as does not depend on the others, so that each may be read by another process."""

    @abstractmethod
    def read(self, path: str, needed: Sequence[str] | None, rows: int) -> Iterator[Columns]:
        """Yield a file in pieces of at most so many rows, with at least the needed columns.

        A needed column that the file lacks is left out. None asks for all columns, and for a piece of a file that has columns but
        no rows. Raises `SchemaError` for a file of another format (`no_such_file`), `FileNotFoundError` for none.
        """

    def look(self, path: str) -> Columns | None:
        """Return the first rows of a file, with all columns; None for a file without columns."""
        return next(self.read(path, None, _FIRST_ROWS), None)

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is known only after reading the files."""
        return None

    def peek(self) -> tuple[Columns, str]:
        """Return the first rows, and the name of their file."""
        for path in self.paths:
            if (columns := self.look(path)) is not None:
                return columns, path
        return RowColumns([], []), self.paths[0]

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield pieces with at least the needed columns, each with its file and the number of its first row in that file."""
        from streamdsl.monitoring.progress_meter import ProgressMeter

        is_one = len(self.paths) == 1
        with ProgressMeter("rows read" if is_one else "files read") as meter:
            for number, path in enumerate(self.paths):
                row = 0
                for columns in self.read(path, needed, PIECE_ROWS):
                    if meter.is_due:
                        meter.show(*((row, self.rows) if is_one else (number, len(self.paths))))
                    yield columns, path, row
                    row += columns.size


@dataclass(frozen=True, slots=True)
class SparkFormat:
    """Spark's name of a format, and its options for reading and writing.

    Spark ends the files that it writes in the name, unless the option `extension` says otherwise: they must end in the first
    suffix of the format.
    """

    name: str
    reading: Mapping[str, str] = field(default_factory=dict)
    writing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """All that a file format says of itself: the value `FORMAT` of a module in `streamdsl/io/formats`."""

    name: str
    """Its name as an option of the command line."""
    title: str
    """Its name in sentences."""
    suffixes: tuple[str, ...]
    """How names of its files end; the first stands for the others where a directory is read by `from_<name>`."""
    files: type[Files]
    """How files are read."""
    write: Callable[[Result[Any], Path], None]
    """How the history of a result is written, with the columns `le`, `re` and those of the payload."""
    spark: SparkFormat | None = None
    """What it is on Spark; None: Spark neither reads nor writes it."""
    needs: tuple[str, str] | None = None
    """The package that reads and writes it, and the extra that installs it."""

    def open(self, paths: Sequence[str], payload: PayloadLike, start: str) -> Files:
        """Return files of this format. Raises `QueryError` if the package that reads them is not installed."""
        self._check_installed()
        return self.files(paths, payload, start)

    def save(self, result: Result[Any], path: Path) -> None:
        """Write the history of a result. Raises `QueryError` if the package that writes it is not installed."""
        self._check_installed()
        self.write(result, path)

    def _check_installed(self) -> None:
        if self.needs is not None:
            need(self.needs[0], f"{self.title} files", self.needs[1])


def no_such_file(path: str, title: str, error: Exception) -> SchemaError:
    """Return the error for a file that is not of the format that it is read as."""
    return SchemaError(
        f"{path} is no {title} file: {error}",
        hint="its suffix says the format: rename it, or read it with the source of its format, as from_csv",
    )


def projection(needed: Sequence[str] | None) -> list[str] | None:
    """Return the columns to read; None (all) if a name has a dot, which pyarrow would take for a nested field."""
    return None if needed is None or any("." in name for name in needed) else list(needed)


def are_paths(given: object) -> bool:
    """Say whether a value is a path, or a non-empty list of paths."""
    listed = given if isinstance(given, (list, tuple)) else [given]
    return bool(listed) and all(isinstance(each, (str, os.PathLike)) for each in listed)


def paths_of(paths: Paths, *suffixes: str) -> list[str]:
    """Return the paths of files; a directory stands for the files in it with one of these suffixes, in order of name."""
    found = [name for path in listed_paths(paths) for name in _in_directory(path, suffixes)]
    if not found:
        known = ", ".join(f"*{suffix}" for suffix in suffixes)
        raise QueryError(f"there is no file to read in {paths!r}", hint=f"give a file, several, or a directory with {known}")
    return found


def listed_paths(paths: Paths) -> list[str]:
    """Return a path, or several, as a list of texts. Raises `QueryError` for what is no path."""
    if not isinstance(paths, (str, os.PathLike, Sequence)):
        raise QueryError(
            f"files are given by a path, or by several in a list, not by a {type(paths).__name__}", hint='["a.csv", "b.csv"]'
        )
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if isinstance(paths, bytes) or not all(isinstance(path, (str, os.PathLike)) for path in listed):
        raise QueryError(f"a path is a text or a pathlib.Path, not one of {paths!r}", hint='["a.csv", "b.csv"]')
    return [os.fspath(path) for path in listed]


def _in_directory(path: str, suffixes: Sequence[str]) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(str(found) for found in Path(path).rglob("*") if found.name.endswith(tuple(suffixes)) and found.is_file())
