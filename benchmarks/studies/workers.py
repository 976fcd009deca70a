"""Two workers beside one process: seconds of runs whose rows are routed by key, and of those that workers read themselves.

A join by key, sessions, extremes and totals of groups, by an integer or a text, and a lambda that runs as Python; the same of
Parquet files, where a worker reads its own. For each: seconds without workers and with two, the quotient, and the seconds of
processor time of the session's process and of each worker.

Needs `streamdsl[workers]`, two cores that nothing else uses, and Linux for the processor times.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.sharding.workers import idle_workers

ROWS = 2_000_000
REPEATS = 3
FILES = 8


def table(n: int, is_text: bool) -> Any:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 1000, n)
    return pa.table(
        {
            "start": np.arange(n) // 20,
            "k": pa.array([f"key {key}" for key in keys.tolist()]) if is_text else pa.array(keys),
            "v": rng.random(n),
        }
    )


def queries(rows: Any) -> dict[str, tuple[sd.Stream[Any], dict[str, Any]]]:
    """Return queries by name, each with its input."""
    s, t = (sd.source(name, start="start") for name in "st")
    groups, one = s.group_by("k"), {"s": rows}
    half = len(rows) // 4
    return {
        "join": (
            s.alter_duration(200).join(t, on="k", select=lambda a, b: {"k": a.k, "w": a.v + b.v}),
            {"s": rows.slice(0, half), "t": rows.slice(0, half)},
        ),
        "sessions": (groups.session_window(40).aggregate(n=sd.count(), most=sd.max(lambda e: e.v)), one),
        "extremes": (groups.tumbling_window(1000).aggregate(most=sd.max(lambda e: e.v)), one),
        "totals": (groups.tumbling_window(1000).aggregate(mean=sd.avg(lambda e: e.v)), one),
        "a lambda": (s.select(lambda e: {"k": e.k, "v": e.v if e.v > 0.5 else 0.0}), {"s": rows.slice(0, half)}),
    }


def from_files(given: dict[str, tuple[sd.Stream[Any], dict[str, Any]]], folder: Path) -> dict[str, Any]:
    """Return queries of one input with it in Parquet files, in the place of the table."""
    found: dict[str, Any] = {}
    for name, (query, inputs) in given.items():
        if len(inputs) == 1:
            (table,) = inputs.values()
            paths = []
            for n in range(FILES):
                size = -(-len(table) // FILES)
                paths.append(folder / f"{name}-{n}.parquet")
                pq.write_table(table.slice(n * size, size), paths[-1])
            bound = sd.sources.from_files(paths, start="start")
            found[f"{name}, files"] = query, {"s": bound}
    return found


def seconds(query: sd.Stream[Any], inputs: dict[str, Any], workers: int | None) -> float:
    start = time.perf_counter()
    query.run(inputs, workers=workers)
    return time.perf_counter() - start


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    study = Study(__doc__, ["integer", "text"], rows=ROWS)
    print(f"{'query':<26} {'one':>7} {'two':>7} {'times':>6}   session's process, workers")
    for kind in study.parts:
        with tempfile.TemporaryDirectory() as folder:
            given = queries(table(study.rows, kind == "text"))
            compare(study, {**given, **from_files(given, Path(folder))}, kind)


def compare(study: Study, given: dict[str, Any], kind: str) -> None:
    for name, (query, inputs) in given.items():
        seconds(query, inputs, 2)
        one = min(seconds(query, inputs, None) for _ in range(REPEATS))
        pids = [worker.pid for worker in idle_workers()]
        before, own = list(map(processor_seconds, pids)), time.process_time()
        two = min(seconds(query, inputs, 2) for _ in range(REPEATS))
        own = (time.process_time() - own) / REPEATS
        each = [(processor_seconds(pid) - was) / REPEATS for pid, was in zip(pids, before, strict=True)]
        shown = " ".join(f"{used:.2f}" for used in [own, *each])
        text = f"{name + ', ' + kind:<26} {one:7.3f} {two:7.3f} {one / two:6.2f}   {shown}"
        study.row(f"{name}, {kind}", text, {"one": one, "two": two, "times": one / two})


if __name__ == "__main__":
    main()
