"""A sink that updates a table of a database, in one transaction per micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from streamdsl.errors import QueryError, SinkError
from streamdsl.sinks.last_batch import LastBatch
from streamdsl.sinks.names import LONGEST
from streamdsl.sinks.row_changes import event_table, normalized, row_changes, row_events
from streamdsl.sinks.schemas import row_schema, widened_schema
from streamdsl.sinks.sql_connections import Connect, DuckConnection, connecting
from streamdsl.sinks.sql_drivers import Driver
from streamdsl.sinks.statements import BATCHES, TABLES, Statements, TableLayout, driver_errors
from streamdsl.sinks.table_folder import LOST

_OLD: Final = (
    "write to a new table, with a new checkpoint: an old one can lack rows whose ids were used again, and its types were guessed"
)


class DatabaseTable:
    """A table of a database that holds the history which a stream's events mean: `id`, `le`, `re` and the payload's fields.

    `connect` makes a connection of the DB-API to SQLite, PostgreSQL, DuckDB, or another database that knows savepoints and
    `INSERT ... ON CONFLICT`; or it is an address or an engine of SQLAlchemy, of SQLite, PostgreSQL (`postgresql+psycopg://...`),
    MariaDB or MySQL (`mysql+pymysql://...`). These two commit where a table is changed: that comes before all rows of the
    micro-batch, is planned before it is done, and done to the end by the next writer, wherever the first one dies.
    The table is made if it is not there; `(id, le)` is its key. Its types are those that the stream declares, else those of the
    first values: a column whose type is not known yet is added when it is. Rows and the number of the micro-batch are written in
    one transaction, so a repeated one changes nothing, and processes wait for each other. Dates are in UTC, INFINITY is
    NULL. `streamdsl.spark.DatabaseTable` is the same for `foreachBatch`. Raises `SinkError` for a table that is another stream's,
    that was lost or changed, for values that do not fit its columns, and for what the database says.

    >>> import sqlite3, tempfile, streamdsl as sd
    >>> from streamdsl.sinks import DatabaseTable
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = DatabaseTable(lambda: sqlite3.connect(f"{folder}/trips.db"), "trips")
    ...     table.write(session.feed([sd.point("a", 3, "A"), sd.point("b", 4, "B")]), 0)
    ...     table.write(session.feed([sd.point("late", 5, "C"), sd.Cti(20)]), 1)
    ...     sqlite3.connect(f"{folder}/trips.db").execute("SELECT le, re, n FROM trips").fetchall()
    [(0, 10, 3)]
    """

    promise: Final = "exactly_once"

    def __init__(self, connect: Connect, table: str) -> None:
        parts = table.split(".")
        if not all(parts) or "\0" in table or any(len(part.encode(errors="replace")) > LONGEST for part in parts):
            raise QueryError(f"{table!r} is no name of a table that every database can hold: it has at most {LONGEST} bytes")
        if parts[-1].lower() in (BATCHES, TABLES):
            raise QueryError(f"the table {table} is reserved for the records of sinks", hint="name another")
        self.connect = connecting(connect)
        self.table = table

    def __repr__(self) -> str:
        return f"DatabaseTable({self.table!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        self.take(lambda: events, batch, stream)

    def take(self, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        """Write a micro-batch; `events` is called only if the table lacks it."""
        with self._transaction() as sql:
            self._take(sql, events, batch, stream)

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the table holds a micro-batch. Raises `SinkError` as `write` does."""
        with self._transaction() as sql:
            return not sql.last_batch().needs(batch, stream, self.table)

    @contextmanager
    def _transaction(self) -> Iterator[Statements]:
        """Yield the statements of a transaction, which is committed at the end if nothing fails."""
        with driver_errors(self.table):
            connection = self.connect()
        with closing(connection):
            driver = Driver.of(connection)
            if driver.mark == "%s" and "%" in self.table:
                raise QueryError(
                    f"the driver of the table {self.table!r} has a meaning of its own for %", hint="name another table"
                )
            outside = connection.outside() if isinstance(connection, DuckConnection) else None
            with closing(connection.cursor()) as cursor:
                sql = Statements(cursor, self.table, driver, outside)
                if driver.commits_tables:
                    connection.detach()
                    sql.lock()
                yield sql
            with driver_errors(self.table):
                connection.commit()

    def columns(self) -> dict[str, str]:
        """Return the column of each field of the payload: its own name, but for names that tables cannot hold (docs/jobs.md).

        The column of a field that has been null so far is not there yet, unless the query declares its type.
        """
        with driver_errors(self.table), closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            layout = Statements(cursor, self.table, Driver.of(connection)).layout()
        return {} if layout is None else layout.of_fields

    def _take(self, sql: Statements, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        last = sql.last_batch()
        is_due, layout = last.needs(batch, stream, self.table), self._checked_layout(sql, last)
        if not is_due:
            return
        found = normalized(event_table(events()))
        rows, schema = row_events(found), row_schema(found.schema)
        layout = self._widened_layout(sql, layout, schema, comes=rows.num_rows > 0)
        more = sql.write_rows(row_changes(rows), layout) if rows.num_rows else 0
        sql.record_batch(LastBatch(batch, stream or last.stream), TableLayout(layout.columns, layout.schema, layout.rows + more))

    def _checked_layout(self, sql: Statements, last: LastBatch) -> TableLayout | None:
        """Return the layout of the table, or None for a new one; raises `SinkError` for a table that others have changed."""
        if (layout := sql.layout()) is not None and layout.is_planned:
            sql.reach(layout)
            return layout
        if last.batch < 0:
            if sql.exists():
                raise SinkError(
                    f"a table {self.table} exists, and no stream has written it", hint="name another, or drop it to begin anew"
                )
            return None
        if layout is None:
            if not sql.exists():
                raise SinkError(f"the table {self.table} is gone", hint=LOST)
            raise SinkError(
                f"the table {self.table} is of an earlier version, which kept rows by their ids alone, or {TABLES} has lost it",
                hint=_OLD,
            )
        sql.check(layout)
        return layout

    def _widened_layout(self, sql: Statements, layout: TableLayout | None, schema: Any, *, comes: bool) -> TableLayout:
        """Return the layout of the table after it is widened to rows of a schema."""
        if layout is None:
            return sql.make(schema)
        wide = widened_schema(layout.schema, schema, f"the table {self.table}", has_rows=layout.rows > 0, comes=comes)
        if wide == layout.schema:
            return layout
        if layout.rows or sql.fits(layout.schema, wide):
            return sql.widen(layout, wide)
        return sql.make_anew(wide)
