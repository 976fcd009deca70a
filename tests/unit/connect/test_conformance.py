"""Every connector keeps its promises, and each check finds one that does not."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import streamdsl as sd
from streamdsl.connect import (
    END,
    BadRecord,
    Batch,
    End,
    JsonlFile,
    OpenSource,
    Sink,
    Source,
    async_iterable,
    calling,
    csv_file,
    events_of,
    file_folder,
    iterable,
    jsonl_file,
    replay,
)
from streamdsl.errors import ConnectorViolation, SinkError
from streamdsl.sinks import DatabaseTable, ParquetEvents, ParquetTable
from streamdsl.testing import check_sink, check_source
from tests.laws.power import cut_off_after

ROWS: Final = [{"le": n, "re": n + 3, "zone": "AB"[n % 2], "fare": n / 2} for n in range(25)]
EVENTS: Final = [sd.point("a", 1, 7), sd.Cti(2), sd.interval("b", 3, 9, 8), sd.Cti(4), sd.Retract("b", 3, 9, 5, 8), sd.Cti(6)]


def lines(path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "no json\n" + json.dumps(ROWS[0]) + "\n\n")
    return path


def table(path: Path) -> Path:
    path.write_text(pd.DataFrame(ROWS).to_csv(index=False) + '1,2,"A\nB",7\n1,2\n')
    return path


def zipped(path: Path) -> Path:
    path.write_bytes(gzip.compress(lines(path.with_suffix("")).read_bytes()))
    return path


def folder(path: Path) -> Path:
    (path / "month=01").mkdir(parents=True)
    lines(path / "a.jsonl")
    table(path / "month=01" / "b.csv")
    pq.write_table(pa.Table.from_pylist(ROWS), path / "c.parquet")
    with pa.ipc.new_file(path / "d.arrow", pa.Table.from_pylist(ROWS).schema) as writer:
        for first in range(0, 25, 10):
            writer.write_table(pa.Table.from_pylist(ROWS[first : first + 10]))
    (path / ".hidden.jsonl").write_text("never read")
    return path


def packed(path: Path) -> Path:
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(lines(path.with_suffix("")).read_bytes())
    return path


def partitioned(path: Path) -> Path:
    """Write one folder of partitions in each format that has columns, and one of lines."""
    for month, (name, write) in enumerate({"a.orc": orc.write_table, "b.parquet": pq.write_table, "c.arrows": stream}.items()):
        (path / f"month={month}").mkdir(parents=True)
        write(pa.Table.from_pylist(ROWS), str(path / f"month={month}" / name))
    (path / "month=3").mkdir()
    packed(path / "month=3" / "d.jsonl.zst").with_suffix("").unlink()
    return path


def stream(rows: Any, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
        writer.write_table(rows, 10)


def in_store(path: Path) -> str:
    """Copy the folder of files into a store, and return its address."""
    system = fsspec.filesystem("memory")
    address = f"/{path.parent.name}"
    if not system.exists(address):
        for file in (file for file in path.rglob("*") if file.is_file()):
            system.pipe_file(f"{address}/{file.relative_to(path).as_posix()}", file.read_bytes())
    return f"memory:/{address}"


def recorded(path: Path) -> Path:
    session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    for batch in range(3):
        JsonlFile(path).write(session.feed([sd.point(batch, batch * 9, {"fare": 7}), sd.Cti(batch * 9)]), batch)
    return path


async def some() -> AsyncIterator[Any]:
    for event in EVENTS:
        yield event


SOURCES: dict[str, Callable[[Path], Source]] = {
    "a list": lambda path: iterable(EVENTS, at_once=2),
    "a function": lambda path: iterable(lambda: iter(EVENTS), at_once=4),
    "frames": lambda path: iterable([pd.DataFrame(ROWS)]),
    "an asynchronous iterator": lambda path: async_iterable(some, at_once=2),
    "JSON lines": lambda path: jsonl_file(path / "a.jsonl", at_once=4),
    "JSON lines that grow": lambda path: jsonl_file(path / "a.jsonl", at_once=7, follow=True),
    "JSON lines, zipped": lambda path: jsonl_file(path / "z.jsonl.gz", at_once=4),
    "JSON lines, packed": lambda path: jsonl_file(path / "p.jsonl.zst", at_once=4),
    "JSON lines in a store": lambda path: jsonl_file(in_store(path) + "/a.jsonl", at_once=4),
    "JSON lines in a store, packed": lambda path: jsonl_file(in_store(path) + "/p.jsonl.zst", at_once=4),
    "CSV": lambda path: csv_file(path / "b.csv", at_once=4),
    "CSV that grows": lambda path: csv_file(path / "b.csv", at_once=7, follow=True),
    "a folder": lambda path: file_folder(path / "folder"),
    "a folder that fills": lambda path: file_folder(path / "folder", follow=True),
    "a folder of partitions": lambda path: file_folder(path / "partitioned"),
    "a folder in a store": lambda path: file_folder(in_store(path) + "/folder", follow=True),
    "a recording": lambda path: replay(path / "recorded.jsonl"),
    "a recording at a speed": lambda path: replay(path / "recorded.jsonl", speed=1_000),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    lines(path / "a.jsonl"), table(path / "b.csv"), zipped(path / "z.jsonl.gz"), folder(path / "folder")
    packed(path / "p.jsonl.zst"), partitioned(path / "partitioned")
    recorded(path / "recorded.jsonl")
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_sources_keep_their_promise(name: str, files: Path) -> None:
    report = check_source(lambda: SOURCES[name](files), patience=0.02)
    assert report.records >= 5 or name == "frames"
    assert (report.bad_records > 0) == (name.startswith(("JSON", "CSV", "a folder")))


def table_rows(path: Path) -> Iterator[Any]:
    if path.exists():
        yield from pq.read_table(path).to_pylist()


def file_events(path: Path) -> list[Any]:
    """Return the events of a file of JSON lines, or of a folder of Parquet files of events."""
    if path.is_dir():
        return [event for file in sorted(path.glob("events_*.parquet")) for event in events_of(pq.ParquetFile(file).read())]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    schema = pa.schema(
        [*((each, pa.string()) for each in ("kind", "id")), *((each, pa.int64()) for each in ("le", "re", "re_new", "n"))]
    )
    return events_of(pa.Table.from_pylist(rows, schema))


def stored_events(path: Path) -> list[Any]:
    system = fsspec.filesystem("memory")
    return [
        event for file in sorted(system.glob(f"{path}/events_*.parquet")) for event in events_of(pq.read_table(system.open(file)))
    ]


def database_rows(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [dict(zip(("le", "re", "n"), row, strict=True)) for row in connection.execute("SELECT le, re, n FROM rows")]


def delta(path: Path) -> Sink:
    pytest.importorskip("deltalake")
    from streamdsl.sinks import DeltaEvents

    return DeltaEvents(path)


def delta_events(path: Path) -> list[Any]:
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(path)):
        return []
    oldest_first = reversed(DeltaTable(path).file_uris())
    return [event for file in oldest_first for event in events_of(pq.ParquetFile(file).read())]


def catalog(path: Path) -> Any:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    found = sql.SqlCatalog("here", uri=f"sqlite:///{path}.catalog", warehouse=f"file://{path}")
    found.create_namespace_if_not_exists("db")
    return found


def iceberg(path: Path) -> Sink:
    from streamdsl.sinks import IcebergEvents

    return IcebergEvents(lambda: catalog(path), "db.t")


def iceberg_events(path: Path) -> list[Any]:
    if not catalog(path).table_exists("db.t"):
        return []
    files = catalog(path).load_table("db.t").inspect.entries().to_pylist()
    oldest_first = [each["data_file"]["file_path"] for each in sorted(files, key=lambda each: int(each["sequence_number"]))]
    return [event for file in oldest_first for event in events_of(pq.ParquetFile(file.removeprefix("file://")).read())]


SINKS: dict[str, tuple[Callable[[Path], Sink], Callable[[Path], Any]]] = {
    "ParquetTable": (lambda path: ParquetTable(path, every=5), table_rows),
    "ParquetEvents": (ParquetEvents, file_events),
    "ParquetEvents in a store": (lambda path: ParquetEvents(f"memory://{path}"), stored_events),
    "DatabaseTable": (lambda path: DatabaseTable(lambda: sqlite3.connect(path), "rows"), database_rows),
    "DeltaEvents": (delta, delta_events),
    "IcebergEvents": (iceberg, iceberg_events),
    "JsonlFile": (JsonlFile, file_events),
}


@pytest.mark.parametrize("name", SINKS)
def test_sinks_keep_their_promise(name: str, tmp_path: Path) -> None:
    make, read = SINKS[name]
    assert check_sink(lambda: make(tmp_path / "sink"), lambda: read(tmp_path / "sink")).promise == "exactly_once"


def test_a_file_of_json_lines_is_exact_wherever_it_is_cut_off(tmp_path: Path) -> None:
    batches = [
        pa.Table.from_pylist([{"kind": "insert", "id": str(n), "le": n, "re": n + 1, "re_new": None, "n": n}]) for n in range(4)
    ]
    changes, was_cut = -1, [True]
    while was_cut[0]:
        changes += 1
        path = tmp_path / f"{changes}.jsonl"
        with cut_off_after(changes) as was_cut:
            for number, batch in enumerate(batches):
                JsonlFile(path).write(batch, number)
        for number, batch in enumerate(batches):
            JsonlFile(path).write(batch, number)
        assert [row["n"] for row in map(json.loads, path.read_text().splitlines())] == [0, 1, 2, 3]
    assert changes > 8


def test_lines_after_the_last_micro_batch_are_cut_off(tmp_path: Path) -> None:
    sink = JsonlFile(tmp_path / "a.jsonl")
    row = {"kind": "insert", "id": "a", "le": 1, "re": 2, "re_new": None}
    sink.write(pa.Table.from_pylist([row]), 0)
    with sink.path.open("a") as file:
        file.write('{"half a')
    sink.write(pa.Table.from_pylist([{**row, "id": "b"}]), 1)
    assert [row["id"] for row in map(json.loads, sink.path.read_text().splitlines())] == ["a", "b"]
    sink.path.write_text("")
    with pytest.raises(SinkError, match="was cut since its last micro-batch"):
        sink.write(pa.Table.from_pylist([row]), 2)


def test_a_file_of_another_is_not_written_to(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl")
    with pytest.raises(SinkError, match="no stream has written it"):
        JsonlFile(tmp_path / "a.jsonl").write(pa.table({}), 0)


class Reader(OpenSource):
    """Numbers, in batches of two; a flaw breaks one promise."""

    def __init__(self, flaw: str, position: Any) -> None:
        self.flaw, self.at = flaw, 0 if position is None else int(position["at"] if isinstance(position, dict) else position)
        if flaw == "forgets the position":
            self.at = 0
        elif flaw == "skips at a restart" and position is not None:
            self.at += 1
        self.polls = 0

    def poll(self, timeout: float) -> Batch | End | None:
        self.polls += 1
        if self.flaw == "sleeps too long":
            time.sleep(1.2)
        if self.flaw == "loses what was not there" and timeout == 0 and self.at < 6:
            self.at += 2
            return None
        if self.at >= 6:
            if self.flaw == "begins again after its end" and self.polls > 4:
                return None
            return END
        if self.flaw == "gives a list":
            return [1]  # type: ignore[return-value]
        first, self.at = self.at, self.at + 2
        items: list[Any] = [(n, n + 1, f"{n}") for n in range(first, self.at)]
        if self.flaw == "gives other rows":
            items = [(n, n + 1, time.perf_counter_ns()) for n in range(first, self.at)]
        elif self.flaw == "breaks its CTI":
            items = [sd.point(n, n, 0) for n in range(first, self.at)] + ([sd.Cti(5)] if first < 4 else [])
        elif self.flaw == "gives other bad records":
            return Batch(items, self.at, [BadRecord("x", str(time.perf_counter_ns()), "here")])
        position: Any = {"a tuple": (self.at,), "a position of objects": object()}.get(self.flaw, self.at)
        return Batch(items, position)


class Flawed:
    def __init__(self, flaw: str) -> None:
        self.flaw = flaw

    def open(self, position: Any) -> OpenSource:
        return Reader(self.flaw, position[0] if isinstance(position, list) else position)


FLAWS: Final = {
    "forgets the position": "restarted at the position 2, after batch 0, it gives other records",
    "skips at a restart": "restarted at the position 2",
    "loses what was not there": "read a second time, from the begin, it gives other records",
    "sleeps too long": r"took \d+\.\d s",
    "begins again after its end": "after END it gave something else",
    "gives a list": "poll gave a list",
    "gives other rows": "gives other records: record 0 was",
    "gives other bad records": "gives other bad records",
    "breaks its CTI": "breaks the CTI 5",
    "a tuple": "is not what JSON makes of it",
    "a position of objects": "is not what JSON makes of it",
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_broken_source_is_found(flaw: str) -> None:
    with pytest.raises(ConnectorViolation, match=FLAWS[flaw]):
        check_source(lambda: Flawed(flaw))


def test_a_source_without_a_flaw_passes() -> None:
    assert check_source(lambda: Flawed("")).restarts == 3


class Rows:
    """A sink over a file of JSON; a flaw breaks one promise."""

    def __init__(self, path: Path, flaw: str) -> None:
        self.path, self.flaw = path, flaw
        self.held: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"batch": -1, "events": []}

    @property
    def promise(self) -> Any:
        return {"promises much": "always", "may repeat": "at_least_once", "loses": "at_least_once"}.get(self.flaw, "exactly_once")

    def has(self, batch: int, stream: str | None = None) -> bool:
        return bool(batch <= self.held["batch"] + (self.flaw == "has what is to come"))

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        flaw, held = self.flaw, self.held
        if (batch <= held["batch"] and flaw not in ("repeats", "may repeat")) or (flaw == "loses" and batch == 3):
            return
        if batch > held["batch"] + 1 and flaw != "takes a gap":
            raise SinkError("there is a gap")
        if stream != "check" and flaw != "takes another stream":
            raise SinkError("this is another stream")
        rows = events.to_pylist()
        if flaw == "drops retractions":
            rows = [row for row in rows if row["kind"] != "retract"]
        held["events"] += rows
        held["batch"] = batch
        if flaw != "forgets":
            self.path.write_text(json.dumps(held))

    def events(self) -> list[Any]:
        kinds: Any = {"insert": sd.Insert, "retract": sd.Retract, "cti": sd.Cti}
        found = list[Any]()
        for row in json.loads(self.path.read_text())["events"] if self.path.exists() else []:
            end = sd.INFINITY if row["re"] is None else row["re"]
            if row["kind"] == "retract":
                found.append(sd.Retract(row["id"], row["le"], end, row["re_new"], {"n": row["n"]}))
            elif row["kind"] == "insert":
                found.append(kinds["insert"](row["id"], row["le"], end, {"n": row["n"]}))
            else:
                found.append(sd.Cti(row["le"]))
        return found


SINK_FLAWS: Final = {
    "promises much": "the promise is 'always'",
    "repeats": "after micro-batch 0 was written again",
    "forgets": "after micro-batch 0 was written once it holds",
    "drops retractions": "after micro-batch 1 was written once it holds",
    "takes a gap": "one whose predecessor is missing",
    "takes another stream": "one of another stream",
    "has what is to come": r"has\(0\) is True, and the last micro-batch is -1",
    "loses": "after micro-batch 3 was written once it lacks",
}


@pytest.mark.parametrize("flaw", SINK_FLAWS)
def test_a_broken_sink_is_found(flaw: str, tmp_path: Path) -> None:
    with pytest.raises(ConnectorViolation, match=SINK_FLAWS[flaw]):
        check_sink(lambda: Rows(tmp_path / "rows", flaw), Rows(tmp_path / "rows", flaw).events)


@pytest.mark.parametrize("flaw", ["", "may repeat"])
def test_a_sink_without_a_flaw_passes(flaw: str, tmp_path: Path) -> None:
    assert check_sink(lambda: Rows(tmp_path / "rows", flaw), Rows(tmp_path / "rows", flaw).events).writes == 15


def test_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    reader = jsonl_file(lines(tmp_path / "a.jsonl"), follow=True).open(None)
    assert isinstance(reader.poll(0), Batch)
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(sd.errors.InputError, match="ends at byte 3, and had been read up to"):
        reader.poll(0)
    reader.close()


def test_a_line_that_is_still_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    reader = csv_file(path, follow=True).open(None)
    assert reader.poll(0) is None
    path.write_text('le,v\n1,"a\n')
    assert isinstance(polled := reader.poll(0), Batch)
    assert polled.data == []
    with path.open("a") as file:
        file.write('b"\n2,c')
    assert isinstance(polled := reader.poll(0), Batch)
    assert polled.data == [{"le": 1, "v": "a\nb"}]
    assert reader.poll(0) is None
    with path.open("a") as file:
        file.write("\n")
    assert isinstance(polled := reader.poll(0), Batch)
    assert polled.data == [{"le": 2, "v": "c"}]
    reader.close()


def test_folders_of_partitions_give_fields(files: Path) -> None:
    @dataclass
    class Ride:
        zone: str
        fare: float
        month: int

    query, found = sd.source("rides", Ride, unit="tick").where(lambda e: e.month > 0), list[Any]()
    ended = query.serve(file_folder(files / "partitioned", payload=Ride), calling(found.extend), dead_letters=calling(list))
    assert (ended.rows_in, ended.bad_records) == (4 * 25 + 2, 1)
    months = Counter(event.payload.month for event in found if isinstance(event, sd.Insert))
    assert months == {1: 25, 2: 25, 3: 26}


def test_what_comes_into_a_store_is_read_as_it_comes(files: Path) -> None:
    address, system = in_store(files) + "/coming", fsspec.filesystem("memory")
    with pytest.raises(sd.errors.QueryError, match="there is no folder memory://"):
        file_folder(address).open(None)
    system.pipe_file(f"{address}/a.jsonl", b'{"le": 1}\n')
    reader = file_folder(address, follow=True).open(None)
    assert isinstance(first := reader.poll(0), Batch)
    assert (first.data, reader.poll(0)) == ([{"le": 1}], None)
    system.pipe_file(f"{address}/b.jsonl", b'{"le": 2}\n')
    assert isinstance(second := reader.poll(0), Batch)
    assert second.data == [{"le": 2}]
    system.pipe_file(f"{address}/a.jsonl", b"{}")
    with pytest.raises(sd.errors.InputError, match=r"a.jsonl has changed since it was taken"):
        reader.poll(0)
    system.rm(address, recursive=True)


def test_a_file_in_a_store_does_not_grow_and_may_be_missing() -> None:
    with pytest.raises(sd.errors.QueryError, match="what is in a store does not grow"):
        jsonl_file("memory://none/a.jsonl", follow=True).open(None)
    with pytest.raises(sd.errors.InputError, match=r"memory://none/a.jsonl cannot be read: there is none"):
        jsonl_file("memory://none/a.jsonl").open(None).poll(0)
    with pytest.raises(sd.errors.QueryError, match=r"fsspec opens no no-such-thing://\*\*\*@a.jsonl"):
        jsonl_file("no-such-thing://me:secret@a.jsonl").open(None)
    with pytest.raises(sd.errors.QueryError, match=r"nothing can be appended to s3://bucket/a.jsonl"):
        JsonlFile("s3://bucket/a.jsonl")


@pytest.mark.parametrize(("name", "content"), [("a.jsonl.zst", b"no such frame"), ("a.jsonl.gz", b"{}"), ("a.parquet", b"PAR")])
def test_a_broken_file_is_an_error_of_input(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sd.errors.InputError, match=f"{name} cannot be read: "):
        file_folder(tmp_path).open(None).poll(0)


def test_a_file_of_a_folder_that_changes_after_it_was_read_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl")
    reader = file_folder(tmp_path, follow=True).open(None)
    assert isinstance(reader.poll(0), Batch)
    assert reader.poll(0) is None
    os.truncate(tmp_path / "a.jsonl", 5)
    with pytest.raises(sd.errors.InputError, match="has changed since it was taken"):
        reader.poll(0)


@pytest.mark.parametrize("given", [(n for n in "ab"), iter([1]), 7])
def test_what_cannot_be_read_again_is_refused(given: Any) -> None:
    with pytest.raises(sd.errors.QueryError, match="cannot be read again after a restart"):
        iterable(given)


def test_a_generator_is_refused_with_the_function_that_makes_it() -> None:
    def feed() -> Iterator[int]:
        yield 1

    with pytest.raises(sd.errors.QueryError, match=r"makes the iterator anew, iterable\(feed\) for iterable\(feed\(\)\)"):
        iterable(feed())


def test_fewer_items_than_were_read_are_refused() -> None:
    with pytest.raises(sd.errors.InputError, match="there are 2 items, and 3 had been read"):
        iterable([1, 2]).open(3)
    with pytest.raises(sd.errors.InputError, match="there are 6 items, and 9 had been read"):
        async_iterable(some).open(9).poll(1)


def test_calling_is_at_least_once() -> None:
    found: list[Any] = []
    assert check_sink(lambda: calling(found.extend), lambda: found).promise == "at_least_once"


def test_the_standard_input_is_read_to_its_end_and_never_again(tmp_path: Path) -> None:
    program = (
        "import sys, streamdsl as sd\n"
        "from streamdsl.connect import JsonlFile, stdin_jsonl\n"
        "query = sd.source('s').tumbling_window(10).aggregate(n=sd.count())\n"
        "print(query.serve(stdin_jsonl(), JsonlFile(sys.argv[1]), checkpoint=sys.argv[2]))\n"
    )
    lines = ['{"le": 3, "v": 1}', '{"le": 4, "v": 2}', '{"le": 14, "v": 3}']
    command = [sys.executable, "-c", program, str(tmp_path / "out.jsonl"), str(tmp_path / "state")]
    for shown in (
        "micro_batches=1, rows_in=3, rows_out=2, bad_records=0",
        "micro_batches=0, rows_in=0, rows_out=0, bad_records=0",
    ):
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"Served(end='ended', {shown}, late_events=0)"
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["le"], row["n"]) for row in out if row["kind"] == "insert"] == [(0, 2), (10, 1)]


ODD_TEXTS = [
    "1",
    "+1",
    "-0",
    "1.0",
    "1e5",
    ".5",
    "1.",
    "1_0",
    " 1",
    "\u0661",
    "",
    "a\nb",
    'a "b"',
    "nan",
    "inf",
    "0x1",
    "é",
    "2,5",
]


def as_it_looks(text: str) -> Any:
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    is_number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
    return float(text) if is_number else text or None


@pytest.mark.parametrize("at_once", [1, 2, 5, 1_000])
def test_a_field_of_csv_is_what_it_looks_like_whatever_stands_in_its_column(at_once: int, tmp_path: Path) -> None:
    even = [[one, other] * 9 for one, other in (("1", "2"), ("0.5", "1e-3"), ("a", "b"), ("7", "0.5"), ("x", ""))]
    rows = [*zip(*even, even[2], strict=True), *zip(ODD_TEXTS, *even, strict=False)]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*"abcdef"], *rows])
    found, reader = list[Any](), csv_file(tmp_path / "t.csv", at_once=at_once).open(None)
    while isinstance(batch := reader.poll(0), Batch):
        assert len(batch.data) == len(batch.places)
        found += [list(row.values()) for row in batch.data]
    assert list(map(repr, found)) == [repr([as_it_looks(text) for text in row]) for row in rows]
