"""The engines that are asked, each run in isolation, with the sizes and slides that it has."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.environments import ROOT, AbsentError, python_of

SLIDING: Final = ((5, 1), (5, 2), (3, 3))
HOPPING: Final = ((4, 2), (3, 3))
"""Of engines that take seconds for a run."""


@dataclass(frozen=True)
class Engine:
    """An engine: what runs it (`module:function` in this folder), under which interpreter, and what is asked of it."""

    title: str
    run: str
    windows: tuple[tuple[int, int], ...] = SLIDING
    ended: bool | None = None
    """Whether it reports the rest when its input ends; None: that is found out."""

    @property
    def module(self) -> str:
        return self.run.partition(":")[0]

    def start(self) -> Running:
        """Start it in a process of its own; raises `AbsentError` where it is not there."""
        return Running(self)


class Running:
    """An engine that runs: call it with size, slide and tuples."""

    def __init__(self, engine: Engine) -> None:
        self._title = engine.title
        command = [python_of(engine.module), "-m", "benchmarks.engines.worker", engine.run]
        paths = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=paths, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __call__(self, size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([size, slide, tuples]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise AbsentError(f"{self._title} has ended with {self._process.wait()}")
        found: list[list[int]] = json.loads(line)
        return found

    def stop(self) -> None:
        """End its process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


ENGINES: Final = {
    "streamdsl-final": Engine('streamdsl, `emit="final"`', "streamdsl:final"),
    "streamdsl": Engine("streamdsl, speculative", "streamdsl:speculative"),
    "duckdb-range": Engine("DuckDB, `RANGE` frame", "duckdb:by_range", ((5, 1), (3, 1))),
    "duckdb-bucket": Engine("DuckDB, `time_bucket`", "duckdb:by_bucket", ((3, 3), (4, 4))),
    "polars-rolling": Engine("Polars, `rolling`", "polars:rolling", ((5, 1), (3, 1))),
    "polars-dynamic": Engine("Polars, `group_by_dynamic`", "polars:dynamic"),
    "bytewax": Engine("Bytewax, `collect_window`", "bytewax:collected"),
    "pathway": Engine("Pathway, `windowby`, each change", "pathway:changes", HOPPING),
    "pathway-once": Engine("Pathway, `exactly_once_behavior`", "pathway:once", HOPPING),
    "spark-append": Engine("Spark Structured Streaming, append mode", "spark:append", HOPPING),
    "spark-update": Engine("Spark Structured Streaming, update mode", "spark:update", HOPPING),
}
