"""Queries of queries: bound parameters are constants, and a query bound to a source is its input.

query(parameter).bind(parameter=value) == query(value)
denote(query.bind(source=other), inputs) == denote(query, {source: denote(other, inputs)})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.temporal import CHT
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.expected import sources_of
from tests.laws.harness import EMITS, check_law, pushes_for
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

Stream: TypeAlias = "sd.Stream[Any]"
S: Stream = sd.source("s")
T: Stream = sd.source("t")


def with_default(n: Any) -> Callable[[Any], bool]:
    def above(e: Any, least: Any = n) -> bool:
        return bool(e.v > least)

    return above


TRACED: dict[str, Callable[[Any], Stream]] = {
    "where": lambda n: S.where(lambda e: e.v > n),
    "where, with arithmetic": lambda n: S.where(lambda e: n + e.v / 5 > n - e.v),
    "where, in branches": lambda n: S.where(lambda e: sd.when(e.v > n).then(n).otherwise(e.v) == n),
    "select": lambda n: S.select(k=lambda e: e.k, v=lambda e: e.v * n),
    "select of the value alone": lambda n: S.select(lambda e: n),
    "alter_duration": lambda n: S.alter_duration(n),
    "alter_duration, with the row": lambda n: S.alter_duration(lambda e: e.v + n),
    "alter_lifetime": lambda n: S.alter_lifetime(lambda e, life: life.le + n, lambda e: n),
    "join": lambda n: S.join(T, on="k", where=lambda a, b: a.v + n > b.v, select=lambda a, b: {"k": a.k, "v": b.v - n}),
    "anti_join by keys": lambda n: S.anti_join(T, on=(lambda a: a.v % n, lambda b: b.v)),
    "group_by": lambda n: S.group_by(lambda e: e.v % n).tumbling_window(5).aggregate(n=sd.count()),
    "inside a group": lambda n: S.group_by("k").apply(lambda g: g.where(lambda e: e.v > n)),
    "aggregates": lambda n: S.tumbling_window(5).aggregate(m=sd.sum(lambda e: e.v * n, where=lambda e: e.v < n)),
    "a window lambda": lambda n: S.tumbling_window(5).aggregate(lambda w: w.sum(lambda e: e.v + n)),
    "top_k": lambda n: S.tumbling_window(5).top_k(1, by=lambda e: e.v % n),
    "sd.col": lambda n: S.where(sd.col("v") > n),
}
OPAQUE: dict[str, Callable[[Any], Stream]] = {
    "where": lambda n: S.where(lambda e: e.v > n and e.k != "b"),
    "a default": lambda n: S.where(with_default(n)),
    "a loop": lambda n: S.select_many(lambda e: [e.v for i in range(n)]),
    "a nested function": lambda n: S.select(lambda e: (lambda x: x + n)(e.v) or 0),
    "a window lambda": lambda n: S.tumbling_window(5).aggregate(lambda w: w.count() + n if w.count() > 1 else n),
    "inside a group": lambda n: S.group_by("k").apply(lambda g: g.where(lambda e: e.v > n or e.v < 0)),
}
LIMIT = sd.functions.param("limit", int)


@pytest.mark.parametrize("make", TRACED.values(), ids=TRACED)
def test_a_bound_parameter_is_a_constant(make: Callable[[Any], Stream]) -> None:
    query = make(LIMIT)
    assert query.bind(limit=3).plan() == make(3).plan()
    assert make(sd.functions.param("limit", int, default=3)).bind().explain() == make(3).explain()
    assert query.plan() != make(3).plan()


@pytest.mark.parametrize("make", OPAQUE.values(), ids=OPAQUE)
@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_parameter_is_bound_in_a_lambda_that_is_called_row_by_row(make: Callable[[Any], Stream], engine: Any) -> None:
    rows = [(i, i + 3, {"k": "ab"[i % 2], "v": i % 5}) for i in range(12)]
    assert "opaque" in make(3).explain()
    expected = make(3).run({"s": rows}, engine="reference").cht()
    assert make(LIMIT).bind(limit=3).run({"s": rows}, engine=engine).cht() == expected
    assert make(sd.functions.param("limit", int, default=3)).run({"s": rows}, engine=engine).cht() == expected
    assert make(2).run({"s": rows}).cht() != expected or "e.v for i" in make(3).explain()


@examples(60)
@given(SEEDS)
def test_a_query_in_the_place_of_a_source_is_its_input(seed: int) -> None:
    rng = Random(seed)
    inner_made, inner = composition(rng)
    outer_made, outer = composition(rng)
    note(f"{outer_made} over {inner_made}")
    # Rows that never end would fill windows for ever.
    whole = outer.bind(s0=inner.clip_interval(-30, 60)) if "s0" in sources_of(outer.plan()) else outer
    given_scenario = scenario(rng, 2, unending=False, max_size=4)
    pushes = pushes_for(whole, given_scenario)
    inputs = {
        name: CHT.from_events([e for source, part in pushes if source == name for e in part]) for name in sources_of(whole.plan())
    }
    of_inner = {name: inputs.get(name, CHT.from_rows([])) for name in ("s0", "s1")}
    bound = {**of_inner, "s0": denote(inner.clip_interval(-30, 60).plan(), of_inner)}
    assert denote(whole.plan(), inputs) == denote(outer.plan(), bound)
    check_law(whole, given_scenario, rng.choice(EMITS))
