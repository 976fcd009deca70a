"""The law of sinks: whatever micro-batches come again, and wherever one is cut off, the table is what the events mean."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.errors import EventError, QueryError, SchemaError, SinkError
from streamdsl.temporal import CHT
from streamdsl.testing import arrival_orders
from tests.laws.choices import Random, given
from tests.laws.power import cut_off_after
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

pytest.importorskip("pyspark")

from streamdsl.sinks import DatabaseTable, ParquetTable
from streamdsl.sinks.row_changes import row_changes

FIELDS = {"k": pa.string(), "n": pa.int64(), "mean": pa.float64()}
SCHEMA = pa.schema(
    [*((name, pa.string()) for name in ("kind", "id")), *((name, pa.int64()) for name in ("le", "re", "re_new")), *FIELDS.items()]
)
Rows = list[tuple[Any, ...]]


class Table(Protocol):
    def write(self, events: Any, batch: int, stream: str | None = None) -> None: ...


def query() -> sd.Stream[Any]:
    grouped = sd.source("s", unit="tick").group_by("k")
    return grouped.snapshot_window().aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v))


def history(rng: Random) -> CHT[Any]:
    starts = [rng.randint(-20, 20) for _ in range(rng.randint(1, 12))]
    ends = [sd.INFINITY if rng.random() < 0.1 else start + rng.randint(1, 9) for start in starts]
    return CHT.from_rows([(a, b, {"k": rng.choice("ab"), "v": rng.randint(0, 3)}) for a, b in zip(starts, ends, strict=True)])


def micro_batches(rng: Random) -> Iterator[tuple[Any, Rows]]:
    """Yield what a stream sends in micro-batches, each in no order, with the history that they mean so far."""
    (events,) = arrival_orders(history(rng), 1, seed=rng.randrange(10**6))
    session, sent = query().open(), []
    while events:
        n = rng.randint(0, 8)
        out = session.feed(events[:n])
        events = events[n:]
        sent += out.events()
        table = out.to_arrow().cast(SCHEMA) if len(out) else SCHEMA.empty_table()
        order = pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64())
        yield table.take(order), meant(sent)


def meant(events: list[Any]) -> Rows:
    return in_order((row.le, None if row.re == sd.INFINITY else row.re, *row.payload.values()) for row in CHT.from_events(events))


def in_order(rows: Any) -> Rows:
    return sorted(map(tuple, rows), key=repr)


def in_files(folder: Path) -> Rows:
    return in_order(row.values() for row in pq.read_table(folder).drop_columns(["id"]).to_pylist())


def in_database(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as connection:
        return in_order(connection.execute("SELECT le, re, k, n, mean FROM trips"))


class Interrupted:
    """Connections to a database, of which the next may be interrupted after some steps of its machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.steps: int | None = None

    def __call__(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path)
        if self.steps is not None:
            connection.set_progress_handler(self.step, 3)
        return connection

    def step(self) -> bool:
        assert self.steps is not None
        self.steps -= 1
        return self.steps < 0


@examples(40)
@given(SEEDS)
def test_a_folder_of_files_is_what_the_events_mean(seed: int) -> None:
    rng = Random(seed)
    every = rng.choice([None, 1, 7, 100])
    with TemporaryDirectory() as folder:
        path, seen = Path(folder) / "trips", []
        for batch, (events, expected) in enumerate(micro_batches(rng)):
            seen.append(events)
            if rng.random() < 0.5:
                with cut_off_after(rng.randint(0, 15)):
                    ParquetTable(path, every).write(events, batch, "stream")
            ParquetTable(path, every).write(events, batch, "stream")
            again = rng.randrange(batch + 1)
            ParquetTable(path, every).write(seen[again], again, "stream")
            assert in_files(path) == expected


@examples(40)
@given(SEEDS)
def test_a_table_of_a_database_is_what_the_events_mean(seed: int) -> None:
    rng = Random(seed)
    with TemporaryDirectory() as folder:
        connect, seen = Interrupted(Path(folder) / "trips.db"), []
        for batch, (events, expected) in enumerate(micro_batches(rng)):
            seen.append(events)
            connect.steps = rng.randint(0, 120)
            interrupt(lambda: DatabaseTable(connect, "trips").write(seen[-1], len(seen) - 1, "stream"))
            connect.steps = None
            DatabaseTable(connect, "trips").write(events, batch, "stream")
            again = rng.randrange(batch + 1)
            DatabaseTable(connect, "trips").write(seen[again], again, "stream")
            assert in_database(connect.path) == expected


def interrupt(write: Callable[[], None]) -> bool:
    """Write, and say whether it was interrupted."""
    try:
        write()
    except sqlite3.OperationalError:
        return True
    return False


def two_batches() -> list[tuple[Any, Rows]]:
    """Two micro-batches, of which the second adds files, changes some, empties one, and leaves one alone."""
    session = query().open()
    first = [sd.Insert(str(n), n * 10, n * 10 + 5, {"k": "a", "v": n}) for n in range(4)]
    second = [sd.Retract("0", 0, 5, 0), sd.Retract("1", 10, 15, 12), sd.Insert("9", 90, 99, {"k": "b", "v": 1}), sd.Cti(50)]
    out = [session.feed(events) for events in (first, second)]
    return [(out[n].to_arrow().cast(SCHEMA), meant([e for each in out[: n + 1] for e in each.events()])) for n in range(2)]


def test_wherever_a_batch_of_files_is_cut_off_it_counts_once(tmp_path: Path) -> None:
    (first, before), (second, after) = two_batches()
    ParquetTable(tmp_path / "begun", 10).write(first, 0)
    for changes in range(100):
        path = tmp_path / str(changes)
        shutil.copytree(tmp_path / "begun", path)
        with cut_off_after(changes) as cut_off:
            ParquetTable(path, 10).write(second, 1)
        between = in_files(path)
        assert set(between) <= {*before, *after}
        ParquetTable(path, 10).write(second, 1)
        assert in_files(path) == after
        if not cut_off[0]:
            break
    assert 5 < changes < 100
    assert between == after


def test_wherever_the_first_batch_of_files_is_cut_off_it_counts_once(tmp_path: Path) -> None:
    first, after = two_batches()[0]
    for changes in range(100):
        path = tmp_path / str(changes)
        with cut_off_after(changes) as cut_off:
            ParquetTable(path, 10).write(first, 0)
        ParquetTable(path, 10).write(first, 0)
        assert in_files(path) == after
        if not cut_off[0]:
            break
    assert 5 < changes < 100


def test_wherever_a_transaction_is_cut_off_the_batch_counts_once(tmp_path: Path) -> None:
    (first, before), (second, after) = two_batches()
    steps, cut_off, whole = 0, 0, False
    while not whole:
        connect = Interrupted(tmp_path / f"{steps}.db")
        DatabaseTable(connect, "trips").write(first, 0)
        connect.steps = steps
        whole = not interrupt(lambda: DatabaseTable(connect, "trips").write(second, 1))  # noqa: B023
        assert in_database(connect.path) == (after if whole else before)
        connect.steps = None
        DatabaseTable(connect, "trips").write(second, 1)
        assert in_database(connect.path) == after
        steps, cut_off = steps + 3, cut_off + (not whole)
    assert cut_off > 10


def test_only_files_that_a_batch_touches_are_written(tmp_path: Path) -> None:
    (first, _), (second, _) = two_batches()
    table = ParquetTable(tmp_path, 10)
    table.write(first, 0)
    before = {path.name: path.stat().st_ino for path in tmp_path.glob("*.parquet")}
    table.write(second, 1)
    after = {path.name: path.stat().st_ino for path in tmp_path.glob("*.parquet")}
    assert before.keys() == {"columns.parquet", "le_0.parquet", "le_1.parquet", "le_2.parquet", "le_3.parquet"}
    assert after.keys() == before.keys() - {"le_0.parquet"} | {"le_9.parquet"}
    assert [name for name in sorted(before.keys() & after.keys()) if before[name] != after[name]] == ["le_1.parquet"]


def tables(folder: Path) -> list[Table]:
    return [ParquetTable(folder / "trips"), DatabaseTable(lambda: sqlite3.connect(folder / "trips.db"), "trips")]


def test_what_cannot_come_next_is_said(tmp_path: Path) -> None:
    (first, _), (second, _) = two_batches()
    for table in tables(tmp_path):
        with pytest.raises(SinkError, match=r"has no micro-batch, and micro-batch 3 is to be written: 0 to 2 are missing\nHint"):
            table.write(first, 3, "a")
        table.write(first, 0, "a")
        with pytest.raises(SinkError, match="has the micro-batches up to 0, and micro-batch 2 is to be written: 1 to 1"):
            table.write(second, 2, "a")
        for batch in (0, 1):
            with pytest.raises(SinkError, match="belongs to another stream"):
                table.write(second, batch, "b")


def test_what_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    first, _ = two_batches()[0]
    (tmp_path / "trips").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "trips" / "mine.parquet")
    with closing(sqlite3.connect(tmp_path / "trips.db")) as connection:
        connection.execute("CREATE TABLE trips (id TEXT PRIMARY KEY, le INT, re INT, k TEXT, n INT, mean REAL)")
        connection.execute("INSERT INTO trips (id) VALUES ('x')")
        connection.commit()
    for table in tables(tmp_path):
        with pytest.raises(SinkError, match="no stream has written"):
            table.write(first, 0)


def test_a_table_stays_as_it_was_begun(tmp_path: Path) -> None:
    (first, _), (second, _) = two_batches()
    ParquetTable(tmp_path, 10).write(first, 0)
    with pytest.raises(SinkError, match="was begun with every=10, not with 20"):
        ParquetTable(tmp_path, 20).write(second, 1)
    with pytest.raises(SinkError, match="has the columns id, le, re, k, n, mean, and the stream id, le, re, k, mean"):
        ParquetTable(tmp_path, 10).write(second.drop_columns(["n"]), 1)
    ParquetTable(tmp_path, 10).write(second, 1)
    with pytest.raises(QueryError, match="positive duration"):
        ParquetTable(tmp_path, 0)
    with pytest.raises(QueryError, match="on no file system"):
        ParquetTable("s3://bucket/trips")


def test_a_connection_that_commits_by_itself_is_refused(tmp_path: Path) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/trips.db", isolation_level="AUTOCOMMIT")
    for connect in (lambda: sqlite3.connect(tmp_path / "trips.db", isolation_level=None), engine):
        with pytest.raises(SinkError, match="commits each statement on its own"):
            DatabaseTable(connect, "trips").write(two_batches()[0][0], 0)


DATES = {"k": ["a"], "b": [b"\x00\xff"], "x": [[1, 2]], "d": [{"y": 1}], "t": [True], "f": [0.1]}


def dated(micros: int) -> Any:
    times = {
        name: pa.array([at], pa.timestamp("us", "Asia/Tokyo")) for name, at in (("le", micros), ("re", None), ("re_new", None))
    }
    return pa.table({"kind": ["insert"], "id": [str(micros)], **times, **DATES, "shard": pa.array([0], pa.int32())})


def test_dates_and_values_of_all_kinds_are_kept(tmp_path: Path) -> None:
    day = 86_400_000_000
    table = ParquetTable(tmp_path / "files", "1d")
    database = DatabaseTable(lambda: sqlite3.connect(tmp_path / "trips.db"), 'a "name"')
    for batch, micros in enumerate((-1, 3 * day)):
        table.write(dated(micros), batch)
        database.write(dated(micros), batch)
    assert sorted(path.name for path in table.path.glob("le_*")) == ["le_-1.parquet", "le_3.parquet"]
    read = pq.read_table(table.path)
    assert read.schema.field("le").type == pa.timestamp("us", "UTC")
    assert read.select(list(DATES)).to_pylist() == 2 * pa.table(DATES).to_pylist()
    with closing(sqlite3.connect(tmp_path / "trips.db")) as connection:
        (row,) = connection.execute('SELECT le, re, k, b, x, d, t, f FROM "a ""name""" WHERE id = \'-1\'')
    assert row == ("1969-12-31 23:59:59.999999+00:00", None, "a", b"\x00\xff", "[1, 2]", '{"y": 1}', 1, 0.1)
    with pytest.raises(SchemaError, match="every is a duration such as '1d', not 5"):
        ParquetTable(tmp_path / "other", 5).write(dated(0), 0)


def events_of(*rows: tuple[Any, ...]) -> Any:
    return pa.table(
        {name: list(column) for name, column in zip(("kind", "id", "le", "re", "re_new"), zip(*rows, strict=True), strict=True)}
    )


def test_events_that_do_not_fit_together_are_refused() -> None:
    twice = events_of(("insert", "a", 1, 5, None), ("insert", "a", 1, 6, None))
    broken = events_of(("retract", "a", 1, 9, 7), ("retract", "a", 1, 5, 3))
    for events in (twice, broken):
        with pytest.raises(EventError, match="form no chain"):
            row_changes(events)
    assert row_changes(events_of(("retract", "a", 1, 9, None), ("retract", "a", 1, None, 9))).num_rows == 0
