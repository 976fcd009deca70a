"""A table of a database, kept up to date in one transaction for each micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from streamdsl.errors import QueryError, SinkError
from streamdsl.sinks.batches import Taken
from streamdsl.sinks.folder import LOST
from streamdsl.sinks.names import LONGEST
from streamdsl.sinks.net import net, physical, plain, rows_of
from streamdsl.sinks.schemas import columns_of, widened
from streamdsl.sinks.statements import BATCHES, TABLES, Driver, Made, Statements, speaking

_OLD: Final = (
    "write to a new table, with a new checkpoint: an old one can lack rows whose ids were used again, and its types were guessed"
)


class DatabaseTable:
    """A table of a database that holds the history which a stream's events mean: `id`, `le`, `re` and the payload's fields.

    `connect` returns a connection of the DB-API to a database that knows `INSERT ... ON CONFLICT`, such as SQLite or PostgreSQL.
    The table is made if it is not there; `(id, le)` is its key. Its types are those that the stream declares, else those of the
    first values: a column whose type is not known yet is added when it is. Rows and the number of the micro-batch are written in
    one transaction, so one that comes again changes nothing, and processes wait for each other. Dates are in UTC, INFINITY is
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

    def __init__(self, connect: Callable[[], Any], table: str) -> None:
        parts = table.split(".")
        if not all(parts) or "\0" in table or any(len(part.encode(errors="replace")) > LONGEST for part in parts):
            raise QueryError(f"{table!r} is no name of a table that every database can hold: it has at most {LONGEST} bytes")
        if parts[-1].lower() in (BATCHES, TABLES):
            raise QueryError(f"the table {table} is one that tables are kept in", hint="name another")
        self.connect = connect
        self.table = table

    def __repr__(self) -> str:
        return f"DatabaseTable({self.table!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Take a micro-batch: what `session.feed` gives, or an Arrow table of events; `stream` tells its stream from others."""
        self.take(lambda: events, batch, stream)

    def take(self, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        """Take a micro-batch, which is asked for only if the table has yet to take it."""
        with speaking(self.table):
            connection = self.connect()
        with closing(connection):
            driver = Driver.of(connection)
            if driver.mark == "%s" and "%" in self.table:
                raise QueryError(
                    f"the driver of the table {self.table!r} has a meaning of its own for %", hint="name another table"
                )
            with closing(connection.cursor()) as cursor:
                self._take_with(Statements(cursor, self.table, driver), events, batch, stream)
            with speaking(self.table):
                connection.commit()

    def columns(self) -> dict[str, str]:
        """Return the column of each field of the payload: its own name, but for names that tables cannot hold (docs/jobs.md)."""
        with speaking(self.table), closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            made = Statements(cursor, self.table, Driver.of(connection)).made()
        return {} if made is None else made.of_fields

    def _take_with(self, sql: Statements, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        taken = sql.taken()
        is_due, made = taken.misses(batch, stream, self.table), self._made(sql, taken)
        if not is_due:
            return
        found = plain(physical(events()))
        rows, schema = rows_of(found), columns_of(found.schema)
        made = self._widened(sql, made, schema, comes=rows.num_rows > 0)
        more = sql.put(net(rows), made) if rows.num_rows else 0
        sql.remember(Taken(batch, stream or taken.stream), Made(made.columns, made.schema, made.rows + more))

    def _made(self, sql: Statements, taken: Taken) -> Made | None:
        """Return how the table was made, None if it is still to be; raises `SinkError` if it is not as it was left."""
        if taken.batch < 0:
            if sql.exists():
                raise SinkError(
                    f"there is a table {self.table} that no stream has written", hint="name another, or drop it to begin anew"
                )
            return None
        made = sql.made()
        if made is None:
            if not sql.exists():
                raise SinkError(f"the table {self.table} is gone", hint=LOST)
            raise SinkError(
                f"the table {self.table} is of an earlier version, which kept rows by their ids alone, or {TABLES} has lost it",
                hint=_OLD,
            )
        sql.check(made)
        return made

    def _widened(self, sql: Statements, made: Made | None, schema: Any, *, comes: bool) -> Made:
        """Return how the table is made, now that columns of this schema come."""
        if made is None:
            return sql.make(schema)
        wide = widened(made.schema, schema, f"the table {self.table}", has_rows=made.rows > 0, comes=comes)
        if wide == made.schema:
            return made
        if made.rows or sql.fits(made.schema, wide):
            return sql.widen(made, wide)
        sql.drop()
        return sql.make(wide)
