"""Two workers beside one process: seconds of runs whose rows are routed by key, and of those that workers read themselves.

A join by key, sessions, extremes and totals of groups, by an integer or a text, and a lambda that runs as Python; sessions with a
fifth of the rows in one key, with a tenth of them without a key, and in pushes, of which a tenth of the rows is late and corrects
what has been sent; queries of one input also of Parquet files, where a worker reads its own. For each: seconds without workers,
with two, and the quotient; and seconds of processor time: without workers, with two all together and the most of one process (a
machine that others use tells these sooner), and of the session's process and each worker.

Needs `streamdsl[workers]`, two cores that nothing else uses, and Linux for the processor times.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.sharding.workers import idle_workers

ROWS = 2_000_000
REPEATS = 3
FILES = 8
PUSHES = 20
LATE = 200
FROM_FILES = ("sessions", "extremes", "totals", "a lambda")
OTHERS = ("sessions, hot key", "sessions, null keys", "sessions, pushed")
NAMES = ("join", *FROM_FILES, *(f"{name}, files" for name in FROM_FILES), *OTHERS)

Run = Callable[[int | None], object]
"""What is measured, given the number of workers."""


def keys(n: int, kind: str, is_text: bool) -> Any:
    """Return a thousand keys, of which one may be `hot`, or there are some `null`."""
    rng = np.random.default_rng(1)
    found, chance = rng.integers(0, 1000, n), rng.random(n)
    if kind == "hot":
        found[chance < 0.2] = 7
    of = pa.array([f"key {key}" for key in found.tolist()] if is_text else found)
    return pc.if_else(pa.array(chance < 0.1), None, of) if kind == "null" else of


def table(n: int, is_text: bool, kind: str = "") -> Any:
    start = np.arange(n) // 20
    return pa.table({"start": start, "k": keys(n, kind, is_text), "v": np.random.default_rng(2).random(n)})


def queries(rows: Any) -> dict[str, tuple[sd.Stream[Any], dict[str, Any]]]:
    """Return queries by name, each with its input."""
    s, t = (sd.source(name, start="start") for name in "st")
    groups, one = s.group_by("k"), {"s": rows}
    quarter = len(rows) // 4
    return {
        "join": (
            s.alter_duration(200).join(t, on="k", select=lambda a, b: {"k": a.k, "w": a.v + b.v}),
            {"s": rows, "t": rows},
        ),
        "sessions": (sessions(s), one),
        "extremes": (groups.tumbling_window(1000).aggregate(most=sd.max(lambda e: e.v)), one),
        "totals": (groups.tumbling_window(1000).aggregate(mean=sd.avg(lambda e: e.v)), one),
        "a lambda": (s.select(lambda e: {"k": e.k, "v": e.v if e.v > 0.5 else 0.0}), {"s": rows.slice(0, quarter)}),
    }


def sessions(s: sd.Stream[Any]) -> sd.Stream[Any]:
    return s.group_by("k").session_window(40).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))


def runs(given: dict[str, tuple[sd.Stream[Any], dict[str, Any]]]) -> dict[str, Run]:
    """Return the runs of queries by their names."""
    return {name: partial(run, *each) for name, each in given.items()}


def run(query: sd.Stream[Any], inputs: dict[str, Any], workers: int | None) -> None:
    query.run(inputs, workers=workers)


def push(rows: Any, workers: int | None) -> None:
    """Push rows to a session that answers at once; some are late, and correct what has been sent."""
    n = len(rows)
    late = np.where(np.random.default_rng(3).random(n) < 0.1, np.random.default_rng(4).integers(0, LATE, n), 0)
    rows = rows.set_column(0, "start", pa.array(np.maximum(np.arange(n) // 20 - late, 0)))
    session = sessions(sd.source("s", start="start", progress=sd.Progress.slack(LATE))).open(workers=workers)
    for first in range(0, n, -(-n // PUSHES)):
        session.feed(rows.slice(first, -(-n // PUSHES)))
    session.close()


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


class Used(NamedTuple):
    """What a run takes: seconds, and seconds of processor time of this process and of each worker."""

    seconds: float
    processor: list[float]


def measured(what: Run, workers: int | None) -> Used:
    pids = [worker.pid for worker in idle_workers()] if workers else []
    before, own, start = list(map(processor_seconds, pids)), time.process_time(), time.perf_counter()
    what(workers)
    seconds, own = time.perf_counter() - start, time.process_time() - own
    return Used(seconds, [own, *(processor_seconds(pid) - was for pid, was in zip(pids, before, strict=True))])


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cases(rows: int, is_text: bool, folder: Path) -> dict[str, Run]:
    """Return what is measured by its name."""
    plain = table(rows, is_text)
    given = queries(plain)
    of_sessions = {
        f"sessions, {how}": (sessions(sd.source("s", start="start")), {"s": table(rows, is_text, how.split()[0])})
        for how in ("hot key", "null keys")
    }
    return {**runs({**given, **of_sessions, **from_files(given, folder)}), "sessions, pushed": partial(push, plain)}


def main() -> None:
    """Measure the cases whose names have one of the words, else all."""
    kinds = {"integer": False, "text": True}
    study = Study(__doc__, [f"{name}, {kind}" for kind in kinds for name in NAMES], rows=ROWS)
    print(f"{'':<26} {'one':>7} {'two':>7} {'times':>6} | processor: one, two together, most of a process; each")
    for kind, is_text in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            for name, what in cases(study.rows, is_text, Path(folder)).items():
                if f"{name}, {kind}" in study.parts:
                    compare(study, f"{name}, {kind}", what)


def compare(study: Study, name: str, what: Run) -> None:
    what(2)
    pairs = [(measured(what, None), measured(what, 2)) for _ in range(REPEATS)]
    one, two = (min(used.seconds for used in each) for each in zip(*pairs, strict=True))
    alone = min(used.processor[0] for used, _ in pairs)
    each = min((used.processor for _, used in pairs), key=sum)
    shown = " ".join(f"{used:.2f}" for used in each)
    text = f"{name:<26} {one:7.3f} {two:7.3f} {one / two:6.2f} | {alone:5.2f} {sum(each):5.2f} {max(each):5.2f}; {shown}"
    study.row(name, text, {"one": one, "two": two, "times": one / two, "processor of one": alone, "of two": each})


if __name__ == "__main__":
    main()
