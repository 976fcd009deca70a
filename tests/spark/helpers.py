"""Random histories, and the check that Spark gives what the definition says."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import streamdsl as sd
from streamdsl.denote import denote, sources
from streamdsl.spark import explain_spark
from streamdsl.spark.flow import Flow
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.source_frames import collect, result_frame, source_of_rows
from streamdsl.testing import assert_cht_equal

PYTHON = re.compile("ArrowEval|PythonUDF|MapInArrow|FlatMapGroups|FlatMapCoGroups|BatchEvalPython")
KEYS = ("a", "b", "c")
FLOATS = (0.5, -1.25, 3.0, 0.1, 1e16, -1e16, 2.75)


def lives(rng: random.Random, n: int, unending: bool = True) -> list[tuple[int, int]]:
    """Return lifetimes, often with equal ends; some never end if `unending`."""
    found = []
    for _ in range(n):
        start = rng.randint(-12, 20)
        end = start + rng.choice((1, 2, 3, 5, 8, 13, 30))
        found.append((start, sd.INFINITY if unending and rng.random() < 0.15 else end))
    return found


def record(rng: random.Random) -> dict[str, Any]:
    """Return a payload with a text, a small int, a float, and an int that may be None."""
    return {"k": rng.choice(KEYS), "v": rng.randint(-3, 3), "f": rng.choice(FLOATS), "m": rng.choice((None, 1, 2))}


def history(seed: int, n: int = 14, unending: bool = True) -> sd.CHT[Any]:
    """Return a random history of records."""
    rng = random.Random(seed)
    return sd.CHT.from_rows([(start, end, record(rng)) for start, end in lives(rng, n, unending)])


def stream(name: str = "s") -> sd.Stream[Any]:
    """Return a named source of those records."""
    return sd.source(name, unit="tick")


def check(
    query: sd.Stream[Any], inputs: Mapping[str, sd.CHT[Any]], until: int | None = None, native: bool | None = None
) -> sd.CHT[Any]:
    """Assert that Spark's answer is the definition's, and return it; `native`: that no Python runs, or that some does."""
    expected = denote(query.plan(), inputs, sd.INFINITY if until is None else until)
    if native is not None:
        assert check_noted(query, inputs, expected, until) == native
    else:
        bindings = {name: [sd.Insert(i, *row) for i, row in enumerate(inputs[name])] for name in sources(query.plan())}
        assert_cht_equal(query.run(bindings, engine="spark", until=until).cht(), expected)
    return expected


def check_noted(
    query: sd.Stream[Any],
    inputs: Mapping[str, sd.CHT[Any]],
    expected: sd.CHT[Any],
    until: int | None = None,
    flows: Mapping[str, Flow] | None = None,
) -> bool:
    """Assert that Spark's answer is the expected one and the notes are true; return whether no Python runs."""
    low = lowering(query.plan(), flows or _flows(query, inputs), until)
    flow = lower(low)
    frame = result_frame(flow)
    assert_cht_equal(collect(flow, frame), expected)
    native = all(note.how == "native" for note in low.notes.values())
    assert native == (PYTHON.search(physical_plan(frame)) is None)
    return native


def _flows(query: sd.Stream[Any], inputs: Mapping[str, sd.CHT[Any]]) -> dict[str, Flow]:
    from pyspark.sql import SparkSession

    return {name: source_of_rows(SparkSession.active(), node, inputs[name]) for name, node in sources(query.plan()).items()}


def check_many(
    query: Callable[..., sd.Stream[Any]],
    inputs: int = 1,
    unending: bool = True,
    seeds: Sequence[int] = range(12),
    native: bool | None = None,
) -> None:
    """Check a query on many histories at once, each of which is a group, and on one without groups; one must give rows.

    In every third group all rows end, whatever is in the others. Both run at the same time, each in a thread.
    """
    alone = {f"s{i}": history(99 + i, 12, unending) for i in range(inputs)}
    grouped = {
        name: sd.CHT.from_rows([row for seed in seeds for row in _marked(_one_of_many(seed, i, unending), seed, i)])
        for i, name in enumerate(alone)
    }
    streams = list(map(stream, grouped))
    whole = streams[0].union(*streams[1:]) if inputs > 1 else streams[0]
    by_seed = whole.group_by(lambda e: e.seed).apply(lambda group: query(*_sides(group, inputs)))
    with ThreadPoolExecutor(2) as pool:
        found = pool.submit(check, query(*map(stream, alone)), alone, native=native)
        groups = pool.submit(check, by_seed, grouped)
    assert len(found.result()) + len(groups.result()) > 0


def _one_of_many(seed: int, side: int, unending: bool) -> sd.CHT[Any]:
    return history(seed * 10 + side, 9, unending and seed % 3 > 0)


def _marked(rows: sd.CHT[Any], seed: int, side: int) -> list[tuple[int, int, Any]]:
    return [(row.le, row.re, {**row.payload, "seed": seed, "side": side}) for row in rows]


def _sides(group: sd.Stream[Any], inputs: int) -> list[sd.Stream[Any]]:
    return [group.where(sd.col("side") == side) for side in range(inputs)] if inputs > 1 else [group]


def explained(query: sd.Stream[Any]) -> dict[str, str]:
    """Return what `explain_spark` says of each operator, but for sources."""
    return {label: said for label, said in explain_spark(query.plan()).items() if not label.startswith("source:")}


def lowered_plan(query: sd.Stream[Any], inputs: Mapping[str, sd.CHT[Any]]) -> str:
    """Return the text of the analyzed plan that a query is lowered to."""
    return str(lower(lowering(query.plan(), _flows(query, inputs), None)).make()._jdf.queryExecution().analyzed().toString())


def physical_plan(frame: Any) -> str:
    """Return the text of a frame's physical plan."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
