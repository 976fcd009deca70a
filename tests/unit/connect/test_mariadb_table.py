"""`DatabaseTable` on a real MariaDB, where a change of a table ends the transaction: exactly once, wherever a writer dies."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Thread
from typing import Any, Final

import pytest

import streamdsl as sd
from streamdsl.errors import SinkError
from streamdsl.sinks import DatabaseTable
from tests.laws import test_sink_law as law
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.connect.test_database_rows import execute, maria  # noqa: F401 - a fixture

sqlalchemy: Any = pytest.importorskip("sqlalchemy")


@pytest.fixture
def database(maria: str) -> str:  # noqa: F811
    execute(maria.replace("/test?", "/?"), "DROP DATABASE IF EXISTS test", "CREATE DATABASE test")
    return maria


def dying(address: str, step: int) -> Any:
    """Return an engine whose connection is gone before the server gets its statement or commit of this number."""
    engine, left = sqlalchemy.create_engine(address), iter(range(step, -1, -1))

    def die(connection: Any, *_: Any) -> None:
        if next(left, 1) == 0:
            connection.connection.dbapi_connection._force_close()

    sqlalchemy.event.listen(engine, "before_cursor_execute", die)
    sqlalchemy.event.listen(engine, "commit", die)
    return engine


def events(*rows: tuple[str, int, Any]) -> Any:
    return sd.source("s", unit="tick").open().feed([sd.Insert(id, le, sd.INFINITY, {"v": v}) for id, le, v in rows]).to_arrow()


def micro_batches() -> list[Any]:
    """Return micro-batches with each change of a table that there is."""
    session, forever = sd.source("s", unit="tick").open(), sd.INFINITY
    rows: list[list[Any]] = [
        [],  # the table is made
        [sd.Insert("z", 1, forever, {"v": None, "w": None})],  # a row, while columns have no type
        [sd.Retract("z", 1, forever, 1)],  # it goes
        [sd.Insert("a", 2, forever, {"v": 7, "w": None}), sd.Insert("b", 2, forever, {"v": 8, "w": None})],  # a column
        [sd.Insert("c", 3, 4, {"v": 0.5, "w": None}), sd.Retract("b", 2, forever, 5)],  # integers become floats
        [sd.Insert("d", 4, 5, {"v": None, "w": "x"}), sd.Retract("a", 2, forever, 2)],  # another column
        [sd.Retract("d", 4, 5, 4), sd.Retract("b", 2, 5, 3)],  # rows alone
    ]
    return [session.feed(each).to_arrow() for each in rows]


BATCHES: Final = micro_batches()
HELD: Final = [
    [],
    [("z", 1, None, None, None)],
    [],
    [("a", 2, None, 7, None), ("b", 2, None, 8, None)],
    [("a", 2, None, 7, None), ("b", 2, 5, 8, None), ("c", 3, 4, 0.5, None)],
    [("b", 2, 5, 8, None), ("c", 3, 4, 0.5, None), ("d", 4, 5, None, "x")],
    [("b", 2, 3, 8, None), ("c", 3, 4, 0.5, None)],
]


COPY: Final = [
    "CREATE TABLE {} LIKE t",
    "INSERT INTO {} SELECT * FROM t",
    "INSERT INTO streamdsl_batches SELECT '{}', batch, stream FROM streamdsl_batches WHERE name = 't'",
    "INSERT INTO streamdsl_tables SELECT '{}', columns, types, row_count FROM streamdsl_tables WHERE name = 't'",
]
"""Statements that make a table as `t` is, with what is recorded of it."""


def held(address: str, table: str = "t") -> list[tuple[Any, ...]]:
    with sqlalchemy.create_engine(address).connect() as connection:
        found = connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY le, id").mappings()
        return [tuple(row.get(name) for name in ("id", "le", "re", "v", "w")) for row in found]


def is_there(address: str, table: str) -> bool:
    return bool(sqlalchemy.inspect(sqlalchemy.create_engine(address)).has_table(table))


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_a_writer_that_is_killed_at_any_step_leaves_a_micro_batch_out_or_whole(number: int, database: str) -> None:
    """After each death, the table is as before; the next writer, of the same micro-batch, makes it as if nothing had been."""
    for before in range(number):
        DatabaseTable(database, "t").write(BATCHES[before], before, "stream")
    is_killed, step = True, 0
    while is_killed:
        table, step = f"t{step}", step + 1
        if number:
            execute(database, *(each.format(table) for each in COPY))
        try:
            DatabaseTable(dying(database, step - 1), table).write(BATCHES[number], number, "stream")
            is_killed = False
        except SinkError:
            assert not is_there(database, table) or held(database, table) == HELD[max(number - 1, 0)]
        DatabaseTable(database, table).write(BATCHES[number], number, "stream")
        assert held(database, table) == HELD[number]
    assert step > 7, "there are statements, and a commit"


KINDS: Final = [
    replace(kind, of_sqlite=convert)
    for kind, convert in (
        (law.KINDS[0], None),
        (law.Kind([0.5, -0.0, 1e300, 5e-324]), float),
        (law.Kind(["", "a", "A", "a ", "nul\0", "é", "7", "\U0001f600"]), None),
        (law.KINDS[3], bool),
        (law.KINDS[4], None),
        (law.KINDS[5], int),
        (law.KINDS[6], Decimal),
        (law.KINDS[7], lambda value: value.replace(tzinfo=UTC)),
        (law.KINDS[8], None),
        (law.KINDS[9], None),
        (law.KINDS[10], lambda value: (datetime.min + value).time()),
        (law.KINDS[11], lambda value: timedelta(microseconds=value)),
        (law.KINDS[12], json.loads),
        (law.KINDS[13], json.loads),
        (law.KINDS[14], law.KINDS[14].of_sqlite),
    )
]
"""Values of each type that MariaDB has, and how they are read back: it has no NaN and no infinite numbers."""


@examples(25)
@given(SEEDS)
def test_what_the_table_holds_is_what_went_in_whenever_writers_die(maria: str, seed: int) -> None:  # noqa: F811
    execute(maria.replace("/test?", "/?"), "DROP DATABASE IF EXISTS test", "CREATE DATABASE test")
    stream = law.Stream(Random(seed), KINDS)
    table = DatabaseTable(maria, "a `table`")
    for batch, found, meant in law.batches(stream):
        while stream.rng.random() < 0.4:
            with suppress(SinkError):
                DatabaseTable(dying(maria, stream.rng.randint(0, 40)), table.table).write(found, batch, "stream")
        table.write(found, batch, "stream")
        assert (rows(table, stream.kinds) if table.columns() else []) == meant


def rows(table: DatabaseTable, kinds: dict[str, law.Kind]) -> list[str]:
    columns, found = table.columns(), []
    with closing(table.connect()) as connection:
        result = connection.connection.exec_driver_sql("SELECT * FROM `a ``table```")
        for row in result.mappings():
            fields = [(name, law.read(row.get(columns[name]), kind.of_sqlite or kind.of_file)) for name, kind in kinds.items()]
            found.append(repr((row["id"], row["le"], row["re"], fields)))
    return sorted(found)


def test_writers_at_once_write_each_micro_batch_once(database: str) -> None:
    failed = list[Exception]()

    def write() -> None:
        try:
            for number, batch in enumerate(BATCHES):
                DatabaseTable(database, "t").write(batch, number, "stream")
        except Exception as error:
            failed.append(error)

    writers = [Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failed
    assert held(database) == HELD[-1]


def test_ids_that_differ_in_case_accents_or_spaces_are_rows_of_their_own(database: str) -> None:
    DatabaseTable(database, "t").write(events(*((id, 1, 7) for id in ("a", "A", "a ", "á", ""))), 0)
    assert {id for id, *_ in held(database)} == {"a", "A", "a ", "á", "''"}


def test_a_table_that_no_stream_wrote_stays_as_it_is(database: str) -> None:
    execute(database, "CREATE TABLE t (id INT, le INT)", "INSERT INTO t VALUES (1, 2)")
    for _ in range(2):
        with pytest.raises(SinkError, match="a table t exists, and no stream has written it"):
            DatabaseTable(database, "t").write(BATCHES[3], 0)


def test_a_table_that_is_filled_while_it_is_made_stays_as_it_is(database: str) -> None:
    first, refused = events(("a", 1, 7)), 0
    for step in range(30):
        with suppress(SinkError):
            DatabaseTable(dying(database, step), f"t{step}").write(first, 0)
        if is_there(database, f"t{step}") and not held(database, f"t{step}"):
            execute(database, f"INSERT INTO t{step} VALUES ('x', 1, NULL, 7)")
            with pytest.raises(SinkError, match=rf"the table t{step} has rows that no stream wrote"):
                DatabaseTable(database, f"t{step}").write(first, 0)
            assert [id for id, *_ in held(database, f"t{step}")] == ["x"]
            refused += 1
    assert refused > 2


def of_raw_driver(address: str) -> Callable[[], Any]:
    pymysql: Any = importlib.import_module("pymysql")
    return lambda: pymysql.connect(unix_socket=address.partition("unix_socket=")[2], user="root", database="test")


REFUSED: Final[dict[str, Callable[[str], Any]]] = {
    "MySQL is reached by SQLAlchemy\nHint: give its address": of_raw_driver,
    "commits each statement on its own": lambda address: sqlalchemy.create_engine(address, isolation_level="AUTOCOMMIT"),
    "sql_mode is 'ANSI_QUOTES'\nHint: add STRICT_ALL_TABLES": lambda address: sqlalchemy.create_engine(
        f"{address}&sql_mode=ANSI_QUOTES"
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_connection_on_which_a_micro_batch_could_come_in_part_is_refused(said: str, database: str) -> None:
    with pytest.raises(SinkError, match=said):
        DatabaseTable(REFUSED[said](database), "t").write(BATCHES[3], 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_mariadb_has_not_are_said_and_nothing_is_written(value: float, database: str) -> None:
    table = DatabaseTable(database, "t")
    table.write(events(("a", 1, 0.5)), 0)
    with pytest.raises(SinkError, match="MySQL has no NaN and no infinite numbers"):
        table.write(events(("b", 2, value)), 1)
    assert held(database) == [("a", 1, None, 0.5, None)]


def test_an_id_that_is_too_long_for_a_key_is_said(database: str) -> None:
    with pytest.raises(SinkError, match="Data too long for column 'id'"):
        DatabaseTable(database, "t").write(events(("é" * 701, 1, 7)), 0)
    DatabaseTable(database, "t").write(events(("é" * 700, 1, 7)), 0)
