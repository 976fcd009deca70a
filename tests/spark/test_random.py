"""Random compositions of operators on Spark give what the definition says."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from tests.spark.helpers import check_noted, history, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

Step = Callable[[random.Random, sd.Stream[Any], sd.Stream[Any]], sd.Stream[Any]]
"""Every step takes and gives records with the fields `k`, `v`, `f`, `m`."""


def largest(values: Any) -> Any:
    return max(values)


def fields(**changed: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {"k": lambda e: e.k, "v": lambda e: e.v, "f": lambda e: e.f, "m": lambda e: e.m}
    return {**kept, **changed}


def aggregated() -> dict[str, Any]:
    return {
        "k": sd.max(lambda e: e.k),
        "v": sd.sum(lambda e: e.v),
        "f": sd.sum(lambda e: e.f),
        "m": sd.min(lambda e: e.m, where=lambda e: e.v > 0),
    }


def grouped(s: sd.Stream[Any], key: Any) -> sd.Stream[Any]:
    pairs: sd.Stream[Any] = s.group_by(key).apply(lambda g: g.snapshot_window().aggregate(**aggregated()))
    return pairs.select(lambda e: e._1)


def paired(s: sd.Stream[Any], other: sd.Stream[Any], on: Any) -> sd.Stream[Any]:
    return s.join(other, on=on, select=lambda x, y: {"k": x.k, "v": x.v - y.v, "f": y.f, "m": x.m})


STEPS: list[Step] = [
    lambda rng, s, t: s.where(lambda e: e.v > 0),
    lambda rng, s, t: s.where(lambda e: e.k in "ab"),
    lambda rng, s, t: s.where(lambda e: sd.is_none(e.m) | (e.f < 2.5)),
    lambda rng, s, t: s.select(**fields(v=lambda e: e.v * 2 - 1)),
    lambda rng, s, t: s.select(**fields(v=lambda e: (e.v * 7) % 5 - 2, f=lambda e: e.f / 4)),
    lambda rng, s, t: s.select(**fields(k=lambda e: sd.when(e.v > 0).then(e.k).otherwise("z"))),
    lambda rng, s, t: s.select(**fields(k=lambda e: str(e.k) + "x")),
    lambda rng, s, t: s.shift(rng.randint(-5, 5)),
    lambda rng, s, t: s.alter_duration(rng.randint(1, 9)),
    lambda rng, s, t: s.alter_duration(lambda e: e.v + 2),
    lambda rng, s, t: s.clip_interval(-5, 15),
    lambda rng, s, t: s.extend(rng.randint(-3, 4)).clip_duration(rng.randint(2, 9)),
    lambda rng, s, t: s.quantize(rng.randint(1, 9), rng.randint(1, 9), rng.randint(-4, 4)),
    lambda rng, s, t: s.to_points_at_end(),
    lambda rng, s, t: s.clip_interval(-20, 40).tumbling_window(7).top_k(rng.randint(1, 3), by="v", rank=True),
    lambda rng, s, t: s.clip_interval(-20, 40).chop(rng.randint(1, 9), rng.randint(-4, 4)),
    lambda rng, s, t: s.distinct(lambda e: {"k": e.k, "m": e.m}).join(t, on="k", select=lambda a, b: b),
    lambda rng, s, t: s.to_edges("k"),
    lambda rng, s, t: s.to_points(),
    lambda rng, s, t: s.union(t),
    lambda rng, s, t: s.union(s.shift(1)),
    lambda rng, s, t: paired(s, t, rng.choice(["k", ["k", "m"], None])),
    lambda rng, s, t: s.anti_join(t, on=rng.choice(["k", "m", None])),
    lambda rng, s, t: s.semi_join(t, on=rng.choice(["k", "m", None])),
    lambda rng, s, t: s.clip_by(t, on=rng.choice(["k", None])),
    lambda rng, s, t: s.snapshot_window().aggregate(**aggregated()),
    lambda rng, s, t: s.count_window(rng.randint(1, 3), by=rng.choice(["start", "end"])).aggregate(**aggregated()),
    lambda rng, s, t: s.clip_interval(-20, 40).hopping_window(rng.randint(2, 9), rng.randint(2, 9), 1).aggregate(**aggregated()),
    lambda rng, s, t: s.clip_interval(-20, 40).tumbling_window(6).aggregate(**{**aggregated(), "f": sd.median(lambda e: e.f)}),
    lambda rng, s, t: s.count_window(2).aggregate(**{**aggregated(), "v": sd.uda(largest).of(lambda e: e.v)}),
    lambda rng, s, t: grouped(s, rng.choice([lambda e: e.k, lambda e: (e.k, e.m), lambda e: str(e.v)])),
]


@pytest.mark.parametrize("seed", range(18))
def test_compositions(seed: int) -> None:
    rng = random.Random(seed)
    query, other = stream("s"), stream("t")
    for step in rng.sample(STEPS, rng.randint(2, 4)):
        query = step(rng, query, other)
    inputs = {"s": history(seed, 10), "t": history(seed + 100, 6)}
    check_noted(query, inputs, denote(query.plan(), inputs))
