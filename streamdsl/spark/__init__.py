"""Queries on Spark: DataFrames that hold the inputs' histories or events in, a DataFrame of the output out (extra `spark`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamdsl.denote.source import history
from streamdsl.errors import NO_SOURCE, QueryError
from streamdsl.plan.explain import drawn
from streamdsl.plan.node import Node, Source, sources
from streamdsl.result import Result
from streamdsl.spark.execution_notes import explain_spark, physical_plan
from streamdsl.spark.frame_roles import Frames, SourceFrame, frames_by_source
from streamdsl.spark.job_descriptions import described, title_of
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.public_frame import public_frame
from streamdsl.spark.repeated_work import advice, computed_often, repetitions
from streamdsl.spark.sinks import DatabaseTable, DeltaEvents, IcebergEvents, ParquetTable
from streamdsl.spark.source_frames import collect_flow, source_of_frame, source_of_rows
from streamdsl.spark.spark_session import default_session, translated
from streamdsl.spark.stream_metrics import Meter
from streamdsl.spark.unread_columns import without_unread
from streamdsl.spark.worker_check import check_workers
from streamdsl.temporal import Rejections, common_unit, to_ticks
from streamdsl.temporal.display import Lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from streamdsl.emit import Emit, EmitMode
    from streamdsl.io.binding import Bound
    from streamdsl.spark.flow import Flow
    from streamdsl.spark.stream_writer import EnginePlacement
    from streamdsl.spark.streaming.driver_engine import Sink
    from streamdsl.spark.streaming.stream_inputs import StreamInputs

__all__ = [
    "DatabaseTable",
    "DeltaEvents",
    "Frames",
    "IcebergEvents",
    "Meter",
    "OnSpark",
    "ParquetTable",
    "SourceFrame",
    "canonical",
    "explain_spark",
    "run_batch",
    "translated",
]


def run_batch(plan: Node, bindings: Mapping[str, Bound], until: int | None = None) -> Result[Any]:
    """Run a plan over bounded inputs on Spark: the caller's session, or a local one; the result comes back to this process.

    Raises `UnsupportedOnSpark` before anything runs, and what a failing task raised as the local engine would.
    """
    rejected = Rejections()
    with default_session() as session, translated(), described(session, title_of(plan)):
        flows = {name: _own_rows(session, node, bindings, rejected) for name, node in sources(plan).items()}
        flow = lower(lowering(plan, flows, until))
        return Result.from_cht(collect_flow(flow), flow.unit, rejected)


def canonical(events: DataFrame) -> DataFrame:
    """Return the history of physical events, such as those that a stream has written: `le`, `re` and the payload's fields.

    Raises `EventError` in the task for retractions that do not match their insertions.
    """
    valid = events.where("kind <> 'rejected'").drop("shard")
    return public_frame(source_of_frame(Source("events"), SourceFrame(valid)))


def _own_rows(session: SparkSession, node: Source, bindings: Mapping[str, Bound], rejected: Rejections | None = None) -> Flow:
    """Return the flow of a source that is bound in this process; events that it drops or adjusts are added to `rejected`."""
    if node.source not in bindings:
        raise _unbound(node.source, bindings)
    bound = bindings[node.source]
    return source_of_rows(session, node, history(node, bound.events(), bound.unit, rejected))


def _unbound(name: str, known: Mapping[str, Any]) -> QueryError:
    return QueryError(
        f"the source {name!r} is bound to nothing; bound are: {', '.join(known) or '(none)'}",
        hint=f"give a DataFrame: batch({{{name!r}: frame}})",
    )


def _history(plan: Node, flows: Mapping[str, Flow], until: Any, exact: bool) -> DataFrame:
    end = None if until is None else to_ticks(until, common_unit(*(flow.unit for flow in flows.values())))
    return public_frame(lower(lowering(plan, flows, end, exact)))


class OnSpark:
    """A query on a Spark session, whose settings stay as they are."""

    def __init__(self, plan: Node, spark: SparkSession, own: Mapping[str, Bound] | None = None) -> None:
        self._plan = plan
        self._spark = spark
        self._own = own or {}

    def batch(
        self, frames: Frames, until: Any = None, *, start: str = "le", end: str | None = None, exact: bool = True
    ) -> DataFrame:
        """Return the output's history as a DataFrame: `le`, `re`, and a column per payload field. Nothing runs, or is collected.

        The frame of the only source, or each source's by its name, holds a history: LE in the column `start`, RE in `end` (ticks
        or timestamps; null: INFINITY), as in `sd.from_pandas`, and a column per payload field. By default these are `le` and, if
        it exists, `re`; rows without an end are point events. With `kind`, `id` and `re_new` beside `le` and `re` a frame holds
        physical events. Where sources name their times in different ways, each is a `SourceFrame` with its own. A source that
        brings its own rows needs no frame. With `exact=False` sums, means and variances of floats are Spark's own, which round in
        the order in which rows come: faster, and not the same each time. Raises `QueryError` and `SchemaError` for frames and
        columns that are missing, and `UnsupportedOnSpark`; what a task raises has the same name as the local engine's error, and
        is that error within `streamdsl.spark.translated()`.
        """
        return _history(*self._over(self._frames(frames, start, end)), until, exact)

    def explain(self, frames: Frames, until: Any = None, *, start: str = "le", end: str | None = None, exact: bool = True) -> str:
        """Return the plan as a tree, with how each operator runs over just these frames, and below it Spark's physical plan.

        What this computes more than once is noted in the tree, with the remedy below it.
        Nothing runs, but what Spark computes of constants when it plans. Raises what `batch` raises.
        """
        plan, flows = self._over(self._frames(frames, start, end))
        with translated():
            planned = physical_plan(_history(plan, flows, until, exact))
        runs = explain_spark(plan, flows)
        often = computed_often(planned, runs)
        runs |= {label: f"{runs[label]}; {said}" for label, said in repetitions(often).items()}
        return Lines("\n".join([drawn(plan, runs), *advice(often), "", planned]))

    def check(self) -> None:
        """Raise `UnsupportedOnSpark` for code of the query that Spark's workers cannot load.

        `stream` and `write` check this before they start; for `batch`, which starts nothing, call it yourself. It runs one task.
        """
        check_workers(self._spark, self._plan)

    def stream(
        self, frames: Frames, emit: EmitMode | Emit = "speculative", *, start: str = "le", end: str | None = None
    ) -> DataFrame:
        """Return the output as a streaming DataFrame of physical events, to be written in append mode.

        The streaming frame of the only source, or each source's by its name, holds events: rows as in `batch` are insertions;
        with `kind`, `id` and `re_new` too there are retractions, which carry their payload, and rows of kind `cti`, whose time is
        `le`. Spark's watermark on the column `start` is `Progress.slack` where the source has no policy. A static frame beside
        these is as in `batch`, and complete: its rows are the first, and a restart does not read them again. The result has
        the columns `kind`, `id`, `le`, `re`, `re_new`, the payload's, and `shard`: its CTI is the least that any shard has sent.
        Rows that a source has dropped or adjusted are of kind `rejected`: `re_new` is the CTI that they broke.
        Raises `UnsupportedOnSpark`, and `QueryError` for a session without the RocksDB state store (docs/spark.md).
        """
        from streamdsl.spark.streaming.streaming_frame import streaming_frame

        self.check()
        return streaming_frame(self._spark, self._stream_inputs(self._frames(frames, start, end), emit), emit)

    def _stream_inputs(self, frames: Mapping[str, SourceFrame], emit: EmitMode | Emit) -> StreamInputs:
        from streamdsl.spark.streaming.stream_inputs import stream_inputs

        for name in self._sources(frames):
            if name not in frames and name not in self._own:
                raise _unbound(name, frames)
        return stream_inputs(self._plan, frames, lambda node: _own_rows(self._spark, node, self._own), emit)

    def write(
        self,
        frames: Frames,
        sink: str | os.PathLike[str] | Sink,
        checkpoint: str | os.PathLike[str],
        *,
        start: str = "le",
        end: str | None = None,
        emit: EmitMode | Emit = "speculative",
        trigger: str | None = None,
        engine: EnginePlacement | None = None,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> StreamingQuery:
        """Start a stream that writes the output to a sink, and return Spark's handle of it.

        `sink` is a `ParquetTable`, a `DatabaseTable`, any function for `foreachBatch`, or the path of a folder, which then gets
        Parquet files of physical events. `trigger` says when there are micro-batches: "available-now" (for all that is there,
        then the stream ends), or such as "10 seconds"; else one follows the other. The engine runs in shards on Spark's workers;
        `engine="driver"` has it in this process, as does a session that lacks protobuf, with a warning. A checkpoint belongs to
        one of both forms. Frames are as in `stream`. `name` is the stream's in Spark's pages and listeners; `options` are those
        of Spark's writer, for the path of a folder: `options={"compression": "zstd"}`. Raises as `stream` does, and `SinkError`
        for a folder that is another stream's, or was lost.
        """
        from streamdsl.spark.stream_writer import StreamSettings, choose_engine, write_driver, write_shards
        from streamdsl.spark.streaming.driver_engine import plan_on_driver
        from streamdsl.spark.streaming.streaming_frame import has_protobuf, streaming_frame

        how, given = StreamSettings(os.fspath(checkpoint), trigger, name, options), self._frames(frames, start, end)
        placement = choose_engine(engine, has_protobuf)
        self.check()
        inputs = self._stream_inputs(given, emit)
        if placement == "shards":
            return write_shards(streaming_frame(self._spark, inputs, emit), sink, how)
        return write_driver(plan_on_driver(inputs, emit), sink, how)

    def explain_stream(self) -> str:
        """Return how `stream` spreads the work: the stages of the query, and for each shards by which key, or one shard, and why.

        >>> import streamdsl as sd
        >>> query = sd.source("trips").group_by("venue").tumbling_window(10).aggregate(n=sd.count())
        >>> query.on_spark(spark=None).explain_stream()
        'shards by e.venue'
        """
        from streamdsl.sharding.plan_stages import explain_stages

        return Lines(explain_stages(self._plan))

    def _frames(self, frames: Frames, start: str, end: str | None) -> dict[str, SourceFrame]:
        return frames_by_source(frames, sources(self._plan), self._own, start, end)

    def _over(self, frames: Mapping[str, SourceFrame]) -> tuple[Node, dict[str, Flow]]:
        """Return the plan over just these frames, without the fields that it does not read, and the flow of each source."""
        self._sources(frames)
        plan = without_unread(self._plan, frames)
        return plan, {name: self._source(node, frames) for name, node in sources(plan).items()}

    def _sources(self, frames: Mapping[str, SourceFrame]) -> Mapping[str, Source]:
        """Return the query's sources by name. Raises `QueryError` for a frame of none of them."""
        named = sources(self._plan)
        for name in frames:
            if name not in named:
                raise QueryError(
                    f"there is no source {name!r}; the sources of this query are: {', '.join(named) or '(none)'}", hint=NO_SOURCE
                )
        return named

    def _source(self, node: Source, frames: Mapping[str, SourceFrame]) -> Flow:
        if node.source in frames:
            return source_of_frame(node, frames[node.source])
        if node.source in self._own:
            return _own_rows(self._spark, node, self._own)
        raise _unbound(node.source, frames)
