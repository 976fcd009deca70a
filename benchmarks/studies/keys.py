"""Keys as users have them: tumbling count and mean by keys of each kind, beside DuckDB and the loop one would write by hand.

A line for each kind of key: CPU nanoseconds an event of a whole run over an Arrow table, to an Arrow table; of DuckDB (one
thread, its own table, to an Arrow table); of a dict loop over Python's tuples; and of sessions that are fed the table in pushes
of 16k rows, speculative and final. All take turns, the best of some rounds each, and every answer is compared with the loop's.
`--run-only` leaves the loop and the sessions out.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

import streamdsl as sd
from benchmarks.command import Study
from benchmarks.peers.streamdsl import load_kernels

EVENTS = 1_000_000
KEYS = 10_000
MANY = 260_000
SIZE = 10_000
PUSH = 16_384
RATE = 10
"""Events per tick."""

Table: TypeAlias = Any
Answer: TypeAlias = dict[tuple[Any, ...], tuple[int, float]]


def _one(values: Any) -> dict[str, Any]:
    return {"key": values}


def _texts(numbers: Any) -> Any:
    names = pa.array([f"customer-{number:06d}" for number in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))


def _spread(numbers: Any) -> Any:
    """Return numbers as ids of 64 bits, each as it would be drawn."""
    return np.random.default_rng(7).integers(0, 2**62, int(numbers.max()) + 1)[numbers]


def _with_nulls(numbers: Any) -> Any:
    return pa.array(numbers, mask=numbers % 10 == 0)


def _dates(numbers: Any) -> Any:
    return pa.array(numbers.astype(np.int32)).cast(pa.date32())


def _moments(numbers: Any) -> Any:
    return pa.array(numbers * 3_600_000_000).cast(pa.timestamp("us", "UTC"))


def _decimals(numbers: Any) -> Any:
    amounts = pa.array([Decimal(number) / 100 for number in range(int(numbers.max()) + 1)], type=pa.decimal128(12, 2))
    return amounts.take(pa.array(numbers))


def _addresses(numbers: Any) -> dict[str, Any]:
    drawn = np.random.default_rng(7).integers(0, 2**32, (2, 1_000))
    return {"src": drawn[0][numbers // 100 % 1_000], "dst": drawn[1][numbers % 100]}


KINDS: dict[str, tuple[int, Callable[[Any], dict[str, Any]]]] = {
    "small integers": (KEYS, _one),
    "dictionary": (KEYS, lambda numbers: _one(_texts(numbers).dictionary_encode())),
    "strings": (KEYS, lambda numbers: _one(_texts(numbers))),
    "integers, nulls": (KEYS, lambda numbers: _one(_with_nulls(numbers))),
    "64-bit ids": (KEYS, lambda numbers: _one(_spread(numbers))),
    "floats": (KEYS, lambda numbers: _one(numbers / 7)),
    "dates": (KEYS, lambda numbers: _one(_dates(numbers))),
    "moments": (KEYS, lambda numbers: _one(_moments(numbers))),
    "decimals": (KEYS, lambda numbers: _one(_decimals(numbers))),
    "booleans": (2, lambda numbers: _one(numbers == 1)),
    "pair of addresses": (KEYS, _addresses),
    "pair, string and date": (KEYS, lambda numbers: {"name": _texts(numbers // 100), "day": _dates(numbers % 100)}),
    "strings, 260k": (MANY, lambda numbers: _one(_texts(numbers))),
    "64-bit ids, 260k": (MANY, lambda numbers: _one(_spread(numbers))),
}


def table_of(kind: str, events: int) -> Table:
    keys, made = KINDS[kind]
    rng = np.random.default_rng(1)
    numbers, prices = rng.integers(0, keys, events), rng.integers(1, 10_000, events)
    return pa.table({"le": np.arange(events) // RATE, **made(numbers), "price": prices * 0.908})


def key_of(table: Table) -> list[str]:
    return [name for name in table.column_names if name not in ("le", "price")]


def query(source: Any, key: list[str]) -> Any:
    grouped = source.group_by(key if len(key) > 1 else key[0])
    return grouped.tumbling_window(SIZE).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.price))


def run(table: Table) -> Callable[[], Table]:
    asked = query(sd.source("s"), key_of(table))
    return lambda: asked.run({"s": table}).to_arrow()


def duckdb_run(table: Table) -> Callable[[], Table]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", table)
    connection.execute("CREATE TABLE s AS SELECT * FROM given")
    names = ", ".join(key_of(table))
    text = f"SELECT le // {SIZE} * {SIZE} AS le, {names}, count(*) AS n, avg(price) AS mean FROM s GROUP BY ALL"
    return lambda: connection.sql(text).to_arrow_table()


def loop(table: Table) -> Callable[[], Answer]:
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def looped() -> Answer:
        cells: dict[tuple[Any, ...], list[Any]] = {}
        for le, *key, price in rows:
            place = (le // SIZE * SIZE, *key)
            cell = cells.get(place)
            if cell is None:
                cells[place] = [1, price]
            else:
                cell[0] += 1
                cell[1] += price
        return {place: (n, total / n) for place, (n, total) in cells.items()}

    return looped


def session(emit: str) -> Callable[[Table], Callable[[], list[Table]]]:
    def prepared(table: Table) -> Callable[[], list[Table]]:
        pieces = [table.slice(start, PUSH) for start in range(0, len(table), PUSH)]
        asked = query(sd.source("s", progress=sd.Progress.slack(0)), key_of(table))

        def fed() -> list[Table]:
            live = asked.open(emit=emit)
            return [live.feed(piece).to_arrow() for piece in [*pieces, [sd.Cti(sd.INFINITY)]]]

        return fed

    return prepared


WAYS: dict[str, Callable[[Table], Callable[[], Any]]] = {
    "run": run,
    "duckdb": duckdb_run,
    "loop": loop,
    "speculative": session("speculative"),
    "final": session("final"),
}


def answer_of(found: Any, key: list[str]) -> Answer:
    """Return what a way has found, of sessions what is left after all corrections."""
    if isinstance(found, dict):
        return found
    if isinstance(found, list):
        both = pa.concat_tables(found, promote_options="permissive").to_pydict()
        left = {}
        for row, kind in enumerate(both["kind"]):
            if kind == "insert":
                left[both["id"][row]] = row
            elif kind == "retract":
                del left[both["id"][row]]
        columns = {name: [values[row] for row in left.values()] for name, values in both.items()}
    else:
        columns = found.to_pydict()
    places = zip(columns["le"], *(columns[name] for name in key), strict=True)
    return dict(zip(places, zip(columns["n"], columns["mean"], strict=True), strict=True))


def difference(found: Answer, expected: Answer) -> str | None:
    """Return what is wrong with an answer, None if nothing is."""
    if found.keys() != expected.keys():
        return f"{len(found)} groups instead of {len(expected)}"
    for place, (n, mean) in expected.items():
        if found[place][0] != n or abs(found[place][1] - mean) > 1e-9 * abs(mean):
            return f"{place}: {found[place]} instead of {(n, mean)}"
    return None


def measured(kind: str, events: int, rounds: int, ways: Mapping[str, Callable[[Table], Callable[[], Any]]]) -> dict[str, float]:
    """Return each way's nanoseconds of CPU an event, the best of rounds in which they take turns; raises if one is wrong."""
    table = table_of(kind, events)
    prepared = {way: made(table) for way, made in ways.items()}
    expected = loop(table)()
    best: dict[str, float] = {}
    for _ in range(rounds):
        for way, run in prepared.items():
            gc.collect()
            before = time.process_time_ns()
            found = run()
            spent = (time.process_time_ns() - before) / events
            if way not in best and (wrong := difference(answer_of(found, key_of(table)), expected)):
                raise AssertionError(f"{kind}, {way}: {wrong}")
            best[way] = min(best.get(way, spent), spent)
            del found
    return best


def main() -> None:
    given = Study(__doc__, KINDS, events=EVENTS, rounds=3, run_only=False)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ways = {way: made for way, made in WAYS.items() if not given.run_only or way in ("run", "duckdb")}
    load_kernels()
    for kind in ("small integers", "strings"):  # what is imported, compiled or cached at the first call
        measured(kind, 40_000, 1, ways)
    print(f"  {'ns of CPU an event':<24}" + "".join(f"{way:>13}" for way in ways) + f"{'run/duckdb':>13}")
    for kind in given.parts:
        best = measured(kind, given.events, given.rounds, ways)
        shown = "".join(f"{best[way]:>13.1f}" for way in ways)
        given.row(kind, f"  {kind:<24}{shown}{best['run'] / best['duckdb']:>12.2f}x", best)


if __name__ == "__main__":
    main()
