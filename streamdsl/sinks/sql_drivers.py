"""What tells one database from another: how its driver marks parameters, how it quotes names, and when it commits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from streamdsl.errors import QueryError, SinkError
from streamdsl.sinks.sql_connections import DuckConnection, EngineConnection

_MARKS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}
_DIALECTS: Final = {"sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
"""The dialects of SQLAlchemy whose databases know the statements below, with the database that each speaks as."""
_MYSQL: Final = frozenset({"pymysql", "MySQLdb", "mysql", "mariadb"})
"""The modules of MySQL's drivers."""


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier.

    >>> quoted('a "b"')
    '"a ""b\"""'
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Driver:
    """How the driver of a connection marks a parameter, as which database it speaks, and how that quotes a name.

    What is not known as SQLite, DuckDB or MySQL speaks as PostgreSQL. `collation` is that of MySQL's texts: one in which texts
    are equal if all their bytes are.
    """

    mark: str
    database: str
    quote: Callable[[str], str] = quoted
    collation: str = ""

    @property
    def commits_tables(self) -> bool:
        """Whether a change of a table ends the transaction that it is in."""
        return self.database == "mysql"

    @classmethod
    def of(cls, connection: Any) -> Driver:
        """Return the driver of a connection; raises `SinkError` for a connection with autocommit, or of another database."""
        mark = placeholder(connection)
        if isinstance(connection, DuckConnection):
            return cls(mark, "duckdb")
        if isinstance(connection, EngineConnection):
            dialect = connection.dialect
            if dialect.name not in _DIALECTS:
                raise SinkError(
                    f"tables are kept in {', '.join(_DIALECTS)}, not in {dialect.name}",
                    hint="its SQL for a row that may be there already is not known here: write to one of these",
                )
            _check_transactions(connection.connection.connection.dbapi_connection)
            database, is_mariadb = _DIALECTS[dialect.name], getattr(dialect, "is_mariadb", False)
            collation = "" if database != "mysql" else "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
            return cls(mark, database, dialect.identifier_preparer.quote_identifier, collation)
        if _MYSQL.intersection(_modules(connection)):
            raise SinkError("MySQL is reached by SQLAlchemy", hint="give its address, as mysql+pymysql://user@host/name")
        return cls(mark, "sqlite" if _check_transactions(connection) else "postgresql")


def _check_transactions(connection: Any) -> bool:
    """Say whether a connection of the DB-API is one to SQLite; raises `SinkError` for one with autocommit."""
    is_sqlite = any("sqlite" in name for name in _modules(connection))
    implicit = is_sqlite and getattr(connection, "isolation_level", "") is None
    if getattr(connection, "autocommit", False) is True or (implicit and getattr(connection, "autocommit", -1) == -1):
        raise SinkError(COMMITS, hint="connect without autocommit (sqlite3: leave isolation_level as it is)")
    return is_sqlite


COMMITS: Final = "the connection commits each statement on its own, so a micro-batch could be written in part"


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
