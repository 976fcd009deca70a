"""The engines that are asked, each run in isolation, with the sizes and slides that it has."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from benchmarks.environments import ROOT, AbsentError, python_of

SLIDING: Final = ((5, 1), (5, 2), (3, 3))
HOPPING: Final = ((4, 2), (3, 3))
"""Of engines that take seconds for a run."""
Late: TypeAlias = Literal["refused", "as its profile", "beyond the model"]
"""What an engine does with tuples out of order; beyond the model it takes a batch as one change, whichever times are in it."""


@dataclass(frozen=True)
class Engine:
    """An engine: what runs it (`module:function` in this folder), under which interpreter, and what is asked of it."""

    title: str
    run: str
    windows: tuple[tuple[int, int], ...] = SLIDING
    profile: str | None = None
    """The name of its profile in `streamdsl.secret`, of which its witnesses are recorded; None: nothing fits it."""
    ended: bool = True
    """Whether it reports the rest when its input ends."""
    late: Late = "refused"
    gaps: bool = True
    """Whether it has windows with gaps between them."""
    is_slow: bool = False

    @property
    def module(self) -> str:
        return self.run.partition(":")[0]

    @property
    def distribution(self) -> str:
        """The package that it comes in."""
        return "pyspark" if self.module == "spark" else self.module

    @property
    def version(self) -> str:
        """The package with its version, as the interpreter of the engine has it."""
        ask = f"from importlib.metadata import version; print(version({self.distribution!r}))"
        found = subprocess.run([python_of(self.module), "-c", ask], capture_output=True, text=True, check=True)
        return f"{self.distribution} {found.stdout.strip()}"

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
    "streamdsl-final": Engine('streamdsl, `emit="final"`', "streamdsl:final", profile="STREAMDSL_FINAL"),
    "streamdsl": Engine("streamdsl, speculative", "streamdsl:speculative", profile="STREAMDSL"),
    "duckdb-range": Engine("DuckDB, `RANGE` frame", "duckdb:by_range", ((5, 1), (3, 1))),
    "duckdb-bucket": Engine(
        "DuckDB, `time_bucket`", "duckdb:by_bucket", ((3, 3), (4, 4)), "DUCKDB_BUCKET", late="as its profile", gaps=False
    ),
    "polars-rolling": Engine("Polars, `rolling`", "polars:rolling", ((5, 1), (3, 1))),
    "polars-dynamic": Engine("Polars, `group_by_dynamic`", "polars:dynamic", profile="POLARS_DYNAMIC"),
    "bytewax": Engine("Bytewax, `collect_window`", "bytewax:collected", profile="BYTEWAX", late="as its profile", gaps=False),
    "pathway": Engine("Pathway, `windowby`, each change", "pathway:changes", HOPPING, "PATHWAY", late="beyond the model"),
    "pathway-once": Engine("Pathway, `exactly_once_behavior`", "pathway:once", HOPPING, "PATHWAY_ONCE", late="as its profile"),
    "spark-append": Engine(
        "Spark Structured Streaming, append mode",
        "spark:append",
        HOPPING,
        "SPARK_APPEND",
        ended=False,
        late="as its profile",
        gaps=False,
        is_slow=True,
    ),
    "spark-update": Engine(
        "Spark Structured Streaming, update mode",
        "spark:update",
        HOPPING,
        "SPARK_UPDATE",
        late="beyond the model",
        gaps=False,
        is_slow=True,
    ),
}
