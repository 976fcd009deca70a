"""One way of one workload, measured in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import json
import os
import resource
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.answer import Answer, difference
from benchmarks.workload import Way, Workload, peer_of
from benchmarks.workloads import WORKLOADS

WARM = 30_000
"""Events of the run before the first that counts."""


def measure(workload: Workload, way: Way, events: int, runs: int, expected: Answer) -> dict[str, Any]:
    """Return the CPU seconds of the runs, the most memory, the state, and what is wrong with an answer (None: nothing)."""
    way.prepare(workload.data(min(events, WARM)))()  # imports, and what is compiled or cached at the first call
    data = workload.data(events)
    seconds, wrong = [], None
    _forget_peak()
    for _ in range(runs):
        run = way.prepare(data)
        gc.collect()
        before = _cpu()
        result = run()
        seconds.append(_cpu() - before)
        wrong = wrong or difference(way.read(result, workload.columns), expected)
        del run, result
    measured = {"cpu_seconds": seconds, "median": statistics.median(seconds), "peak_mb": _peak() / 1e6, "wrong": wrong}
    return {**measured, "state_bytes": way.state(data) if way.state else None}


def _cpu() -> float:
    """Return the CPU seconds of this process, all its threads, and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _forget_peak() -> None:
    with contextlib.suppress(OSError):  # then the peak is that since the start of the process
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """Return the most resident bytes, input and answers included."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


def _one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _version(peer: str) -> str | None:
    try:
        return importlib.metadata.version(peer)
    except importlib.metadata.PackageNotFoundError:
        return None


def main(name: str, way: str, events: str, runs: str, answer: str) -> None:
    _one_core()
    workload = WORKLOADS[name]
    with np.load(answer) as columns:
        expected = {column: columns[column] for column in workload.columns}
    measured = measure(workload, workload.ways[way], int(events), int(runs), expected)
    print(json.dumps({**measured, "version": _version(peer_of(way))}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure", description=__doc__)
    for each in ("name", "way", "events", "runs", "answer"):
        parser.add_argument(each)
    main(**vars(parser.parse_args()))
