"""A source of the rows that are added to a table of a database."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamdsl.connect.made_source import MadeSource, lifetimes
from streamdsl.connect.protocols import Batch, End, OpenSource, Position, Source
from streamdsl.errors import InputError, QueryError, StreamDslError
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks.sql_connections import Connect, connected, connecting, engine_errors, engine_of
from streamdsl.sinks.sql_drivers import placeholder, quoted
from streamdsl.temporal import to_duration

if TYPE_CHECKING:
    from sqlalchemy import ColumnClause
    from sqlalchemy.engine import Engine

_AT_ONCE: Final = 10_000


def database_rows(
    connect: Connect,
    table: str,
    by: str,
    *,
    start: str | None = None,
    end: str | None = None,
    where: str | None = None,
    pause: str | timedelta = "1s",
    at_once: int = _AT_ONCE,
) -> Source:
    """Return a source of the rows that are added to a table, in order of a column `by` that grows.

    `connect` makes a connection of the DB-API, as for `sinks.DatabaseTable`, or is an address or an engine of SQLAlchemy, of any
    database that it knows; when nothing has come, the table is looked into again after a `pause`. The columns `start` and
    `end` are LE and RE, as for `jsonl_file`. A table with the columns `kind`, `id`, `le`, `re` and `re_new` is a log of physical
    events, CTIs among them, of which `by` is no part. `where` is a condition in SQL on the rows that are read.

    The position is the last value of `by`, with a fingerprint of each row that has it: so rows with equal values may come at
    different times. A row that comes with a smaller value is missed: where transactions that run side by side can commit in
    another order than that of `by`, let `where` keep back the newest rows until those are done. Rows must not change. Raises
    `InputError` for what the database says, and `QueryError` for a null or bytes in `by`.

    >>> import sqlite3, tempfile
    >>> from streamdsl.connect import database_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trips = sqlite3.connect(f"{folder}/trips.db")
    ...     _ = trips.execute("CREATE TABLE trips (number INTEGER, at INTEGER, fare INTEGER)")
    ...     _ = trips.executemany("INSERT INTO trips VALUES (?, ?, ?)", [(1, 3, 7), (2, 4, 9)])
    ...     trips.commit()
    ...     source = database_rows(lambda: sqlite3.connect(f"{folder}/trips.db"), "trips", by="number", start="at")
    ...     with closing(source.open(None)) as reader:
    ...         reader.poll(0).data
    [{'number': 1, 'at': 3, 'fare': 7}, {'number': 2, 'at': 4, 'fare': 9}]
    """
    if at_once < 1:
        raise QueryError(f"at least one row is read at once, not {at_once}")
    seconds = to_duration(pause, "us") / 10**6
    engine = engine_of(connect)
    opened: Callable[[], _Table]
    if engine is not None:
        opened = partial(_EngineTable, engine, table, by, where)
    else:
        opened = partial(_DriverTable, connecting(connect), table, by, where)

    def reader(position: Position) -> OpenSource:
        return _TableReader(opened, table, by, seconds, at_once, position)

    return MadeSource(f"database_rows({table!r})", reader, lifetimes(start, end))


class _TableReader(OpenSource):
    """`_last` is the last value of the column, `_ties` counts the fingerprints of the rows with it that have been read."""

    def __init__(
        self,
        opened: Callable[[], _Table],
        table: str,
        by: str,
        pause: float,
        at_once: int,
        position: Position,
    ) -> None:
        self._table, self._by = table, by
        self._pause, self._at_once = pause, at_once
        self._last: Any = position["last"] if position else None
        self._ties = Counter[str](position["ties"] if position else ())
        self._next_look = 0.0
        with self._errors():
            self._opened = opened()

    def poll(self, timeout: float) -> Batch | End | None:
        until = time.monotonic() + timeout
        while True:
            if self._next_look <= time.monotonic() and (batch := self._batch()) is not None:
                return batch
            if (left := min(until, self._next_look) - time.monotonic()) > 0:
                time.sleep(left)
            if time.monotonic() >= until:
                return None

    def close(self) -> None:
        self._opened.close()

    def _batch(self) -> Batch | None:
        """Return the next rows; if there are none, it is not looked for them again during the pause."""
        rows, before = self._rows(), self._ties.copy()
        if before:  # rows with the last value come first
            again = list(takewhile(lambda row: _plain(row[self._by]) == self._last, rows))
            rows = [row for row in again if not _is_taken(before, row)] + rows[len(again) :]
        if not rows:
            self._next_look = time.monotonic() + self._pause
            return None
        rows = rows[: self._at_once]
        values = [row[self._by] for row in rows]
        places = [f"row {value!r} of the table {self._table}" for value in values]
        self._step_over(rows, values)
        self._make_items(rows)
        return Batch(rows, {"last": self._last, "ties": sorted(self._ties.elements())}, places=places)

    def _rows(self) -> list[dict[str, Any]]:
        """Return rows from the last value on; those with it that have been read are among them."""
        with self._errors():
            return self._opened.rows(self._last if self._ties else None, self._at_once + self._ties.total())

    def _step_over(self, rows: list[dict[str, Any]], values: list[Any]) -> None:
        """Go on after some rows: only those with the last value can be looked up again, so only they need fingerprints."""
        if not {type(None), bytes, memoryview}.isdisjoint(map(type, values)):
            for value in values:
                _plain(value, self._by, self._table)
        last = _plain(values[-1], self._by, self._table)
        if last != self._last:
            self._last, self._ties = last, Counter()
        ties = takewhile(lambda each: _plain(each[0]) == last, zip(reversed(values), reversed(rows), strict=True))
        self._ties.update(_fingerprint(row) for _, row in ties)

    def _make_items(self, rows: list[dict[str, Any]]) -> None:
        """Make items of rows: those of a log leave out the column, for their payload is that of the event."""
        if rows[0].keys() >= set(PHYSICAL):
            for row in rows:
                del row[self._by]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except StreamDslError:
            raise
        except Exception as error:
            raise InputError(
                f"the table {self._table} cannot be read: {error}",
                hint="mend that and start the job again: it goes on from there",
            ) from error


class _Table(Protocol):
    """A table that is read in order of a column."""

    def rows(self, first: Any, limit: int) -> list[dict[str, Any]]:
        """Return so many rows at most, whose values are at least `first`, None: any; the next call sees what has come since."""

    def close(self) -> None:
        """Close the connection."""


class _DriverTable:
    """A table by a connection of the DB-API, to a database that quotes names as the standard has it, and knows `LIMIT`."""

    def __init__(self, connect: Callable[[], Any], table: str, by: str, where: str | None) -> None:
        self._connection = connect()
        self._mark = placeholder(self._connection)
        self._percent = "%%" if self._mark == "%s" else "%"
        self._column = quoted(by)
        self._conditions = [f"({where})"] if where else []
        self._select = f"SELECT * FROM {'.'.join(map(quoted, table.split('.')))}"

    def rows(self, first: Any, limit: int) -> list[dict[str, Any]]:
        starts = [] if first is None else [f"{self._column} >= "]
        where = " AND ".join(self._conditions + starts)
        begin = f"{self._select}{' WHERE ' if where else ''}{where}".replace("%", self._percent)
        order = f" ORDER BY {self._column} LIMIT ".replace("%", self._percent)
        query = f"{begin}{self._mark if starts else ''}{order}{self._mark}"
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(query, (*([] if first is None else [first]), limit))
            names = [each[0] for each in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        self._connection.rollback()  # so that the next look sees what has come since
        return found

    def close(self) -> None:
        self._connection.close()


class _EngineTable:
    """A table by an engine of SQLAlchemy, which knows how its database quotes names and limits rows."""

    def __init__(self, engine: Engine, table: str, by: str, where: str | None) -> None:
        import sqlalchemy

        *schema, name = table.split(".")
        self._connection = connected(engine)
        self._column: ColumnClause[Any] = sqlalchemy.column(by)
        found = sqlalchemy.table(name, schema=".".join(schema) or None)
        self._select = sqlalchemy.select(sqlalchemy.text("*")).select_from(found).order_by(self._column)
        if where:
            self._select = self._select.where(sqlalchemy.text(f"({where})".replace(":", r"\:")))

    def rows(self, first: Any, limit: int) -> list[dict[str, Any]]:
        from sqlalchemy import bindparam
        from sqlalchemy.types import NullType

        # The database is to take the value of a position for one of the column, so it is of no type of SQLAlchemy.
        query = self._select if first is None else self._select.where(self._column >= bindparam(None, first, NullType()))
        with engine_errors():
            found = [dict(row) for row in self._connection.execute(query.limit(limit)).mappings()]
        self._connection.rollback()
        return found

    def close(self) -> None:
        self._connection.close()


def _is_taken(ties: Counter[str], row: dict[str, Any]) -> bool:
    """Say whether a row with the last value is one of those that have been read."""
    fingerprint = _fingerprint(row)
    ties[fingerprint] -= 1
    return ties[fingerprint] >= 0


def _fingerprint(row: dict[str, Any]) -> str:
    return hashlib.blake2b(repr(sorted(row.items())).encode(), digest_size=12).hexdigest()


def _plain(value: Any, by: str = "", table: str = "") -> Any:
    """Return a value as plain data that the database compares like the value itself: numbers and texts, else its text."""
    if value is None or isinstance(value, (bytes, memoryview)):
        raise QueryError(
            f"the column {by!r} of the table {table} has {value!r:.40}, after which nothing can be looked up",
            hint='where="number IS NOT NULL" leaves out such rows; numbers, texts and dates grow',
        )
    return value if isinstance(value, (int, float, str)) else str(value)
