"""Connections to databases: those that a function makes, as the DB-API has them, and those of SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.extras import need

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

Connect: TypeAlias = "Callable[[], Any] | str | Engine"
"""How to reach a database: a function that makes a connection of the DB-API, or an address or engine of SQLAlchemy."""

GIVEN: Final = "streamdsl_rows"
"""The name of the rows that a statement reads by columns."""


def connecting(given: Connect) -> Callable[[], Any]:
    """Return a function that makes a connection, of which all cursors are of one transaction.

    >>> import sqlite3
    >>> connecting(lambda: sqlite3.connect(":memory:"))().execute("SELECT 1").fetchall()
    [(1,)]
    """
    if (engine := engine_of(given)) is not None:
        return lambda: EngineConnection(connected(engine))
    made: Any = given

    def connect() -> Any:
        connection = made()
        return DuckConnection(connection) if type(connection).__module__.strip("_").startswith("duckdb") else connection

    return connect


def engine_of(given: Connect) -> Engine | None:
    """Return the engine of SQLAlchemy that is meant, None for a function. Raises `QueryError` for an address of no database."""
    if callable(given):
        return None
    need("sqlalchemy", "addresses of databases", "sqlalchemy")
    from sqlalchemy import create_engine
    from sqlalchemy.engine import Engine
    from sqlalchemy.exc import ArgumentError

    if isinstance(given, Engine):
        return given
    try:
        return create_engine(given)
    except (ArgumentError, ImportError) as error:
        raise QueryError(
            f"SQLAlchemy knows no such database: {error}", hint="postgresql+psycopg://user@host/name, with the driver's package"
        ) from None


def connected(engine: Engine) -> Connection:
    """Return a connection of an engine. Raises the driver's own error."""
    with engine_errors():
        return engine.connect()


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise the driver's own error for what SQLAlchemy makes of it."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        raise (error.orig or error) from error


class EngineConnection:
    """A connection of SQLAlchemy that is used as one of the DB-API; its cursors are of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.dialect = connection, connection.dialect
        self.rollback, self.close = connection.rollback, connection.close
        self.detach = connection.detach  # it is closed then, and not kept for others, and what it holds ends

    def cursor(self) -> EngineCursor:
        """Return a cursor."""
        return EngineCursor(self.connection)

    def commit(self) -> None:
        """End the transaction."""
        with engine_errors():
            self.connection.commit()


class EngineCursor:
    """What the DB-API asks of a cursor, of a connection of SQLAlchemy."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._result: Any = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement in the driver's own dialect."""
        with engine_errors():
            options = None if values else {"no_parameters": True}  # a percent sign is itself then, as in the DB-API
            self._result = self._connection.exec_driver_sql(statement, tuple(values) or None, options)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of several rows of values."""
        with engine_errors():
            self._connection.exec_driver_sql(statement, [tuple(row) for row in rows])

    def fetchone(self) -> Any:
        """Return the next row."""
        return self._result.fetchone()

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return list(self._result.fetchall())

    def close(self) -> None:
        """Let go of the rows that are left."""
        if self._result is not None:
            self._result.close()


class DuckConnection:
    """A connection of DuckDB as its own cursor: those that it makes are connections, with transactions of their own."""

    def __init__(self, connection: Any) -> None:
        self._connection, self._is_begun = connection, False

    def cursor(self) -> DuckCursor:
        """Return a cursor that is in the transaction of the connection."""
        return DuckCursor(self, self._connection)

    def outside(self) -> Any:
        """Return a connection that sees what has been committed; an error there ends no transaction here."""
        return self._connection.cursor()

    def begin(self) -> None:
        """Begin a transaction, if none has begun."""
        if not self._is_begun:
            self._connection.begin()
            self._is_begun = True

    def commit(self) -> None:
        """End the transaction, if one has begun."""
        self._end(self._connection.commit)

    def rollback(self) -> None:
        """End the transaction without its changes, if one has begun."""
        self._end(self._connection.rollback)

    def close(self) -> None:
        """Close the connection; what has not been committed is gone."""
        self._connection.close()

    def _end(self, end: Callable[[], Any]) -> None:
        if self._is_begun:
            self._is_begun = False
            end()


class DuckCursor:
    """What the DB-API asks of a cursor, of a connection of DuckDB."""

    def __init__(self, owner: DuckConnection, connection: Any) -> None:
        self._owner, self._connection = owner, connection
        self._rows: Iterator[Any] = iter(())
        self.description: Any = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement in the transaction, and take all that it gives: the connection has one result at a time."""
        self._owner.begin()
        done = self._connection.execute(statement, values)
        self.description, self._rows = done.description, iter(done.fetchall())

    def fetchone(self) -> Any:
        """Return the next row."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return list(self._rows)

    def execute_over(self, statement: str, rows: Any) -> Any:
        """Run a statement that reads an Arrow table as `streamdsl_rows`, and return what it gives."""
        self._owner.begin()
        self._connection.register(GIVEN, rows)
        try:
            return self._connection.execute(statement).fetchall()
        finally:
            self._connection.unregister(GIVEN)

    def close(self) -> None:
        """Leave the connection as it is."""
