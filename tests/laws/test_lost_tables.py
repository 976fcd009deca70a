"""Tables that are lost, changed, garbled, full or written by two: an error before anything is written, never a wrong table."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.errors import SinkError
from streamdsl.sinks import DatabaseTable, ParquetEvents, ParquetTable


def three_batches() -> list[Any]:
    """Three micro-batches: rows in three stretches, then changes of two of them, then nothing."""
    session = sd.source("s", unit="tick").open()
    first = [sd.Insert(name, 10 * n, 10 * n + 5, {"v": n}) for n, name in enumerate("abc")]
    second = [sd.Retract("a", 0, 5, 3), sd.Retract("b", 10, 15, 10), sd.Insert("d", 11, 12, {"v": 3})]
    return [session.feed(events).to_arrow() for events in (first, second, [])]


def sql(*statements: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with closing(sqlite3.connect(path / "t.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return run


def rewritten(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def rewrite(path: Path) -> None:
        file = path / "t" / name
        before = file.stat().st_size
        pq.write_table(change(pq.read_table(file)), file)
        assert file.stat().st_size != before

    return rewrite


FILES: dict[str, Callable[[Path], Any]] = {
    "the folder": lambda path: shutil.rmtree(path / "t"),
    "a file of rows": lambda path: (path / "t" / "le_0.parquet").unlink(),
    "a file of rows that no event touches": lambda path: (path / "t" / "le_2.parquet").unlink(),
    "all files of rows": lambda path: list(map(os.unlink, (path / "t").glob("le_*"))),
    "the file of columns": lambda path: (path / "t" / "columns.parquet").unlink(),
    "the commit": lambda path: (path / "t" / "_streamdsl" / "commit.json").unlink(),
    "the table's own folder": lambda path: shutil.rmtree(path / "t" / "_streamdsl"),
    "half of a file": lambda path: os.truncate(path / "t" / "le_0.parquet", 20),
    "the commit's text": lambda path: (path / "t" / "_streamdsl" / "commit.json").write_bytes(b"\xff{"),
    "the commit's meaning": lambda path: (path / "t" / "_streamdsl" / "commit.json").write_text('{"batch": "0"}'),
    "the commit's depth": lambda path: (path / "t" / "_streamdsl" / "commit.json").write_text("[" * 10**5),
    "the commit's names": lambda path: (path / "t" / "_streamdsl" / "commit.json").write_text(
        json.dumps({"batch": 0, "stream": None, "every": "10", "moves": {"../x": ""}, "files": {}})
    ),
    "a row of a file": rewritten("le_0.parquet", lambda rows: rows.slice(1)),
    "nothing, but another file is there": lambda path: shutil.copy(path / "t" / "le_0.parquet", path / "t" / "le_7.parquet"),
}
DATABASES: dict[str, Callable[[Path], Any]] = {
    "the database": lambda path: (path / "t.db").unlink(),
    "the table": sql("DROP TABLE t"),
    "the table, which is made again": sql("DROP TABLE t", "CREATE TABLE t (id TEXT, le INT, re INT, v INT)"),
    "the table of micro-batches": sql("DROP TABLE streamdsl_batches"),
    "the table of tables": sql("DROP TABLE streamdsl_tables"),
    "both": sql("DROP TABLE streamdsl_batches", "DROP TABLE streamdsl_tables"),
    "the note of the micro-batch": sql("DELETE FROM streamdsl_batches"),
    "all rows": sql("DELETE FROM t"),
    "a row that changes": sql("DELETE FROM t WHERE id = 'a'"),
    "the end of a row that changes": sql("UPDATE t SET re = 4 WHERE id = 'a'"),
    "nothing, but a row that comes is there": sql("INSERT INTO t VALUES ('d', 11, 12, 3)"),
    "a column": sql("ALTER TABLE t DROP COLUMN v"),
}
KINDS = [*(("files", loss) for loss in FILES), *(("database", loss) for loss in DATABASES)]


def table_of(kind: str, path: Path) -> Any:
    return ParquetTable(path / "t", 10) if kind == "files" else DatabaseTable(lambda: sqlite3.connect(path / "t.db"), "t")


def bytes_of(path: Path) -> dict[str, bytes]:
    files = [file for file in path.rglob("*") if file.is_file() and file.name != "lock"]
    return {str(file): file.read_bytes() for file in files if file.stat().st_size}


@pytest.mark.parametrize(("kind", "loss"), KINDS, ids=lambda value: value.replace(" ", "-"))
def test_what_is_lost_is_an_error_before_anything_is_written(kind: str, loss: str, tmp_path: Path) -> None:
    batches = three_batches()
    table_of(kind, tmp_path).write(batches[0], 0, "stream")
    (FILES if kind == "files" else DATABASES)[loss](tmp_path)
    before = bytes_of(tmp_path / "t")
    for _ in range(2):
        with pytest.raises(SinkError, match="\nHint: "):
            table_of(kind, tmp_path).write(batches[1], 1, "stream")
    assert bytes_of(tmp_path / "t") == before


def test_a_look_at_a_table_that_is_cut_short_does_not_say_that_the_table_is_lost(tmp_path: Path) -> None:
    """The database stops the statement that looks whether the table is as it was left, as a time limit does."""
    running = [""]

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "t.db")
        connection.set_trace_callback(running.append)
        connection.set_progress_handler(lambda: running[-1].startswith("SELECT") and running[-1].endswith("LIMIT 1"), 1)
        return connection

    first, second, *_ = three_batches()
    table_of("database", tmp_path).write(first, 0)
    with pytest.raises(SinkError, match="cannot be read or written: interrupted"):
        DatabaseTable(connect, "t").write(second, 1)
    table_of("database", tmp_path).write(second, 1)
    assert ids_in("database", tmp_path) == ["a", "c", "d"]


def test_files_of_events_that_are_lost_are_an_error(tmp_path: Path) -> None:
    for loss in ("events_0000000000.parquet", "columns.parquet", "_streamdsl/events.json"):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        ParquetEvents(tmp_path / "t").write(three_batches()[0], 0)
        (tmp_path / "t" / loss).unlink()
        with pytest.raises(SinkError):
            ParquetEvents(tmp_path / "t").write(three_batches()[1], 1)


def test_a_table_of_files_of_the_version_before_goes_on(tmp_path: Path) -> None:
    batches, own = three_batches(), tmp_path / "t" / "_streamdsl"
    table_of("files", tmp_path).write(batches[0], 0)
    note = json.loads((own / "commit.json").read_text())
    (own / "commit.json").write_text(json.dumps({name: note[name] for name in ("batch", "stream", "every", "moves")}))
    table_of("files", tmp_path).write(batches[1], 1)
    assert pq.read_table(tmp_path / "t").select(["id", "le", "re"]).to_pylist() == [
        {"id": "a", "le": 0, "re": 3},
        {"id": "d", "le": 11, "re": 12},
        {"id": "c", "le": 20, "re": 25},
    ]


def test_a_table_of_a_database_of_the_version_before_is_refused(tmp_path: Path) -> None:
    sql(
        "CREATE TABLE streamdsl_batches (name TEXT PRIMARY KEY, batch BIGINT NOT NULL, stream TEXT)",
        "INSERT INTO streamdsl_batches VALUES ('t', 0, NULL)",
        "CREATE TABLE t (id TEXT PRIMARY KEY, le BIGINT, re BIGINT, v TEXT)",
    )(tmp_path)
    with pytest.raises(SinkError, match="of an earlier version, which kept rows by their ids alone"):
        table_of("database", tmp_path).write(three_batches()[1], 1)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a file")
    for table in (ParquetTable(tmp_path / "t"), ParquetTable("/proc/t"), ParquetEvents("/proc/t")):
        with pytest.raises(SinkError, match="cannot be read or written"):
            table.write(three_batches()[0], 0)
    with pytest.raises(SinkError, match="unable to open database file") as caught:
        DatabaseTable(lambda: sqlite3.connect("/proc/t/t.db"), "t").write(three_batches()[0], 0)
    assert isinstance(caught.value, sqlite3.OperationalError)


FULL = """
import signal, sys, resource
from pathlib import Path
from streamdsl.errors import SinkError
from tests.laws.test_lost_tables import table_of, three_batches

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
batches, table = three_batches(), table_of(sys.argv[1], Path(sys.argv[2]))
table.write(batches[0], 0)
for limit in (0, 100, 700, 4096, 10000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        table.write(batches[1], 1)
    except SinkError:
        print("said")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
table.write(batches[1], 1)
"""


@pytest.mark.parametrize("kind", ["files", "database"])
def test_a_disk_that_is_full_is_said_and_the_micro_batch_counts_once_later(kind: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, kind, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "said" in done.stdout
    assert ids_in(kind, tmp_path) == ["a", "c", "d"]


def ids_in(kind: str, path: Path) -> list[str]:
    if kind == "files":
        return sorted(pq.read_table(path / "t").column("id").to_pylist())
    with closing(sqlite3.connect(path / "t.db")) as connection:
        return sorted(id for (id,) in connection.execute("SELECT id FROM t"))


TOGETHER = """
import sys
from pathlib import Path
import streamdsl as sd
from streamdsl.errors import SinkError
from tests.laws.test_lost_tables import many_batches, table_of

kind, path, stream = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
sys.stdin.readline()
for batch, events in enumerate(many_batches()):
    for _ in range(10_000):
        try:
            table_of(kind, path).write(events, batch, stream)
            break
        except SinkError as error:
            if not any(said in str(error) for said in ("is in use by", "is locked")):
                sys.exit(str(error))
"""


def many_batches() -> list[Any]:
    session, out = sd.source("s", unit="tick").open(), []
    for n in range(20):
        out.append(session.feed([sd.Insert(n, n, n + 100, {"v": n}), *([sd.Retract(n - 1, n - 1, n + 99, n)] if n else [])]))
    return [each.to_arrow() for each in out]


def together(kind: str, path: Path, streams: list[str]) -> list[tuple[int, str]]:
    """Let processes write one table at once; return their statuses, and what they say."""
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, kind, str(path), stream], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for stream in streams
    ]
    for each in begun:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return [(each.returncode, said) for each in begun for _, said in [each.communicate()]]


@pytest.mark.parametrize("kind", ["files", "database"])
def test_two_processes_that_write_one_stream_write_it_once(kind: str, tmp_path: Path) -> None:
    assert together(kind, tmp_path, ["one", "one"]) == [(0, ""), (0, "")]
    assert ids_in(kind, tmp_path) == sorted(map(str, range(20)))


@pytest.mark.parametrize("kind", ["files", "database"])
def test_of_two_processes_with_streams_of_their_own_one_is_refused(kind: str, tmp_path: Path) -> None:
    (one, said), (other, told) = sorted(together(kind, tmp_path, ["one", "other"]))
    assert (one, said, other) == (0, "", 1)
    assert "belongs to another stream" in told
    assert ids_in(kind, tmp_path) == sorted(map(str, range(20)))
