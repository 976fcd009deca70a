"""Sinks, how they are read back, and what each of them holds of a value."""

from __future__ import annotations

import importlib
import json
import os
import re
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from streamdsl.engine.outgoing import Outgoing
from streamdsl.errors import SinkError
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks import DatabaseTable, ParquetTable
from streamdsl.temporal import CHT, INFINITY, fields_of
from streamdsl.temporal.pandas_frames import column_names
from streamdsl.temporal.payload import is_dataclass
from tests.laws.doors.fold import Fold
from tests.laws.power import cut_off_after

Kept: TypeAlias = tuple[int, int, frozenset[Any]]
"""A row as it is compared: its lifetime, and its values with their types."""
POSTGRESQL = "DOORS_POSTGRESQL"
NUMERAL = re.compile(r"-?\d+(\.\d+)?")
SINKS = ("events", "Parquet", "Parquet by time", "SQLite")


class Sink(ABC):
    """Takes micro-batches, each as often as it comes, and is read back."""

    def __init__(self, folder: Path, dates: bool) -> None:
        self.folder = folder
        self.dates = dates

    @abstractmethod
    def write(self, out: Outgoing[Any], batch: int) -> None:
        """Take a micro-batch."""

    @abstractmethod
    def cut(self, out: Outgoing[Any], batch: int, steps: int) -> None:
        """Begin to take a micro-batch, and be cut off after some steps."""

    @abstractmethod
    def rows(self, fields: Iterable[str]) -> Counter[Kept]:
        """Read back what is there, of payloads with these fields."""

    @abstractmethod
    def keeps(self, value: Any) -> Any:
        """Return what it holds of a field's value, with its type."""

    def meant(self, history: CHT[Any]) -> Counter[Kept]:
        """Return the rows that it should hold; in a table a column of ints and floats is one of floats."""
        rows = [(row.le, row.re, dict(fields_of(row.payload))) for row in history]
        kinds: dict[str, set[type]] = {}
        for _, _, fields in rows:
            for name, value in fields.items():
                kinds.setdefault(name, set()).add(type(value))
        mixed = [] if isinstance(self, Events) else [name for name, found in kinds.items() if found >= {int, float}]
        for _, _, fields in rows:
            fields |= {name: float(fields[name]) for name in mixed if type(fields.get(name)) is int}
        return Counter((le, re_, kept({name: self.keeps(value) for name, value in fields.items()})) for le, re_, fields in rows)

    def columns(self, fields: Iterable[str]) -> dict[str, str]:
        """Return the field of each column, for payloads with these fields."""
        listed = list(fields)
        return dict(zip(column_names(listed, PHYSICAL), listed, strict=True))

    def time(self, value: Any) -> int:
        """Return a time that has been read in ticks."""
        if value is None:
            return INFINITY
        if not self.dates:
            assert type(value) is int, f"{value!r} is no tick"
            return value
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return int(moment.timestamp())


class Events(Sink):
    """The events themselves, folded."""

    def __init__(self, folder: Path, dates: bool) -> None:
        super().__init__(folder, dates)
        self.fold = Fold()

    def write(self, out: Outgoing[Any], batch: int) -> None:
        self.fold.take_all(out.events())

    def cut(self, out: Outgoing[Any], batch: int, steps: int) -> None:
        out.events()

    def rows(self, fields: Iterable[str]) -> Counter[Kept]:
        return self.meant(self.fold.rows())

    def keeps(self, value: Any) -> Any:
        return typed(value)


class Parquet(Sink):
    """A `ParquetTable`."""

    every: int | None = None

    def table(self) -> ParquetTable:
        return ParquetTable(self.folder / "table", None if self.every is None else f"{self.every}s" if self.dates else self.every)

    def write(self, out: Outgoing[Any], batch: int) -> None:
        self.table().write(out.to_arrow(), batch)

    def cut(self, out: Outgoing[Any], batch: int, steps: int) -> None:
        with cut_off_after(steps % 12):
            self.write(out, batch)

    def rows(self, fields: Iterable[str]) -> Counter[Kept]:
        read, names = pq.read_table(self.folder / "table"), self.columns(fields)
        assert not names or {*read.column_names} <= {*names, "id", "le", "re"}, f"the table has the columns {read.column_names}"
        return Counter(
            (self.time(row["le"]), self.time(row["re"]), kept({name: typed(row.get(column)) for column, name in names.items()}))
            for row in read.to_pylist()
        )

    def keeps(self, value: Any) -> Any:
        return typed(flat(value))


class ParquetByTime(Parquet):
    every = 4


class Database(Sink):
    """A `DatabaseTable`."""

    name = "t"

    @abstractmethod
    def connect(self) -> Any:
        """Return a connection, which may be cut off."""

    def table(self) -> DatabaseTable:
        return DatabaseTable(self.connect, self.name)

    def write(self, out: Outgoing[Any], batch: int) -> None:
        self.table().write(out.to_arrow(), batch)

    def rows(self, fields: Iterable[str]) -> Counter[Kept]:
        names = {column: field for field, column in self.table().columns().items()}
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT * FROM {self.name}")
            columns = [each[0] for each in cursor.description]
            found = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return Counter(
            (
                self.time(row["le"]),
                self.time(row["re"]),
                kept({names[each]: self._read(row[each]) for each in names.keys() & row}),
            )
            for row in found
        )

    def _read(self, value: Any) -> Any:
        is_nested = isinstance(value, str) and value[:1] in ("[", "{")
        return typed(by_value(json.loads(value))) if is_nested else typed(value)

    def keeps(self, value: Any) -> Any:
        value = flat(value)
        return typed(by_value(json.loads(json.dumps(value, default=str))) if isinstance(value, (list, dict)) else value)


class Sqlite(Database):
    """A table of SQLite, which has numbers and texts alone."""

    steps: int | None = None

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.folder / "table.db")
        connection.execute("PRAGMA synchronous = OFF")
        if self.steps is not None:
            connection.set_progress_handler(self._step, 3)
        return connection

    def _step(self) -> bool:
        assert self.steps is not None
        self.steps -= 1
        return self.steps < 0

    def cut(self, out: Outgoing[Any], batch: int, steps: int) -> None:
        self.steps = steps % 60
        try:
            self.write(out, batch)
        except (sqlite3.OperationalError, SinkError) as error:
            if "interrupted" not in str(error):
                raise
        finally:
            self.steps = None

    def _read(self, value: Any) -> Any:
        return numeral(value) if isinstance(value, str) and NUMERAL.fullmatch(value) else super()._read(value)

    def keeps(self, value: Any) -> Any:
        if isinstance(value, bool):
            return typed(int(value))
        if isinstance(value, datetime):
            return typed(str(value.astimezone(UTC)))
        return numeral(str(value)) if isinstance(value, Decimal) else super().keeps(value)


class PostgreSql(Database):
    """A table of the PostgreSQL that the environment variable DOORS_POSTGRESQL leads to, through psycopg; for a run by hand."""

    is_cut = False

    def __init__(self, folder: Path, dates: bool) -> None:
        super().__init__(folder, dates)
        self.name = f"doors_{uuid.uuid4().hex}"

    def connect(self) -> Any:
        driver = importlib.import_module("psycopg")
        connection = driver.connect(os.environ[POSTGRESQL])
        if self.is_cut:
            connection.execute("SET statement_timeout = 1")
        return connection

    def cut(self, out: Outgoing[Any], batch: int, steps: int) -> None:
        self.is_cut = True
        try:
            self.write(out, batch)
        except SinkError as error:
            if "timeout" not in str(error):
                raise
        finally:
            self.is_cut = False


def kept(fields: Mapping[str, Any]) -> frozenset[Any]:
    """Return fields as they are compared: one that is not there is None."""
    return frozenset((name, value) for name, value in fields.items() if value != typed(None))


def numeral(text: str) -> Any:
    """Return the text of a decimal as it is compared: by its value."""
    return ("numeral", Decimal(text))


def by_value(value: Any) -> Any:
    """Return what a text of JSON holds as it is compared: decimals, which are texts there, without zeros at their end."""
    if isinstance(value, list):
        return list(map(by_value, value))
    if isinstance(value, dict):
        return {name: by_value(item) for name, item in value.items()}
    return str(Decimal(value).normalize()) if isinstance(value, str) and NUMERAL.fullmatch(value) else value


def flat(value: Any) -> Any:
    """Return a value as columns hold it: records, tuples and dataclasses in it as `dict`s."""
    if isinstance(value, (Mapping, tuple)) or is_dataclass(value):
        return {name: flat(item) for name, item in fields_of(value)}
    return [flat(item) for item in value] if isinstance(value, list) else value


def typed(value: Any) -> Any:
    """Return a value that is equal to those of its type alone, and can be counted."""
    if isinstance(value, Mapping):
        return ("record", *((name, typed(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", *map(typed, value))
    if isinstance(value, tuple) or is_dataclass(value):
        return (type(value).__name__, *((name, typed(item)) for name, item in fields_of(value)))
    if isinstance(value, datetime):
        return ("datetime", value.astimezone(UTC) if value.tzinfo else value)
    return (type(value).__name__, "NaN" if value != value else value)


MADE: dict[str, Callable[[Path, bool], Sink]] = {
    "events": Events,
    "Parquet": Parquet,
    "Parquet by time": ParquetByTime,
    "SQLite": Sqlite,
}


def sink(name: str, folder: Path, dates: bool) -> Sink:
    """Return a new sink; PostgreSQL's is in the place of SQLite's if there is one."""
    if name == "SQLite" and os.environ.get(POSTGRESQL):
        return PostgreSql(folder, dates)
    return MADE[name](folder, dates)


def difference(found: Counter[Kept], wanted: Counter[Kept]) -> str:
    """Return what is lost, and what is too much, in words."""
    lines: Iterable[str] = [f"lost:  {row}" for row in (wanted - found).elements()]
    return "\n".join([*lines, *(f"wrong: {row}" for row in (found - wanted).elements())])
