"""Streams that run: from a query over streaming frames to a sink, in shards or in the driver."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamdsl.errors import DriverWarning, QueryError, SinkError
from streamdsl.sinks.paths import is_local, local_path
from streamdsl.spark.micro_batches import writable
from streamdsl.spark.sinks import ParquetEvents
from streamdsl.spark.streaming.driver import DriverEngine, OnDriver, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

Where: TypeAlias = Literal["shards", "driver"]
_DRIVER: Final = "driver"
_STATE: Final = "state"
_INTERVAL: Final = re.compile(r"\d+ *\w+")


def write_shards(out: DataFrame, sink: str | os.PathLike[str] | Sink, checkpoint: str, trigger: str | None) -> StreamingQuery:
    """Write what `stream` returns; a path is a folder of physical events, which Spark writes itself."""
    _check_form(checkpoint, _DRIVER, "a stream whose engine runs in the driver")
    if callable(sink):
        return _started(out.writeStream.foreachBatch(sink), checkpoint, trigger)
    _check_folder(os.fspath(sink), checkpoint)
    return _started(writable(out).writeStream.format("parquet").option("path", os.fspath(sink)), checkpoint, trigger)


def write_driver(running: OnDriver, sink: str | os.PathLike[str] | Sink, checkpoint: str, trigger: str | None) -> StreamingQuery:
    """Write what the engine sends that runs in this process."""
    _check_form(checkpoint, _STATE, "a stream in shards")
    engine = DriverEngine(running, sink if callable(sink) else ParquetEvents(sink), local_path(checkpoint) / _DRIVER)
    return _started(running.parcels.writeStream.foreachBatch(engine), checkpoint, trigger)


def choose(where: Where | None, has_state: Callable[[], bool]) -> Where:
    """Return where the engine runs: where it is told to, else in shards if Spark can keep their state; it warns if not."""
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


def _started(writer: DataStreamWriter, checkpoint: str, trigger: str | None) -> StreamingQuery:
    return writer.option("checkpointLocation", checkpoint).trigger(**_trigger(trigger)).start()


def _trigger(text: str | None) -> dict[str, Any]:
    """Return when micro-batches are made, as Spark says it.

    >>> _trigger("available-now"), _trigger("10 seconds"), _trigger(None)
    ({'availableNow': True}, {'processingTime': '10 seconds'}, {'processingTime': '0 seconds'})
    """
    if text == "available-now":
        return {"availableNow": True}
    if text is not None and not _INTERVAL.fullmatch(text):
        raise QueryError(
            f"{text!r} does not say when micro-batches are made", hint='trigger="available-now", or such as "10 seconds"'
        )
    return {"processingTime": text or "0 seconds"}


def _check_form(checkpoint: str, folder: str, what: str) -> None:
    if is_local(checkpoint) and (local_path(checkpoint) / folder).exists():
        raise QueryError(
            f"the checkpoint {checkpoint!r} is that of {what}, which cannot go on in the other form",
            hint='say engine="shards" or engine="driver" as it was begun, or begin a new checkpoint and a new output',
        )


def _check_folder(path: str, checkpoint: str) -> None:
    """Raise where Spark would pass by what it is to write: it knows micro-batches by their numbers, whatever the checkpoint."""
    if not (is_local(path) and is_local(checkpoint)):
        return
    written, begun = (local_path(path) / "_spark_metadata").exists(), (local_path(checkpoint) / "commits" / "0").exists()
    if written and not (local_path(checkpoint) / "metadata").exists():
        raise SinkError(
            f"the folder {path} is kept by another stream: the checkpoint {checkpoint} is new",
            hint="go on with the checkpoint that has written the folder, or remove both to begin anew, or name another folder",
        )
    if begun and not written:
        raise SinkError(
            f"the folder {path} lacks what the stream of the checkpoint {checkpoint} has written",
            hint="the folder was lost or is another one: restore it, or remove the checkpoint too and begin anew",
        )
