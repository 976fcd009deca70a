"""A stream into a database and a folder of files; with a `Deadly` connection it kills its process, and all that it has started.

It does so in the database's transaction of the second micro-batch, when the files have their rows already.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamdsl as sd
from tests.spark.streams import by_key, frame_of


@dataclass
class Sum:
    total: int = 0
    n: int = 0


class Mean(sd.IncrementalUDA[int, Sum, float]):
    def create_state(self) -> Sum:
        return Sum()

    def add_event_to_state(self, state: Sum, payload: int) -> Sum:
        return Sum(state.total + payload, state.n + 1)

    def remove_event_from_state(self, state: Sum, payload: int) -> Sum:
        return Sum(state.total - payload, state.n - 1)

    def compute_result(self, state: Sum) -> float:
        return state.total / state.n


class Deadly(sqlite3.Connection):
    def commit(self) -> None:
        if self.execute("SELECT batch FROM streamdsl_batches").fetchone() == (1,):
            os.killpg(os.getpgrp(), signal.SIGKILL)
        super().commit()


QUERY: sd.Stream[Any] = by_key().hopping_window(8, 4).aggregate(n=sd.count(), mean=Mean().of(lambda e: e.v))


def run(
    spark: Any, folder: Path, connection: type[sqlite3.Connection] = sqlite3.Connection, after: Callable[[], None] = lambda: None
) -> None:
    """Write what the files in `s` mean, from where it was stopped; `after` is called when both tables have a micro-batch."""
    from streamdsl.spark import DatabaseTable, ParquetTable

    files = ParquetTable(folder / "files", every=10)
    database = DatabaseTable(lambda: sqlite3.connect(folder / "database", factory=connection), "rows")

    def write(frame: Any, batch: int) -> None:
        files(frame, batch)
        database(frame, batch)
        after()

    frames = {"s": frame_of(spark, folder / "s")}
    QUERY.on_spark(spark).write(frames, write, folder / "checkpoint", trigger="available-now").awaitTermination()
