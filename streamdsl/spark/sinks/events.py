"""The physical events of a stream in files, one for each micro-batch."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.engine.state.files import write_whole
from streamdsl.spark.paths import local_path
from streamdsl.spark.sinks.batches import Taken
from streamdsl.spark.sinks.folder import OWN, plain
from streamdsl.spark.sinks.frames import checked, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMMIT: Final = "events.json"


class ParquetEvents:
    """A folder with a Parquet file of physical events for each micro-batch, which this process writes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Take a micro-batch, as `foreachBatch` hands it over; one that comes again changes nothing."""
        commit, stream = self.path / OWN / _COMMIT, stream_of(frame)
        taken = Taken(**json.loads(commit.read_text())) if commit.exists() else Taken()
        if not taken.misses(batch, stream, str(self.path)):
            return
        commit.parent.mkdir(parents=True, exist_ok=True)
        file = pa.BufferOutputStream()
        pq.write_table(plain(checked(frame).toArrow()), file)
        write_whole(self.path / f"batch_{batch:010}.parquet", file.getvalue())
        write_whole(commit, json.dumps({"batch": batch, "stream": stream}).encode())
