"""Several outputs of one graph: each is what its query gives alone, and what they share runs once.

run_all({name: query, ...})[name] == query.run()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.errors import QueryError, UnitError, UserCodeError
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Bound
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.expected import sources_of
from tests.laws.harness import pushes_for
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

S: sd.Stream[Any] = sd.source("s")
ROWS = [(i, i + 4, {"k": "ab"[i % 2], "v": i % 5}) for i in range(20)]


@examples(60)
@given(SEEDS)
def test_each_output_is_what_its_query_gives_alone(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    # The inputs of its operators are other outputs of the same graph.
    below: list[sd.Stream[Any]] = [sd.Stream(node) for node in query.plan().walk()]
    queries = {str(i): each for i, each in enumerate(rng.sample(below, min(3, len(below))))} | {"whole": query}
    note(made)
    pushes = pushes_for(query, scenario(rng, 2, unending=False, max_size=5))
    inputs = {name: [e for source, part in pushes if source == name for e in part] for name in sources_of(query.plan())}
    for engine in ("local", "reference"):
        results = sd.composing.run_all(queries, inputs, engine=engine)
        assert list(results) == list(queries)
        for name, each in queries.items():
            own = {source: inputs[source] for source in sources_of(each.plan())}
            assert results[name].cht() == each.run(own, engine="reference").cht(), name
            assert results[name].events()[-1] == sd.Cti(sd.INFINITY)


def test_a_stream_that_several_read_is_computed_once() -> None:
    calls = []

    @sd.udf
    def seen(v: int) -> int:
        calls.append(v)
        return v

    marked = S.select(k=lambda e: e.k, v=lambda e: seen(e.v))
    queries = {"all": marked, "some": marked.where(lambda e: e.v > 1), "n": marked.tumbling_window(5).aggregate(n=sd.count())}
    results = sd.composing.run_all(queries, {"s": ROWS})
    assert len(calls) == len(ROWS)
    assert [len(results[name]) for name in queries] == [20, 12, 5]


def test_a_stream_is_computed_once_also_where_a_window_has_told_it_the_unit() -> None:
    calls = []

    @sd.udf
    def seen(v: int) -> int:
        calls.append(v)
        return v

    marked = S.select(v=lambda e: seen(e.v))
    sd.composing.run_all({"all": marked, "n": marked.tumbling_window("5us").aggregate(n=sd.count())}, {"s": ROWS})
    assert len(calls) == len(ROWS)


def test_a_source_is_read_once() -> None:
    reads = []

    def read() -> Iterator[list[sd.Event[Any]]]:
        reads.append(1)
        yield [sd.Insert(i, *row) for i, row in enumerate(ROWS)]

    bound = Bound("tick", Schema.record(["k", "v"]), read)
    joined = S.join(S.shift(1), on="k")
    sd.composing.run_all({"a": S.where(lambda e: e.v > 1), "b": joined, "c": S}, {"s": bound})
    assert len(reads) == 1


def test_bounded_sources_until_options_and_rejected_are_those_of_each_query() -> None:
    late = [sd.point("a", 9, "x"), sd.Cti(5), sd.point("late", 3, "y")]
    dropping = sd.from_events(late, on_violation="drop")
    counted = sd.from_rows([(1, 25, "z")]).tumbling_window(10).aggregate(n=sd.count())
    results = sd.composing.run_all({"a": dropping, "b": counted}, until=20, engine_options={"rewrite": "off"})
    assert [each.event.id for each in results["a"].rejected()] == ["late"]
    assert results["b"].rejected() == []
    assert results["b"].cht() == counted.run(until=20).cht()


def test_fields_of_frames_are_those_of_each_query() -> None:
    empty = {"s": [sd.Cti(5)]}
    results = sd.composing.run_all({"a": S.select(x=lambda e: e.v), "b": S.select(y=lambda e: e.v)}, empty)
    assert results["a"].to_pandas().columns.tolist() == ["le", "re", "x"]
    assert results["b"].to_pandas().columns.tolist() == ["le", "re", "y"]


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(QueryError, match="two different sources of this query are called 's'"):
        sd.composing.run_all({"a": S, "b": sd.source("s", int)}, {"s": []})
    with pytest.raises(UnitError):
        sd.composing.run_all({"a": sd.source("a", unit="s"), "b": sd.source("b", unit="ms")}, {"a": [], "b": []})
    with pytest.raises(QueryError, match=r"parameters without a value: n \(int\)"):
        sd.composing.run_all({"a": S, "b": S.where(sd.col("v") > sd.functions.param("n", int))}, {"s": ROWS})
    with pytest.raises(QueryError, match="there is no source 't'; the sources of this query are: s"):
        sd.composing.run_all({"a": S}, {"t": ROWS})
    for wrong in ({}, [S], {"a": S.tumbling_window(5)}):
        with pytest.raises(QueryError, match="run_all takes queries by name"):
            sd.composing.run_all(wrong)  # type: ignore[arg-type]
    with pytest.raises(UserCodeError):
        sd.composing.run_all({"a": S, "b": S.select(lambda e: 1 // e.v)}, {"s": ROWS})
