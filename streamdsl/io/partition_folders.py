"""Folders of partitions, as Hive, Spark and others write them: a folder `month=01` gives each row in it a column `month`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from streamdsl.errors import SchemaError
from streamdsl.expr.table import Column, column_of
from streamdsl.io.columns import Columns
from streamdsl.io.files import Files
from streamdsl.io.times import TimeColumn

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a folder's name for a null."""
PartitionValues: TypeAlias = Mapping[str, Any]
_BARE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def partition_values(path: PurePath) -> dict[str, str | None]:
    """Return the columns that the folders of a path give, each a text or None.

    >>> partition_values(PurePath("2024/country=DE/day=1%2F7/a.parquet"))
    {'country': 'DE', 'day': '1/7'}
    """
    pairs = [part.partition("=") for part in path.parts[:-1]]
    return {unescaped(name): None if value == NULL else unescaped(value) for name, equals, value in pairs if name and equals}


def unescaped(text: str) -> str:
    """Return what a folder's name says, in which `%2F` is a slash; a name with a percent sign that escapes nothing is itself.

    >>> unescaped("1%2F7"), unescaped("5% of 1%2F7")
    ('1/7', '5% of 1%2F7')
    """
    return text if _BARE_PERCENT.search(text) else unquote(text)


def check_same(path: object, values: PartitionValues, first: object, first_values: PartitionValues) -> None:
    """Raise `SchemaError` if two files that are read together have not the same columns from their folders."""
    if odd := sorted(values.keys() ^ first_values.keys()):
        raise SchemaError(
            f"{path if odd[0] in first_values else first} is in no folder {odd[0]}=..., as others are",
            hint="files that are read together have the same columns: give a folder below which all have them, or none",
        )


class PartitionedFiles:
    """Files whose rows have the columns that the folders below `bases` give, instead of their own of these names.

    They are texts, unless the payload type declares another kind. Raises `SchemaError` where files have not the same ones.
    """

    def __init__(self, files: Files, bases: Sequence[str]) -> None:
        from streamdsl.io.csv_files import declared_kinds, parsed

        self._files = files
        self.in_columns = files.in_columns
        self._values: dict[str, PartitionValues] = {path: partition_values(below(path, bases)) for path in files.paths}
        first, self._names = files.paths[0], self._values[files.paths[0]].keys()
        for path, values in self._values.items():
            check_same(path, values, first, self._values[first])
        kinds = declared_kinds(files.payload) if self._names else {}
        for path, values in self._values.items():
            place = f"the folder of {path}"
            self._values[path] = {name: parsed(text, kinds.get(name, "text"), place, name) for name, text in values.items()}

    def one_by_one(self) -> list[PartitionedFiles]:
        """Return the files one by one; none where they are not known apart from one another, or there is only one."""
        return [self._only(path) for path in self._files.paths] if self._files.apart and len(self._files.paths) > 1 else []

    def _only(self, path: str) -> PartitionedFiles:
        found = copy(self)
        found._files = replace(self._files, paths=[path])
        return found

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is known only after reading the files."""
        return self._files.rows

    def peek(self) -> tuple[Columns, str]:
        """Return the first rows, and the name of their file."""
        columns, path = self._files.peek()
        return self._with_values(columns, path), path

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield pieces with at least the needed columns, each with its file and the number of its first row in that file."""
        in_files = self._files.peek()[0].names if self._names else needed
        for columns, path, row in self._files.pieces([name for name in needed if name in in_files]):
            yield self._with_values(columns, path), path, row

    def _with_values(self, columns: Columns, path: str) -> Columns:
        return _ColumnsOfPartition(columns, self._values[path]) if self._names else columns


def below(path: str, bases: Sequence[str]) -> PurePath:
    """Return a path below that of `bases` in which it is; its name alone if it is in none."""
    found = (PurePath(path).relative_to(base) for base in bases if PurePath(path).is_relative_to(base))
    return next(found, PurePath(Path(path).name))


class _ColumnsOfPartition:
    """The columns of a piece of a file, and those that have one value in all of its rows."""

    memo = None

    def __init__(self, columns: Columns, values: PartitionValues) -> None:
        self._columns, self._values = columns, values
        self.size = columns.size

    @cached_property
    def names(self) -> Sequence[str]:
        return [*(name for name in self._columns.names if name not in self._values), *self._values]

    def values(self, name: str) -> Column:
        return column_of([self._values[name]] * self.size) if name in self._values else self._columns.values(name)

    def held(self, name: str) -> Any:
        return self.values(name) if name in self._values else self._columns.held(name)

    def times(self, name: str) -> TimeColumn:
        if name in self._values:
            return TimeColumn.of_values([self._values[name]] * self.size)
        return self._columns.times(name)
