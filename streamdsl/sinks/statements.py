"""The SQL statements of a database table, in the dialect that SQLite, PostgreSQL and DuckDB share, and in that of MySQL."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa

from streamdsl.errors import SinkError, StreamDslError
from streamdsl.io.arrow_types import common_schema
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks.commit_file import AGAIN
from streamdsl.sinks.last_batch import LastBatch
from streamdsl.sinks.names import column_of
from streamdsl.sinks.row_changes import KEY, RowChanges
from streamdsl.sinks.schemas import cast_table
from streamdsl.sinks.sql_connections import GIVEN
from streamdsl.sinks.sql_drivers import COMMITS, Driver, quoted
from streamdsl.sinks.sql_values import sql_type, sql_values
from streamdsl.sinks.table_folder import LOST
from streamdsl.temporal.pandas_frames import MEMO, column_names

BATCHES: Final = "streamdsl_batches"
"""The table of the last micro-batch of each table."""
TABLES: Final = "streamdsl_tables"
"""The table of the layout of each table: columns by field, Arrow types, and the number of rows."""
_ROWS_PER_QUERY: Final = 100
"""The number of rows that one query looks up."""
_MAX_EXACT: Final = 2**53
_AS_THEY_ARE: Final = (
    *(pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean, pa.types.is_string, pa.types.is_binary),
    lambda kind: pa.types.is_timestamp(kind) and kind.unit != "ns",
)
"""The types of which DuckDB reads columns of Arrow as it would read their values; of others it is given texts."""
_KEY_LENGTHS: Final = {"id": 700, "le": 60}
"""The characters of texts in MySQL's keys, which have 3,072 bytes at most."""


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
    if isinstance(told, int):
        return told in _MISSING
    code = getattr(error, "sqlstate", None) or (told.get("C") if isinstance(told, dict) else None)
    if code:
        return str(code).startswith("42")  # the class of SQLSTATE for syntax errors and access rules, which unknown names are in
    is_operational = any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    return not is_operational or "no such" in str(error)


@cache
def _error_type(kind: Any) -> type[SinkError]:
    return type(SinkError.__name__, (SinkError, kind), {})


_MISSING: Final = (1054, 1146)
"""The numbers of MySQL's errors for a column and a table that are not there."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The recorded layout of a table: the column of each field, the Arrow schema, and the number of rows.

    One that `is_planned` has been recorded before the table was changed to it: the table may have it or not.
    """

    columns: dict[str, str]
    schema: Any
    rows: int
    is_planned: bool = False

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
        self._table = ".".join(map(driver.quote, name.split(".")))
        self._driver = driver
        self._mark = driver.mark

    def lock(self) -> None:
        """Let other writers of the table wait until the connection is closed: MySQL's own locks end where a table is changed."""
        lock = f"GET_LOCK(SHA1(CONCAT_WS(' ', 'streamdsl', DATABASE(), {self._mark})), @@innodb_lock_wait_timeout)"
        self._run(f"SELECT {lock}, @@autocommit, @@sql_mode", self._name)
        is_locked, is_automatic, mode = self._cursor.fetchone()
        if is_automatic:
            raise SinkError(COMMITS, hint="connect without autocommit")
        if "STRICT_" not in mode:
            raise SinkError(
                f"the database changes values that do not fit, for its sql_mode is {mode!r}", hint="add STRICT_ALL_TABLES to it"
            )
        if not is_locked:
            raise SinkError(f"another writer holds the table {self._name}", hint=AGAIN)

    def last_batch(self) -> LastBatch:
        """Return the last micro-batch of the table, and lock the table's row until the transaction ends."""
        key, text = ("VARCHAR(255)", "LONGTEXT") if self._driver.database == "mysql" else ("TEXT", "TEXT")
        columns = f"name {key} PRIMARY KEY, batch BIGINT NOT NULL, stream {text}"
        self._run(f"CREATE TABLE IF NOT EXISTS {BATCHES} ({columns}){self._kind}")
        columns = f"name {key} PRIMARY KEY, columns {text} NOT NULL, types {text} NOT NULL, row_count BIGINT NOT NULL"
        self._run(f"CREATE TABLE IF NOT EXISTS {TABLES} ({columns}){self._kind}")
        # The first write of the transaction takes a lock: other writers wait here, and then read what this one has committed.
        same = f"batch = {BATCHES}.batch" if self._driver.database == "duckdb" else None  # DuckDB keeps keys as they are
        change = f"{self._if_there} {same or self._as_given('name')}"
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
        columns, types, rows = json.loads(found[0]), base64.b64decode(found[1]), int(found[2])
        return TableLayout(columns, pa.ipc.read_schema(pa.BufferReader(types)), max(rows, -1 - rows), is_planned=rows < 0)

    def check(self, layout: TableLayout) -> None:
        """Raise `SinkError` for a table that is missing, lacks columns, or was emptied or filled by others."""
        # Qualified by the table: SQLite reads an unknown quoted name alone as a string literal.
        known = ", ".join(f"{self._table}.{self._driver.quote(layout.columns[name])}" for name in layout.typed_fields)
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
        return self._changed(self._layout_of({}, schema), self._create)

    def make_anew(self, schema: Any) -> TableLayout:
        """Create the table in the place of one that has no rows."""

        def create(layout: TableLayout) -> None:
            self._run(f"DROP TABLE {self._table}")
            self._create(layout)

        return self._changed(self._layout_of({}, schema), create)

    def widen(self, layout: TableLayout, schema: Any) -> TableLayout:
        """Add columns for new fields and for fields whose type has become known, and widen types of others.

        Raises `SinkError` for a column with integers that have no equal floats.
        """
        named = self._layout_of(layout.columns, schema, layout.rows)
        old = [schema.field(name) for name in layout.typed_fields]
        wider = [field for field in old if self._type(layout.schema.field(field.name).type) != self._type(field.type)]
        for field in wider:
            self._check_exact(named, field)

        def widen(named: TableLayout) -> None:
            for field in map(schema.field, named.typed_fields):
                if field.name not in layout.typed_fields:
                    self._run(f"ALTER TABLE {self._table} ADD COLUMN {self._column(named, field)}")
                elif field in wider:
                    self._change(self._driver.quote(named.columns[field.name]), field)

        return self._changed(named, widen)

    def reach(self, layout: TableLayout) -> None:
        """Change the table, whatever is there of it, to a layout that is planned, for MySQL.

        Raises `SinkError` for a table that was lost, emptied or filled by others meanwhile.
        """
        found = self._query_or_none(f"SELECT 1 FROM {self._table} LIMIT 1")
        if bool(found) != (layout.rows > 0):
            what = "has rows that no stream wrote" if found else "is gone, or was emptied,"
            raise SinkError(f"the table {self._name} {what} since its last micro-batch", hint=LOST)
        if not layout.rows:
            self._run(f"DROP TABLE IF EXISTS {self._table}")
            self._create(layout)
            return
        for field in map(layout.schema.field, layout.typed_fields):
            name = self._driver.quote(layout.columns[field.name])
            is_there = self._query_or_none(f"SELECT {self._table}.{name} FROM {self._table} LIMIT 1") is not None
            self._run(f"ALTER TABLE {self._table} {'MODIFY' if is_there else 'ADD'} COLUMN {self._column(layout, field)}")

    def _changed(self, layout: TableLayout, change: Callable[[TableLayout], None]) -> TableLayout:
        """Change the table to a layout.

        Where that commits, the layout is recorded before, so that a change which is cut off is made by the next writer, and
        all of it comes before the transaction in which the rows are written.
        """
        if self._driver.commits_tables:
            self._record(layout, planned=True)
            self.reach(layout)
        else:
            change(layout)
        return layout

    def _create(self, layout: TableLayout) -> None:
        columns = [self._column(layout, layout.schema.field(name)) for name in layout.typed_fields]
        self._run(f"CREATE TABLE {self._table} ({', '.join(columns)}, PRIMARY KEY ({', '.join(KEY)})){self._kind}")

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
        names = ", ".join(self._driver.quote(layout.columns[name]) for name in layout.typed_fields)
        new = new.select(layout.typed_fields)
        if self._driver.database == "duckdb":
            same = " AND ".join(f"{self._table}.{name} = {GIVEN}.{name}" for name in KEY)
            self._over(f"DELETE FROM {self._table} USING {GIVEN} WHERE {same}", gone.select(KEY))
            self._over(f"UPDATE {self._table} SET re = {GIVEN}.re FROM {GIVEN} WHERE {same}", changed.select(["re", *KEY]))
            self._over(f"INSERT INTO {self._table} ({names}) SELECT * FROM {GIVEN}", new)
        else:
            key = " AND ".join(f"{name} = {self._mark}" for name in KEY)
            self._many(f"DELETE FROM {self._table} WHERE {key}", gone.select(KEY))
            self._many(f"UPDATE {self._table} SET re = {self._mark} WHERE {key}", changed.select(["re", *KEY]))
            marks = ", ".join([self._mark] * len(layout.typed_fields))
            self._many(f"INSERT INTO {self._table} ({names}) VALUES ({marks})", new)
        return int(new.num_rows) - int(gone.num_rows)

    def record_batch(self, taken: LastBatch, layout: TableLayout) -> None:
        """Record the last micro-batch of the table, and its layout."""
        m = self._mark
        self._run(f"UPDATE {BATCHES} SET batch = {m}, stream = {m} WHERE name = {m}", taken.batch, taken.stream, self._name)
        self._record(layout)

    def _record(self, layout: TableLayout, *, planned: bool = False) -> None:
        """Record a layout; a number of rows below zero says that it is planned."""
        types = base64.b64encode(layout.schema.serialize()).decode()
        change = ", ".join(map(self._as_given, ("columns", "types", "row_count")))
        values = ", ".join([self._mark] * 4)
        self._run(
            f"INSERT INTO {TABLES} (name, columns, types, row_count) VALUES ({values}) {self._if_there} {change}",
            *(self._name, json.dumps(layout.columns, ensure_ascii=False), types, -1 - layout.rows if planned else layout.rows),
        )

    @property
    def _if_there(self) -> str:
        return "ON DUPLICATE KEY UPDATE" if self._driver.database == "mysql" else "ON CONFLICT (name) DO UPDATE SET"

    def _as_given(self, name: str) -> str:
        return f"{name} = VALUES({name})" if self._driver.database == "mysql" else f"{name} = excluded.{name}"

    @property
    def _kind(self) -> str:
        """What follows the columns of a table that is made."""
        collation = self._driver.collation
        return f" ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE {collation}" if collation else ""

    def _layout_of(self, columns: dict[str, str], schema: Any, rows: int = 0) -> TableLayout:
        found = dict(columns)
        for name in [*(name for name in (*KEY, "re") if name not in found), *schema.names]:
            if name not in found:
                found[name] = column_of(name, found.values())
        return TableLayout(found, schema, rows)

    def _type(self, kind: Any) -> str:
        return sql_type(kind, self._driver.database)

    def _column(self, layout: TableLayout, field: Any) -> str:
        kind, name = self._type(field.type), self._driver.quote(layout.columns[field.name])
        if field.name not in KEY:
            return f"{name} {kind}"
        return f"{name} {f'VARCHAR({_KEY_LENGTHS[field.name]})' if kind == 'LONGTEXT' else kind} NOT NULL"

    def _check_exact(self, layout: TableLayout, field: Any) -> None:
        """Raise `SinkError` for a column that is to hold floats and has an integer without an equal one."""
        if self._driver.database == "sqlite" or not pa.types.is_floating(field.type):
            return
        column = self._driver.quote(layout.columns[field.name])
        self._run(f"SELECT 1 FROM {self._table} WHERE {column} NOT BETWEEN {-_MAX_EXACT} AND {_MAX_EXACT} LIMIT 1")
        if self._cursor.fetchone() is not None:
            raise SinkError(
                f"the column {field.name!r} of the table {self._name} has integers without equal floats, and floats come",
                hint="declare the types of the payload's fields, or select values of one type",
            )

    def _change(self, column: str, field: Any) -> None:
        """Widen a column of integers to floats or decimals."""
        kind = self._type(field.type)
        if self._driver.database == "sqlite":  # SQLite types values, not columns: integers stay as they are
            if kind == "TEXT":
                spare = quoted("~~")
                self._run(f"ALTER TABLE {self._table} ADD COLUMN {spare} TEXT")
                self._run(f"UPDATE {self._table} SET {spare} = CAST({column} AS TEXT)")
                self._run(f"ALTER TABLE {self._table} DROP COLUMN {column}")
                self._run(f"ALTER TABLE {self._table} RENAME COLUMN {spare} TO {column}")
            return
        self._run(f"ALTER TABLE {self._table} ALTER COLUMN {column} TYPE {kind}")

    def _check_before(self, before: Any) -> None:
        """Raise `SinkError` unless the table has rows with these keys and REs."""
        if self._driver.database == "duckdb":
            same = f"{self._table}.re IS NOT DISTINCT FROM {GIVEN}.re"
            counted = self._over(f"SELECT COUNT(*) FROM {self._table} JOIN {GIVEN} USING ({', '.join(KEY)}) WHERE {same}", before)
            found = counted[0][0] if counted else 0
        else:
            found = sum(self._number_of(before.slice(n, _ROWS_PER_QUERY)) for n in range(0, before.num_rows, _ROWS_PER_QUERY))
        if found != before.num_rows:
            raise SinkError(f"the table {self._name} is not as its last micro-batch left it: it lacks rows to update", hint=LOST)

    def _number_of(self, given: Any) -> int:
        """Return how many rows with these keys and REs the table has."""
        rows = list(self._values(given))
        key = f"id = {self._mark} AND le = {self._mark} AND re"
        tests = [f"({key} IS NULL)" if re is None else f"({key} = {self._mark})" for *_, re in rows]
        values = [value for row in rows for value in row if value is not None]
        self._run(f"SELECT COUNT(*) FROM {self._table} WHERE {' OR '.join(tests)}", *values)
        return int(self._cursor.fetchone()[0])

    def _values(self, rows: Any) -> Iterator[tuple[Any, ...]]:
        return zip(*(sql_values(column, self._driver.database) for column in rows.columns), strict=True)

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

    def _over(self, statement: str, rows: Any) -> Any:
        """Run a statement of DuckDB over rows, by their columns, and return what it gives."""
        if not rows.num_rows:
            return []
        columns = [
            column if any(test(column.type) for test in _AS_THEY_ARE) else pa.array(sql_values(column, self._driver.database))
            for column in rows.columns
        ]
        with driver_errors(self._name):
            return self._cursor.execute_over(statement, pa.table(columns, rows.column_names))

    def _many(self, statement: str, rows: Any) -> None:
        if rows.num_rows:
            listed = list(self._values(rows))
            with driver_errors(self._name):
                self._cursor.executemany(statement, listed)
