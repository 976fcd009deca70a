"""Sinks for `foreachBatch`: functions of a micro-batch and its number."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.functions import expr

from streamdsl import sinks
from streamdsl.sinks.row_changes import normalized
from streamdsl.sinks.table_folder import TableFolder
from streamdsl.spark.job_descriptions import described
from streamdsl.spark.micro_batches import checked_events, query_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

S = TypeVar("S")
_MOVE: Final = pa.schema([("name", pa.string()), ("staged", pa.string())])


def _described(write: Callable[[S, DataFrame, int], None]) -> Callable[[S, DataFrame, int], None]:
    """Return a sink's method whose jobs Spark's pages show with the sink."""

    @functools.wraps(write)
    def described_write(sink: S, frame: DataFrame, batch: int) -> None:
        with described(frame.sparkSession, repr(sink)):
            write(sink, frame, batch)

    return described_write


class ParquetTable(sinks.ParquetTable):
    """`streamdsl.sinks.ParquetTable` for `foreachBatch`, whose files Spark's workers write.

    Pass it to `query.on_spark(spark).write(...)`, or to `foreachBatch` of what `stream(...)` returns. The path is on a file
    system that driver and workers share.
    """

    @_described
    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch: workers stage files, and the driver moves them into place."""
        stream = query_id(frame)
        with self.transaction(batch, stream) as last:
            if last is None:
                _run(frame)
                return
            events = checked_events(frame)
            rows = events.where("kind IN ('insert', 'retract')")
            folder = self.folder(last, normalized(events.limit(0).toArrow()).schema, comes=True)

            def stage(key: Any, events: Any) -> Any:
                place = key[0].as_py()
                staged = folder.stage(place, events.rename_columns(names))
                found = [] if staged is None else [(folder.name(place), staged)]
                return pa.table({"name": [name for name, _ in found], "staged": [file for _, file in found]}, _MOVE)

            in_dates = rows.schema["le"].dataType.typeName() == "timestamp"
            numbered, names = rows.toDF(*(f"c{place}" for place in range(len(rows.columns)))), rows.columns
            place = expr(_stretch_sql(folder, f"c{names.index('le')}", in_dates))
            moves = numbered.groupBy(place).applyInArrow(stage, "name string, staged string").collect()
            self.commit(folder, last, batch, stream, dict(map(tuple, moves)))


class DatabaseTable(sinks.DatabaseTable):
    """`streamdsl.sinks.DatabaseTable` for `foreachBatch`: the rows of a micro-batch pass through this process."""

    @_described
    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch."""
        _take(self, frame, batch)


class ParquetEvents(sinks.ParquetEvents):
    """`streamdsl.sinks.ParquetEvents` for `foreachBatch`: the rows of a micro-batch pass through this process."""

    @_described
    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch."""
        _take(self, frame, batch)


class DeltaEvents(sinks.DeltaEvents):
    """`streamdsl.sinks.DeltaEvents` for `foreachBatch`: Spark's workers write the files, and the driver commits them."""

    @_described
    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch."""
        _append(self, frame, batch)


class IcebergEvents(sinks.IcebergEvents):
    """`streamdsl.sinks.IcebergEvents` for `foreachBatch`: Spark's workers write the files, and the driver commits them."""

    @_described
    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch."""
        _append(self, frame, batch)


def _append(sink: sinks.DeltaEvents | sinks.IcebergEvents, frame: DataFrame, batch: int) -> None:
    """Write a micro-batch to a sink from the workers."""
    stream = query_id(frame)
    if sink.has(batch, stream):
        _run(frame)
        return
    events = checked_events(frame)
    files = sink.files(events.limit(0).toArrow().schema, stream)
    numbered = events.toDF(*(f"c{place}" for place in range(len(events.columns))))
    written = numbered.mapInArrow(files.write, "name string, size long, rows long").collect()
    sink.commit([row.asDict() for row in written], batch)


def _take(sink: sinks.DatabaseTable | sinks.ParquetEvents, frame: DataFrame, batch: int) -> None:
    """Write a micro-batch to a sink from the driver."""
    taken: list[Any] = []

    def rows() -> Any:
        taken.append(checked_events(frame).toArrow())
        return taken[0]

    sink.take(rows, batch, query_id(frame))
    if not taken:
        _run(frame)


def _run(frame: DataFrame) -> None:
    """Run a micro-batch that the sink has already: Spark commits it only after the shards have written their state."""
    frame.write.format("noop").mode("overwrite").save()


def _stretch_sql(folder: TableFolder, column: str, in_dates: bool) -> str:
    """Return the SQL of the stretch (file) of a row; `column` holds its LE."""
    if folder.every is None:
        return "0L"
    le = f"unix_micros({column})" if in_dates else column
    return f"if({le} >= 0L, {le} div {folder.every}L, -(-({le} + 1L) div {folder.every}L) - 1L)"
