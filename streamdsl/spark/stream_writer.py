"""Starting of streaming queries that write to a sink, with the engine in shards or in the driver."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamdsl.errors import DriverWarning, QueryError, SinkError
from streamdsl.sinks.paths import is_local, local_path
from streamdsl.spark.micro_batches import writable
from streamdsl.spark.sinks import ParquetEvents
from streamdsl.spark.streaming.driver_engine import DriverEngine, DriverPlan, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

EnginePlacement: TypeAlias = Literal["shards", "driver"]
_DRIVER: Final = "driver"
_SHARDS: Final = "state"
_INTERVAL: Final = re.compile(r"\d+ *\w+")


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream is started: its checkpoint's folder, when there are micro-batches, its name, and Spark's options for files."""

    checkpoint: str
    trigger: str | None = None
    name: str | None = None
    options: Mapping[str, Any] | None = None


def write_shards(out: DataFrame, sink: str | os.PathLike[str] | Sink, how: StreamSettings) -> StreamingQuery:
    """Start writing a streaming frame of shards' output; for a path Spark itself writes Parquet files of physical events."""
    _check_engine(how.checkpoint, _DRIVER, "a stream whose engine runs in the driver")
    if callable(sink):
        _check_no_options(how, "the sink is a function")
        return _start(out.writeStream.foreachBatch(sink), how)
    _check_folder(os.fspath(sink), how.checkpoint)
    files = writable(out).writeStream.format("parquet").options(**_options(how))
    return _start(files.option("path", os.fspath(sink)), how)


def write_driver(running: DriverPlan, sink: str | os.PathLike[str] | Sink, how: StreamSettings) -> StreamingQuery:
    """Start writing the output of an engine that runs in the driver."""
    _check_engine(how.checkpoint, _SHARDS, "a stream in shards")
    _check_no_options(how, "the engine runs in the driver, which writes the files")
    place = local_path(how.checkpoint) / _DRIVER
    engine = DriverEngine(running, sink if callable(sink) else ParquetEvents(sink), place)
    return _start(running.messages.writeStream.foreachBatch(engine), how)


def choose_engine(where: EnginePlacement | None, has_state: Callable[[], bool]) -> EnginePlacement:
    """Return where the engine runs: as requested, else in shards, or in the driver, with a warning, without the state API."""
    if where not in ("shards", "driver", None):
        raise QueryError(f"the engine runs in 'shards' or in the 'driver', not in {where!r}")
    if where is not None:
        return where
    if has_state():
        return "shards"
    warnings.warn(
        "the engine runs in the driver, in one process: Spark's state API for Python needs protobuf, which is not installed\n"
        "Hint: pip install 'streamdsl[spark]', or say engine=\"driver\" if that is what you want",
        DriverWarning,
        stacklevel=3,
    )
    return "driver"


def _start(writer: DataStreamWriter, how: StreamSettings) -> StreamingQuery:
    named = writer if how.name is None else writer.queryName(how.name)
    return named.option("checkpointLocation", how.checkpoint).trigger(**_trigger(how.trigger)).start()


def _options(how: StreamSettings) -> dict[str, Any]:
    """Return the options of Spark's writer of files; raises `QueryError` for those that are arguments."""
    taken = [name for name in how.options or {} if name.lower() in ("path", "checkpointlocation")]
    if taken:
        raise QueryError(f"the option {taken[0]!r} has an argument of its own", hint="write(frame, sink, checkpoint) names both")
    return dict(how.options or {})


def _check_no_options(how: StreamSettings, why: str) -> None:
    if how.options:
        raise QueryError(
            f"{why}, so there is no writer of Spark's that takes the options {', '.join(map(repr, how.options))}",
            hint='options= is for the path of a folder, with engine="shards"',
        )


def _trigger(text: str | None) -> dict[str, Any]:
    """Return the arguments of Spark's `trigger`.

    >>> _trigger("available-now"), _trigger("10 seconds"), _trigger(None)
    ({'availableNow': True}, {'processingTime': '10 seconds'}, {'processingTime': '0 seconds'})
    """
    if text == "available-now":
        return {"availableNow": True}
    if text is not None and not _INTERVAL.fullmatch(text):
        raise QueryError(f"{text!r} is not a trigger of micro-batches", hint='trigger="available-now", or such as "10 seconds"')
    return {"processingTime": text or "0 seconds"}


def _check_engine(checkpoint: str, folder: str, what: str) -> None:
    if is_local(checkpoint) and (local_path(checkpoint) / folder).exists():
        raise QueryError(
            f"the checkpoint {checkpoint!r} is that of {what}, which cannot go on in the other form",
            hint='say engine="shards" or engine="driver" as it was begun, or begin a new checkpoint and a new output',
        )


def _check_folder(path: str, checkpoint: str) -> None:
    """Raise where Spark would skip micro-batches: its file sink knows them by number, whatever the checkpoint."""
    if not (is_local(path) and is_local(checkpoint)):
        return
    written, begun = (local_path(path) / "_spark_metadata").exists(), (local_path(checkpoint) / "commits" / "0").exists()
    if written and not (local_path(checkpoint) / "metadata").exists():
        raise SinkError(
            f"the folder {path} belongs to another stream: the checkpoint {checkpoint} is new",
            hint="go on with the checkpoint that has written the folder, or remove both to begin anew, or name another folder",
        )
    if begun and not written:
        raise SinkError(
            f"the folder {path} lacks what the stream of the checkpoint {checkpoint} has written",
            hint="the folder was lost or is another one: restore it, or remove the checkpoint too and begin anew",
        )
