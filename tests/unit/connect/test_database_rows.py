"""The source of a table's new rows, and the sink `DatabaseTable`, on databases in files and on servers of their own."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import pytest

import streamdsl as sd
from streamdsl.connect import Batch, OpenSource, Source, calling, database_rows
from streamdsl.errors import InputError, QueryError
from streamdsl.sinks import DatabaseTable
from streamdsl.sinks.sql_connections import Connect, connecting
from streamdsl.testing import check_sink, check_source
from tests import mariadb
from tests.postgresql import postgresql, programs


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if programs() is None:
        missing("initdb and pg_ctl", "apt-get install postgresql")
    if importlib.util.find_spec("psycopg") is None:
        missing("psycopg", "pip install 'psycopg[binary]'")
    with postgresql() as server:
        yield server


@pytest.fixture(scope="module")
def maria() -> Iterator[str]:
    if mariadb.programs() is None:
        missing("mariadbd", "apt-get install mariadb-server")
    if importlib.util.find_spec("pymysql") is None:
        missing("pymysql", "pip install pymysql")
    with mariadb.mariadb() as address:
        yield address


KINDS: Final = ["sqlite", "duckdb", "postgresql", "sqlite by SQLAlchemy", "postgresql by SQLAlchemy"]


@pytest.fixture(params=KINDS)
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    return new_database(request.param, request, tmp_path)


@pytest.fixture(params=[*KINDS, "mariadb by SQLAlchemy"])
def any_database(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    return new_database(request.param, request, tmp_path)


def new_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Connect:
    """Return how an empty database is reached."""
    if kind == "sqlite":
        return lambda: sqlite3.connect(folder / "test.db", timeout=1)
    if kind == "duckdb":
        pytest.importorskip("duckdb")
        return lambda: importlib.import_module("duckdb").connect(folder / "test.duckdb")
    sqlalchemy: Any = pytest.importorskip("sqlalchemy")
    if kind.startswith("sqlite"):
        return f"sqlite:///{folder}/test.db"
    if kind.startswith("mariadb"):
        address = request.getfixturevalue("maria")
        execute(address.replace("/test?", "/?"), "DROP DATABASE IF EXISTS test", "CREATE DATABASE test")
        return cast(Connect, sqlalchemy.create_engine(address))
    server = request.getfixturevalue("server")
    driver: Any = importlib.import_module("psycopg")
    execute(lambda: driver.connect(server), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    if kind == "postgresql":
        return lambda: driver.connect(server)
    host, user, database = (part.partition("=")[2] for part in server.split())
    return f"postgresql+psycopg://{user}@/{database}?host={host}"


def missing(what: str, remedy: str) -> NoReturn:
    """Skip what cannot run here; `make check-connectors` leaves nothing out."""
    message = f"{what} is not installed: {remedy}"
    if os.environ.get("STREAMDSL_CONNECTORS") == "all":
        pytest.fail(message)
    pytest.skip(message)


def execute(connect: Connect, *statements: str) -> None:
    with closing(connecting(connect)()) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def rows(*values: str) -> str:
    return f"INSERT INTO readings VALUES {', '.join(values)}"


def batches(source: Source, position: Any = None) -> list[Batch]:
    found = []
    with closing(source.open(position)) as reader:
        while isinstance(batch := reader.poll(0), Batch):
            found.append(batch)
    return found


def numbers(found: list[Batch]) -> list[int]:
    return [item["n"] for batch in found for item in batch.data]


READINGS = "CREATE TABLE readings (n BIGINT, moment BIGINT, heat DOUBLE PRECISION, name TEXT)"


def test_it_gives_the_same_from_each_position(any_database: Connect) -> None:
    execute(any_database, READINGS, rows(*(f"({n}, {n // 3}, {n / 2}, 'it''s {n} %')" for n in range(40))))
    for by in ("n", "moment"):
        report = check_source(lambda by=by: database_rows(any_database, "readings", by=by, start="moment", at_once=7))  # type: ignore[misc]
        assert report.records == 40


def test_rows_with_equal_values_may_come_later(any_database: Connect) -> None:
    source = database_rows(any_database, "readings", by="moment", at_once=3)
    execute(any_database, READINGS, rows("(5, 1, 0, 'a')", "(6, 2, 0, 'a')", "(7, 2, 0, 'a')", "(7, 2, 0, 'a')"))
    first = batches(source)
    assert numbers(first) == [5, 6, 7, 7]
    execute(any_database, rows("(1, 2, 0, 'a')", "(7, 2, 0, 'a')", "(9, 3, 0, 'a')"))
    assert sorted(numbers(batches(source, first[-1].position))) == [1, 7, 9]
    assert numbers(batches(source, first[-1].position))[-1] == 9


def test_more_equal_values_than_a_batch_has_are_all_read(any_database: Connect) -> None:
    execute(any_database, READINGS, rows(*(f"({n}, 1, 0, 'a')" for n in range(20))))
    assert sorted(numbers(batches(database_rows(any_database, "readings", by="moment", at_once=3)))) == list(range(20))


def test_an_open_reader_sees_what_comes_after_a_pause(any_database: Connect) -> None:
    execute(any_database, READINGS, rows("(1, 1, 0, 'a')"))

    def reader(pause: str) -> OpenSource:
        return database_rows(any_database, "readings", by="n", pause=pause).open(None)

    with closing(reader("1h")) as patient, closing(reader("1ms")) as other:
        for each in (patient, other):
            assert isinstance(each.poll(0), Batch)
            assert each.poll(0) is None
        execute(any_database, rows("(2, 1, 0, 'a')"))
        assert isinstance(found := other.poll(60), Batch)
        assert numbers([found]) == [2]
        assert patient.poll(0) is None, "the pause is not over"


def test_a_condition_keeps_rows_back(any_database: Connect) -> None:
    execute(any_database, READINGS, rows("(1, 1, 0, 'a')", "(2, 1, 0, 'b%')", "(3, 1, 0, 'c')"))
    assert numbers(batches(database_rows(any_database, "readings", by="n", where="name LIKE 'b%' OR n = 1"))) == [1, 2]
    position = batches(database_rows(any_database, "readings", by="n", where="n < 2"))[-1].position
    assert numbers(batches(database_rows(any_database, "readings", by="n", where="name LIKE '%b%'"), position)) == [2]


def test_dates_are_times_and_positions(connect: Connect) -> None:
    execute(connect, "CREATE TABLE readings (n BIGINT, moment TIMESTAMP WITH TIME ZONE)")
    execute(connect, rows("(1, '2026-01-01 00:00:01+00:00')", "(2, '2026-01-01 00:00:02.5+00:00')"))
    source = database_rows(connect, "readings", by="moment", start="moment")
    assert check_source(lambda: source).records == 2
    (batch,) = batches(source)
    query = sd.source("readings", unit="ms").where(lambda e: e.n > 1)
    found = list[Any]()
    query.serve(source, calling(found.extend), once=True)
    (event,) = (each for each in found if isinstance(each, sd.Insert))
    assert event.le == int(datetime(2026, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC).timestamp() * 1_000)
    assert event.re == event.le + 1
    execute(connect, rows("(3, '2026-01-01 00:00:02.5+00:00')"))
    assert numbers(batches(source, batch.position)) == [3]


def test_a_log_of_events_is_a_source(connect: Connect) -> None:
    execute(
        connect,
        "CREATE TABLE log (number BIGINT, kind TEXT, id TEXT, le BIGINT, re BIGINT, re_new BIGINT, heat BIGINT)",
        "INSERT INTO log VALUES (1, 'insert', 'a', 1, NULL, NULL, 7), (2, 'insert', 'b', 2, 3, NULL, 9)",
        "INSERT INTO log VALUES (3, 'retract', 'a', 1, NULL, 5, 7), (4, 'cti', NULL, 6, NULL, NULL, NULL)",
    )
    table = DatabaseTable(connect, "hot")
    query = sd.source("log", unit="tick").select(lambda e: e.heat)
    query.serve(database_rows(connect, "log", by="number"), table, once=True, every=1)
    with closing(connecting(connect)()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SELECT le, re, value FROM hot ORDER BY le")
        assert cursor.fetchall() == [(1, 5, 7), (2, 3, 9)]


def test_what_cannot_be_read_is_said(connect: Connect) -> None:
    with pytest.raises(InputError, match=r"the table readings cannot be read: .*readings"):
        batches(database_rows(connect, "readings", by="n"))
    execute(connect, READINGS, "INSERT INTO readings VALUES (NULL, 1, 0, 'a')")
    with pytest.raises(QueryError, match="the column 'n' of the table readings has None"):
        batches(database_rows(connect, "readings", by="n"))


def test_database_table_keeps_its_promise(any_database: Connect) -> None:
    def read() -> list[dict[str, Any]]:
        with closing(connecting(any_database)()) as connection, closing(connection.cursor()) as cursor:
            try:
                cursor.execute("SELECT le, re, n FROM alarms")
            except Exception:  # it has no row yet, and so perhaps no column n
                return []
            return [{"le": le, "re": re, "n": n} for le, re, n in cursor.fetchall()]

    assert check_sink(lambda: DatabaseTable(any_database, "alarms"), read).promise == "exactly_once"


def test_an_address_of_no_database_is_refused_without_its_password() -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(QueryError, match="SQLAlchemy knows no such database") as error:
        database_rows("nosuch://me:secret@host/db", "readings", by="n")
    assert "secret" not in str(error.value)


def test_a_database_that_is_not_there_is_said(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    address = f"sqlite:///{tmp_path}/none/test.db"
    with pytest.raises(InputError, match="the table readings cannot be read: unable to open database file"):
        batches(database_rows(address, "readings", by="n"))
    with pytest.raises(sqlite3.OperationalError, match="the table alarms cannot be read or written: unable to open"):
        DatabaseTable(address, "alarms").has(0)
