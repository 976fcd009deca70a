"""`streamdsl.cql` against paper 002's definitions, on the engine and on the reference; the laws of SPREAD."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest

import streamdsl as sd
from streamdsl import cql
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.temporal.payload import payload_key
from tests.laws import batches as paper
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS


class Both(NamedTuple):
    """A relation, as the paper defines it and as the package makes it."""

    paper: paper.Relation
    made: cql.Relation
    forming: list[cql.Batch]


class Data(NamedTuple):
    streams: dict[str, list[tuple[int, cql.Batch]]]
    span: tuple[int, int]
    group: cql.StreamGroup

    @property
    def instants(self) -> list[cql.Batch]:
        return paper.instants(list(self.streams.values()), self.span)


def data(rng: Random) -> Data:
    """Two random streams in common batches: several at a timestamp, tuples together, timestamps without any."""
    first = rng.randint(-3, 4)
    streams: dict[str, list[tuple[int, cql.Batch]]] = {"S": [], "T": []}
    for t in sorted(rng.sample(range(first, first + 9), rng.randint(0, 5))):
        for i in range(1, rng.randint(1, 3) + 1):
            for _ in range(rng.randint(1, 3)):
                streams[rng.choice("ST")].append((rng.randint(0, 3), (t, i)))
    times = [at[0] for tuples in streams.values() for _, at in tuples]
    span = (min(times, default=first) - rng.randint(0, 2), max(times, default=first) + rng.randint(0, 2))
    given: dict[str, Any] = {name: [(value, *at) for value, at in tuples] for name, tuples in streams.items()}
    return Data(streams, span, cql.stream_group(**given, span=span))


def window(rng: Random, known: Data, name: str) -> Both:
    tuples, stream, n = known.streams[name], known.group[name], rng.randint(1, 4)
    size: int | None = rng.choice([n, n, n, None])
    d: int | None = rng.choice([0, n, n, None])
    clock: Any = rng.choice(["group", "stream"])
    kind = rng.choice(["rows", "range", "keep", "partition", "row slide", "range slide"])
    if kind == "rows":
        return Both(paper.rows(tuples, size), stream.rows(size), [])
    if kind == "range":
        return Both(paper.within(tuples, d, clock), stream.range(d, clock=clock), [])
    if kind == "keep":
        return Both(paper.keep(tuples, n), stream.keep(n), [])
    if kind == "partition":
        return Both(paper.partitioned(tuples, n, lambda v: v), stream.partition_by("value").rows(n), [])
    m = rng.randint(1, 4)
    if kind == "row slide":
        forming = paper.row_slide(tuples, m)
        return Both(paper.slid(paper.rows(tuples, size), forming), stream.rows(size, slide=m), forming)
    forming = paper.range_slide(known.instants if clock == "group" else sorted({at for _, at in tuples}), m)
    return Both(paper.slid(paper.within(tuples, d, clock), forming), stream.range(d, slide=m, clock=clock), forming)


SHAPES = ["window", "where", "select", "join", "table", "aggregate", "group", "union"]


def query(rng: Random, known: Data, depth: int = 2) -> Both:
    """A random query over windows: rows have the fields `value` and `t`."""
    if depth == 0:
        return window(rng, known, rng.choice("ST"))
    one, shape = query(rng, known, depth - 1), rng.choice(SHAPES)
    if shape == "where":
        return one._replace(paper=paper.where(one.paper, lambda e: e["value"] > 0), made=one.made.where(lambda e: e.value > 0))
    if shape == "select":
        made = one.made.select(value=lambda e: e.value // 2, t=lambda e: e.t)
        return one._replace(paper=paper.select(one.paper, lambda e: {"value": e["value"] // 2, "t": e["t"]}), made=made)
    if shape == "join":
        return joined(one, query(rng, known, depth - 1))
    if shape == "union":
        other = rng.choice([query(rng, known, depth - 1), table()])
        return Both(paper.union(one.paper, other.paper), one.made.union(other.made), sorted({*one.forming, *other.forming}))
    if shape == "table":
        return joined(one, table())
    if shape == "aggregate":
        made = one.made.aggregate(value=sd.sum(lambda e: e.value), t=sd.max(lambda e: e.t))
        return one._replace(paper=paper.aggregate(one.paper, total), made=made)
    if shape == "group":
        made = one.made.group_by("value").aggregate(t=sd.count()).having(lambda e: e.t > 1)
        grouped = paper.group_by(one.paper, lambda e: e["value"], lambda k, rows: {"value": k, "t": len(rows)})
        return one._replace(paper=paper.where(grouped, lambda e: e["t"] > 1), made=made)
    return one


def table() -> Both:
    rows = [{"value": v, "t": 0} for v in (0, 1, 1, 2)]
    return Both(lambda at: list(enumerate(rows)), cql.table(rows), [])


def total(rows: list[Any]) -> Any:
    return {"value": sum(e["value"] for e in rows), "t": max(e["t"] for e in rows)}


def joined(one: Both, other: Both) -> Both:
    def both(left: Any, right: Any) -> Any:
        return {"value": left["value"], "t": left["t"] + right["t"]}

    made = one.made.join(other.made, on="value", select=lambda left, right: {"value": left.value, "t": left.t + right.t})
    forming = sorted({*one.forming, *other.forming})
    return Both(paper.join(one.paper, other.paper, lambda left, right: left["value"] == right["value"], both), made, forming)


def bag(rows: list[Any]) -> Counter[Any]:
    return Counter(map(payload_key, rows))


def bags(states: list[tuple[cql.Batch, list[Any]]]) -> list[tuple[cql.Batch, Counter[Any]]]:
    return [(at, bag(rows)) for at, rows in states]


@examples(90)
@given(SEEDS)
def test_every_window_has_the_states_of_its_definition(seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    one = window(rng, known, rng.choice("ST"))
    assert bags(one.made.states()) == [(at, bag(paper.values(one.paper(at)))) for at in known.instants]
    assert [at for at, _ in one.made.states(at="slides")] == one.forming


@examples(60)
@given(SEEDS)
def test_a_query_has_the_states_and_streams_of_its_definition_whichever_engine_runs_it(seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    one, instants = query(rng, known), known.instants
    batches = sorted({at for tuples in known.streams.values() for _, at in tuples})
    assert bags(one.made.states()) == [(at, bag(paper.values(one.paper(at)))) for at in instants]
    assert [at for at, _ in one.made.states(at="batches")] == batches
    assert one.made.stream.run().cht() == one.made.stream.run(engine="reference").cht()
    assert bag(one.made.rstream().events()) == bag(paper.rstream(one.paper, instants))
    assert bag(one.made.output_every(2).events()) == bag(paper.output_every(one.paper, batches, 2))


@examples(60)
@given(SEEDS)
def test_istream_and_dstream_are_the_differences_of_successive_states(seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    semantics: Any = rng.choice(["delta", "difference"])
    one = query(rng, known)
    assert bag(one.made.istream(semantics).events()) == bag(paper.istream(one.paper, known.instants, semantics))
    assert bag(one.made.dstream(semantics).events()) == bag(paper.dstream(one.paper, known.instants, semantics))


@examples(60)
@given(SEEDS)
def test_in_delta_semantics_streams_are_the_points_of_lifetimes(seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    made, end = query(rng, known).made, len(known.instants)
    numbers = {at: n for n, at in enumerate(known.instants)}

    def points(stream: cql.BatchStream) -> sd.CHT[Any]:
        return sd.CHT.from_rows([(numbers[at], numbers[at] + 1, payload) for at, payload in stream.events()])

    lives = made.stream
    assert points(made.istream()) == lives.to_points().run().cht()
    assert points(made.dstream()) == lives.to_points_at_end().clip_interval(0, max(end, 1)).run().cht()
    assert points(made.rstream()) == lives.clip_interval(0, max(end, 1)).chop(1).run().cht()


@examples(60)
@given(SEEDS)
def test_what_is_derived_is_windowed_on_the_same_timeline(seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    derived = query(rng, known, 1).made.select(lambda e: e.value).istream()
    tuples = [(payload, at) for at, payload in derived.events()]
    again = Data({"D": tuples}, known.span, known.group)
    one = paper.within(tuples, 2)
    assert bags(derived.range(2).states()) == [(at, bag(paper.values(one(at)))) for at in known.instants]
    alone = cql.stream_group(D=derived)
    assert alone.span == known.span
    assert alone.D.events() == derived.events()
    assert bags(alone.D.range(2).states()) == [(at, bag(paper.values(one(at)))) for at in again.instants]


RANKS: dict[str, tuple[Any, Callable[[Any, int], Any]]] = {
    "a": ("a", lambda p, t: p["a"]),
    "b": (["b"], lambda p, t: p["b"]),
    "both": (["a", "b"], lambda p, t: (p["a"], p["b"])),
    "time": ("t", lambda p, t: t),
}


def ranked(rng: Random) -> cql.StreamGroup:
    known = data(rng)
    given: dict[str, Any] = {
        name: [({"n": n, "a": rng.randint(0, 2), "b": rng.randint(0, 2)}, *at) for n, (_, at) in enumerate(tuples)]
        for name, tuples in known.streams.items()
    }
    return cql.stream_group(**given, span=known.span)


def plain(g: cql.StreamGroup) -> dict[str, list[tuple[Any, cql.Batch]]]:
    return {name: [(dict(payload), at) for payload, at in zip(g[name].payloads, g[name].batches, strict=True)] for name in g}


def listed(streams: Any) -> Any:
    return {name: sorted(((at, sorted(p.items())) for p, at in tuples)) for name, tuples in streams.items()}


@examples(90)
@given(SEEDS)
def test_spread_makes_the_batches_of_its_definition(seed: int) -> None:
    rng = Random(seed)
    g, whole, names = ranked(rng), rng.random() < 0.5, rng.choice([["S"], ["T"], ["S", "T"]])
    on, rank = RANKS[rng.choice(list(RANKS))]
    made = cql.spread(g, names, on=on, all=whole)
    assert listed(plain(made)) == listed(paper.spread(plain(g), names, rank, whole))
    assert made.span == g.span


@examples(60)
@given(SEEDS)
def test_spread_refines_and_spread_all_forgets(seed: int) -> None:
    g = ranked(Random(seed))
    both = ["S", "T"]
    fine = cql.spread(g, both, on="a")
    assert cql.spread(fine, both, on="a") == fine
    assert cql.spread(fine, both, on="b") == cql.spread(g, both, on=["a", "b"])
    assert cql.spread(cql.spread(g, both), both, on="a") == cql.spread(g, both)
    assert cql.spread(g, both, on="t") == numbered(g)
    assert cql.spread(fine, both, on="b", all=True) == cql.spread(g, both, on="b", all=True)
    assert cql.spread(fine, both, on="t", all=True) == cql.stream_group(
        S=[(p, at[0]) for at, p in g.S.events()], T=[(p, at[0]) for at, p in g.T.events()], span=g.span
    )
    old = {p["n"]: at for at, p in g.S.events()}
    new = {p["n"]: at for at, p in fine.S.events()}
    assert all(new[m] < new[n] for m in old for n in old if old[m] < old[n])
    assert all(old[m] == old[n] for m in old for n in old if new[m] == new[n])


def numbered(g: cql.StreamGroup) -> cql.StreamGroup:
    """The same group, its batches numbered from 1 without a gap."""
    made = paper.spread(plain(g), ["S", "T"], lambda p, t: 0, False)
    given: dict[str, Any] = {name: [(p, *at) for p, at in tuples] for name, tuples in made.items()}
    return cql.stream_group(**given, span=g.span)


@examples(8)
@given(SEEDS)
def test_allowed_answers_are_those_of_all_orders(seed: int) -> None:
    """Every order of the tuples of each batch, for each of two windows by itself."""
    rng = Random(seed)
    tuples = [(n, (1 + n // 3, 1)) for n in range(rng.randint(1, 5))]
    g = cql.stream_group(S=[(n, *at) for n, at in tuples])
    n, m = rng.randint(1, 3), rng.randint(1, 3)

    def answer(g: cql.StreamGroup) -> Any:
        joined = g.S.rows(n).join(g.S.rows(m), select=lambda one, other: 10 * one.value + other.value)
        return joined.states(at="batches")

    found = cql.allowed(answer, g)
    states = {repr(state) for state in found}
    assert len(states) == len(found)
    assert states == {repr(at_batches(one, other, n, m)) for one in orders(tuples) for other in orders(tuples)}
    assert all(repr(answer(cql.stream_group(S=[(v, *at) for v, at in tuples], seed=s))) in states for s in range(3))


def orders(tuples: paper.Tuples) -> list[paper.Tuples]:
    from itertools import permutations

    return [order for order in permutations(tuples) if [at for _, at in order] == [at for _, at in tuples]]


def at_batches(one: paper.Tuples, other: paper.Tuples, n: int, m: int) -> Any:
    joined = paper.join(paper.rows(one, n), paper.rows(other, m), lambda a, b: True, lambda a, b: 10 * a["value"] + b["value"])
    return [(at, sorted(paper.values(joined(at)))) for at in sorted({at for _, at in one})]


def test_the_orders_of_derived_groups_are_tried_too() -> None:
    def answer(g: cql.StreamGroup) -> Any:
        derived = cql.stream_group(A=g.S.range(1).select(lambda e: e.value).istream())
        return derived.A.rows(1).select(lambda e: e.value).istream().events()

    found = cql.allowed(answer, cql.stream_group(S=[(n, 1) for n in range(3)]))
    assert found == [[((1, 1), 2)], [((1, 1), 1)], [((1, 1), 0)]]


def test_too_many_orders_are_refused() -> None:
    g = cql.stream_group(S=[(n, 1) for n in range(5)])
    assert len(cql.allowed(lambda g: g.S.rows(1).states(), g, limit=120)) == 5
    with pytest.raises(ValueError, match="more than 119 combinations"):
        cql.allowed(lambda g: g.S.rows(1).states(), g, limit=119)


MINUTES = sd.from_rows([(datetime(2026, 1, 1, 12, n), datetime(2026, 1, 1, 12, n + 1), {"v": n}) for n in (0, 2, 9)], unit="us")


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda: cql.stream_group(S=[("a", 2, 1), ("b", 1, 1)]), r"\('a'; 2\) comes before \('b'; 1\)"),
        (lambda: cql.stream_group([("S", "a", 2), ("S", "b", 1)], batching=cql.STREAMBASE), r"\('a'; 2\) comes before"),
        (lambda: cql.stream_group(S=[("a", 1, 1), ("b", 2)]), "has no batch number"),
        (lambda: cql.stream_group(S=[("a", 1, 0)]), "batches count from 1"),
        (lambda: cql.stream_group(S=[("a", 1.5)]), "no integer"),  # type: ignore[list-item]
        (lambda: cql.stream_group(S=["ab"]), "is no tuple of stream 'S'"),  # type: ignore[list-item]
        (lambda: cql.stream_group(S=[("a", 1)], span=(2, 3)), "go from 1 to 1"),
        (lambda: cql.stream_group(S=[("a", 1)])["T"], "no stream 'T'; its streams are: S"),
        (lambda: cql.stream_group(S=[("a", 1)]).S.rows(0), "rows takes a whole number >= 1, not 0"),
        (lambda: cql.stream_group(S=[("a", 1)]).S.range(-1), "range takes a whole number >= 0, not -1"),
        (lambda: cql.stream_group(S=[("a", 1)]).S.partition_by("k").rows(1), "no field 'k'; the fields are: value, t"),
        (lambda: cql.stream_group(S=[("a", 1)]).S.rows(1).istream("DIF"), "no semantics 'DIF'"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(S=[("a", 1)]).S.rows(1).states(at="now"), "no states at='now'"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(A=cql.stream_group(S=[("a", 1)]).S.rows(1)), "'A' is a relation"),  # type: ignore[arg-type]
        (lambda: cql.spread(cql.stream_group(S=[("a", 1)]), ["S"], on="k"), "no field 'k'"),
        (lambda: cql.spread(cql.stream_group(S=[("a", 1)]), ["T"]), "no stream 'T'"),
        (lambda: cql.table(["a"]).states(), "a table is the same at every batch"),
        (lambda: cql.table(5), "is no list of rows"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(S=5), "S=5 is no stream"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(S=[("a", 1)], batching="oracle"), "'oracle' is no batching"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(S=[("a", 1)], span=5), "5 is no span"),  # type: ignore[arg-type]
        (lambda: cql.spread(cql.stream_group(S=[("a", 1)]).S, ["S"]), "is no stream group"),  # type: ignore[arg-type]
        (lambda: cql.spread(g := cql.stream_group(S=[("a", 1)]), [g.S]), "do not name streams"),  # type: ignore[list-item]
        (lambda: cql.spread(cql.stream_group(S=[("a", 1)]), "S", on=len), "are no attributes"),  # type: ignore[arg-type]
        (lambda: cql.allowed(cql.stream_group(S=[("a", 1)]), len), "a function of a stream group"),  # type: ignore[arg-type]
        (lambda: cql.allowed(lambda _: 5, cql.stream_group(S=[("a", 1)])), "does not read the group that it is given"),
        (lambda: cql.allowed(lambda g: g.S, cql.stream_group(S=[]), limit="x"), "a limit is a whole number"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(5), "5 is no list of tuples"),  # type: ignore[arg-type]
        (lambda: cql.stream_group([("a", 1)]), "is no tuple of a stream that it names"),  # type: ignore[list-item]
        (lambda: cql.stream_group([(1, "a", 1)]), "is no tuple of a stream that it names"),  # type: ignore[list-item]
        (lambda: cql.stream_group(S=[], seed=[1]), "a seed is a whole number"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(S=[("a", 1)]).S.rows(True), "rows takes a whole number"),
        (lambda: cql.stream_group(S=[("a", 1)]).S.range("5 min"), "range takes a whole number"),
        (lambda: cql.spread(cql.stream_group(S=[("a", 1)]), 5), "do not name streams"),  # type: ignore[arg-type]
        (lambda: cql.table([1]).union(5), "5 is no relation"),  # type: ignore[arg-type]
        (lambda: cql.stream_group(S=MINUTES, T=sd.from_rows([(1, 2, "a")], unit="s")), "different time units"),
    ],
)
def test_what_makes_no_sense_is_refused(write: Callable[[], object], text: str) -> None:
    with pytest.raises(StreamDslError, match=text):
        write()


def test_relations_over_two_groups_are_not_joined() -> None:
    one, other = cql.stream_group(S=[("a", 1)]), cql.stream_group(S=[("a", 1)])
    with pytest.raises(QueryError, match="two stream groups"):
        one.S.rows(1).join(other.S.rows(1))


def test_a_span_of_millions_of_empty_timestamps_costs_nothing() -> None:
    g = cql.stream_group(S=[(1, 0), (2, 10**15)])
    counted = g.S.range(10).aggregate(n=sd.count())
    assert [at for at, _ in counted.istream().events()] == [(0, 1), (10**15, 1)]
    assert [at for at, _ in counted.dstream().events()] == [(10, 1)]


def test_the_relation_of_a_fluent_stream_has_its_rows_at_their_le() -> None:
    rows = sd.from_rows([(1, 4, "a"), (3, 9, "b")])
    g = cql.stream_group(S=rows)
    assert g.S.events() == [((1, 1), "a"), ((3, 1), "b")]
    assert g.S.to_stream().run().cht() == rows.to_points().run().cht()
    assert replace(g.S, name="T") == g.S


def test_a_group_counts_in_its_streams_unit() -> None:
    g = cql.stream_group(S=MINUTES, T=[("a", 1_767_268_800_000_000)])
    spread = cql.spread(g, ["S"], on="v", all=True)
    derived = spread.S.range(None).istream()
    for stream in (g.S, spread.S, derived, cql.stream_group(A=derived).A):
        assert stream.to_stream().plan().unit == "us"
    assert g.S.to_stream().run().cht() == MINUTES.to_points().run().cht()
    minute = 60_000_000
    for size, ticks in (("5 min", 5 * minute), (timedelta(minutes=2), 2 * minute), (minute, minute)):
        assert g.S.range(size).istream() == g.S.range(ticks).istream()
        assert g.S.range(size, slide="1 min").dstream() == g.S.range(ticks, slide=minute).dstream()
    assert g.S.rows(1).output_every("5 min") == g.S.rows(1).output_every(5 * minute)


def test_parts_of_groups_show_what_they_are() -> None:
    g = cql.stream_group(S=[("a", 1), ("b", 3)])
    assert repr(g.S.rows(1).group_by("value")).startswith("<GroupedRelation of <Relation (1, 1): ")
    assert repr(g.S.timeline) == "<Timeline of 2 batches from 1 to 3>"


@examples(50)
@given(SEEDS)
def test_batches_come_from_timestamps_or_from_the_order_of_arrival(seed: int) -> None:
    rng = Random(seed)
    listing = sorted(((rng.choice("ST"), n, rng.randint(0, 4)) for n in range(rng.randint(0, 9))), key=lambda each: each[2])
    together, alone = cql.stream_group(listing), cql.stream_group(listing, batching=cql.STREAMBASE)
    arrived = [t for _, _, t in listing]
    for m, (name, n, t) in enumerate(listing):
        assert ((t, 1), n) in together[name].events()
        assert ((t, arrived[: m + 1].count(t)), n) in alone[name].events()
    assert cql.spread(alone, list(alone), on="t", all=True) == together if listing else list(alone) == []
