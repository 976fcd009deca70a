"""Random histories, and the check that Spark gives what the definition says."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.spark import explain_spark
from streamdsl.spark.lower import lower, lowering
from streamdsl.testing import assert_cht_equal

if TYPE_CHECKING:
    from streamdsl.plan.node import Node

PYTHON = re.compile("ArrowEval|PythonUDF|MapInArrow|FlatMapGroups|FlatMapCoGroups|BatchEvalPython|PythonMapInArrow")
KEYS = ("a", "b", "c")


def lives(rng: random.Random, n: int, unending: bool = True, short: bool = False) -> list[tuple[int, int]]:
    """Return lifetimes, often with equal ends; some never end if `unending`."""
    found = []
    for _ in range(n):
        le = rng.randint(-12, 20)
        re_ = le + rng.choice((1, 1, 2, 3, 5, 8) if short else (1, 2, 3, 5, 8, 13, 30))
        found.append((le, sd.INFINITY if unending and rng.random() < 0.15 else re_))
    return found


def record(rng: random.Random) -> dict[str, Any]:
    """Return a payload with a key, a small int, a float and an int that may be None."""
    value = rng.choice((0.5, -1.25, 3.0, 0.1, 1e16, -1e16, 2.75))
    return {"k": rng.choice(KEYS), "v": rng.randint(-3, 3), "f": value, "m": rng.choice((None, 1, 2))}


def history(seed: int, n: int = 14, unending: bool = True) -> sd.CHT[Any]:
    """Return a random history of records."""
    rng = random.Random(seed)
    return sd.CHT.from_rows([(le, re_, record(rng)) for le, re_ in lives(rng, n, unending)])


def stream(name: str = "s") -> sd.Stream[Any]:
    """Return a named source of those records."""
    return sd.source(name, unit="tick")


def check(query: sd.Stream[Any], inputs: Mapping[str, sd.CHT[Any]], until: int | None = None) -> None:
    """Assert that Spark's answer is the definition's."""
    expected = denote(query.plan(), _with_payloads(query.plan(), inputs), sd.INFINITY if until is None else until)
    bindings = {name: [sd.Insert(i, *row) for i, row in enumerate(cht)] for name, cht in inputs.items()}
    assert_cht_equal(query.run(bindings, engine="spark", until=until).cht(), expected)


def _with_payloads(plan: Node, inputs: Mapping[str, sd.CHT[Any]]) -> Mapping[str, sd.CHT[Any]]:
    return inputs


def over_seeds(query: Callable[..., sd.Stream[Any]], seeds: Sequence[int], unending: bool = True, sources: int = 1) -> None:
    """Check a query on many histories in one run: each is a group of its own."""
    names = [f"s{i}" for i in range(sources)]
    inputs = {
        name: sd.CHT.from_rows(
            [(row.le, row.re, {**row.payload, "seed": seed, "side": i}) for seed in seeds for row in history(seed * 10 + i, 9, unending)]
        )
        for i, name in enumerate(names)
    }
    whole = stream(names[0])
    for name in names[1:]:
        whole = whole.union(stream(name))
    sides = lambda g: [g.where(lambda e, i=i: e.side == i) for i in range(sources)]
    check(whole.group_by(lambda e: e.seed).apply(lambda g: query(*sides(g))), inputs)


def how(query: sd.Stream[Any]) -> list[str]:
    """Return what `explain_spark` says of each operator, but for sources."""
    return [said for label, said in explain_spark(query.plan()).items() if not label.startswith("source:")]


def physical_plan(frame: Any) -> str:
    """Return the text of a frame's physical plan."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


__all__ = ["PYTHON", "check", "history", "how", "lives", "lower", "lowering", "over_seeds", "physical_plan", "record", "stream"]
