"""Sinks as `foreachBatch` takes them: functions of a micro-batch and its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.functions import expr

from streamdsl import sinks
from streamdsl.sinks.folder import Folder
from streamdsl.sinks.net import plain
from streamdsl.spark.micro_batches import checked, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOVE: Final = pa.schema([("name", pa.string()), ("staged", pa.string())])


class ParquetTable(sinks.ParquetTable):
    """`streamdsl.sinks.ParquetTable` for `foreachBatch`, whose files Spark's workers write.

    Pass it to `query.on_spark(spark).write(...)`, or to `foreachBatch` of what `stream(...)` returns. The path is on a file
    system that driver and workers share.
    """

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Take a micro-batch: workers write files, this process moves them to their places."""
        stream = stream_of(frame)
        with self.taking(batch, stream) as last:
            if last is None:
                _run(frame)
                return
            events = checked(frame)
            rows = events.where("kind IN ('insert', 'retract')")
            folder = self.folder(last, plain(events.limit(0).toArrow()).schema, comes=True)

            def stage(key: Any, events: Any) -> Any:
                place = key[0].as_py()
                staged = folder.stage(place, events.rename_columns(names))
                found = [] if staged is None else [(folder.name(place), staged)]
                return pa.table({"name": [name for name, _ in found], "staged": [file for _, file in found]}, _MOVE)

            in_dates = rows.schema["le"].dataType.typeName() == "timestamp"
            numbered, names = rows.toDF(*(f"c{place}" for place in range(len(rows.columns)))), rows.columns
            place = expr(_place(folder, f"c{names.index('le')}", in_dates))
            moves = numbered.groupBy(place).applyInArrow(stage, "name string, staged string").collect()
            self.commit(folder, last, batch, stream, dict(map(tuple, moves)))


class DatabaseTable(sinks.DatabaseTable):
    """`streamdsl.sinks.DatabaseTable` for `foreachBatch`: the rows of a micro-batch pass through this process."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Take a micro-batch."""
        _take(self, frame, batch)


class ParquetEvents(sinks.ParquetEvents):
    """`streamdsl.sinks.ParquetEvents` for `foreachBatch`: the rows of a micro-batch pass through this process."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Take a micro-batch."""
        _take(self, frame, batch)


def _take(sink: sinks.DatabaseTable | sinks.ParquetEvents, frame: DataFrame, batch: int) -> None:
    """Have a sink take a micro-batch in this process."""
    taken: list[Any] = []

    def rows() -> Any:
        taken.append(checked(frame).toArrow())
        return taken[0]

    sink.take(rows, batch, stream_of(frame))
    if not taken:
        _run(frame)


def _run(frame: DataFrame) -> None:
    """Run a micro-batch that a sink has already: Spark commits it only if the shards have written their state."""
    frame.write.format("noop").mode("overwrite").save()


def _place(folder: Folder, column: str, in_dates: bool) -> str:
    """Return the SQL of the stretch that a row is in; `column` has its LE."""
    if folder.every is None:
        return "0L"
    le = f"unix_micros({column})" if in_dates else column
    return f"if({le} >= 0L, {le} div {folder.every}L, -(-({le} + 1L) div {folder.every}L) - 1L)"
