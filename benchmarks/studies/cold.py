"""What the first run in a fresh process costs beyond one in a process that is warm.

Tumbling count and mean of a million events by ten thousand integer keys, from an Arrow table to one, beside DuckDB and Polars;
the same without numba, as a session that is fed pushes, and from a pandas frame to one with neither numba nor pyarrow. Each
process imports numpy and what its input is read with, reads it from a file, and then looks at its CPU time: of the import, of the
first run, and of the best of some runs more. Every answer is compared with numpy's. Bytecode is in a cache, as it is of a package
that pip has installed, unless `--uncached`:

    python -m benchmarks.studies.cold [--events N] [--rounds N] [--uncached] [WAY ...]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

EVENTS: Final = 1_000_000
KEYS: Final = 10_000
SIZE: Final = 10_000
RATE: Final = 10
"""Events per tick."""
PUSH: Final = 16_384
WARM: Final = 5
"""Runs after the first."""

Ask: TypeAlias = Callable[[Any], Callable[[], Any]]
"""Imports what it needs, and returns for its input what asks and answers."""


def _grouped(source: Any) -> Any:
    import streamdsl as sd

    return source.group_by("key").tumbling_window(SIZE).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.price))


def _run(table: Any) -> Callable[[], Any]:
    import streamdsl as sd

    return lambda: _grouped(sd.from_arrow(table, start="le")).run().to_arrow()


def _frame(frame: Any) -> Callable[[], Any]:
    import streamdsl as sd

    return lambda: _grouped(sd.from_pandas(frame, start="le")).run().to_pandas()


def _session(table: Any) -> Callable[[], Any]:
    import pyarrow as pa

    import streamdsl as sd

    pieces = [table.slice(start, PUSH) for start in range(0, len(table), PUSH)]

    def pushed() -> Any:
        session = _grouped(sd.source("s", progress=sd.Progress.ordered())).open(emit="final")
        sent = [session.feed(piece).to_arrow() for piece in [*pieces, [sd.Cti(sd.INFINITY)]]]
        return pa.concat_tables(sent, promote_options="permissive")

    return pushed


def _duckdb(table: Any) -> Callable[[], Any]:
    import duckdb

    text = f"SELECT le // {SIZE} * {SIZE} AS le, key, count(*) AS n, avg(price) AS mean FROM given GROUP BY ALL"

    def asked() -> Any:
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.register("given", table)
        return connection.sql(text).to_arrow_table()

    return asked


def _polars(table: Any) -> Callable[[], Any]:
    import polars as pl

    def asked() -> Any:
        grouped = pl.from_arrow(table).lazy().group_by(pl.col("le") // SIZE * SIZE, "key")  # type: ignore[union-attr]
        return grouped.agg(n=pl.len(), mean=pl.col("price").mean()).collect().to_arrow()

    return asked


WAYS: Final[dict[str, tuple[Ask, tuple[str, ...]]]] = {
    "run": (_run, ()),
    "run, no numba": (_run, ("numba",)),
    "run, pandas frames, no numba, no pyarrow": (_frame, ("numba", "pyarrow")),
    "session": (_session, ()),
    "session, no numba": (_session, ("numba",)),
    "duckdb": (_duckdb, ()),
    "polars": (_polars, ()),
}
"""What asks, and the modules that are not there."""


def _write(folder: Path, events: int) -> None:
    """Write the input, as Arrow's and as numpy's, and the answer."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    le, key, price = np.arange(events) // RATE, rng.integers(0, KEYS, events), rng.integers(1, 10_000, events) * 0.25
    with pa.ipc.new_file(folder / "input.arrow", (table := pa.table({"le": le, "key": key, "price": price})).schema) as file:
        file.write_table(table)
    np.savez(folder / "input.npz", le=le, key=key, price=price)
    places, each, n = np.unique(le // SIZE * KEYS + key, return_inverse=True, return_counts=True)
    sums = np.bincount(each, price)  # exact: prices are quarters
    np.savez(folder / "answer.npz", le=places // KEYS * SIZE, key=places % KEYS, n=n, mean=sums / n)


def _read(folder: Path, ask: Ask) -> Any:
    if ask is _frame:
        import pandas as pd

        with np.load(folder / "input.npz") as columns:
            return pd.DataFrame(dict(columns))
    import pyarrow as pa

    with pa.OSFile(str(folder / "input.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


def _is_right(found: Any, folder: Path) -> bool:
    """Say whether an answer has the rows that numpy has found, in any order, but CTIs."""
    columns = {name: np.asarray(found[name]) for name in ("le", "key", "n", "mean")}
    if "kind" in (found.column_names if hasattr(found, "column_names") else found):
        kinds = np.asarray(found["kind"])
        columns = {name: values[kinds == "insert"] for name, values in columns.items()}
    order = np.lexsort([columns["key"], columns["le"]])
    with np.load(folder / "answer.npz") as expected:
        return all(np.array_equal(columns[name][order].astype(values.dtype), values) for name, values in expected.items())


def measure(way: str, folder: Path) -> dict[str, float]:
    """Return the CPU seconds in this process of the import, the first run, and the best of those after it."""
    ask, missing = WAYS[way]
    sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]
    given = _read(folder, ask)
    before = time.process_time()
    run = ask(given)
    spent = [time.process_time() - before]
    for _ in range(1 + WARM):
        gc.collect()
        before = time.process_time()
        found = run()
        spent.append(time.process_time() - before)
    if not _is_right(found, folder):
        raise AssertionError(f"{way}: the answer is wrong")
    return {
        "import": spent[0],
        "first": spent[1],
        "warm": min(spent[2:]),
        "modules": sum(n.startswith("streamdsl.") for n in sys.modules),
    }


def _in_a_process(way: str, folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.studies.cold", "--folder", str(folder), way]
    ended = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(ended.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.cold", description="what a first run costs")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"all, or some of: {'; '.join(WAYS)}")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument(
        "--rounds", type=int, default=5, help="processes of each way, in turns; of each figure the best counts (5)"
    )
    parser.add_argument("--uncached", action="store_true", help="compile every module anew, as where no bytecode may be written")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.folder is not None:
        print(json.dumps(measure(asked.ways[0], asked.folder)))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ways = asked.ways or list(WAYS)
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), asked.events)
        environment = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
        }
        environment |= (
            {"PYTHONDONTWRITEBYTECODE": "1"} if asked.uncached else {"PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
        )
        rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for turn in range(asked.rounds + (not asked.uncached)):
            for way in ways:
                measured = _in_a_process(way, Path(folder), environment)
                if turn or asked.uncached:  # else the bytecode has been written
                    rounds[way].append(measured)
    print(f"  {'milliseconds of CPU':<44}{'import':>9}{'first run':>11}{'warm run':>10}{'first - warm':>14}{'modules':>9}")
    for way, measurements in rounds.items():
        best = {name: min(each[name] for each in measurements) for name in measurements[0]}
        cold = min(each["first"] - each["warm"] for each in measurements)
        figures = f"{best['import'] * 1e3:>9.0f}{best['first'] * 1e3:>11.0f}{best['warm'] * 1e3:>10.0f}{cold * 1e3:>14.0f}"
        print(f"  {way:<44}{figures}{best['modules']:>9}", flush=True)


if __name__ == "__main__":
    main()
