"""A table of a database, kept up to date in one transaction for each micro-batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final

from streamdsl.errors import QueryError, SinkError
from streamdsl.sinks.batches import Taken
from streamdsl.sinks.net import in_utc, living, net
from streamdsl.sinks.sql_values import sql_type, sql_values

_BATCHES: Final = "streamdsl_batches"
"""The table that says which micro-batch each table has taken last."""
_MARKS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}


class DatabaseTable:
    """A table of a database that holds the history which a stream's events mean: `id`, `le`, `re` and the payload's fields.

    `connect` returns a connection of the DB-API to a database that knows `INSERT ... ON CONFLICT`, such as SQLite or PostgreSQL.
    The table is made if it is not there. Rows and the number of the micro-batch are written in one transaction, so one that
    comes again changes nothing. Dates are in UTC, INFINITY is NULL. `streamdsl.spark.DatabaseTable` is the same for
    `foreachBatch`. Raises `SinkError` for a table that is another stream's, or was lost.

    >>> import sqlite3, tempfile, streamdsl as sd
    >>> from streamdsl.sinks import DatabaseTable
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = DatabaseTable(lambda: sqlite3.connect(f"{folder}/trips.db"), "trips")
    ...     table.write(session.feed([sd.point("a", 3, "A"), sd.point("b", 4, "B")]).to_arrow(), 0)
    ...     table.write(session.feed([sd.point("late", 5, "C"), sd.Cti(20)]).to_arrow(), 1)
    ...     sqlite3.connect(f"{folder}/trips.db").execute("SELECT le, re, n FROM trips").fetchall()
    [(0, 10, 3)]
    """

    def __init__(self, connect: Callable[[], Any], table: str) -> None:
        self.connect = connect
        self.table = table

    def __repr__(self) -> str:
        return f"DatabaseTable({self.table!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Take a micro-batch as an Arrow table of physical events; `stream` tells its stream from others."""
        self.take(lambda: events, batch, stream)

    def take(self, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        """Take a micro-batch, which is asked for only if the table has yet to take it."""
        with closing(self.connect()) as connection:
            _check_transactions(connection)
            with closing(connection.cursor()) as cursor:
                self._take_with(_Statements(cursor, self.table, _mark(connection)), events, batch, stream)
            connection.commit()

    def _take_with(self, sql: _Statements, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        taken = sql.taken()
        if not taken.misses(batch, stream, self.table):
            return
        rows = net(in_utc(events()))
        if taken.batch < 0:
            sql.make_table(rows.schema)
            if sql.has_rows():
                raise SinkError(
                    f"the table {self.table} has rows that no stream has written", hint="name one that is empty, or new"
                )
        sql.put(rows)
        sql.remember(Taken(batch, stream or taken.stream))


class _Statements:
    """What is said to the database, in SQL that SQLite and PostgreSQL take alike."""

    def __init__(self, cursor: Any, table: str, mark: str) -> None:
        self._cursor = cursor
        self._name = table
        self._table = ".".join(map(_quoted, table.split(".")))
        self._mark = mark

    def taken(self) -> Taken:
        """Return the last micro-batch that the table has taken."""
        columns = "name TEXT PRIMARY KEY, batch BIGINT NOT NULL, stream TEXT"
        self._cursor.execute(f"CREATE TABLE IF NOT EXISTS {_BATCHES} ({columns})")
        self._cursor.execute(f"SELECT batch, stream FROM {_BATCHES} WHERE name = {self._mark}", (self._name,))
        found = self._cursor.fetchone()
        return Taken() if found is None else Taken(int(found[0]), found[1])

    def make_table(self, schema: Any) -> None:
        """Make the table if it is not there."""
        columns = [f"{_quoted(field.name)} {sql_type(field.type)}" for field in schema]
        columns[schema.names.index("id")] += " PRIMARY KEY"
        self._cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(columns)})")

    def has_rows(self) -> bool:
        """Say whether there are rows in the table."""
        self._cursor.execute(f"SELECT 1 FROM {self._table} LIMIT 1")
        return self._cursor.fetchone() is not None

    def put(self, rows: Any) -> None:
        """Write rows: new ones, ends that are others than before, and remove those that do not live any more."""
        alive = living(rows)
        kept = set(alive.column("id").to_pylist())
        self._many(
            f"DELETE FROM {self._table} WHERE id = {self._mark}",
            [(id,) for id in rows.column("id").to_pylist() if id not in kept],
        )
        names, marks = ", ".join(map(_quoted, rows.column_names)), ", ".join([self._mark] * rows.num_columns)
        self._many(
            f"INSERT INTO {self._table} ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET re = excluded.re",
            list(zip(*(sql_values(alive.column(name)) for name in alive.column_names), strict=True)),
        )

    def remember(self, taken: Taken) -> None:
        """Write which micro-batch the table has taken."""
        marks = ", ".join([self._mark] * 3)
        change = "ON CONFLICT (name) DO UPDATE SET batch = excluded.batch, stream = excluded.stream"
        self._cursor.execute(
            f"INSERT INTO {_BATCHES} (name, batch, stream) VALUES ({marks}) {change}", (self._name, taken.batch, taken.stream)
        )

    def _many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._cursor.executemany(statement, rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _mark(connection: Any) -> str:
    """Return what stands for a value in the SQL of a connection's driver."""
    module = sys.modules.get(type(connection).__module__.partition(".")[0])
    style = getattr(module, "paramstyle", "qmark")
    if style not in _MARKS:
        raise QueryError(
            f"the database driver {getattr(module, '__name__', module)} has the paramstyle {style!r}",
            hint=f"use one with {', '.join(_MARKS)}",
        )
    return _MARKS[style]


def _check_transactions(connection: Any) -> None:
    """Raise for a connection that would write each row for good at once."""
    of_sqlite = type(connection).__module__.startswith("sqlite3")
    if getattr(connection, "autocommit", False) is True or (of_sqlite and connection.isolation_level is None):
        raise SinkError(
            "the connection commits each statement on its own, so a micro-batch could be written in part",
            hint="connect without autocommit (sqlite3: leave isolation_level as it is)",
        )
