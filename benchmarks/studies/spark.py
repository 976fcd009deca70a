"""Queries lowered to Spark beside the same ones written by hand in PySpark, with Spark's own settings.

Rows in Parquet, of a thousand keys, one of which has a fifth of the points: five million points for windows, 1.25 million on each
side of the as-of join, half a million intervals for snapshots and on each side of the join by key, 30,000 on each side of the
join without a key. Prices are floats.
Results go into Spark's sink that drops them. CPU seconds of all processes and wall-clock seconds, medians of three runs after
two warm ones, runs of both kinds in turns; every answer is compared. With `sizes`: how the join without a key grows, beside a
join of the same rows by equal starts, than which no join of Spark's is faster. Needs Java.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamdsl as sd
from benchmarks.command import Study

ROWS = 5_000_000
SIDE = 500_000
QUOTES = 1_250_000
KEYLESS = 30_000
SIZES = (30_000, 60_000, 120_000)
KEYS = 1_000
RUNS = 3
CORES = (1, 2, 4)
Frames: TypeAlias = Mapping[str, Any]


class Case(NamedTuple):
    """A query over some of the frames, and how it is written by hand; not `exact`: sums are rounded in both."""

    title: str
    query: Callable[..., Any]
    by_hand: Callable[..., Any]
    frames: tuple[str, ...]
    runs: int = RUNS
    exact: bool = True


def tumbling(points: Any, key: str = "key", **aggregates: Any) -> Any:
    return points.group_by(key).tumbling_window("10s").aggregate(**(aggregates or MEAN))


def tumbling_by_hand(points: Any, key: str = "key", *aggregates: str) -> Any:
    return by_window(points, key, "10 seconds", "10 seconds", aggregates or MEAN_BY_HAND)


def hopping(points: Any) -> Any:
    return points.group_by("key").hopping_window("60s", "10s").aggregate(**MEAN)


def hopping_by_hand(points: Any) -> Any:
    return by_window(points, "key", "60 seconds", "10 seconds", MEAN_BY_HAND)


def by_window(points: Any, key: str, size: str, hop: str, aggregates: Sequence[str]) -> Any:
    """Return aggregates by key and window of Spark's."""
    from pyspark.sql import functions as f

    grouped = points.groupBy(key, f.window("le", size, hop)).agg(*map(f.expr, aggregates))
    return grouped.selectExpr("window.start", "window.end", key, *(each.rsplit(" ", 1)[1] for each in aggregates))


def session_counts(points: Any) -> Any:
    return points.group_by("key").session_window("500ms").aggregate(n=sd.count())


def session_counts_by_hand(points: Any) -> Any:
    from pyspark.sql import functions as f

    found = points.groupBy("key", f.session_window("le", "500 milliseconds")).agg(f.count("*").alias("n"))
    return found.selectExpr("session_window.start", "session_window.end + interval 1 microsecond", "key", "n")


def snapshot(intervals: Any) -> Any:
    return intervals.group_by("key").snapshot_window().aggregate(**MEAN)


def snapshot_by_hand(intervals: Any) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    starts = intervals.select("key", f.col("le").alias("t"), f.lit(1).alias("n"), "price")
    ends = intervals.select("key", f.col("re").alias("t"), f.lit(-1).alias("n"), (-f.col("price")).alias("price"))
    changes = starts.union(ends).groupBy("key", "t").agg(f.sum("n").alias("n"), f.sum("price").alias("price"))
    along = Window.partitionBy("key").orderBy("t")
    n, total = f.sum("n").over(along).alias("n"), f.sum("price").over(along).alias("total")
    running = changes.select("t", f.lead("t").over(along), "key", n, total).where("n > 0")
    return running.withColumn("mean", f.expr("total / n")).drop("total")


def largest(points: Any) -> Any:
    kept = points.group_by("key").tumbling_window("10m").top_k(3, by="price")
    return kept.select(lambda e: {"key": e[0], "units": e[1].units, "price": e[1].price})


def largest_by_hand(points: Any) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    along = Window.partitionBy("key", "start").orderBy(f.desc("price"))
    windows = points.withColumn("start", f.window("le", "10 minutes").start)
    kept = windows.withColumn("place", f.rank().over(along)).where("place <= 3")
    return kept.selectExpr("start", "start + interval 10 minutes", "key", "units", "price")


def asof(trades: Any, quotes: Any) -> Any:
    return trades.asof_join(quotes, on="key", select=lambda t, q: {"key": t.key, "price": t.price, "quote": q.price})


def asof_by_hand(trades: Any, quotes: Any) -> Any:
    """Return the pairs as by `asof`: of the quotes of one key no two have the same time, so the last one is all of them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    sides = trades.selectExpr("le", "key", "price", "cast(null as struct<price:double>) as quote").unionAll(
        quotes.selectExpr("le", "key", "cast(null as double)", "struct(price) as quote")
    )
    along = Window.partitionBy("key").orderBy("le").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    met = sides.withColumn("quote", f.last("quote", ignorenulls=True).over(along)).where(
        "price is not null and quote is not null"
    )
    return met.selectExpr("le", "le + interval 1 microsecond", "key", "price", "quote.price")


def join(left: Any, right: Any) -> Any:
    return left.join(right, on="key", select=lambda a, b: {"key": a.key, "a": a.price, "b": b.price})


def join_by_hand(left: Any, right: Any) -> Any:
    from pyspark.sql import functions as f

    one, two = left.alias("l"), right.alias("r")
    met = (f.col("l.key") == f.col("r.key")) & (f.col("l.le") < f.col("r.re")) & (f.col("r.le") < f.col("l.re"))
    times = f.greatest("l.le", "r.le"), f.least("l.re", "r.re")
    return one.join(two, met).select(*times, "l.key", f.col("l.price").alias("a"), f.col("r.price").alias("b"))


def without_key(left: Any, right: Any) -> Any:
    return left.join(right, select=lambda a, b: {"a": a.price, "b": b.price})


def without_key_by_hand(left: Any, right: Any) -> Any:
    from pyspark.sql import functions as f

    one, two = left.alias("l"), right.alias("r")
    met = (f.col("l.le") < f.col("r.re")) & (f.col("r.le") < f.col("l.re"))
    times = f.greatest("l.le", "r.le"), f.least("l.re", "r.re")
    return one.join(two, met).select(*times, f.col("l.price").alias("a"), f.col("r.price").alias("b"))


MEAN: dict[str, Any] = {"n": sd.count(), "mean": sd.avg(lambda e: e.price)}
MEAN_BY_HAND = ("count(*) as n", "avg(price) as mean")
WHOLE: dict[str, Any] = {"n": sd.count(), "units": sd.sum(lambda e: e.units), "most": sd.max(lambda e: e.price)}
WHOLE_BY_HAND = ("count(*) as n", "sum(units) as units", "max(price) as most")
SPREAD: dict[str, Any] = {"deviation": sd.stddev(lambda e: e.price)}

CASES = (
    Case("tumbling count and mean of a float by key", tumbling, tumbling_by_hand, ("points",)),
    Case("the same by a text", partial(tumbling, key="name"), partial(tumbling_by_hand, key="name"), ("points",)),
    Case(
        "count, sum of integers, max",
        partial(tumbling, **WHOLE),
        lambda points: tumbling_by_hand(points, "key", *WHOLE_BY_HAND),
        ("points",),
    ),
    Case(
        "stddev of a float",
        partial(tumbling, **SPREAD),
        lambda points: tumbling_by_hand(points, "key", "stddev(price) as deviation"),
        ("points",),
    ),
    Case("rounded: tumbling count and mean of a float by key", tumbling, tumbling_by_hand, ("points",), exact=False),
    Case(
        "rounded: stddev of a float",
        partial(tumbling, **SPREAD),
        lambda points: tumbling_by_hand(points, "key", "stddev(price) as deviation"),
        ("points",),
        exact=False,
    ),
    Case("hopping 60 s / 10 s, count and mean of a float by key", hopping, hopping_by_hand, ("points",)),
    Case("sessions by key", session_counts, session_counts_by_hand, ("points",)),
    Case("snapshots: count and mean of a float by key", snapshot, snapshot_by_hand, ("intervals",)),
    Case("the largest three by key in 10 minutes", largest, largest_by_hand, ("points",)),
    Case("as-of join by key", asof, asof_by_hand, ("trades", "quotes")),
    Case("temporal join by key", join, join_by_hand, ("left", "right")),
    Case("temporal join without key", without_key, without_key_by_hand, ("few", "others"), 1),
)


def intervals(n: int, seed: int, longest: int) -> dict[str, Any]:
    """Return intervals of `KEYS` keys."""
    rng = np.random.default_rng(seed)
    le = np.sort(rng.integers(0, n, n))
    columns = {"le": le, "re": le + rng.integers(1, longest, n)}
    return {**columns, "key": rng.integers(0, KEYS, n), "price": rng.uniform(1, 10_000, n)}


def times(n: int, shift: int = 0) -> Any:
    """Return times, one each millisecond."""
    return pa.array(np.arange(n) * 1_000 + shift, pa.timestamp("us", "UTC"))


def keys(rng: Any, n: int) -> Any:
    """Return keys, a fifth of which are the same."""
    return np.where(rng.random(n) < 0.2, 7, rng.integers(0, KEYS, n))


def tables() -> dict[str, Any]:
    """Return the input: points have timestamps, intervals numbers."""
    rng = np.random.default_rng(1)
    key = keys(rng, ROWS)
    names = pa.array([f"road number {n:04}" for n in range(KEYS)]).take(pa.array(key))
    prices, units = rng.uniform(1, 10_000, ROWS), rng.integers(1, 10_000, ROWS)
    points = pa.table({"le": times(ROWS), "key": key, "name": names, "price": prices, "units": units})
    sides = {"left": (SIDE, 2, 2_000), "right": (SIDE, 3, 2_000), "few": (KEYLESS, 4, 60), "others": (KEYLESS, 5, 60)}
    trades, quotes = (times(QUOTES, shift) for shift in (0, 500))
    return {
        "points": points,
        "trades": pa.table({"le": trades, "key": keys(rng, QUOTES), "price": rng.uniform(1, 10_000, QUOTES)}),
        "quotes": pa.table({"le": quotes, "key": keys(rng, QUOTES), "price": rng.uniform(1, 10_000, QUOTES)}),
        "intervals": pa.table(intervals(SIDE, 6, 2_000)),
        **{name: pa.table(intervals(*of)) for name, of in sides.items()},
    }


def written(folder: Path, given: Mapping[str, Any]) -> None:
    """Write tables, each in four files."""
    for name, table in given.items():
        (folder / name).mkdir()
        size = -(-len(table) // 4)
        for n in range(4):
            pq.write_table(table.slice(n * size, size), folder / name / f"{n}.parquet")


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    return builder.config("spark.driver.memory", "4g").config("spark.sql.session.timeZone", "UTC").getOrCreate()


def ours(case: Case, spark: Any, frames: Frames) -> Any:
    """Return the frame of a lowered query."""
    query = case.query(*map(sd.source, case.frames))
    return query.on_spark(spark).batch({name: frames[name] for name in case.frames}, exact=case.exact)


def by_hand(case: Case, frames: Frames) -> Any:
    """Return the frame that is written by hand."""
    return case.by_hand(*(frames[name] for name in case.frames))


def seconds(make: Callable[[], Any]) -> float:
    """Return how long a frame takes, with its planning."""
    start = time.perf_counter()
    make().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def costs(make: Callable[[], Any]) -> tuple[float, float]:
    """Return the CPU seconds of all processes for a frame, and how long it takes."""
    before = cpu_seconds()
    taken = seconds(make)
    return cpu_seconds() - before, taken


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has begun, and these in turn (Linux)."""
    return sum(process_tree().values()) / os.sysconf("SC_CLK_TCK")


def process_tree() -> dict[int, int]:
    """Return this process and those that it has begun, and these in turn, with their ticks of CPU (Linux)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))
    tree = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return {pid: ticks[pid] for pid in tree}


def digest(frame: Any) -> tuple[tuple[Any, ...], tuple[float, ...]]:
    """Return what is the same for the same rows in whatever order: their number, the sum of their hashes, and those of floats.

    By hand Spark adds floats up in the order in which they come.
    """
    named = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    real = [name for name, kind in named.dtypes if kind == "double"]
    hashed = ", ".join(name for name in named.columns if name not in real)
    sums = [f"sum({name}) as {name}" for name in real]
    hashes = named.selectExpr(f"cast(xxhash64({hashed}) as decimal(38,0)) as h", *real)
    (row,) = hashes.selectExpr("count(*)", "sum(h)", *sums).collect()
    return tuple(row)[:2], tuple(row)[2:]


def compare(study: Study, spark: Any, frames: Frames) -> None:
    """Print the table of lowered queries beside those by hand."""
    print("| | lowered, CPU s | by hand, CPU s | ratio | of seconds | rows |\n|---|---|---|---|---|---|")
    for case in CASES:
        if case.title not in study.parts:
            continue
        makes: list[Callable[[], Any]] = [partial(ours, case, spark, frames), partial(by_hand, case, frames)]
        (found, floats), (expected, expected_floats) = (digest(make()) for make in makes)
        assert found == expected, f"{case.title}: {found} is not {expected}"
        np.testing.assert_allclose(floats, expected_floats, rtol=1e-9)
        for make in 2 * makes if case.runs > 1 else ():
            seconds(make)
        runs = [[costs(make) for make in makes] for _ in range(case.runs)]
        (low, low_wall), (hand, hand_wall) = (
            [statistics.median(each) for each in zip(*kind, strict=True)] for kind in zip(*runs, strict=True)
        )
        ratios = f"{low / hand:.2f} | {low_wall / hand_wall:.2f}"
        text = f"| {case.title} | {low:.2f} | {hand:.2f} | {ratios} | {found[0]:,} |"
        study.row(case.title, text, {"cpu": low, "by hand": hand, "seconds": low_wall, "seconds by hand": hand_wall})


def sizes(spark: Any) -> None:
    """Print how the join without a key grows; what takes seconds by hand runs once."""
    case = CASES[-1]
    print("| rows on each side | by equal starts, s | lowered, s | by hand, s | ratio | rows |\n|---|---|---|---|---|---|")
    for n in SIZES:
        with tempfile.TemporaryDirectory() as name:
            written(Path(name), {side: pa.table(intervals(n, seed, 60)) for seed, side in enumerate(case.frames, 4)})
            frames = read(spark, Path(name))
            makes: list[Callable[[], Any]] = [
                partial(frames["few"].join, frames["others"], "le"),
                partial(ours, case, spark, frames),
            ]
            runs = [[seconds(make) for make in makes] for _ in range(RUNS + 3)][3:]
            least, low = (statistics.median(each) for each in zip(*runs, strict=True))
            hand = seconds(partial(by_hand, case, frames))
            found = ours(case, spark, frames).count()
            print(f"| {n:,} | {least:.2f} | {low:.2f} | {hand:.2f} | {low / hand:.3f} | {found:,} |", flush=True)


def growth(folder: Path) -> None:
    """Print how queries gain from cores, each number of them in a process of its own."""
    print(f"\n| cores | {' | '.join(case.title for case in CASES[:5])} |\n|---|{'---|' * 5}")
    for cores in CORES:
        command = [sys.executable, "-m", "benchmarks.studies.spark", "--cores", str(cores), "--folder", str(folder)]
        print(
            f"| {cores} | {subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()} |", flush=True
        )


def on_cores(cores: int, folder: Path) -> None:
    """Print the seconds of the lowered queries on so many cores."""
    spark = session(cores)
    spark.conf.set("spark.sql.shuffle.partitions", str(cores))
    frames, taken = read(spark, folder), []
    for case in CASES[:5]:
        runs = [seconds(partial(ours, case, spark, frames)) for _ in range(RUNS + 1)]
        taken.append(f"{statistics.median(runs[1:]):.2f}")
    print(" | ".join(taken))


def read(spark: Any, folder: Path) -> dict[str, Any]:
    """Return the frames of a folder by name."""
    return {path.name: spark.read.parquet(str(path)) for path in sorted(folder.iterdir())}


def main() -> None:
    """Print the tables; with `--cores` and `--folder` what one process of the growth does."""
    study = Study(__doc__, [*(case.title for case in CASES), "sizes", "growth"], cores=0, folder=Path())
    if study.cores:
        on_cores(study.cores, study.folder)
        return
    if study.parts == ["sizes"]:
        sizes(session(2))
        return
    with tempfile.TemporaryDirectory() as name:
        written(Path(name), tables())
        spark = session(2)
        compare(study, spark, read(spark, Path(name)))
        spark.stop()
        if "growth" in study.parts:
            growth(Path(name))


if __name__ == "__main__":
    main()
