"""Streams that are written to a sink, in shards and in the driver: failed and gone on with, they are what the definition says."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import (
    CheckpointError,
    DriverWarning,
    ManyShardsWarning,
    NoProgressWarning,
    QueryError,
    SinkError,
    UnsupportedOnSpark,
)
from streamdsl.spark import Meter, ParquetTable, SourceFrame, canonical, translated
from streamdsl.spark.spark_session import as_streamdsl
from streamdsl.spark.stream_writer import choose_engine
from streamdsl.temporal import CHT
from tests.spark.helpers import history, stream
from tests.spark.streams import FIELDS, NAMES, QUERIES, SIDES, files_of, frame_of, told_in_files

pytestmark = [pytest.mark.spark]

Rows = list[tuple[Any, ...]]


class Failing:
    """A table that fails once it has written some micro-batches for the first time, and what came of each try."""

    def __init__(self, table: ParquetTable, *batches: int) -> None:
        self.table = table
        self.batches = batches
        self.tries: list[tuple[int, Rows]] = []

    def __call__(self, frame: Any, batch: int) -> None:
        self.tries.append((batch, sorted(map(tuple, frame.collect()), key=repr)))
        self.table(frame, batch)
        if [number for number, _ in self.tries].count(batch) == 1 and batch in self.batches:
            raise RuntimeError("the power is gone")


def inputs(folder: Path, query: sd.Stream[Any], files: int = 2) -> dict[str, sd.CHT[Any]]:
    """Write some files for each source, and return what they mean."""
    names = sorted({node.source for node in query.plan().walk() if hasattr(node, "source")})
    found = {name: history(31 + n, 18, unending=False) for n, name in enumerate(names)}
    for name, rows in found.items():
        told_in_files(rows, files, folder / name, seed=3)
    return found


def read(folder: Path) -> list[Any]:
    return [pq.read_table(path) for path in folder.iterdir()]


def expected(query: sd.Stream[Any], given: dict[str, sd.CHT[Any]]) -> Rows:
    rows = denote(query.plan(), given, sd.INFINITY)
    return sorted(((row.le, None if row.re == sd.INFINITY else row.re, *row.payload.values()) for row in rows), key=repr)


def in_order(frame: Any) -> Rows:
    return sorted(map(tuple, frame.collect()), key=repr)


def test_in_the_driver_a_failed_batch_comes_again_from_the_state_before_it(streaming: Any, tmp_path: Path) -> None:
    query = stream().anti_join(stream("t"), on="k").group_by("k").tumbling_window(9).aggregate(n=sd.count())
    given = inputs(tmp_path, query, 3)
    frames = {name: frame_of(streaming, tmp_path / name) for name in given}
    sink = Failing(ParquetTable(tmp_path / "out", every=10), 1)

    def run() -> Any:
        running = query.on_spark(streaming).write(frames, sink, tmp_path / "checkpoint", trigger="available-now", engine="driver")
        return running.awaitTermination()

    with pytest.raises(Exception, match="the power is gone"):
        run()
    assert sorted(path.name for path in (tmp_path / "checkpoint" / "driver").iterdir()) == ["0"]
    run()
    assert [batch for batch, _ in sink.tries] == [0, 1, 1, 2]
    assert sink.tries[1] == sink.tries[2]
    assert in_order(streaming.read.parquet(str(tmp_path / "out")).drop("id")) == expected(query, given)
    assert sorted(path.name for path in (tmp_path / "checkpoint" / "driver").iterdir()) == ["1", "2"]
    with pytest.raises(QueryError, match="that of a stream whose engine runs in the driver"):
        query.on_spark(streaming).write(frames, sink, tmp_path / "checkpoint", engine="shards")


def static_and_reference_data() -> sd.Stream[Any]:
    """Rows beside a static frame, beside windows of it, and beside reference data, then in groups."""
    s, t = stream(), stream("t")
    counts = t.where(lambda e: e.v > -2).group_by("k").snapshot_window().aggregate(n=sd.count())
    groups = s.join(t, on="v", select=SIDES).group_by("w").tumbling_window(5).aggregate(n=sd.count())
    return s.left_join(t, on="k", select=lambda a, b: {"k": a.k, "v": a.v, "w": a.m}).union(
        s.join(counts, on="k", select=lambda a, b: {"k": a.k, "v": a.v, "w": b.n}),
        s.join(sd.sources.from_table(NAMES), on="k", select=lambda a, b: {"k": b.name, "v": a.v, "w": a.m}),
        s.join(sd.source("names"), on="k", select=lambda a, b: {"k": b.name, "v": a.v, "w": a.v}),
        groups.select(k=lambda e: "in groups", v=lambda e: e.n, w=lambda e: e.w),
    )


@pytest.mark.parametrize("engine", ["shards", "driver"])
def test_static_frames_are_read_before_the_first_micro_batch_and_never_again(streaming: Any, engine: Any, tmp_path: Path) -> None:
    query = static_and_reference_data()
    given = {"s": history(31, 18, unending=False), "t": history(32, 18)}
    told_in_files(given["s"], 2, tmp_path / "s", seed=3)
    rows = [(row.le, None if row.re == sd.INFINITY else row.re, *row.payload.values()) for row in given["t"]]
    static = streaming.createDataFrame(rows, f"le long, re long, {FIELDS}")
    names = streaming.createDataFrame(NAMES)
    sink = Failing(ParquetTable(tmp_path / "out", every=10), 0, 1)

    def run(static: Any) -> None:
        frames = {"s": frame_of(streaming, tmp_path / "s"), "t": static, "names": SourceFrame(names, start=None)}
        running = query.on_spark(streaming).write(frames, sink, tmp_path / "checkpoint", trigger="available-now", engine=engine)
        running.awaitTermination()

    for frame in (static, static.orderBy("v", "le", ascending=False)):
        with pytest.raises(Exception, match="the power is gone"):
            run(frame)
    run(static.limit(0))
    assert [batch for batch, _ in sink.tries] == [0, 0, 1, 1]
    assert sink.tries[0] == sink.tries[1]
    assert sink.tries[2] == sink.tries[3]
    held = CHT.from_rows([(sd.MIN_TIME, sd.INFINITY, row) for row in NAMES])
    table = dict.fromkeys((*query.on_spark(streaming)._own, "names"), held)
    assert in_order(streaming.read.parquet(str(tmp_path / "out")).drop("id")) == expected(query, {**given, **table})


@pytest.mark.parametrize("engine", ["shards", "driver"])
def test_a_folder_gets_the_events(streaming: Any, engine: Any, tmp_path: Path) -> None:
    query = QUERIES["tumbling"]
    given = inputs(tmp_path, query)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    def write(out: Path, checkpoint: Path) -> Any:
        frames = {"s": frame_of(streaming, tmp_path / "s")}
        on_spark = query.on_spark(streaming)
        words: dict[str, Any] = {"emit": "final", "trigger": "available-now", "engine": engine, "name": f"trips in {engine}"}
        options = {"compression": "gzip"} if engine == "shards" else None
        return on_spark.write(frames, str(out), checkpoint, **words, options=options)

    running, meter = write(out, checkpoint), Meter()
    assert running.name == f"trips in {engine}"
    running.awaitTermination()
    assert type(streaming).getActiveSession() is streaming
    figures = list(map(meter, running.recentProgress))
    assert [each["batch"] for each in figures] == [0, 1]
    codecs = {pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in out.glob("*.parquet")}
    assert codecs == {"GZIP" if engine == "shards" else "SNAPPY"}
    written = streaming.read.parquet(str(out))
    assert sum(each["rows_out"] for each in figures) == written.where("kind <> 'cti'").count() > 10
    assert sum(each["rows_in"] for each in figures) == sum(map(len, read(tmp_path / "s")))
    assert figures[-1]["cti"] == sd.INFINITY
    assert all(each["state_bytes"] > 0 and each["seconds"] > 0 for each in figures)
    assert in_order(canonical(streaming.read.parquet(str(out)))) == expected(query, given)
    with pytest.raises(Exception, match="belongs to another stream") as other:
        write(out, tmp_path / "new").awaitTermination()
    assert isinstance(other.value if engine == "shards" else as_streamdsl(str(other.value)), SinkError)


def test_state_that_is_lost_is_missed(streaming: Any, tmp_path: Path) -> None:
    query = QUERIES["tumbling"]
    files_of([sd.Insert("a", 1, 5, {"k": "a", "v": 1, "f": 0.5, "m": 1})], 1, tmp_path / "s")

    def write() -> Any:
        frames = {"s": frame_of(streaming, tmp_path / "s")}
        sink = lambda frame, batch: None  # noqa: E731
        running = query.on_spark(streaming).write(frames, sink, tmp_path / "c", trigger="available-now", engine="driver")
        return running.awaitTermination()

    write()
    (tmp_path / "c" / "driver" / "0").unlink()
    files_of([sd.Insert("b", 1, 5, {"k": "a", "v": 1, "f": 0.5, "m": 1})], 1, tmp_path / "more")
    (tmp_path / "more" / "0.parquet").rename(tmp_path / "s" / "1.parquet")
    with pytest.raises(CheckpointError, match=r"there is no state of micro-batch 0 in .*, and 1 is to be run"), translated():
        write()


def test_where_the_engine_runs_is_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_engine(None, lambda: True) == "shards"
        assert choose_engine("driver", lambda: True) == "driver"
    with pytest.warns(DriverWarning, match=re.escape("pip install 'streamdsl[spark]'")):
        assert choose_engine(None, lambda: False) == "driver"
    with pytest.raises(QueryError, match="in 'shards' or in the 'driver', not in 'cloud'"):
        choose_engine("cloud", lambda: True)  # type: ignore[arg-type]


def test_many_more_shards_than_cores_are_warned_of(streaming: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    on_spark, frames = QUERIES["tumbling"].on_spark(streaming), {"s": frame_of(streaming, tmp_path / "s")}
    few = streaming.conf.get("spark.sql.shuffle.partitions")
    streaming.conf.set("spark.sql.shuffle.partitions", "17")
    try:
        with pytest.warns(ManyShardsWarning, match=r"17 shards for 2 cores(.|\n)*Hint: .*, \"6\"\)"):
            on_spark.stream(frames)
    finally:
        streaming.conf.set("spark.sql.shuffle.partitions", few)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManyShardsWarning)
        on_spark.stream(frames)


def test_final_rows_that_would_never_come_are_warned_of(streaming: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    rows = streaming.readStream.schema("le timestamp, k string, v long").parquet(str(tmp_path / "s"))
    marked, static = rows.withWatermark("le", "1 second"), streaming.read.schema(rows.schema).parquet(str(tmp_path / "s"))
    joined = sd.source("s").join(sd.source("t"), on="k", select=SIDES).on_spark(streaming)
    with pytest.warns(NoProgressWarning, match=r"none come from 's'\n(.|\n)*withWatermark\(\"le\""):
        joined.stream({"s": rows, "t": marked}, emit="final")
    with pytest.warns(NoProgressWarning, match="none come from 's' and 't'"):
        joined.write({"s": rows, "t": rows}, lambda *_: None, tmp_path / "checkpoint", emit="final", engine="driver").stop()
    with pytest.warns(
        NoProgressWarning, match="the state of join_1 only grows: it goes with CTIs, and none come from 's' and 't'"
    ):
        joined.stream({"s": rows, "t": rows})
    grouped = sd.source("s").group_by("k").tumbling_window("1s").aggregate(n=sd.count()).on_spark(streaming)
    with pytest.warns(NoProgressWarning, match="the state of window_aggregate_1 only grows: .* none come from 's'"):
        grouped.stream(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoProgressWarning)
        sd.source("s").where(lambda e: e.v > 0).on_spark(streaming).stream(rows)
        grouped.stream(marked)
        joined.stream({"s": marked, "t": marked})
        joined.stream({"s": marked, "t": static}, emit="final")
        sd.source("s", progress=sd.Progress.ordered()).on_spark(streaming).stream(rows, emit="final")
        QUERIES["tumbling"].on_spark(streaming).stream(frame_of(streaming, tmp_path / "s"), emit="final")
    follows = sd.source("s", progress=sd.Progress.imported_from("t")).join(sd.source("t"), on="k").on_spark(streaming)
    with pytest.raises(QueryError, match="imports its CTIs from 't', which is complete"):
        follows.stream({"s": rows, "t": static})
    for policy in (sd.Progress.slack(3, max_jump=5), sd.Progress.slack(3).idle_after(5)):
        with pytest.raises(UnsupportedOnSpark, match=rf"has {re.escape(str(policy))}: .*no order"):
            sd.source("s", progress=policy).on_spark(streaming).stream(rows)


@pytest.mark.parametrize("engine", ["shards", "driver"])
def test_figures_say_which_input_holds_the_output(streaming: Any, engine: Any, tmp_path: Path) -> None:
    row = {"k": "a", "v": 1, "f": 0.5, "m": 1}
    for name, events in (("s", [sd.Insert("a", 1, 5, row), sd.Cti(7)]), ("t", [sd.Insert("a", 3, 4, row)])):
        files_of(events, 1, tmp_path / name)
    query = stream().semi_join(stream("t"), on="k")
    frames = {name: frame_of(streaming, tmp_path / name) for name in "st"}
    running = query.on_spark(streaming).write(
        frames, str(tmp_path / "out"), tmp_path / "checkpoint", trigger="available-now", engine=engine
    )
    running.awaitTermination()
    figures = Meter()(running.recentProgress[-1])
    assert (figures["cti"], figures["input_ctis"]) == (None, {"s": 7, "t": None})


def test_what_cannot_be_written_is_said(streaming: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    on_spark, frames = QUERIES["tumbling"].on_spark(streaming), {"s": frame_of(streaming, tmp_path / "s")}
    with pytest.raises(QueryError, match="is not a trigger of micro-batches"):
        on_spark.write(frames, str(tmp_path / "out"), tmp_path / "checkpoint", trigger="often")
    for engine, sink, options, said in (
        ("shards", lambda frame, batch: None, {"compression": "zstd"}, "the sink is a function, so .* 'compression'"),
        ("driver", str(tmp_path / "out"), {"compression": "zstd"}, "the engine runs in the driver, .* 'compression'"),
        ("shards", str(tmp_path / "out"), {"Path": "elsewhere"}, "the option 'Path' has an argument of its own"),
    ):
        with pytest.raises(QueryError, match=f"{said}.*\nHint: "):
            on_spark.write(frames, sink, tmp_path / "checkpoint", options=options, engine=engine)  # type: ignore[arg-type]
    (tmp_path / "checkpoint" / "commits").mkdir(parents=True)
    (tmp_path / "checkpoint" / "commits" / "0").touch()
    with pytest.raises(SinkError, match="lacks what the stream of the checkpoint"):
        on_spark.write(frames, str(tmp_path / "out"), tmp_path / "checkpoint")
