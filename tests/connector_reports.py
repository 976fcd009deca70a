"""Hold every connector to its promise, on the real thing, and print what was held: `make check-connectors`.

With `--record` the reports go to `connector_reports.json`, of which the table in docs/connectors.md is made.
"""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import fsspec

from streamdsl.connect import (
    KafkaTopic,
    Webhook,
    calling,
    database_rows,
    flight_stream,
    kafka_topic,
    server_sent_events,
    stdin_jsonl,
    websocket,
)
from streamdsl.sinks import DatabaseTable, ParquetEvents
from streamdsl.sinks.sql_connections import Connect
from streamdsl.testing import check_sink, check_source
from tests import mariadb
from tests.kafka_broker import broker, new_topic
from tests.object_store import object_store
from tests.postgresql import postgresql
from tests.unit.connect import test_conformance as files
from tests.unit.connect import test_flight as flights
from tests.unit.connect import test_http as http
from tests.unit.connect import test_object_store as stores
from tests.unit.connect import test_websocket as sockets
from tests.unit.connect.test_database_rows import READINGS, execute, rows
from tests.unit.connect.test_kafka import read

held_source: Final = partial(check_source, slack=60)
"""It is for a machine that is busy with servers too."""
RECORDED: Final = Path(__file__).with_suffix(".json")
NAMES: Final = {
    "a list": "iterable",
    "frames": "iterable, of frames",
    "an asynchronous iterator": "async_iterable",
    "JSON lines": "jsonl_file",
    "JSON lines that grow": "jsonl_file, growing",
    "JSON lines, zipped": "jsonl_file, .gz",
    "JSON lines, packed": "jsonl_file, .zst",
    "CSV": "csv_file",
    "CSV that grows": "csv_file, growing",
    "a folder": "file_folder",
    "a folder that fills": "file_folder, filling",
    "a folder of partitions": "file_folder, of partitions",
    "a recording": "replay",
}
"""The sources of the conformance tests that are in the table, with their names there."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one connector was held to, on what."""

    connector: str
    on: str
    promise: str
    cases: str
    laws: list[str]
    seconds: float


def line(connector: str, on: str, report: Any) -> Line:
    promise = str(report.promise).replace("_", " ")
    return Line(connector, on, promise, report.cases, list(report.laws), round(report.seconds, 2))


def of_files(folder: Path) -> Iterator[Line]:
    """Yield what is held on files, and of what is in memory."""
    files.lines(folder / "a.jsonl"), files.table(folder / "b.csv"), files.zipped(folder / "z.jsonl.gz")
    files.folder(folder / "folder"), files.recorded(folder / "recorded.jsonl")
    files.packed(folder / "p.jsonl.zst"), files.partitioned(folder / "partitioned")
    for name, title in NAMES.items():
        on = "memory" if "iterable" in title else "files"
        yield line(title, on, held_source(lambda name=name: files.SOURCES[name](folder)))  # type: ignore[misc]
    pipe, end = os.pipe()
    os.write(end, (folder / "a.jsonl").read_bytes())
    os.close(end)
    with os.fdopen(pipe, "rb") as stream:
        yield line("stdin_jsonl", "a pipe", held_source(lambda: stdin_jsonl(stream), gives_again=False))
    for name, (make, found) in files.SINKS.items():
        if name not in ("DatabaseTable", "ParquetEvents in a store"):
            place = folder / name
            report = check_sink(lambda make=make, place=place: make(place), lambda found=found, place=place: found(place))  # type: ignore[misc]
            yield line(name, "files", report)
    called: list[Any] = []
    yield line("calling", "memory", check_sink(lambda: calling(called.extend), lambda: called))


def of_store(folder: Path) -> Iterator[Line]:
    """Yield what is held on an object store that speaks S3."""
    on = "S3 (moto)"
    with object_store() as options:
        system = fsspec.filesystem("s3", **options)
        system.put(f"{folder}/folder/", "s3://bucket/in/", recursive=True)
        from streamdsl.connect import file_folder, jsonl_file

        yield line(
            "jsonl_file", on, held_source(lambda: jsonl_file("s3://bucket/in/a.jsonl", at_once=4, storage_options=options))
        )
        report = held_source(lambda: file_folder("s3://bucket/in", storage_options=options, follow=True))
        yield line("file_folder, filling", on, report)
        address = "s3://bucket/sink"
        sink = check_sink(lambda: ParquetEvents(address, storage_options=options), lambda: stores.stored(system, address))
        yield line("ParquetEvents", on, sink)


def of_databases(folder: Path) -> Iterator[Line]:
    """Yield what is held on databases, in files and on servers of their own."""
    duckdb, psycopg = importlib.import_module("duckdb"), importlib.import_module("psycopg")
    with ExitStack() as servers:
        server = servers.enter_context(postgresql())
        host, user, database = (part.partition("=")[2] for part in server.split())
        databases: dict[str, Connect] = {
            "SQLite": lambda: sqlite3.connect(folder / "test.db"),
            "DuckDB": lambda: duckdb.connect(folder / "test.duckdb"),
            "PostgreSQL": lambda: psycopg.connect(server),
            "PostgreSQL, by SQLAlchemy": f"postgresql+psycopg://{user}@/{database}?host={host}",
            "MariaDB, by SQLAlchemy": servers.enter_context(mariadb.mariadb()),
        }
        for on, connect in databases.items():
            if on != "PostgreSQL, by SQLAlchemy":
                execute(connect, READINGS, rows(*(f"({n}, {n // 3}, {n / 2}, 'a')" for n in range(40))))

            def source(connect: Connect = connect) -> Any:
                return database_rows(connect, "readings", by="moment", start="moment", at_once=7)

            yield line("database_rows", on, held_source(source))
        for on, connect in databases.items():
            table = f"alarms{len(on)}"
            yield line("DatabaseTable", on, check_sink(lambda c=connect, t=table: DatabaseTable(c, t), kept(connect, table)))  # type: ignore[misc]


def kept(connect: Connect, table: str) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that reads the rows of a table."""
    from contextlib import closing

    from streamdsl.sinks.sql_connections import connecting

    def found() -> list[dict[str, Any]]:
        with closing(connecting(connect)()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(f"SELECT le, re, n FROM {table}")
            return [dict(zip(("le", "re", "n"), row, strict=True)) for row in cursor.fetchall()]

    return found


def of_kafka(folder: Path) -> Iterator[Line]:
    """Yield what is held on a broker of Kafka."""
    on = "Kafka" if "STREAMDSL_KAFKA" in os.environ else "librdkafka's broker"
    with broker() as servers:
        given = new_topic(servers, [(1, json.dumps({"at": n, "v": n}).encode()) for n in range(20)] + [(1, b"no json")])
        yield line("kafka_topic", on, held_source(lambda: kafka_topic(given, servers, start="at")))
        topic = new_topic(servers)
        report = check_sink(lambda: KafkaTopic(topic, servers), lambda: read(kafka_topic(topic, servers)))
        yield line("KafkaTopic", on, report)


def of_web(folder: Path) -> Iterator[Line]:
    """Yield what is held on servers of HTTP, Arrow Flight and websockets."""
    with http.running() as server:
        yield line("server_sent_events", "HTTP", held_source(lambda: server_sent_events(server.url), patience=0.5))
        yield line("Webhook", "HTTP", check_sink(lambda: Webhook(server.url), lambda: http.posted_events(server)))
    with flights.running() as location:
        report = held_source(lambda: flight_stream(location, "trips/2026"), patience=1)
        yield line("flight_stream", "Arrow Flight", report)
    with sockets.running(sockets.Feed()) as url:
        report = held_source(lambda: websocket(url), patience=0.5, gives_again=False)
        yield line("websocket", "websockets", report)


def main() -> None:
    """Print a line for each connector, and end with an error at the first that breaks its promise."""
    lines = list[Line]()
    with tempfile.TemporaryDirectory() as name:
        for part in (of_files, of_store, of_databases, of_kafka, of_web):
            for found in part(Path(name)):
                print(
                    f"{found.connector:28} {found.on:26} {found.promise:14} {found.cases:52} {found.seconds:6.2f} s", flush=True
                )
                print(f"{'':28} {'; '.join(found.laws)}", flush=True)
                lines.append(found)
    print(f"{len(lines)} connectors keep their promises, {sum(each.seconds for each in lines):.0f} s")
    if "--record" in sys.argv:
        recorded = [{name: value for name, value in asdict(each).items() if name != "seconds"} for each in lines]
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
