"""All ways of a workload in one sitting, one after the other, each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import ROOT, AbsentError, python_of
from benchmarks.workload import Workload, peer_of

ONE_THREAD = dict.fromkeys(
    ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PATHWAY_THREADS"), "1"
)
PATIENCE = 900
"""Seconds that a way may take for all its runs."""


@dataclass(frozen=True)
class Line:
    """What came of one way: its measurements, or why there are none."""

    way: str
    events: int
    rows: int
    """Rows of the answer."""
    cpu_seconds: Sequence[float] = ()
    ns: float | None = None
    """CPU nanoseconds per event, the median of the runs."""
    ratio: float | None = None
    """Our time per event, from the same form of input, over this one's."""
    peak_mb: float | None = None
    state_bytes: int | None = None
    version: str | None = None
    problem: str | None = None
    """Why there are no figures, or what is wrong with the answer."""


def compare(workload: Workload, events: int | None, runs: int, peers: Sequence[str] | None) -> Iterator[Line]:
    """Yield a line for each way, of all peers or some; ours is always run, as the ratios are to it."""
    wanted = [way for way in workload.ways if not peers or peer_of(way) in (*peers, "streamdsl")]
    ours: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        answers = Answers(workload, Path(folder))
        for name in sorted(wanted, key=lambda name: peer_of(name) != "streamdsl"):
            way = workload.ways[name]
            line = _line(
                answers, name, min(events or workload.events, way.at_most or workload.events), runs, ours.get(way.against)
            )
            if line.ns and peer_of(name) == "streamdsl":
                ours[name] = line.ns
            yield line


class Answers:
    """The answers of a workload, computed once for each number of events."""

    def __init__(self, workload: Workload, folder: Path) -> None:
        self.workload = workload
        self._folder = folder
        self._rows: dict[int, int] = {}

    def of(self, events: int) -> tuple[Path, int]:
        """Return the file with the answer for so many events, and how many rows it has."""
        path = self._folder / f"{events}.npz"
        if events not in self._rows:
            answer = self.workload.reference(self.workload.data(events))
            np.savez(path, allow_pickle=False, **answer)
            self._rows[events] = len(next(iter(answer.values())))
        return path, self._rows[events]


def _line(answers: Answers, name: str, events: int, runs: int, ours: float | None) -> Line:
    path, rows = answers.of(events)
    try:
        measured = _measured(answers.workload, name, events, runs, path)
    except AbsentError as absent:
        return Line(name, events, rows, problem=str(absent))
    ns = measured["median"] / events * 1e9
    return Line(
        way=name,
        events=events,
        rows=rows,
        cpu_seconds=measured["cpu_seconds"],
        ns=ns,
        ratio=ours / ns if ours and peer_of(name) != "streamdsl" else None,
        peak_mb=measured["peak_mb"],
        state_bytes=measured["state_bytes"],
        version=measured["version"],
        problem=measured["wrong"],
    )


def _measured(workload: Workload, name: str, events: int, runs: int, answer: Path) -> dict[str, Any]:
    command = [python_of(peer_of(name)), "-m", "benchmarks.measure", workload.name, name, str(events), str(runs), str(answer)]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise AbsentError(f"not done after {PATIENCE} s") from None
    if done.returncode:
        raise AbsentError(f"failed: {_reason(done)}")
    measured: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that says what went wrong; later ones are traces and warnings."""
    lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
    return next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception|Violation)\b", line)), lines[-1])
