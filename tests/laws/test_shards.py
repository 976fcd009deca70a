"""Streams on Spark without Spark: whatever the micro-batches and shards, every shard stopped and restored after each of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import EventError, SchemaError
from streamdsl.plan.node import Source
from streamdsl.temporal import CHT, Cti, Insert
from streamdsl.temporal.payload import payload_key
from streamdsl.testing import arrival_orders, assert_cht_equal
from tests.laws.profiles import examples
from udm_examples.vwap import Trade, Vwap

pytest.importorskip("pyspark")

from streamdsl.expr.schema import Schema
from streamdsl.expr.table import column_of
from streamdsl.spark.codec import decode, encode
from streamdsl.spark.flow import Flow
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.stages import payload_of
from streamdsl.spark.streaming.cut import cut
from streamdsl.spark.streaming.route import RouteStage
from streamdsl.spark.streaming.shard import Parcel, ShardStage, in_sequence
from streamdsl.spark.streaming.shards import shard_places
from streamdsl.spark.streaming.wire import CTI, INSERT, unpacked
from streamdsl.spark.types import INT, STR, Json, Row
from streamdsl.spark.values import edge_of

RECORD = Schema.record(("k", "v"))
TYPE = Row(RECORD, (STR, INT))
KINDS = {INSERT: "insert", CTI: "cti"}


def by_key(s: Any) -> Any:
    return s.where(lambda e: e.v > -3).group_by("k")


def halved(s: Any) -> Any:
    return s.select(k=lambda e: e.v // 2, v=lambda e: e.v).group_by("k")


class Sorted(sd.UDO[Any, int]):
    def compute_result(self, payloads: Sequence[Any]) -> list[int]:
        return sorted(payload["v"] for payload in payloads)


class Seen(sd.UDSO[Any, int, int]):
    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
        return state + 1, [state] * (payload["v"] > 0)


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
}


UNENDING = ("snapshot", "join", "anti join", "with itself", "a filter that reads ends")
"""Queries that may be given rows without end."""


@st.composite
def histories(draw: st.DrawFn) -> CHT[Any]:
    """Draw histories, in which some rows live for 9 ticks: these are to have no end where a query may be given such."""
    n = draw(st.integers(0, 8))
    rows = [
        (draw(st.integers(-5, 15)), draw(st.integers(1, 9)), draw(st.sampled_from("abc")), draw(st.integers(-3, 3)))
        for _ in range(n)
    ]
    return CHT.from_rows([(le, le + span, {"k": k, "v": v}) for le, span, k, v in rows])


def frame_of(events: Sequence[Any]) -> Any:
    """Return events as a micro-batch has them."""
    rows: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, Cti):
            rows.append(("cti", None, event.time, None, None, {"k": None, "v": None}))
        elif isinstance(event, Insert):
            rows.append(("insert", str(event.id), event.le, event.re, sd.INFINITY, event.payload))
        else:
            rows.append(("retract", str(event.id), event.le, event.re, event.re_new, event.payload))
    kinds, ids, le, re, re_new, payloads = zip(*rows, strict=True)
    times = [pa.array([sd.INFINITY if time is None else time for time in column], pa.int64()) for column in (le, re, re_new)]
    arrays = [pa.array(kinds), pa.array(ids, pa.string()), *times, encode([dict(p) for p in payloads], TYPE)]
    return pa.RecordBatch.from_arrays(arrays, ["kind", "id", "le", "re", "re_new", "p"])


def parts_of(events: Sequence[Any], n: int) -> Iterator[Sequence[Any]]:
    size = -(-len(events) // n)
    return (events[part * size : (part + 1) * size] for part in range(n))


@pytest.mark.parametrize("name", QUERIES)
@examples(12)
@given(
    histories(), histories(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99), st.sampled_from(["speculative", "final"])
)
def test_what_shards_send_is_what_the_definition_says(
    name: str, left: CHT[Any], right: CHT[Any], n_shards: int, n_batches: int, seed: int, emit: Any
) -> None:
    query = QUERIES[name](sd.source("s", unit="tick"), sd.source("t", unit="tick"))
    plan = query.plan()
    inputs = {"s": left, "t": right}
    if name in UNENDING:
        inputs = {
            name: CHT.from_rows([(le, sd.INFINITY if re - le == 9 else re, p) for le, re, p in rows])
            for name, rows in inputs.items()
        }
    flows = {name: Flow.of(TYPE, "tick", lambda: None) for name in inputs}
    made = cut(plan)
    types = {each.name: lower(lowering(each.before, flows)).type for each in made.routes}
    shards = tuple(range(n_shards if made.is_keyed else 1))
    routes = [
        RouteStage(
            each.source.source,
            each.name,
            payload_of(TYPE, None),
            each.before if each.key else None,
            each.key,
            types[each.name],
            shards,
            None,
        )
        for each in made.routes
    ]
    out = lower(lowering(plan, flows)).type
    stage = ShardStage(
        made.after, {each.name: payload_of(types[each.name], each.before.schema) for each in made.routes}, out, emit
    )
    batches: dict[str, list[Sequence[Any]]] = {}
    for source in {node.source for node in plan.walk() if isinstance(node, Source)}:
        (events,) = arrival_orders(inputs[source], 1, seed)
        batches[source] = list(parts_of([*events, Cti(sd.INFINITY)], n_batches))
    states: dict[int, bytes | None] = dict.fromkeys(shards)
    sent: list[Any] = []
    for number in range(n_batches):
        parcels: dict[int, list[Parcel]] = defaultdict(list)
        for route in routes:
            rows = batches[route.source][number]
            for table in route.run([frame_of(rows)] if rows else []):
                for row in table.to_pylist():
                    parcels[row["shard"]].append(Parcel(row["source"], row["cti"], row["blob"]))
        for shard, waiting in parcels.items():
            session = stage.open(states[shard])
            for blob in stage.take(session, waiting):
                sent += events_of(unpacked([blob]), edge_of(out), shard)
            states[shard] = session.snapshot()
    assert_cht_equal(CHT.from_events(sent), denote(plan, {name: inputs[name] for name in batches}))


def events_of(table: Any, kind: Any, shard: int) -> Iterator[Any]:
    """Yield what a shard has sent as events."""
    payloads = decode(table.column("p").combine_chunks(), kind)
    if isinstance(kind, Json):
        payloads = [payload and json.loads(payload) for payload in payloads]
    for row, payload in zip(table.select(["kind", "id", "le", "re", "re_new"]).to_pylist(), payloads, strict=True):
        if row["kind"] == INSERT:
            yield Insert((shard, row["id"]), row["le"], row["re"], payload)
        elif row["kind"] != CTI:
            yield sd.Retract((shard, row["id"]), row["le"], row["re"], row["re_new"], payload)


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
    together = shard_places([column_of(keys)], n).tolist()
    alone = [int(shard_places([column_of([key])], n)[0]) for key in keys]
    assert together == alone
    places: dict[Any, int] = {}
    for key, place in zip(map(payload_key, keys), together, strict=True):
        assert places.setdefault(key, place) == place
    assert set(together) <= set(range(n))


@given(histories(), st.integers(0, 99), st.randoms())
def test_rows_that_come_in_no_order_are_put_in_one(history: CHT[Any], seed: int, rng: Any) -> None:
    (events,) = arrival_orders(history, 1, seed)
    rows = [event for event in events if not isinstance(event, Cti)]
    rng.shuffle(rows)
    assert CHT.from_events(in_sequence(rows)) == history


@pytest.mark.parametrize(
    ("column", "value", "said"), [("kind", "gone", "its kind is 'gone'"), ("kind", None, "None"), ("le", None, "null")]
)
def test_rows_that_are_no_events_are_refused(column: str, value: Any, said: str) -> None:
    frame = frame_of([Insert("a", 1, 5, {"k": "a", "v": 1}), Cti(3)])
    place = frame.schema.names.index(column)
    wrong = frame.set_column(place, column, pa.array([value, frame.column(place)[1].as_py()], frame.schema.field(column).type))
    route = RouteStage("s", "s", payload_of(TYPE, None), None, (), TYPE, (0,), None)
    assert len(list(route.run([frame]))) == 3
    with pytest.raises((EventError, SchemaError), match=said):
        list(route.run([wrong]))
