"""What is said to a database, in SQL that SQLite and PostgreSQL take alike."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa

from streamdsl.errors import QueryError, SinkError, StreamDslError
from streamdsl.io.arrow_types import common_schema
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks.batches import Taken
from streamdsl.sinks.folder import LOST
from streamdsl.sinks.guard import AGAIN
from streamdsl.sinks.names import column_of
from streamdsl.sinks.net import KEY, Net
from streamdsl.sinks.schemas import fitted
from streamdsl.sinks.sql_values import sql_type, sql_values
from streamdsl.temporal.pandas_frames import MEMO, column_names

BATCHES: Final = "streamdsl_batches"
"""The table that says which micro-batch each table has taken last."""
TABLES: Final = "streamdsl_tables"
"""The table that says which columns each table has, of which fields and Arrow's types, and how many rows."""
_MARKS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}
_AT_ONCE: Final = 100
"""So many rows are looked for at once."""
_EXACT: Final = 2**53


def quoted(name: str) -> str:
    """Return a name as SQL has it, whatever it holds.

    >>> quoted('a "b"')
    '"a ""b\"""'
    """
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def speaking(table: str) -> Iterator[None]:
    """Make a `SinkError` of what a driver says, which is also an error of the driver's, as whoever knows it expects.

    >>> import sqlite3
    >>> with speaking("trips"):
    ...     sqlite3.connect(":memory:").execute("SELECT 1 FROM trips")
    Traceback (most recent call last):
        ...
    streamdsl.sinks.statements.SinkError: the table trips cannot be read or written: no such table: trips
    Hint: mend that and write the micro-batch again: it counts once, wherever this one was cut off
    """
    try:
        yield
    except StreamDslError:
        raise
    except Exception as error:
        kind: Any = type(error)
        raise _both(kind)(f"the table {table} cannot be read or written: {error}", hint=AGAIN) from error


def _names_nothing(error: Any) -> bool:
    """Say whether a driver's error is about a table or a column that is not there, not about a lost connection, or a time limit.

    >>> import sqlite3
    >>> _names_nothing(sqlite3.OperationalError("no such table: trips")), _names_nothing(sqlite3.OperationalError("interrupted"))
    (True, False)
    """
    told = error.args[0] if error.args else None
    code = getattr(error, "sqlstate", None) or (told.get("C") if isinstance(told, dict) else None)
    if code:
        return str(code).startswith("42")  # SQLSTATE: a syntax error, or an access rule, of which an unknown name is one
    is_operational = any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    return not is_operational or "no such" in str(error)


@cache
def _both(kind: Any) -> type[SinkError]:
    return type(SinkError.__name__, (SinkError, kind), {})


@dataclass(frozen=True, slots=True)
class Driver:
    """How a connection takes values, and what its database is."""

    mark: str
    is_sqlite: bool

    @classmethod
    def of(cls, connection: Any) -> Driver:
        """Return that of a connection; raises `SinkError` for one that would write each row for good at once."""
        modules = [each.__module__.partition(".")[0] for each in type(connection).__mro__]
        module = next((sys.modules[name] for name in modules if hasattr(sys.modules.get(name), "paramstyle")), None)
        style = getattr(module, "paramstyle", "qmark")
        if style not in _MARKS:
            raise QueryError(
                f"the database driver {getattr(module, '__name__', module)} has the paramstyle {style!r}",
                hint=f"use one with {', '.join(_MARKS)}",
            )
        is_sqlite = any("sqlite" in name for name in modules)
        implicit = is_sqlite and getattr(connection, "isolation_level", "") is None
        if getattr(connection, "autocommit", False) is True or (implicit and getattr(connection, "autocommit", -1) == -1):
            raise SinkError(
                "the connection commits each statement on its own, so a micro-batch could be written in part",
                hint="connect without autocommit (sqlite3: leave isolation_level as it is)",
            )
        return cls(_MARKS[style], is_sqlite)


@dataclass(frozen=True, slots=True)
class Made:
    """A table as it was made: the columns of its fields, Arrow's types, and how many rows there are."""

    columns: dict[str, str]
    schema: Any
    rows: int

    @property
    def of_fields(self) -> dict[str, str]:
        """The columns of the payload's fields, by the names that they have there."""
        memo = json.loads((self.schema.metadata or {}).get(MEMO.encode(), b'{"fields": []}'))
        fields = dict(zip(column_names(memo["fields"], PHYSICAL), memo["fields"], strict=True))
        return {fields.get(name, name): column for name, column in self.columns.items() if name not in (*KEY, "re")}

    @property
    def known(self) -> list[str]:
        """The fields that have a column: their types are known."""
        return [field.name for field in self.schema if not pa.types.is_null(field.type)]


class Statements:
    """What is said of one table, through a cursor."""

    def __init__(self, cursor: Any, name: str, driver: Driver) -> None:
        self._cursor = cursor
        self._name = name
        self._table = ".".join(map(quoted, name.split(".")))
        self._driver = driver
        self._mark = driver.mark

    def taken(self) -> Taken:
        """Return the last micro-batch that the table has taken; nobody else writes the table until the transaction ends."""
        self._run(f"CREATE TABLE IF NOT EXISTS {BATCHES} (name TEXT PRIMARY KEY, batch BIGINT NOT NULL, stream TEXT)")
        columns = "name TEXT PRIMARY KEY, columns TEXT NOT NULL, types TEXT NOT NULL, row_count BIGINT NOT NULL"
        self._run(f"CREATE TABLE IF NOT EXISTS {TABLES} ({columns})")
        # The first change of the transaction: others wait here, and then read what this one has written.
        change = "ON CONFLICT (name) DO UPDATE SET name = excluded.name"
        self._run(f"INSERT INTO {BATCHES} (name, batch) VALUES ({self._mark}, -1) {change}", self._name)
        self._run(f"SELECT batch, stream FROM {BATCHES} WHERE name = {self._mark}", self._name)
        batch, stream = self._cursor.fetchone()
        return Taken(int(batch), stream)

    def made(self) -> Made | None:
        """Return how the table was made, None if nothing says so."""
        self._run(f"SELECT columns, types, row_count FROM {TABLES} WHERE name = {self._mark}", self._name)
        found = self._cursor.fetchone()
        if found is None:
            return None
        return Made(json.loads(found[0]), pa.ipc.read_schema(pa.BufferReader(base64.b64decode(found[1]))), int(found[2]))

    def check(self, made: Made) -> None:
        """Raise `SinkError` for a table that is gone, or that was emptied."""
        # Behind its table's name; alone, a name that there is not would be a text to SQLite.
        known = ", ".join(f"{self._table}.{quoted(made.columns[name])}" for name in made.known)
        found = self._tried(f"SELECT {known} FROM {self._table} LIMIT 1")
        if found is None or (not found) != (made.rows == 0):
            what = (
                "is gone, or lacks columns" if found is None else "was emptied" if made.rows else "has rows that no stream wrote"
            )
            raise SinkError(f"the table {self._name} {what} since its last micro-batch", hint=LOST)

    def exists(self) -> bool:
        """Say whether there is a table of this name."""
        return self._tried(f"SELECT 1 FROM {self._table} LIMIT 1") is not None

    def make(self, schema: Any) -> Made:
        """Make the table: its columns have the types that are known so far, and the key is what names a row for ever."""
        made = self._named({}, schema)
        columns = [self._column(made, schema.field(name)) for name in made.known]
        self._run(f"CREATE TABLE {self._table} ({', '.join(columns)}, PRIMARY KEY ({', '.join(KEY)}))")
        return made

    def drop(self) -> None:
        """Remove the table, which has no rows."""
        self._run(f"DROP TABLE {self._table}")

    def widen(self, made: Made, schema: Any) -> Made:
        """Give the table columns of new fields, and of fields whose type is known now, and others wider types."""
        named = self._named(made.columns, schema, made.rows)
        for field in map(schema.field, named.known):
            if field.name not in made.known:
                self._run(f"ALTER TABLE {self._table} ADD COLUMN {self._column(named, field)}")
            elif self._type(made.schema.field(field.name).type) != self._type(field.type):
                self._change(quoted(named.columns[field.name]), field)
        return named

    def fits(self, one: Any, other: Any) -> bool:
        """Say whether a table of one schema, without rows, can be widened to another."""
        return not common_schema(one, other)[1] and all(
            pa.types.is_null(field.type) or self._type(field.type) == self._type(other.field(field.name).type) for field in one
        )

    def put(self, changes: Net, made: Made) -> int:
        """Write the rows that are new or changed, remove those that are gone; return how many more there are.

        Raises `SinkError` where the table lacks a row that is changed, or has one that is new.
        """
        rows = Net(fitted(changes.rows, made.schema, f"the table {self._name}"), *changes[1:])
        self._check_before(fitted(rows.before, pa.schema([made.schema.field(name) for name in (*KEY, "re")]), self._name))
        new, gone, changed = rows.new, rows.gone, rows.changed
        key = " AND ".join(f"{name} = {self._mark}" for name in KEY)
        self._many(f"DELETE FROM {self._table} WHERE {key}", gone.select(KEY))
        self._many(f"UPDATE {self._table} SET re = {self._mark} WHERE {key}", changed.select(["re", *KEY]))
        names, marks = (
            ", ".join(each) for each in ([quoted(made.columns[name]) for name in made.known], [self._mark] * len(made.known))
        )
        self._many(f"INSERT INTO {self._table} ({names}) VALUES ({marks})", new.select(made.known))
        return int(new.num_rows) - int(gone.num_rows)

    def remember(self, taken: Taken, made: Made) -> None:
        """Write which micro-batch the table has taken, and how it is now."""
        m = self._mark
        self._run(f"UPDATE {BATCHES} SET batch = {m}, stream = {m} WHERE name = {m}", taken.batch, taken.stream, self._name)
        types = base64.b64encode(made.schema.serialize()).decode()
        change = ", ".join(f"{name} = excluded.{name}" for name in ("columns", "types", "row_count"))
        values = ", ".join([m] * 4)
        self._run(
            f"INSERT INTO {TABLES} (name, columns, types, row_count) VALUES ({values}) ON CONFLICT (name) DO UPDATE SET {change}",
            *(self._name, json.dumps(made.columns, ensure_ascii=False), types, made.rows),
        )

    def _named(self, columns: dict[str, str], schema: Any, rows: int = 0) -> Made:
        found = dict(columns)
        for name in [*(name for name in (*KEY, "re") if name not in found), *schema.names]:
            if name not in found:
                found[name] = column_of(name, found.values())
        return Made(found, schema, rows)

    def _type(self, kind: Any) -> str:
        return sql_type(kind, not self._driver.is_sqlite)

    def _column(self, made: Made, field: Any) -> str:
        return f"{quoted(made.columns[field.name])} {self._type(field.type)}{' NOT NULL' if field.name in KEY else ''}"

    def _change(self, column: str, field: Any) -> None:
        """Change the type of a column of integers to floats or decimals; raises `SinkError` for an integer that is no float."""
        kind = self._type(field.type)
        if self._driver.is_sqlite:  # it keeps integers as they are beside floats
            if kind == "TEXT":
                spare = quoted("~~")
                self._run(f"ALTER TABLE {self._table} ADD COLUMN {spare} TEXT")
                self._run(f"UPDATE {self._table} SET {spare} = CAST({column} AS TEXT)")
                self._run(f"ALTER TABLE {self._table} DROP COLUMN {column}")
                self._run(f"ALTER TABLE {self._table} RENAME COLUMN {spare} TO {column}")
            return
        self._run(f"SELECT 1 FROM {self._table} WHERE {column} NOT BETWEEN {-_EXACT} AND {_EXACT} LIMIT 1")
        if pa.types.is_floating(field.type) and self._cursor.fetchone() is not None:
            raise SinkError(
                f"the column {field.name!r} of the table {self._name} has integers that are no floats, and floats come",
                hint="declare the types of the payload's fields, or select values of one type",
            )
        self._run(f"ALTER TABLE {self._table} ALTER COLUMN {column} TYPE {kind}")

    def _check_before(self, before: Any) -> None:
        """Raise unless the table has rows with these keys and ends."""
        for begin in range(0, before.num_rows, _AT_ONCE):
            rows = list(self._values(before.slice(begin, _AT_ONCE)))
            key = f"id = {self._mark} AND le = {self._mark} AND re"
            tests = [f"({key} IS NULL)" if re is None else f"({key} = {self._mark})" for *_, re in rows]
            values = [value for row in rows for value in row if value is not None]
            self._run(f"SELECT COUNT(*) FROM {self._table} WHERE {' OR '.join(tests)}", *values)
            if self._cursor.fetchone()[0] != len(rows):
                raise SinkError(
                    f"the table {self._name} is not as its last micro-batch left it: it lacks rows that are changed", hint=LOST
                )

    def _values(self, rows: Any) -> Iterator[tuple[Any, ...]]:
        return zip(*(sql_values(column, not self._driver.is_sqlite) for column in rows.columns), strict=True)

    def _tried(self, statement: str) -> list[Any] | None:
        """Return what a statement finds, None if it names what is not there; the transaction goes on."""
        self._run("SAVEPOINT streamdsl")
        try:
            self._run(statement)
            with speaking(self._name):
                found = list(self._cursor.fetchall())
        except SinkError as error:
            if not _names_nothing(error.__cause__):
                raise
            found = None
            self._run("ROLLBACK TO SAVEPOINT streamdsl")
        self._run("RELEASE SAVEPOINT streamdsl")
        return found

    def _run(self, statement: str, *values: Any) -> None:
        with speaking(self._name):
            self._cursor.execute(statement, values)

    def _many(self, statement: str, rows: Any) -> None:
        if rows.num_rows:
            listed = list(self._values(rows))
            with speaking(self._name):
                self._cursor.executemany(statement, listed)
