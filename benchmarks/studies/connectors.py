"""What sources and sinks cost beside loops over the same libraries, and what a job costs, nanoseconds of CPU for each event.

Readings of a thousand sensors, of four kinds: `hot` has nine in ten of one sensor, `nulls` a third of the readings without heat,
`wide` keys of 64 bits. A source is read to its end, and a loop reads the same and makes `(le, fields)` of it; a sink gets
micro-batches of ten thousand events, and a loop writes the same rows in as many transactions, to DuckDB by columns. A job is a
filter from a source to a `JsonlFile`, with a checkpoint for each micro-batch, beside pushes of the same events in a loop. Medians
of some runs in turns. Kafka is the broker that librdkafka has inside, in this process, whose share is in both columns;
PostgreSQL is a server of its own, whose share is in neither; where it is not installed it is left out, and that is said.
"""

from __future__ import annotations

import csv
import importlib
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.connect import (
    END,
    Batch,
    JsonlFile,
    KafkaTopic,
    Sink,
    Source,
    csv_file,
    database_rows,
    file_folder,
    iterable,
    jsonl_file,
    kafka_topic,
)
from streamdsl.sinks import DatabaseTable, ParquetEvents, ParquetTable

ROWS: Final = 100_000
BATCH: Final = 10_000
FIELDS: Final = ("le", "sensor", "heat")
Compared = tuple[str, Callable[[], Any], Callable[[], Any]]
"""What is compared: what it is called, itself, and the loop beside it."""
KINDS: Final = ("plain", "hot", "nulls", "wide")


def readings(kind: str = "plain") -> list[dict[str, Any]]:
    """Return readings of a kind; the fields and their order are the same for all."""
    rng = np.random.default_rng(1)
    keys, heats = rng.integers(0, 1_000, ROWS), rng.uniform(0, 100, ROWS).tolist()
    names: list[Any] = [f"sensor {key}" for key in keys.tolist()]
    if kind == "hot":
        names = [each if is_other else "sensor 0" for each, is_other in zip(names, rng.random(ROWS) < 0.1, strict=True)]
    elif kind == "nulls":
        heats = [None if is_null else each for each, is_null in zip(heats, rng.random(ROWS) < 1 / 3, strict=True)]
    elif kind == "wide":
        names = rng.integers(-(2**63), 2**63, 1_000)[keys].tolist()
    return [{"le": le, "sensor": name, "heat": heat} for le, (name, heat) in enumerate(zip(names, heats, strict=True))]


def write_files(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write the readings as JSON lines, CSV, Parquet and a table of SQLite."""
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open(folder / "in.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    (folder / "parquet").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "parquet" / "in.parquet")
    with closing(sqlite3.connect(folder / "in.db")) as connection, connection:
        connection.execute("CREATE TABLE readings (number INTEGER PRIMARY KEY, le INTEGER, sensor, heat REAL)")
        connection.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", [(n, *row.values()) for n, row in enumerate(rows)])


def read_to_end(source: Source) -> int:
    """Return how many items a source has, or has now if it never ends."""
    reader, found = source.open(None), 0
    while (polled := reader.poll(0.0)) is not END:
        if polled is None:
            if found >= ROWS:
                break
            continue
        assert isinstance(polled, Batch)
        found += len(polled.data)
    reader.close()
    return found


def json_loop(folder: Path) -> int:
    with open(folder / "in.jsonl", "rb") as file:
        return len([(row.pop("le"), row) for row in map(json.loads, file)])


def csv_loop(folder: Path) -> int:
    with open(folder / "in.csv", newline="") as file:
        return len([(int(row.pop("le")), row) for row in csv.DictReader(file)])


def parquet_loop(folder: Path) -> int:
    with pq.ParquetFile(folder / "parquet" / "in.parquet") as file:
        return sum(batch.num_rows for batch in file.iter_batches(65_536))


def sqlite_loop(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "in.db")) as connection:
        cursor = connection.execute("SELECT * FROM readings ORDER BY number")
        return len([(le, {"sensor": sensor, "heat": heat}) for _, le, sensor, heat in cursor])


def kafka_loop(servers: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "loop"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
    found: list[Any] = []
    while len(found) < ROWS:
        for message in consumer.consume(BATCH, 0.1):
            row = json.loads(message.value())
            found.append((row.pop("le"), row))
    consumer.close()
    return len(found)


def table_loop(connect: Callable[[], Any]) -> int:
    with closing(connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SELECT * FROM readings ORDER BY number")
        return len([(le, {"sensor": sensor, "heat": heat}) for _, le, sensor, heat in cursor.fetchall()])


def databases(folder: Path, server: str | None) -> dict[str, Callable[[], Any]]:
    """Return how each database is reached, SQLite apart."""
    found: dict[str, Callable[[], Any]] = {"duckdb": lambda: importlib.import_module("duckdb").connect(folder / "in.duckdb")}
    return found if server is None else {**found, "psycopg": lambda: importlib.import_module("psycopg").connect(server)}


def fill(connect: Callable[[], Any], rows: list[dict[str, Any]]) -> None:
    """Make the table of readings in a database."""
    kind = "BIGINT" if isinstance(rows[0]["sensor"], int) else "TEXT"
    columns = f"number BIGINT, le BIGINT, sensor {kind}, heat DOUBLE PRECISION"
    with closing(connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE TABLE readings ({columns})")
        if hasattr(cursor, "register"):
            cursor.register("rows_in", pa.Table.from_pylist([{"number": n, **row} for n, row in enumerate(rows)]))
            cursor.execute("INSERT INTO readings SELECT * FROM rows_in")
        else:
            cursor.executemany("INSERT INTO readings VALUES (%s, %s, %s, %s)", [(n, *row.values()) for n, row in enumerate(rows)])
            connection.commit()


def sources(folder: Path, servers: str, topic: str, reached: dict[str, Callable[[], Any]]) -> Iterator[Compared]:
    """Yield sources: what they are called, themselves, and the loop beside them."""
    database = partial(database_rows, lambda: sqlite3.connect(folder / "in.db"), "readings", by="number", start="le")
    made: dict[str, tuple[Callable[[], Source], Callable[[], int]]] = {
        "`jsonl_file`, `json.loads`": (lambda: jsonl_file(folder / "in.jsonl"), partial(json_loop, folder)),
        "`csv_file`, `csv.DictReader`": (lambda: csv_file(folder / "in.csv"), partial(csv_loop, folder)),
        "`file_folder` of Parquet, pyarrow": (lambda: file_folder(folder / "parquet"), partial(parquet_loop, folder)),
        "`database_rows`, sqlite3": (database, partial(sqlite_loop, folder)),
        "`kafka_topic`, confluent-kafka": (lambda: kafka_topic(topic, servers, start="le"), partial(kafka_loop, servers, topic)),
    }
    for name, connect in reached.items():
        made[f"`database_rows`, {name}"] = (
            partial(database_rows, connect, "readings", by="number", start="le"),
            partial(table_loop, connect),
        )
    for title, (source, loop) in made.items():
        yield title, lambda source=source: read_to_end(source()), loop  # type: ignore[misc]


def batches(rows: list[dict[str, Any]]) -> list[Any]:
    """Return the readings as micro-batches of events."""
    session = sd.source("readings").open()
    events = [sd.point(n, row["le"], {"sensor": row["sensor"], "heat": row["heat"]}) for n, row in enumerate(rows)]
    return [session.feed(events[n : n + BATCH]).to_arrow() for n in range(0, ROWS, BATCH)]


def write_all(sink: Sink, tables: list[Any]) -> None:
    for number, table in enumerate(tables):
        sink.write(table, number)


def json_write(path: Path, tables: list[Any]) -> None:
    for table in tables:
        with open(path, "ab") as file:
            file.write("".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode())


def sqlite_write(path: Path, tables: list[Any]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id TEXT, le INTEGER, re INTEGER, sensor, heat REAL, PRIMARY KEY (id, le))")
        for table in tables:
            rows = zip(*(table[name].to_pylist() for name in ("id", "le", "re", "sensor", "heat")), strict=True)
            with connection:
                connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)


def columns_of(tables: list[Any]) -> str:
    """Return the columns of a table for the readings, in SQL."""
    kind = "BIGINT" if pa.types.is_integer(tables[0].schema.field("sensor").type) else "TEXT"
    return f"id TEXT, le BIGINT, re BIGINT, sensor {kind}, heat DOUBLE PRECISION, PRIMARY KEY (id, le)"


def duckdb_write(connect: Callable[[], Any], name: str, tables: list[Any]) -> None:
    with closing(connect()) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns_of(tables)})")
        for table in tables:
            connection.register("rows_in", table.select(["id", "le", "re", "sensor", "heat"]))
            connection.execute(f"INSERT INTO {name} SELECT * FROM rows_in")


def psycopg_write(connect: Callable[[], Any], name: str, tables: list[Any]) -> None:
    with closing(connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE TABLE {name} ({columns_of(tables)})")
        for table in tables:
            rows = zip(*(table[each].to_pylist() for each in ("id", "le", "re", "sensor", "heat")), strict=True)
            cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s)", list(rows))
            connection.commit()


def parquet_write(folder: Path, tables: list[Any]) -> None:
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")


def kafka_write(servers: str, topic: str, tables: list[Any]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for table in tables:
        for row in table.to_pylist():
            producer.produce(topic, json.dumps(row).encode(), row["id"].encode())
            producer.poll(0)
        producer.flush()


def sinks(folder: Path, servers: str, tables: list[Any], reached: dict[str, Callable[[], Any]]) -> Iterator[Compared]:
    """Yield sinks: what they are called, a run of one, and one of the loop beside it, each into a place of its own."""
    numbers = iter(range(10_000))

    def place(name: str) -> Path:
        return folder / f"{next(numbers)}-{name}"

    def connect(path: Path) -> Any:
        return sqlite3.connect(path)

    made: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "`JsonlFile`, `json.dumps`": (
            lambda: write_all(JsonlFile(place("out.jsonl")), tables),
            lambda: json_write(place("loop.jsonl"), tables),
        ),
        "`DatabaseTable`, sqlite3": (
            lambda: write_all(DatabaseTable(partial(connect, place("out.db")), "t"), tables),
            lambda: sqlite_write(place("loop.db"), tables),
        ),
        "`ParquetEvents`, pyarrow": (
            lambda: write_all(ParquetEvents(place("events")), tables),
            lambda: parquet_write(place("loop"), tables),
        ),
        "`ParquetTable`, pyarrow": (
            lambda: write_all(ParquetTable(place("table"), every=BATCH), tables),
            lambda: parquet_write(place("loop"), tables),
        ),
        "`KafkaTopic`, confluent-kafka": (
            lambda: write_all(KafkaTopic(f"out-{next(numbers)}", servers), tables),
            lambda: kafka_write(servers, f"loop-{next(numbers)}", tables),
        ),
    }
    loops = {"duckdb": duckdb_write, "psycopg": psycopg_write}
    for name, connected in reached.items():
        made[f"`DatabaseTable`, {name}"] = (
            lambda connected=connected: write_all(DatabaseTable(connected, f"t{next(numbers)}"), tables),  # type: ignore[misc]
            lambda name=name, connected=connected: loops[name](connected, f"loop{next(numbers)}", tables),  # type: ignore[misc]
        )
    for title, (ours, loop) in made.items():
        yield title, ours, loop


def messages(rows: list[dict[str, Any]]) -> list[tuple[int, bytes]]:
    """Return the readings as messages of four partitions."""
    return [(n % 4, json.dumps(row).encode()) for n, row in enumerate(rows)]


def compare(study: Study, kind: str, title: str, ours: Callable[[], Any], loop: Callable[[], Any]) -> None:
    """Print what both cost, in turns; the first run of each is not counted."""
    taken = [[cpu(ours), cpu(loop)] for _ in range(study.runs + 1)][1:]
    own, other = (statistics.median(each) for each in zip(*taken, strict=True))
    text = f"| {kind} | {title} | {own:,.0f} | {other:,.0f} | {own / other:.2f} |"
    study.row(f"{kind}, {title}", text, {"ns": own, "loop": other, "ratio": own / other})


def cpu(run: Callable[[], Any]) -> float:
    """Return the CPU nanoseconds of a run for each event."""
    start = time.process_time_ns()
    run()
    return (time.process_time_ns() - start) / ROWS


def jobs(folder: Path, rows: list[dict[str, Any]]) -> Iterator[Compared]:
    """Yield jobs: what they read, themselves, and the same query pushed in a loop that keeps nothing."""
    has_nulls = any(row["heat"] is None for row in rows)
    given_rows = sd.source("readings")
    query = given_rows.where((lambda e: sd.functions.coalesce(e.heat, 0.0) > 90) if has_nulls else (lambda e: e.heat > 90))
    events = [sd.point(n, row["le"], {"sensor": row["sensor"], "heat": row["heat"]}) for n, row in enumerate(rows)]
    given: dict[str, Callable[[], Source]] = {
        "from events in memory": lambda: iterable(events, BATCH),
        "from JSON lines": lambda: jsonl_file(folder / "in.jsonl"),
        "from Parquet": lambda: file_folder(folder / "parquet"),
    }

    def loop() -> None:
        session = query.open()
        for n in range(0, ROWS, BATCH):
            session.push(events[n : n + BATCH])

    def job(source: Callable[[], Source]) -> None:
        with tempfile.TemporaryDirectory() as name:
            query.serve(source(), JsonlFile(Path(name, "out.jsonl")), checkpoint=Path(name, "state"), every=BATCH)

    for title, source in given.items():
        yield title, partial(job, source), loop


def main() -> None:
    """Print the parts that words choose."""
    from tests import postgresql
    from tests.kafka_broker import broker, new_topic

    study = Study(__doc__, [f"{kind} {part}" for kind in KINDS for part in ("sources", "sinks", "jobs")], runs=5)
    print("| readings | source or sink, library | ns an event | a loop | ratio |\n|---|---|---|---|---|")
    for kind in KINDS:
        chosen = [part.removeprefix(f"{kind} ") for part in study.parts if part.startswith(kind)]
        if not chosen:
            continue
        rows = readings(kind)
        with ExitStack() as held:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
            servers = held.enter_context(broker())
            server = held.enter_context(postgresql.postgresql()) if postgresql.programs() else None
            if server is None:
                print("PostgreSQL is not installed, and left out: apt-get install postgresql")
            reached = databases(folder, server)
            write_files(folder, rows)
            for connect in reached.values():
                fill(connect, rows)
            made: dict[str, Callable[[], Iterable[Compared]]] = {
                "sources": lambda: sources(folder, servers, new_topic(servers, messages(rows)), reached),  # noqa: B023
                "sinks": lambda: sinks(folder, servers, batches(rows), reached),  # noqa: B023
                "jobs": lambda: jobs(folder, rows),  # noqa: B023
            }
            for part in chosen:
                for title, ours, loop in made[part]():
                    assert part != "sources" or ours() == loop() == ROWS, title
                    compare(study, kind, title, ours, loop)


if __name__ == "__main__":
    main()
