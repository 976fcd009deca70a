"""Streams on Spark without Spark: whatever the micro-batches and shards, every shard stopped and restored after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.denote.source import history
from streamdsl.errors import EventError, SchemaError, TimeOverflow
from streamdsl.plan.node import sources
from streamdsl.temporal import CHT, Cti, Insert, Rejections, Retract, sync_time
from streamdsl.temporal.payload import payload_key
from streamdsl.testing import arrival_orders, assert_cht_equal
from streamdsl.testing.random_orders import arrival_order
from streamdsl.udm import UDSO
from tests.laws.compositions import composition
from tests.laws.key_limits import small_limits
from tests.laws.profiles import examples
from tests.operators import entries
from udm_examples.vwap import Trade, Vwap

pytest.importorskip("pyspark")

from streamdsl.expr.table import column_of
from streamdsl.sharding.partitioning import HashById, SinglePartition, hash_to_shards
from streamdsl.spark.stages import payload_of
from streamdsl.spark.streaming.exchange import ExchangeStage, Route, SourceOrigin
from streamdsl.spark.streaming.shard import in_valid_order
from streamdsl.spark.streaming.wire import INSERT, to_ipc, unpack_output
from tests.laws.sharded import FRAMES, TYPE, Streamed


def by_key(s: Any) -> Any:
    return s.where(lambda e: e.v > -3).group_by("k")


def halved(s: Any) -> Any:
    return s.select(k=lambda e: e.v // 2, v=lambda e: e.v).group_by("k")


class Sorted(sd.UDO[Any, int]):
    def compute_result(self, payloads: Sequence[Any]) -> list[int]:
        return sorted(payload["v"] for payload in payloads)


class Seen(UDSO[Any, int, int]):
    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
        return state + 1, [state] * (payload["v"] > 0)


S, T = (sd.source(name, unit="tick") for name in "st")
TABLE: sd.Stream[Any] = sd.sources.from_table([{"k": "a", "name": "A"}, {"k": "b", "name": "B"}, {"k": "z", "name": "B"}])
QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "tumbling": lambda s, t: by_key(s).tumbling_window(5).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)),
    "hopping by a number": lambda s, t: halved(s).hopping_window(8, 3).aggregate(least=sd.min(lambda e: e.v)),
    "snapshot": lambda s, t: by_key(s).snapshot_window().aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v)),
    "session": lambda s, t: by_key(s).session_window(3).aggregate(n=sd.count()),
    "key of two parts": lambda s, t: s.group_by(lambda e: {"k": e.k, "w": e.v % 2}).tumbling_window(6).aggregate(n=sd.count()),
    "a filter that reads ends": lambda s, t: (
        s.where(lambda e, life: life.re - life.le > 3).group_by("k").snapshot_window().aggregate(n=sd.count())
    ),
    "a projection that reads ends": lambda s, t: (
        s.select(lambda e, life: {"k": e.k, "v": life.re}).group_by("k").snapshot_window().aggregate(m=sd.max(lambda e: e.v))
    ),
    "a key that reads ends": lambda s, t: (
        s.select(lambda e, life: {"k": life.re % 3, "v": e.v})
        .where(lambda e: e.k > 0)
        .group_by("k")
        .count_window(2)
        .aggregate(m=sd.max(lambda e: e.v))
    ),
    "rows of groups": lambda s, t: by_key(s).apply(lambda g: g.to_points()).shift(2),
    "join": lambda s, t: s.join(t, on="k", select=lambda a, b: {"k": a.k, "w": a.v + b.v}),
    "anti join": lambda s, t: s.anti_join(t.where(lambda e: e.v > 0), on="k"),
    "with itself": lambda s, t: s.semi_join(s.where(lambda e: e.v < 0), on="v"),
    "an incremental module": lambda s, t: by_key(s).hopping_window(8, 4).aggregate(mean=Vwap().of(lambda e: Trade(e.v, 1))),
    "an operator": lambda s, t: by_key(s).tumbling_window(6).apply(Sorted()),
    "a stream operator": lambda s, t: by_key(s).apply(lambda g: g.scan(Seen()).count_window(2).aggregate(n=sd.count())),
    "as-of join": lambda s, t: s.asof_join(t, on="k", select=lambda a, b: {"k": a.k, "w": b.v}),
    "pattern": lambda s, t: by_key(s).apply(lambda g: g.match(lambda p: p.a.then(p.b).within(4), select=lambda m: m.b.v)),
    "count window": lambda s, t: by_key(s).count_window(2).aggregate(n=sd.count()),
    "one shard": lambda s, t: s.tumbling_window(5).aggregate(n=sd.count()),
    "rows alone": lambda s, t: s.where(lambda e: e.v > -2).select(v=lambda e: e.v).alter_duration(4).chop(3),
    "lifetimes, then groups": lambda s, t: (
        s.shift(3).where(lambda e: e.v > -2).alter_duration(7).group_by("k").snapshot_window().aggregate(n=sd.count())
    ),
    "lifetimes that read payloads, then groups": lambda s, t: (
        s.alter_lifetime(duration=lambda e, life: e.v + 4)
        .select(k=lambda e: e.k)
        .group_by("k")
        .count_window(2)
        .aggregate(n=sd.count())
    ),
    "pieces of rows, grouped": lambda s, t: (
        s.select_many(lambda e: [e.k] * abs(e.v)).group_by(lambda word: word).tumbling_window(4).aggregate(n=sd.count())
    ),
    "a union, grouped": lambda s, t: s.union(t.shift(1)).group_by("k").tumbling_window(5).aggregate(n=sd.count()),
    "left join": lambda s, t: s.left_join(t, on="k", select=lambda a, b: {"k": a.k, "b": b}),
    "full join": lambda s, t: s.full_join(t, on="k"),
    "band join": lambda s, t: s.band_join(t, before=3, after=2, on="k", select=lambda a, b: (a.v, b.v), time="both"),
    "distinct": lambda s, t: s.distinct(),
    "stitched": lambda s, t: s.select(lambda e: e.k).stitch(),
    "edges by key": lambda s, t: s.to_edges("k"),
    "groups, then all": lambda s, t: (
        by_key(s).tumbling_window(4).aggregate(n=sd.count()).hopping_window(8, 4).aggregate(most=sd.max(lambda e: e.n))
    ),
    "groups, then other groups": lambda s, t: (
        by_key(s).hopping_window(6, 3).aggregate(n=sd.count()).group_by("n").snapshot_window().aggregate(m=sd.count())
    ),
    "groups of what is joined": lambda s, t: (
        s.join(t, on="k", select=lambda a, b: {"k": a.k, "w": a.v + b.v}).group_by("w").session_window(2).aggregate(n=sd.count())
    ),
    "a join of what is grouped": lambda s, t: (
        by_key(s)
        .tumbling_window(5)
        .aggregate(n=sd.count())
        .anti_join(t.where(lambda e: e.v > 0), on=(lambda a: a.n, lambda b: b.v))
    ),
    "one shard beside many": lambda s, t: (
        s.group_by("k")
        .tumbling_window(5)
        .aggregate(n=sd.count())
        .union(s.tumbling_window(5).aggregate(n=sd.count()).select(k=lambda e: "all", n=lambda e: e.n))
    ),
    "three stages": lambda s, t: (
        s.select_many(lambda e: [e.k, "d"])
        .group_by(lambda w: w)
        .tumbling_window(4)
        .aggregate(n=sd.count())
        .select(lambda e: e.n)
        .distinct()
    ),
    "reference data": lambda s, t: s.left_join(TABLE, on="k", select=lambda a, b: (a.v, b)),
    "reference data on the left": lambda s, t: TABLE.full_join(s.where(lambda e: e.v > 0), on="k", select=lambda a, b: (a, b)),
    "what is made of reference data": lambda s, t: s.semi_join(
        TABLE.group_by("name").snapshot_window().aggregate(n=sd.count()).select(v=lambda e: e.n), on="v"
    ),
}


def of_entries() -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """Yield of each operator the first variant that runs in shards by a key, or else by ids."""
    for entry in entries().values():
        said = [
            build(*(sd.source(name, unit="tick") for name in "st"[: entry.inputs])).on_spark(None).explain_stream()
            for build in entry.variants
        ]
        for way in ("shards by e", "shards by"):
            places = [place for place, each in enumerate(said) if each.startswith(way)]
            if places:
                yield entry.name, partial(entry.over, places[0])
                break


QUERIES |= {f"{name}, a variant": query for name, query in of_entries()}

UNENDING = ("snapshot", "join", "anti join", "with itself", "a filter that reads ends")
"""Queries that may be given rows without end."""


TEXTS = st.sampled_from(["a", "b", "", None])


@st.composite
def histories(draw: st.DrawFn) -> CHT[Any]:
    """Draw histories, in which some rows live for 9 ticks: these are to have no end where a query may be given such."""
    n = draw(st.integers(0, 8))
    rows = [(draw(st.integers(-5, 15)), draw(st.integers(1, 9)), draw(TEXTS), draw(st.integers(-3, 3))) for _ in range(n)]
    return CHT.from_rows([(le, le + span, {"k": k, "v": v}) for le, span, k, v in rows])


def parts_of(events: Sequence[Any], n: int) -> Iterator[Sequence[Any]]:
    size = -(-len(events) // n)
    return (events[part * size : (part + 1) * size] for part in range(n))


@pytest.mark.parametrize("name", QUERIES)
@examples(10)
@given(
    histories(), histories(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99), st.sampled_from(["speculative", "final"])
)
def test_what_shards_send_is_what_the_definition_says(
    name: str, left: CHT[Any], right: CHT[Any], n_shards: int, n_batches: int, seed: int, emit: Any
) -> None:
    query = QUERIES[name](sd.source("s", unit="tick"), sd.source("t", unit="tick"))
    plan = query.on_spark(None)._plan
    inputs = {"s": left, "t": right}
    if name in UNENDING:
        inputs = {
            name: CHT.from_rows([(le, sd.INFINITY if re - le == 9 else re, p) for le, re, p in rows])
            for name, rows in inputs.items()
        }
    streamed = Streamed(query, n_shards, emit, seed)
    inputs = {source: inputs[source] for source in streamed.sources}
    batches = {
        source: list(parts_of([*arrival_orders(rows, 1, seed)[0], Cti(sd.INFINITY)], n_batches))
        for source, rows in inputs.items()
    }
    sent: list[Any] = []
    for number in range(n_batches):
        cti = streamed.cti
        with small_limits(Random(seed)):
            new = streamed.batch({source: parts[number] for source, parts in batches.items()})
        assert all(sync_time(event) >= cti for event in new)
        assert emit != "final" or all(isinstance(event, Insert) for event in new)
        sent += new
    assert streamed.cti == sd.INFINITY
    assert_cht_equal(CHT.from_events(sent), denote(plan, {**inputs, **streamed.static}))


@examples(30)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 3))
@example(938, 3, 2)  # in these two, shards of one stage come to different CTIs
@example(135, 2, 2)
def test_random_queries_in_stages(seed: int, n_shards: int, n_batches: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    streamed = Streamed(query, n_shards, rng.choice(["speculative", "watermark", "final"]), seed)
    note(f"{made}\n{query.on_spark(None).explain_stream()}")
    rows = [[(le, le + life, {"k": k, "v": v}) for le, life, k, v in drawn_rows(rng)] for _ in streamed.sources]
    inputs = {name: CHT.from_rows(each) for name, each in zip(sorted(streamed.sources), rows, strict=True)}
    orders = {name: arrival_orders(history, 1, seed)[0] for name, history in inputs.items()}
    batches = {name: list(parts_of([*events, Cti(sd.INFINITY)], n_batches)) for name, events in orders.items()}
    sent = [e for n in range(n_batches) for e in streamed.batch({name: parts[n] for name, parts in batches.items()})]
    assert_cht_equal(CHT.from_events(sent), denote(query.plan(), inputs))


@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if "t" in sources(query(S, T).on_spark(None)._plan)])
@examples(5)
@given(histories(), histories(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99), st.booleans())
def test_a_static_side_has_all_its_rows_before(
    name: str, left: CHT[Any], right: CHT[Any], n_shards: int, n_batches: int, seed: int, is_left: bool
) -> None:
    query = QUERIES[name](S, T)
    inputs = dict(zip("st" if is_left else "ts", (left, right), strict=True))
    (live, rows), (static, _) = inputs.items()
    streamed = Streamed(query, n_shards, "final", seed, {static: inputs[static]})
    events = [*arrival_orders(rows, 1, seed)[0], Cti(sd.INFINITY)]
    sent = [event for part in parts_of(events, n_batches) for event in streamed.batch({live: part})]
    assert streamed.cti == sd.INFINITY
    assert_cht_equal(CHT.from_events(sent), denote(query.plan(), {**streamed.static, **inputs}))


def drawn_rows(rng: Random) -> list[tuple[int, int, str, int]]:
    return [(rng.randint(-5, 15), rng.randint(1, 9), rng.choice("abc"), rng.randint(-1, 3)) for _ in range(rng.randint(0, 8))]


NUMBERS = st.sampled_from([0, 1, -1, 2**53, 2**63 - 1, 2**63, -(2**63), 0.5])
KEYS = st.one_of(
    NUMBERS,
    NUMBERS.map(float),
    NUMBERS.map(Decimal),
    NUMBERS.map(Fraction),
    st.integers(),
    st.booleans(),
    st.floats(),
    st.text(max_size=2),
    st.none(),
)


@given(st.lists(KEYS, min_size=1), st.integers(1, 7))
def test_equal_keys_go_to_one_shard(keys: list[Any], n: int) -> None:
    together = hash_to_shards([column_of(keys)], n).tolist()
    alone = [int(hash_to_shards([column_of([key])], n)[0]) for key in keys]
    assert together == alone
    places: dict[Any, int] = {}
    for key, place in zip(map(payload_key, keys), together, strict=True):
        assert places.setdefault(key, place) == place
    assert set(together) <= set(range(n))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3))), st.integers(1, 5))
def test_what_is_told_of_an_id_goes_to_one_shard(ids: list[str | None], n: int) -> None:
    places = HashById().shard_indexes(None, pa.array(ids, pa.string()), n).tolist()  # type: ignore[arg-type]
    assert set(places) <= set(range(n))
    assert len({(id, place) for id, place in zip(ids, places, strict=True) if id is not None}) == len({*ids} - {None})


@given(histories(), st.integers(0, 99), st.randoms())
def test_rows_that_come_in_no_order_are_put_in_one(history: CHT[Any], seed: int, rng: Any) -> None:
    rows: list[Any] = arrival_order(history, Random(seed), ctis=False)
    rng.shuffle(rows)
    assert CHT.from_events(in_valid_order(rows)) == history


def test_retractions_of_two_uses_of_an_id_are_not_put_together() -> None:
    one, other = Insert("a", 1, 9, "x"), Insert("a", 0, 1, "y")
    rows: list[Any] = [one, Retract("a", 1, 9, 1, "x"), other, Retract("a", 0, 1, 0, "y")]
    assert {(row.le, row.re, row.re_new) for row in in_valid_order(rows) if isinstance(row, Retract)} == {(1, 9, 1), (0, 1, 0)}


def test_an_id_that_a_shard_uses_again_is_another_one_for_those_who_read() -> None:
    table = pa.table({"kind": [INSERT, INSERT], "id": ["a", "a"], "le": [1, 5]})
    sent = pa.RecordBatch.from_pydict({"shard": [0], "blob": [to_ipc(table)]})
    assert len({id for batch in unpack_output([sent]) for id in batch.column("id").to_pylist()}) == 2


@pytest.mark.parametrize(
    ("frames", "column", "value", "error", "said"),
    [
        ("events", "kind", "gone", SchemaError, "its kind is 'gone'"),
        ("events", "kind", None, SchemaError, "None"),
        ("events", "le", None, EventError, "null"),
        ("lifetimes", "le", None, EventError, "null"),
        ("points", "le", None, EventError, "null"),
        ("points", "le", sd.INFINITY - 1, TimeOverflow, "leaves the range of times"),
    ],
)
def test_rows_that_are_no_events_are_refused(frames: str, column: str, value: Any, error: type[Exception], said: str) -> None:
    frame = FRAMES[frames]([Insert("a", 1, 5, {"k": "a", "v": 1}), Insert("b", 2, 5, {"k": "b", "v": 1})])
    place = frame.schema.names.index(column)
    wrong = frame.set_column(place, column, pa.array([value, frame.column(place)[1].as_py()], frame.schema.field(column).type))
    way = Route("s", sd.source("s").plan(), SinglePartition(), TYPE, (0,))
    route = ExchangeStage(SourceOrigin("s", payload_of(TYPE, None), None, "tick"), (way,))
    assert len(list(route.run([frame]))) == 2
    with pytest.raises(error, match=said):
        list(route.run([wrong]))


POLICIES: dict[str, sd.Progress] = {
    "slack": sd.Progress.slack(3),
    "every three rows": sd.Progress.every(3, delay=3),
    "every five ticks": sd.Progress("period", 3, 5),
    "a clock": sd.Progress.wall_clock("5s", clock=lambda: -4 * 10**9),
    "of another source": sd.Progress.imported_from("t", delay=3),
}


@pytest.mark.parametrize("name", POLICIES)
@examples(12)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3))), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_a_policy_moves_progress_batch_by_batch(name: str, late: list[tuple[int, int]], shards: int, n: int, seed: int) -> None:
    """Rows that are late by no more than a policy allows count, and the last stage hears of the progress."""
    rows = [(start, {"k": "abc"[start % 3], "v": start}) for start, _ in sorted(late, key=lambda each: sum(each))]
    s = sd.source("s", unit="s", progress=POLICIES[name])
    t = sd.source("t", unit="s", progress=sd.Progress.slack(0))
    sums = s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).tumbling_window(5).aggregate(m=sd.sum(lambda e: e.n))
    streamed = Streamed(sums.union(t.where(lambda e: e.v < 0).select(m=lambda e: e.v)), shards, "final", seed)
    sent: list[Any] = []
    latest, last = sd.MIN_TIME, sd.MIN_TIME
    points = [sd.point(f"{number}", start, payload) for number, (start, payload) in enumerate(rows)]
    for part in parts_of(points, n):
        ahead = [each for each in part if each.le >= latest]
        latest = max([latest, *(each.le for each in part)])
        sent += streamed.batch({"s": part, "t": ahead})
        last = streamed.cti
    expected = CHT.from_rows([(start, start + 1, payload) for start, payload in rows])
    sent += streamed.batch({"s": [Cti(sd.INFINITY)], "t": [Cti(sd.INFINITY)]})
    assert_cht_equal(CHT.from_events(sent), denote(sums.plan(), {"s": expected}))
    if rows and name != "every three rows":
        assert last <= latest
        assert name == "a clock" or last >= (latest - 3) // 5 * 5 - 10


def test_a_clock_moves_a_source_that_has_no_rows_while_others_have() -> None:
    clock = sd.Progress.wall_clock("5s", clock=lambda: 22 * 10**9)
    s, t = sd.source("s", unit="s", progress=sd.Progress.ordered()), sd.source("t", unit="s", progress=clock)
    groups = s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).select(k=lambda e: "all", v=lambda e: e.n)
    for query in (s.semi_join(t, on="k"), groups.anti_join(t, on="v")):
        streamed = Streamed(query, 2, "final")
        streamed.batch({"s": [sd.point("a", 30, {"k": "a", "v": 1})], "t": []})
        assert streamed.cti == 20


@pytest.mark.parametrize("name", QUERIES)
@examples(5)
@given(
    histories(),
    histories(),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 99),
    st.booleans(),
    st.sampled_from(["speculative", "final"]),
)
def test_rows_without_kinds_are_insertions(
    name: str, left: CHT[Any], right: CHT[Any], n_shards: int, n_batches: int, seed: int, ends: bool, emit: Any
) -> None:
    """A frame without kinds has no ids either, and where it has no ends its rows are points."""
    query = QUERIES[name](S, T)
    streamed = Streamed(query, n_shards, emit, seed, frames="lifetimes" if ends else "points")
    rows = {"s": left, "t": right}
    inputs = {
        source: CHT.from_rows([(le, re if ends else le + 1, payload) for le, re, payload in rows[source]])
        for source in streamed.sources
    }
    batches = {
        source: list(parts_of([Insert(n, *row) for n, row in enumerate(history)], n_batches))
        for source, history in inputs.items()
    }
    sent = [e for n in range(n_batches) for e in streamed.batch({source: parts[n] for source, parts in batches.items()})]
    sent += streamed.batch({source: [Cti(sd.INFINITY)] for source in inputs})
    assert_cht_equal(CHT.from_events(sent), denote(query.on_spark(None)._plan, {**inputs, **streamed.static}))


@pytest.mark.parametrize("frames", FRAMES)
@pytest.mark.parametrize("on_violation", ["drop", "adjust"])
@examples(12)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9))), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_rows_that_come_too_late_are_told_of(
    on_violation: Any, frames: str, rows: list[tuple[int, int]], shards: int, n: int, seed: int
) -> None:
    """A shard drops or moves what a session would whose CTI moves after each micro-batch, and says so, from any stage."""
    source = sd.source("s", unit="tick", progress=sd.Progress.slack(2), on_violation=on_violation)
    query = source.group_by("k").snapshot_window().aggregate(n=sd.count()).snapshot_window().aggregate(m=sd.sum(lambda e: e.n))
    streamed = Streamed(query, shards, seed=seed, frames=frames)
    lives = [(le, 1 if frames == "points" else life) for le, life in rows]
    points = [Insert(f"{i}", le, le + life, {"k": "abc"[life % 3], "v": le}) for i, (le, life) in enumerate(lives)]
    told, sent = [], []
    for part in parts_of(points, n):
        told += [*part, Cti(max([-2, *(each.le - 2 for each in points[: points.index(part[-1]) + 1])]))] if part else []
        sent += streamed.batch({"s": part})
    sent += streamed.batch({"s": [Cti(sd.INFINITY)]})
    rejected = Rejections()
    node = replace(sources(query.plan())["s"], progress=None)
    left = history(node, told, "tick", rejected)
    assert_cht_equal(CHT.from_events(sent), denote(query.plan(), {"s": left}))
    assert sorted(streamed.rejected) == sorted((each.event.le, each.event.re, each.cti) for each in rejected)
