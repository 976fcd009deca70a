"""Types of columns: what is declared, and what has come, decide; nothing is guessed, and nothing is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.errors import SchemaError, SinkError
from streamdsl.sinks import DatabaseTable, ParquetTable


@dataclass
class Trip:
    zone: str
    fare: float
    seats: int | None = None
    tags: list[str] | None = None


TRIPS = sd.source("trips", Trip, unit="tick")
PLAIN = sd.source("s", unit="tick")


def put(folder: Path, query: Any, pushes: Sequence[list[Any]], every: int | None = None) -> tuple[Any, list[tuple[Any, ...]]]:
    """Write micro-batches to both tables; return what files hold, and what the database does, with SQLite's types."""
    session = query.open()
    table, database = ParquetTable(folder / "t", every), DatabaseTable(lambda: sqlite3.connect(folder / "t.db"), "t")
    for batch, push in enumerate(pushes):
        events = session.feed(push).to_arrow()
        table.write(events, batch)
        database.write(events, batch)
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        return pq.read_table(folder / "t"), connection.execute("SELECT * FROM t ORDER BY le").fetchall()


def types_in(folder: Path) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        return {name: kind for _, name, kind, *_ in connection.execute("PRAGMA table_info(t)")}


def test_what_a_query_declares_is_there_before_any_row(tmp_path: Path) -> None:
    files, rows = put(tmp_path, TRIPS, [[]])
    types = {"zone": pa.string(), "fare": pa.float64(), "seats": pa.int64(), "tags": pa.list_(pa.string())}
    assert {field.name: field.type for field in files.schema if field.name in types} == types
    assert types_in(tmp_path) == {
        "id": "TEXT",
        "le": "BIGINT",
        "re": "BIGINT",
        "zone": "TEXT",
        "fare": "DOUBLE PRECISION",
        "seats": "BIGINT",
        "tags": "TEXT",
    }
    assert rows == []


def test_results_have_the_types_of_what_they_are_made_of() -> None:
    grouped = TRIPS.group_by("zone").tumbling_window(10)
    query = grouped.aggregate(
        n=sd.count(), total=sd.sum(lambda e: e.fare), most=sd.max(lambda e: e.seats), all=sd.collect(lambda e: e.zone)
    ).select(lambda e: {"zone": e.zone, "n": e.n, "half": e.n / 2, "big": e.total > 5, "most": e.most, "all": e.all})
    expected = {
        "zone": pa.string(),
        "n": pa.int64(),
        "half": pa.float64(),
        "big": pa.bool_(),
        "most": pa.int64(),
        "all": pa.list_(pa.string()),
    }
    events = [sd.point("a", 1, Trip("A", 2)), sd.point("b", 2, Trip("A", 2.5))]
    session = query.open()
    for table in (session.feed([]).to_arrow(), session.feed(events).to_arrow(), query.run({"trips": []}).to_arrow()):
        assert {field.name: field.type for field in table.schema if field.name in expected} == expected
    joined = TRIPS.join(TRIPS, on="zone", select=lambda a, b: {"fare": a.fare, "seats": b.seats}).run({"trips": []}).to_arrow()
    assert joined.schema.field("fare").type == pa.float64()
    pairs = TRIPS.group_by("zone").apply(lambda rows: rows.group_by("seats").tumbling_window(5).aggregate(n=sd.count()))
    flat = pairs.select(lambda pair: {"zone": pair[0], "n": 1}).run({"trips": []}).to_arrow()
    assert flat.schema.types == [pa.int64(), pa.int64(), pa.string(), pa.int64()]


def test_values_that_are_not_as_declared_are_kept() -> None:
    events = [sd.point("a", 1, Trip("A", 2)), sd.point("b", 2, Trip("B", 3))]
    found = TRIPS.run({"trips": events}).to_arrow()
    assert (found.column("fare").type, found.column("fare").to_pylist()) == (pa.float64(), [2.0, 3.0])
    odd = TRIPS.run({"trips": [sd.point("a", 1, Trip("A", 2**60 + 1, 0.5))]}).to_arrow()  # type: ignore[arg-type]
    assert odd.column("fare").to_pylist() == [2**60 + 1]
    assert odd.column("seats").to_pylist() == [0.5]


def test_numbers_after_an_empty_micro_batch_are_numbers(tmp_path: Path) -> None:
    pushes: list[list[Any]] = [
        [],
        [sd.Insert("a", 0, 9, {"v": None})],
        [sd.Insert("b", 1, 9, {"v": 7}), sd.Insert("c", 2, 9, {"v": 10})],
    ]
    files, rows = put(tmp_path, PLAIN, [*pushes, [sd.Insert("d", 3, 9, {"v": 0.1 + 0.2})]])
    assert files.column("v").to_pylist() == [None, 7, 10, 0.1 + 0.2]
    assert [row[-1] for row in rows] == [None, 7, 10, 0.1 + 0.2]
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        assert connection.execute("SELECT max(v) FROM t").fetchall() == [(10,)]


def test_files_of_all_stretches_have_the_same_columns(tmp_path: Path) -> None:
    values = [None, 7, None, 2.5]
    put(tmp_path, PLAIN, [[sd.Insert(str(n), 10 * n, 10 * n + 5, {"v": value})] for n, value in enumerate(values)], every=10)
    new = PLAIN.open().feed([sd.Insert("w", 99, 100, {"v": 1, "w": "new"})]).to_arrow()
    ParquetTable(tmp_path / "t", 10).write(new, 4)
    assert {str(pq.read_schema(path)) for path in (tmp_path / "t").glob("*.parquet")} == {
        str(pq.read_schema(tmp_path / "t" / "columns.parquet"))
    }
    assert pq.read_table(tmp_path / "t").column("w").to_pylist() == [None] * 4 + ["new"]


CHANGES: dict[str, tuple[list[Any], str]] = {
    "text after numbers": ([1, "x"], "the column 'v' of .* is int64, and the stream sends string"),
    "truth after numbers": ([1, True], "the column 'v' of .* is int64, and the stream sends bool"),
    "a float after an integer that is none": (
        [2**53 + 1, 0.5],
        "the column 'v' of .* is double, and not every int64 casts to it exactly",
    ),
    "such an integer after a float": (
        [0.5, 2**53 + 1],
        "the column 'v' of .* is double, and not every int64 casts to it exactly",
    ),
    "bytes after text": (["x", b"x"], "the column 'v' of .* is string, and the stream sends binary"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_value_that_does_not_fit_is_said_and_nothing_changes(case: str, tmp_path: Path) -> None:
    values, message = CHANGES[case]
    session = PLAIN.open()
    batches = [session.feed([sd.Insert(str(n), n, 9, {"v": value})]).to_arrow() for n, value in enumerate(values)]
    files, database = ParquetTable(tmp_path / "t"), DatabaseTable(lambda: sqlite3.connect(tmp_path / "t.db"), "t")
    for table in (files, database):
        table.write(batches[0], 0)
        if table is files or case != "a float after an integer that is none":
            with pytest.raises(SinkError, match=message):
                table.write(batches[1], 1)
    assert pq.read_table(tmp_path / "t").num_rows == 1


def test_a_field_that_is_lacking_is_said(tmp_path: Path) -> None:
    pushes: list[list[Any]] = [[sd.Insert("a", 0, 9, {"v": 1, "w": 2})], [sd.Cti(1)], []]
    put(tmp_path, PLAIN, pushes)
    other = PLAIN.open().feed([sd.Insert("a", 0, 9, {"v": 1})]).to_arrow()
    for write in (ParquetTable(tmp_path / "t").write, DatabaseTable(lambda: sqlite3.connect(tmp_path / "t.db"), "t").write):
        with pytest.raises(SinkError, match="it lacks w"):
            write(other, 3)


@pytest.mark.parametrize(
    "values",
    [
        [b"a", "a"],
        [pa, 1],
        [1, True],
        [{"a": b"a"}, {"a": "a"}],
        [[1], ["a"]],
        ["\ud800"],
    ],
    ids=str,
)
def test_values_that_arrow_would_change_are_refused(values: list[Any]) -> None:
    rows = [(n, n + 1, {"v": value}) for n, value in enumerate(values)]
    with pytest.raises(SchemaError, match="Arrow has no type for the values of the field 'v'"):
        sd.from_rows(rows).run().to_arrow()


def test_a_name_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(SchemaError, match="no name that Arrow can hold"):
        sd.from_rows([(0, 1, {"\ud800": 1})]).run().to_arrow()


WRITERS: dict[str, Callable[[Path], Any]] = {
    "files": lambda path: ParquetTable(path / "t"),
    "database": lambda path: DatabaseTable(lambda: sqlite3.connect(path / "t.db"), "t"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_the_unit_of_time_may_be_known_late(kind: str, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    session = sd.source("s").open()
    table = WRITERS[kind](tmp_path)
    table.write(session.feed([]).to_arrow(), 0)
    when = datetime(2026, 1, 1, tzinfo=UTC)
    table.write(session.feed([sd.Insert("a", when, sd.INFINITY, {"v": 1})]).to_arrow(), 1)
    if kind == "files":
        assert pq.read_table(tmp_path / "t").column("le").to_pylist() == [when]
    else:
        with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
            assert connection.execute("SELECT le FROM t").fetchall() == [(str(when),)]
