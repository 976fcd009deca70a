"""The SQL statements of a database table, in the dialect that SQLite, PostgreSQL and DuckDB share."""

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
from streamdsl.sinks.commit_file import AGAIN
from streamdsl.sinks.last_batch import LastBatch
from streamdsl.sinks.names import column_of
from streamdsl.sinks.row_changes import KEY, RowChanges
from streamdsl.sinks.schemas import cast_table
from streamdsl.sinks.sql_connections import DuckConnection, EngineConnection
from streamdsl.sinks.sql_values import sql_type, sql_values
from streamdsl.sinks.table_folder import LOST
from streamdsl.temporal.pandas_frames import MEMO, column_names

BATCHES: Final = "streamdsl_batches"
"""The table of the last micro-batch of each table."""
TABLES: Final = "streamdsl_tables"
"""The table of the layout of each table: columns by field, Arrow types, and the number of rows."""
_MARKS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}
_ROWS_PER_QUERY: Final = 100
"""The number of rows that one query looks up."""
_MAX_EXACT: Final = 2**53


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier.

    >>> quoted('a "b"')
    '"a ""b\"""'
    """
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def driver_errors(table: str) -> Iterator[None]:
    """Translate a driver's error into a `SinkError` that is also an instance of the driver's class, for callers that catch that.

    >>> import sqlite3
    >>> with driver_errors("trips"):
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
        raise _error_type(kind)(f"the table {table} cannot be read or written: {error}", hint=AGAIN) from error


def _is_missing_object(error: Any) -> bool:
    """Say whether a driver's error is about a missing table or column, and not about, say, a lost connection or a time limit.

    >>> from sqlite3 import OperationalError
    >>> _is_missing_object(OperationalError("no such table: trips")), _is_missing_object(OperationalError("interrupted"))
    (True, False)
    """
    told = error.args[0] if error.args else None
    code = getattr(error, "sqlstate", None) or (told.get("C") if isinstance(told, dict) else None)
    if code:
        return str(code).startswith("42")  # the class of SQLSTATE for syntax errors and access rules, which unknown names are in
    is_operational = any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    return not is_operational or "no such" in str(error)


@cache
def _error_type(kind: Any) -> type[SinkError]:
    return type(SinkError.__name__, (SinkError, kind), {})


_DIALECTS: Final = ("sqlite", "postgresql")
"""The dialects of SQLAlchemy whose databases know the statements below."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The placeholder of a connection's driver, and whether the database is SQLite, or DuckDB."""

    mark: str
    is_sqlite: bool
    is_duckdb: bool = False

    @classmethod
    def of(cls, connection: Any) -> Driver:
        """Return the driver of a connection; raises `SinkError` for a connection with autocommit, or of another database."""
        mark, modules = placeholder(connection), _modules(connection)
        if isinstance(connection, DuckConnection):
            return cls(mark, is_sqlite=False, is_duckdb=True)
        if isinstance(connection, EngineConnection):
            if connection.dialect.name not in _DIALECTS:
                raise SinkError(
                    f"tables are kept in {' and '.join(_DIALECTS)}, not in {connection.dialect.name}",
                    hint="it lacks INSERT ... ON CONFLICT, or commits where a table is made: write to one of these",
                )
            return cls(mark, is_sqlite=connection.dialect.name == "sqlite")
        is_sqlite = any("sqlite" in name for name in modules)
        implicit = is_sqlite and getattr(connection, "isolation_level", "") is None
        if getattr(connection, "autocommit", False) is True or (implicit and getattr(connection, "autocommit", -1) == -1):
            raise SinkError(
                "the connection commits each statement on its own, so a micro-batch could be written in part",
                hint="connect without autocommit (sqlite3: leave isolation_level as it is)",
            )
        return cls(mark, is_sqlite)


def placeholder(connection: Any) -> str:
    """Return how the driver of a connection marks a parameter; raises `QueryError` for one that knows neither `?` nor `%s`.

    >>> import sqlite3
    >>> placeholder(sqlite3.connect(":memory:"))
    '?'
    """
    if isinstance(connection, EngineConnection):
        return _mark(connection.dialect.paramstyle, f"of {connection.dialect.name}")
    module = next((sys.modules[name] for name in _modules(connection) if hasattr(sys.modules.get(name), "paramstyle")), None)
    return _mark(getattr(module, "paramstyle", "qmark"), getattr(module, "__name__", module))


def _mark(style: str, driver: object) -> str:
    if style not in _MARKS:
        raise QueryError(f"the database driver {driver} has the paramstyle {style!r}", hint=f"use one with {', '.join(_MARKS)}")
    return _MARKS[style]


def _modules(connection: Any) -> list[str]:
    return [each.__module__.partition(".")[0] for each in type(connection).__mro__]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The recorded layout of a table: the column of each field, the Arrow schema, and the number of rows."""

    columns: dict[str, str]
    schema: Any
    rows: int

    @property
    def of_fields(self) -> dict[str, str]:
        """The columns of the payload's fields, by field name."""
        memo = json.loads((self.schema.metadata or {}).get(MEMO.encode(), b'{"fields": []}'))
        fields = dict(zip(column_names(memo["fields"], PHYSICAL), memo["fields"], strict=True))
        return {fields.get(name, name): column for name, column in self.columns.items() if name not in (*KEY, "re")}

    @property
    def typed_fields(self) -> list[str]:
        """The fields whose types are known, which have a column."""
        return [field.name for field in self.schema if not pa.types.is_null(field.type)]


class Statements:
    """The statements of one table, run through a cursor."""

    def __init__(self, cursor: Any, name: str, driver: Driver, outside: Any = None) -> None:
        self._cursor = cursor
        self._outside = outside
        self._name = name
        self._table = ".".join(map(quoted, name.split(".")))
        self._driver = driver
        self._mark = driver.mark

    def last_batch(self) -> LastBatch:
        """Return the last micro-batch of the table, and lock the table's row until the transaction ends."""
        self._run(f"CREATE TABLE IF NOT EXISTS {BATCHES} (name TEXT PRIMARY KEY, batch BIGINT NOT NULL, stream TEXT)")
        columns = "name TEXT PRIMARY KEY, columns TEXT NOT NULL, types TEXT NOT NULL, row_count BIGINT NOT NULL"
        self._run(f"CREATE TABLE IF NOT EXISTS {TABLES} ({columns})")
        # The first write of the transaction takes a lock: other writers wait here, and then read what this one has committed.
        same = f"batch = {BATCHES}.batch" if self._driver.is_duckdb else "name = excluded.name"  # DuckDB keeps keys as they are
        change = f"ON CONFLICT (name) DO UPDATE SET {same}"
        self._run(f"INSERT INTO {BATCHES} (name, batch) VALUES ({self._mark}, -1) {change}", self._name)
        self._run(f"SELECT batch, stream FROM {BATCHES} WHERE name = {self._mark}", self._name)
        batch, stream = self._cursor.fetchone()
        return LastBatch(int(batch), stream)

    def layout(self) -> TableLayout | None:
        """Return the recorded layout of the table, or None."""
        self._run(f"SELECT columns, types, row_count FROM {TABLES} WHERE name = {self._mark}", self._name)
        found = self._cursor.fetchone()
        if found is None:
            return None
        return TableLayout(json.loads(found[0]), pa.ipc.read_schema(pa.BufferReader(base64.b64decode(found[1]))), int(found[2]))

    def check(self, layout: TableLayout) -> None:
        """Raise `SinkError` for a table that is missing, lacks columns, or was emptied or filled by others."""
        # Qualified by the table: SQLite reads an unknown quoted name alone as a string literal.
        known = ", ".join(f"{self._table}.{quoted(layout.columns[name])}" for name in layout.typed_fields)
        found = self._query_or_none(f"SELECT {known} FROM {self._table} LIMIT 1")
        if found is None or (not found) != (layout.rows == 0):
            what = (
                "is gone, or lacks columns"
                if found is None
                else "was emptied"
                if layout.rows
                else "has rows that no stream wrote"
            )
            raise SinkError(f"the table {self._name} {what} since its last micro-batch", hint=LOST)

    def exists(self) -> bool:
        """Say whether the table exists."""
        return self._query_or_none(f"SELECT 1 FROM {self._table} LIMIT 1") is not None

    def make(self, schema: Any) -> TableLayout:
        """Create the table with the columns whose types are known, and the primary key (id, le)."""
        layout = self._layout_of({}, schema)
        columns = [self._column(layout, schema.field(name)) for name in layout.typed_fields]
        self._run(f"CREATE TABLE {self._table} ({', '.join(columns)}, PRIMARY KEY ({', '.join(KEY)}))")
        return layout

    def drop(self) -> None:
        """Drop the table, which has no rows."""
        self._run(f"DROP TABLE {self._table}")

    def widen(self, layout: TableLayout, schema: Any) -> TableLayout:
        """Add columns for new fields and for fields whose type has become known, and widen types of others."""
        named = self._layout_of(layout.columns, schema, layout.rows)
        for field in map(schema.field, named.typed_fields):
            if field.name not in layout.typed_fields:
                self._run(f"ALTER TABLE {self._table} ADD COLUMN {self._column(named, field)}")
            elif self._type(layout.schema.field(field.name).type) != self._type(field.type):
                self._change(quoted(named.columns[field.name]), field)
        return named

    def fits(self, one: Any, other: Any) -> bool:
        """Say whether an empty table of one schema can be widened to another in place."""
        return not common_schema(one, other)[1] and all(
            pa.types.is_null(field.type) or self._type(field.type) == self._type(other.field(field.name).type) for field in one
        )

    def write_rows(self, changes: RowChanges, layout: TableLayout) -> int:
        """Delete, update and insert rows, in batches by kind; return the change of the number of rows.

        Raises `SinkError` where the table lacks a row that changes, or has an inserted one.
        """
        rows = RowChanges(cast_table(changes.rows, layout.schema, f"the table {self._name}"), *changes[1:])
        self._check_before(cast_table(rows.before, pa.schema([layout.schema.field(name) for name in (*KEY, "re")]), self._name))
        new, gone, changed = rows.inserted, rows.deleted, rows.updated
        key = " AND ".join(f"{name} = {self._mark}" for name in KEY)
        self._many(f"DELETE FROM {self._table} WHERE {key}", gone.select(KEY))
        self._many(f"UPDATE {self._table} SET re = {self._mark} WHERE {key}", changed.select(["re", *KEY]))
        names, marks = (
            ", ".join(each)
            for each in ([quoted(layout.columns[name]) for name in layout.typed_fields], [self._mark] * len(layout.typed_fields))
        )
        self._many(f"INSERT INTO {self._table} ({names}) VALUES ({marks})", new.select(layout.typed_fields))
        return int(new.num_rows) - int(gone.num_rows)

    def record_batch(self, taken: LastBatch, layout: TableLayout) -> None:
        """Record the last micro-batch of the table, and its layout."""
        m = self._mark
        self._run(f"UPDATE {BATCHES} SET batch = {m}, stream = {m} WHERE name = {m}", taken.batch, taken.stream, self._name)
        types = base64.b64encode(layout.schema.serialize()).decode()
        change = ", ".join(f"{name} = excluded.{name}" for name in ("columns", "types", "row_count"))
        values = ", ".join([m] * 4)
        self._run(
            f"INSERT INTO {TABLES} (name, columns, types, row_count) VALUES ({values}) ON CONFLICT (name) DO UPDATE SET {change}",
            *(self._name, json.dumps(layout.columns, ensure_ascii=False), types, layout.rows),
        )

    def _layout_of(self, columns: dict[str, str], schema: Any, rows: int = 0) -> TableLayout:
        found = dict(columns)
        for name in [*(name for name in (*KEY, "re") if name not in found), *schema.names]:
            if name not in found:
                found[name] = column_of(name, found.values())
        return TableLayout(found, schema, rows)

    def _type(self, kind: Any) -> str:
        return sql_type(kind, not self._driver.is_sqlite, sized=self._driver.is_duckdb)

    def _column(self, layout: TableLayout, field: Any) -> str:
        return f"{quoted(layout.columns[field.name])} {self._type(field.type)}{' NOT NULL' if field.name in KEY else ''}"

    def _change(self, column: str, field: Any) -> None:
        """Widen a column of integers to floats or decimals; raises `SinkError` for an integer without an equal float."""
        kind = self._type(field.type)
        if self._driver.is_sqlite:  # SQLite types values, not columns: integers stay as they are
            if kind == "TEXT":
                spare = quoted("~~")
                self._run(f"ALTER TABLE {self._table} ADD COLUMN {spare} TEXT")
                self._run(f"UPDATE {self._table} SET {spare} = CAST({column} AS TEXT)")
                self._run(f"ALTER TABLE {self._table} DROP COLUMN {column}")
                self._run(f"ALTER TABLE {self._table} RENAME COLUMN {spare} TO {column}")
            return
        self._run(f"SELECT 1 FROM {self._table} WHERE {column} NOT BETWEEN {-_MAX_EXACT} AND {_MAX_EXACT} LIMIT 1")
        if pa.types.is_floating(field.type) and self._cursor.fetchone() is not None:
            raise SinkError(
                f"the column {field.name!r} of the table {self._name} has integers without equal floats, and floats come",
                hint="declare the types of the payload's fields, or select values of one type",
            )
        self._run(f"ALTER TABLE {self._table} ALTER COLUMN {column} TYPE {kind}")

    def _check_before(self, before: Any) -> None:
        """Raise `SinkError` unless the table has rows with these keys and REs."""
        for begin in range(0, before.num_rows, _ROWS_PER_QUERY):
            rows = list(self._values(before.slice(begin, _ROWS_PER_QUERY)))
            key = f"id = {self._mark} AND le = {self._mark} AND re"
            tests = [f"({key} IS NULL)" if re is None else f"({key} = {self._mark})" for *_, re in rows]
            values = [value for row in rows for value in row if value is not None]
            self._run(f"SELECT COUNT(*) FROM {self._table} WHERE {' OR '.join(tests)}", *values)
            if self._cursor.fetchone()[0] != len(rows):
                raise SinkError(
                    f"the table {self._name} is not as its last micro-batch left it: it lacks rows to update", hint=LOST
                )

    def _values(self, rows: Any) -> Iterator[tuple[Any, ...]]:
        return zip(*(sql_values(column, not self._driver.is_sqlite) for column in rows.columns), strict=True)

    def _query_or_none(self, statement: str) -> list[Any] | None:
        """Return the rows of a query, or None if a table or column is missing; a savepoint keeps the transaction usable.

        DuckDB has none: there the query is made outside of the transaction, which has changed nothing of the table yet.
        """
        if self._outside is not None:
            with driver_errors(self._name):
                try:
                    return list(self._outside.execute(statement).fetchall())
                except Exception as error:
                    if not _is_missing_object(error):
                        raise
                    return None
        self._run("SAVEPOINT streamdsl")
        try:
            self._run(statement)
            with driver_errors(self._name):
                found = list(self._cursor.fetchall())
        except SinkError as error:
            if not _is_missing_object(error.__cause__):
                raise
            found = None
            self._run("ROLLBACK TO SAVEPOINT streamdsl")
        self._run("RELEASE SAVEPOINT streamdsl")
        return found

    def _run(self, statement: str, *values: Any) -> None:
        with driver_errors(self._name):
            self._cursor.execute(statement, values)

    def _many(self, statement: str, rows: Any) -> None:
        if rows.num_rows:
            listed = list(self._values(rows))
            with driver_errors(self._name):
                self._cursor.executemany(statement, listed)
