"""Streams on Spark beside Spark's own operators with a watermark, how they grow with shards, and what they hold on to.

Rows a second by the clock and by CPU, medians of three runs in turns, the first micro-batch, in which workers start, left out:

- windows: a count per key in tumbling windows, with few rows for each key and window, and with many; a count, a mean and a
  maximum of a float by texts, of which one has a fifth of the rows, and a twentieth is null;
- a join by key of lifetimes of two seconds, beside Spark's join of two streams with the same condition;
- `limit`: the second of these queries beside Spark's own and a function of Python that drops the rows, in smaller and larger
  micro-batches: what an engine in Python can reach, however fast it is;
- `shards`: the first of these queries in one, two and four shards, and on the local engine alone in this process;
- `churn`: five hundred micro-batches, each with a thousand keys that never come again: the memory of Spark's Python workers,
  and the size of the state.

Results of `final`, which Spark calls append, into Spark's sink that drops them; RocksDB, `local[2]`. Words say which. Needs Java.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamdsl as sd
from benchmarks.command import Study
from benchmarks.studies.spark import cpu_seconds, process_tree, session, times

FILES: Final = 8
RUNS: Final = 3
SHARDS: Final = (1, 2, 4)
CHURN: Final = 500
NEW_KEYS: Final = 1_000
FIRST: Final = 1_800_000_000
"""The time of the first file. Those of files that are written at once are equal, and such files are read in any order."""
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SLACK: Final = sd.Progress.slack("5s")


class Case(NamedTuple):
    """A query over streams of so many rows of so many keys, and how it is written with Spark's own operators."""

    title: str
    rows: int
    keys: int
    query: Callable[..., Any]
    by_hand: Callable[..., Any]
    sources: tuple[str, ...] = ("points",)
    of_texts: bool = False
    """Whether keys are texts, one of which is hot, and some null."""


def windows() -> Any:
    points = sd.source("points", unit="us", progress=SLACK)
    return points.group_by("key").tumbling_window("10s").aggregate(n=sd.count())


def windows_by_hand(points: Any) -> Any:
    from pyspark.sql import functions as f

    return points.withWatermark("le", "5 seconds").groupBy("key", f.window("le", "10 seconds")).agg(f.count("*").alias("n"))


def figures() -> Any:
    points = sd.source("points", unit="us", progress=SLACK)
    found = {"n": sd.count(), "mean": sd.avg(lambda e: e.price), "most": sd.max(lambda e: e.price)}
    return points.group_by("key").tumbling_window("10s").aggregate(**found)


def figures_by_hand(points: Any) -> Any:
    from pyspark.sql import functions as f

    found = f.count("*").alias("n"), f.avg("price").alias("mean"), f.max("price").alias("most")
    return points.withWatermark("le", "5 seconds").groupBy("key", f.window("le", "10 seconds")).agg(*found)


def join() -> Any:
    left, right = (sd.source(name, unit="us", progress=SLACK).alter_duration("2s") for name in ("left", "right"))
    return left.join(right, on="key", select=lambda a, b: {"key": a.key, "a": a.price, "b": b.price})


def join_by_hand(left: Any, right: Any) -> Any:
    from pyspark.sql.functions import expr

    one, two = left.withWatermark("le", "5 seconds").alias("l"), right.withWatermark("le", "5 seconds").alias("r")
    met = "l.key = r.key AND l.le < r.le + interval 2 seconds AND r.le < l.le + interval 2 seconds"
    return one.join(two, expr(met)).selectExpr("l.key", "l.price as a", "r.price as b")


CASES: Final = (
    Case("windows, one row for each key and window", 4_000_000, 10_000, windows, windows_by_hand),
    Case("windows, a hundred rows for each", 4_000_000, 100, windows, windows_by_hand),
    Case("figures by texts, a hundred rows for each", 4_000_000, 100, figures, figures_by_hand, of_texts=True),
    Case("join", 400_000, 10_000, join, join_by_hand, ("left", "right")),
)


def table(rows: int, keys: int, seed: int, of_texts: bool = False) -> Any:
    """Return rows, one each millisecond, whose keys and prices are random."""
    rng = np.random.default_rng(seed)
    key = rng.integers(0, keys, rows)
    price = rng.uniform(1, 10_000, rows)
    return pa.table({"le": times(rows), "key": texts(key, rng) if of_texts else key, "price": price})


def texts(numbers: Any, rng: np.random.Generator) -> Any:
    """Return a text for each number, but for a random fifth the same one, and for a random twentieth null."""
    chance = rng.random(len(numbers))
    hot = np.where(chance < 1 / 5, 0, numbers)
    return pa.array([f"key {number}" for number in range(numbers.max() + 1)]).take(pa.array(hot, mask=chance > 19 / 20))


def churning(number: int) -> Any:
    """Return the rows of a micro-batch: a second of them, whose keys no other has."""
    rng = np.random.default_rng(number)
    le = pa.array(number * 1_000_000 + np.arange(2 * NEW_KEYS) * 500, pa.timestamp("us", "UTC"))
    keys = number * NEW_KEYS + rng.integers(0, NEW_KEYS, 2 * NEW_KEYS)
    return pa.table({"le": le, "key": keys, "price": rng.uniform(1, 10_000, 2 * NEW_KEYS)})


def written(folder: Path, parts: Iterator[Any]) -> None:
    """Write tables, each into a file of its own, which is a micro-batch; Spark reads files in the order of their times."""
    folder.mkdir()
    for number, part in enumerate(parts):
        path = folder / f"{number:04}.parquet"
        pq.write_table(part, path)
        os.utime(path, (FIRST + number, FIRST + number))


def sliced(whole: Any) -> Iterator[Any]:
    size = -(-len(whole) // FILES)
    return (whole.slice(start, size) for start in range(0, len(whole), size))


def read(spark: Any, folder: Path, of_texts: bool = False) -> Any:
    schema = f"le timestamp, key {'string' if of_texts else 'long'}, price double"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def started(frame: Any) -> Any:
    """Start a stream into the sink that drops rows, which ends when all files are read."""
    checkpoint = tempfile.mkdtemp(dir=tempfile.gettempdir())
    return frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def ours(query: Any, spark: Any, frames: dict[str, Any]) -> Any:
    return query.on_spark(spark).stream(frames, emit="final")


def costs(frame: Any) -> tuple[float, float]:
    """Return the CPU seconds of all processes for all micro-batches, and the seconds of all but the first."""
    before = cpu_seconds()
    running = started(frame)
    running.awaitTermination()
    batches = [progress["durationMs"]["triggerExecution"] for progress in running.recentProgress if progress["numInputRows"]]
    return cpu_seconds() - before, sum(batches[1:]) / 1000


def compare(study: Study, spark: Any, folder: Path) -> None:
    """Print the rates beside those of Spark's own operators."""
    print("| | rows/s | Spark's own | ratio | by CPU |\n|---|---|---|---|---|")
    for number, case in enumerate(each for each in CASES if each.title in study.parts):
        places = {name: folder / f"{number}-{name}" for name in case.sources}
        for seed, place in enumerate(places.values()):
            written(place, sliced(table(case.rows, case.keys, seed, case.of_texts)))

        def frames(places: dict[str, Path] = places, of_texts: bool = case.of_texts) -> dict[str, Any]:
            return {name: read(spark, place, of_texts) for name, place in places.items()}

        runs = [(costs(ours(case.query(), spark, frames())), costs(case.by_hand(*frames().values()))) for _ in range(RUNS)]
        (cpu, seconds), (own_cpu, own_seconds) = (
            [statistics.median(each) for each in zip(*kind, strict=True)] for kind in zip(*runs, strict=True)
        )
        rows = case.rows * len(case.sources) * (FILES - 1) / FILES
        rates = f"{rows / seconds:,.0f} | {rows / own_seconds:,.0f}"
        text = f"| {case.title} | {rates} | {own_seconds / seconds:.2f} | {own_cpu / cpu:.2f} |"
        study.row(case.title, text, {"seconds": seconds, "cpu": cpu, "Spark's seconds": own_seconds, "Spark's cpu": own_cpu})


def dropped(points: Any) -> Any:
    """Return how many rows come to Python in each part, and nothing else of them."""

    def counted(parts: Iterator[Any]) -> Iterator[Any]:
        yield pa.RecordBatch.from_pydict({"n": [sum(part.num_rows for part in parts)]})

    return points.mapInArrow(counted, "n long")


def limit(study: Study, spark: Any, folder: Path) -> None:
    """Print the rates of windows, of Spark's own, and of rows that Python drops."""
    case = CASES[1]
    print("\n| | rows/s | Spark's own | dropped in Python |\n|---|---|---|---|")
    for size in (500_000, 2_000_000):
        place = folder / f"{size}"
        written(place, sliced(table(size * FILES, case.keys, 0)))
        runs: list[list[float]] = []
        for _ in range(RUNS):
            mine = ours(case.query(), spark, {"points": read(spark, place)})
            frames = mine, case.by_hand(read(spark, place)), dropped(read(spark, place))
            runs.append([costs(frame)[1] for frame in frames])
        rates = [size * (FILES - 1) / statistics.median(each) for each in zip(*runs, strict=True)]
        title = f"{size:,} rows in a micro-batch"
        names = ("rows/s", "Spark's own", "dropped in Python")
        study.row(title, f"| {title} | {' | '.join(f'{rate:,.0f}' for rate in rates)} |", dict(zip(names, rates, strict=True)))


def shards(study: Study, spark: Any, folder: Path) -> None:
    """Print how the first query grows with shards, beside the local engine."""
    case, rows = CASES[0], CASES[0].rows * (FILES - 1) / FILES
    whole = table(case.rows, case.keys, 0)
    written(folder / "points", sliced(whole))
    print("\n| | rows/s |\n|---|---|")
    alone = case.query().open(emit="final")
    parts = list(sliced(whole))
    alone.feed(parts[0]).to_arrow()
    before = cpu_seconds()
    for part in parts[1:]:
        alone.feed(part).to_arrow()
    told(study, "the local engine alone (by CPU)", rows / (cpu_seconds() - before))
    for number in SHARDS:
        spark.conf.set("spark.sql.shuffle.partitions", str(number))
        seconds = [costs(ours(case.query(), spark, {"points": read(spark, folder / "points")}))[1] for _ in range(RUNS)]
        told(study, f"{number} shards", rows / statistics.median(seconds))


def told(study: Study, title: str, rate: float) -> None:
    study.row(title, f"| {title} | {rate:,.0f} |", {"rows/s": rate})


def churn(study: Study, spark: Any, folder: Path) -> None:
    """Print the memory of Python workers and the size of the state over many micro-batches."""
    written(folder / "churn", map(churning, range(CHURN)))
    running = started(ours(windows(), spark, {"points": read(spark, folder / "churn")}))
    found: dict[int, tuple[float, float]] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            if (progress := running.lastProgress) is not None:
                state = sum(each["customMetrics"].get("rocksdbSstFileSize", 0) for each in progress["stateOperators"])
                found[progress["batchId"]] = worker_bytes(), state

    thread = threading.Thread(target=watch)
    thread.start()
    running.awaitTermination()
    ended.set()
    thread.join()
    print("\n| micro-batches | Python workers, MB | state, MB |\n|---|---|---|")
    for first in range(0, CHURN, CHURN // 10):
        part = [found[n] for n in range(first, first + CHURN // 10) if n in found]
        if part:
            workers, state = (statistics.median(each) / 1e6 for each in zip(*part, strict=True))
            title = f"{first} to {first + CHURN // 10}"
            study.row(title, f"| {title} | {workers:.0f} | {state:.2f} |", {"workers, MB": workers, "state, MB": state})


def worker_bytes() -> int:
    """Return the resident bytes of the Python workers of this process's Spark (Linux)."""
    pages = 0
    for pid in process_tree():
        with contextlib.suppress(OSError):  # it has ended
            if b"pyspark.daemon" in (Path("/proc") / str(pid) / "cmdline").read_bytes():
                pages += int((Path("/proc") / str(pid) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Print the tables that words name, else all."""
    titles = [case.title for case in CASES]
    study = Study(__doc__, [*titles, "limit", "shards", "churn"])
    spark = session(2)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(CHURN))
    with tempfile.TemporaryDirectory() as name:
        tempfile.tempdir = name
        for measure, parts in {compare: titles, limit: ["limit"], shards: ["shards"], churn: ["churn"]}.items():
            if not set(parts).isdisjoint(study.parts):
                spark.conf.set("spark.sql.shuffle.partitions", "2")
                measure(study, spark, Path(name))
    spark.stop()


if __name__ == "__main__":
    main()
