"""The law of sinks, for whatever a stream may be: what is read back from a table, rows and types, is what went in."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.engine.id_texts import id_text
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks import DatabaseTable, DeltaEvents, IcebergEvents, ParquetEvents, ParquetTable
from streamdsl.sinks.names import distinct_columns
from streamdsl.sinks.sql_drivers import quoted
from streamdsl.temporal.pandas_frames import column_names
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

pytest.importorskip("pyarrow")

IDS = [1, 2.0, True, "1", "a", ("a", 1), "('a', 1)", None, "None", "nul\0", "\ud800", frozenset("ab"), Decimal("0.1")]
NAMES = [
    *("v", "V", "id", "ID", "le", "re", "kind", "re_new", "payload_le", "shard", "", "select", "rowid", "ctid", "value", "items"),
    *("q\"uo'te", "new\nline", "nul\0", "100%", "~", "~~", "?", "%s", ":v", "a.b", "été", "x" * 70, "x" * 70 + "y", "_streamdsl"),
]


class Color(Enum):
    RED = 1
    BLUE = 2


TOKYO = timezone(timedelta(hours=9))
NAN = float("nan")


@dataclass(frozen=True)
class Kind:
    """Values of one type, and how a table's are read back: those of a file, and those of SQLite."""

    values: list[Any]
    of_file: Callable[[Any], Any] = lambda value: value
    of_sqlite: Callable[[Any], Any] | None = None


def of_json(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else text


KINDS = [
    Kind([0, 7, -(2**63), 2**63 - 1]),
    Kind([0.5, NAN, float("inf"), -0.0, 1e300], of_sqlite=float),
    Kind(["", "a", "nul\0", "é", "7", "NaN"]),
    Kind([True, False], of_sqlite=bool),
    Kind([b"", b"\x00\xff"]),
    Kind([2**63, -(2**70), 5], int),
    Kind([Decimal("1.50"), Decimal("-0.01")], of_sqlite=Decimal),
    Kind([datetime(2020, 1, 1, tzinfo=UTC), datetime(1, 1, 1, 9, 0, 0, 1, TOKYO)], of_sqlite=datetime.fromisoformat),
    Kind([datetime(2020, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)], of_sqlite=datetime.fromisoformat),
    Kind([date(2020, 1, 1)], of_sqlite=date.fromisoformat),
    Kind([time(1, 2, 3, 4)], of_sqlite=time.fromisoformat),
    Kind([timedelta(days=-1, microseconds=1)], of_sqlite=lambda value: timedelta(microseconds=value)),
    Kind([[1, 2], []], of_sqlite=of_json),
    Kind([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], of_sqlite=of_json),
    Kind([Color.RED, Color.BLUE], lambda name: Color[name], lambda name: Color[name]),
]

OF_DUCKDB = [
    *KINDS[:5],
    Kind([date(2020, 1, 1)]),
    Kind([timedelta(1)], of_sqlite=lambda x: timedelta(microseconds=x)),
    *KINDS[-3:],
]


def written(value: Any) -> str:
    """Return a value so that two that are equal, and of one type, are alike."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None), "UTC"
    return repr(0.0 if isinstance(value, float) and value == 0 else value)


@dataclass
class Stream:
    """A random stream: legal physical events, with ids that are used again as soon as they may, and what they mean so far."""

    rng: Random
    of: Sequence[Kind] = field(default_factory=lambda: KINDS)

    def __post_init__(self) -> None:
        self.kinds = {name: self.rng.choice(self.of) for name in self.rng.sample(NAMES, self.rng.randint(1, 6))}
        self.late = {name: self.rng.choice([0, 0, 3, 8]) for name in self.kinds}
        self.rows: dict[tuple[str, int], tuple[int, dict[str, Any]]] = {}
        self.known: dict[Any, tuple[int, int]] = {}
        self.gone: set[Any] = set()
        self.cti = -5
        self.count = 0

    def batch(self) -> list[Any]:
        """Return the events of the next micro-batch."""
        return [self.event() for _ in range(self.rng.choice([0, 1, 5]))]

    def event(self) -> Any:
        rng = self.rng
        free = [id for id in IDS if id not in self.known]
        movable = [id for id, (_, re) in self.known.items() if re >= self.cti and id not in self.gone]
        if rng.random() < 0.3 or not (free or movable):
            self.cti += rng.randint(0, 6)
            self.known = {id: times for id, times in self.known.items() if max(times) >= self.cti}
            return sd.Cti(self.cti)
        inserts = free and (not movable or rng.random() < 0.6)
        return self.insertion(rng.choice(free)) if inserts else self.change(rng.choice(movable))

    def insertion(self, id: Any) -> Any:
        rng, self.count = self.rng, self.count + 1
        le = self.cti + rng.randint(0, 4)
        re = rng.choice([le + rng.randint(0, 6), sd.INFINITY])
        payload = {
            name: None if self.count <= self.late[name] or rng.random() < 0.2 else rng.choice(kind.values)
            for name, kind in self.kinds.items()
        }
        self.known[id] = le, re
        self.gone.discard(id)
        self.rows[id_text(id), le] = re, payload
        return sd.Insert(id, le, re, payload)

    def change(self, id: Any) -> Any:
        le, re = self.known[id]
        re_new = max(le, self.cti, self.cti + self.rng.randint(-3, 6))
        payload = self.rows[id_text(id), le][1]
        self.rows[id_text(id), le] = re_new, payload
        self.known[id] = le, re_new
        self.gone |= {id} if re_new == le else set()
        return sd.Retract(id, le, re, re_new)

    def meant(self) -> list[str]:
        return sorted(
            repr((id, le, None if re == sd.INFINITY else re, [(name, written(value)) for name, value in payload.items()]))
            for (id, le), (re, payload) in self.rows.items()
            if re > le
        )


def in_files(path: Path, kinds: dict[str, Kind]) -> list[str]:
    """Return the rows of a folder, by the rule of names that frames have."""
    columns, rows = dict(zip(kinds, column_names(list(kinds), PHYSICAL), strict=True)), []
    for row in pq.read_table(path).to_pylist():
        fields = [(name, read(row.get(columns[name]), kind.of_file)) for name, kind in kinds.items()]
        rows.append(repr((row["id"], row["le"], row["re"], fields)))
    return sorted(rows)


def in_database(table: DatabaseTable, kinds: dict[str, Kind]) -> list[str]:
    """Return the rows of a table of SQLite or DuckDB, by the rule that the table keeps."""
    columns, rows = table.columns(), []
    with closing(table.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT * FROM {quoted(table.table)}")
        names = [each[0] for each in cursor.description]
        for values in cursor.fetchall():
            row = dict(zip(names, values, strict=True))
            fields = [(name, read(row.get(columns[name]), kind.of_sqlite or kind.of_file)) for name, kind in kinds.items()]
            rows.append(repr((row["id"], row["le"], row["re"], fields)))
    return sorted(rows)


def read(value: Any, convert: Callable[[Any], Any]) -> str:
    return written(None if value is None else convert(value))


def batches(stream: Stream) -> Iterator[tuple[int, Any, list[str]]]:
    """Yield micro-batches of a session that passes a stream on, and what they mean so far."""
    session = sd.source("s", unit="tick").open()
    for batch in range(stream.rng.randint(1, 12)):
        out = session.feed(stream.batch())
        yield batch, out.to_arrow(), stream.meant()


@examples(60)
@given(SEEDS)
def test_what_a_table_of_files_holds_is_what_went_in(seed: int) -> None:
    stream = Stream(Random(seed))
    with TemporaryDirectory() as folder:
        path, every = Path(folder) / "t", stream.rng.choice([None, 1, 4])
        for batch, events, meant in batches(stream):
            ParquetTable(path, every).write(events, batch)
            assert in_files(path, stream.kinds) == meant
            schemas = {str(pq.read_schema(file)) for file in path.glob("*.parquet")}
            assert len(schemas) == 1


def check_table(stream: Stream, connect: Any) -> None:
    """Write a stream to a table, and compare after each micro-batch what it holds."""
    table = DatabaseTable(connect, 'a "table"?')
    for batch, events, meant in batches(stream):
        table.write(events, batch)
        assert (in_database(table, stream.kinds) if table.columns() else []) == meant


@examples(60)
@given(SEEDS)
def test_what_a_table_of_a_database_holds_is_what_went_in(seed: int) -> None:
    with TemporaryDirectory() as folder:
        check_table(Stream(Random(seed)), lambda: sqlite3.connect(f"{folder}/t.db"))


@examples(10)
@given(SEEDS)
def test_what_a_table_of_duckdb_holds_is_what_went_in(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    with TemporaryDirectory() as folder:
        check_table(Stream(Random(seed), OF_DUCKDB), lambda: duckdb.connect(f"{folder}/t.duckdb"))


@examples(40)
@given(SEEDS)
def test_events_in_files_are_those_that_went_out(seed: int) -> None:
    stream = Stream(Random(seed))
    with TemporaryDirectory() as folder:
        sent = 0
        for batch, events, _ in batches(stream):
            ParquetEvents(f"{folder}/t").write(events, batch)
            sent += events.num_rows
        assert pq.read_table(f"{folder}/t").num_rows == sent


def in_events(events: Any, kinds: dict[str, Kind]) -> list[str]:
    """Return the rows that physical events mean, in whatever order they are."""
    names = [*PHYSICAL, *column_names(list(kinds), PHYSICAL)]
    columns = dict(zip(kinds, distinct_columns(names)[len(PHYSICAL) :], strict=True))
    ends: defaultdict[tuple[str, int], Counter[int | None]] = defaultdict(Counter)
    payloads = {}
    for event in events.to_pylist():
        key = event["id"], event["le"]
        if event["kind"] == "insert":
            ends[key][event["re"]] += 1
        elif event["kind"] == "retract":
            ends[key][event["re"]] -= 1
            ends[key][event["re_new"]] += 1
        if event["kind"] in ("insert", "retract"):
            payloads[key] = [(name, read(event.get(columns[name]), kind.of_file)) for name, kind in kinds.items()]
    return sorted(repr((*key, re, payloads[key])) for key, found in ends.items() for re in +found if re is None or re > key[1])


SIMPLE = [kind for kind in KINDS if not isinstance(kind.values[0], (Decimal, time, timedelta, list)) and 2**63 not in kind.values]
"""Values whose type any of them tells, and that Delta and Iceberg hold."""


@examples(10)
@given(SEEDS)
def test_what_a_delta_table_holds_is_what_went_in(seed: int) -> None:
    deltalake = pytest.importorskip("deltalake")
    stream = Stream(Random(seed), SIMPLE)
    with TemporaryDirectory() as folder:
        for batch, events, meant in batches(stream):
            for _ in range(2):
                DeltaEvents(f"{folder}/t").write(events, batch, "stream")
            assert in_events(deltalake.DeltaTable(f"{folder}/t").to_pyarrow_table(), stream.kinds) == meant


@examples(6)
@given(SEEDS)
def test_what_an_iceberg_table_holds_is_what_went_in(seed: int) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    stream = Stream(Random(seed), SIMPLE)
    with TemporaryDirectory() as folder:
        catalog = sql.SqlCatalog("here", uri=f"sqlite:///{folder}/catalog", warehouse=f"file://{folder}")
        catalog.create_namespace("db")
        for batch, events, meant in batches(stream):
            for _ in range(2):
                IcebergEvents(lambda: catalog, "db.t").write(events, batch, "stream")
            assert in_events(catalog.load_table("db.t").scan().to_arrow(), stream.kinds) == meant
