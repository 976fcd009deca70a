"""The law of checkpoints: a session that is stopped anywhere and restored sends the same events as one that is not."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.engine.keys import KeyTable
from streamdsl.temporal import Cti, Event, Insert, Retract
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.harness import EMITS
from tests.laws.incremental import (
    IncrementalEach,
    IncrementalEnds,
    IncrementalSpans,
    IncrementalValues,
    OnlyAdds,
    TimedIncrementalEach,
    TimedIncrementalValues,
)
from tests.laws.modules import Since
from tests.laws.operators import KINDS, UNENDING, Variant, operators
from tests.laws.profiles import examples, some
from tests.laws.scenarios import SEEDS, Push, Scenario, scenario
from tests.laws.stops import HOLD, Pair, check_stops

OPERATORS = operators()


@pytest.mark.parametrize("name", OPERATORS)
def test_a_restored_session_sends_the_same_events(name: str) -> None:
    variants = some(OPERATORS[name], 3)

    @examples(max(1, 6 // len(variants)), parts=len(variants))
    @given(seed=SEEDS)
    def law(variant: Variant, seed: int) -> None:
        rng = Random(f"{variant.name} {seed}")
        emit = rng.choice([*EMITS, HOLD])
        note(variant.name)
        with patch.object(KeyTable, "least", rng.choice([0, KeyTable.least])):
            check_stops(variant.query(), scenario(rng, variant.inputs, variant.unending), emit, rng)

    for variant in variants:
        law(variant)


@examples(24)
@given(SEEDS)
def test_a_restored_composition_sends_the_same_events(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    note(made)
    check_stops(query, scenario(rng, 2, unending=False, max_size=6), rng.choice([*EMITS, HOLD]), rng)


@dataclass
class Total:
    """A state of a class of its own, which is nothing but fields."""

    values: list[int]
    n: int = 0


class Totals(sd.IncrementalUDA[int, Total, int]):
    def create_state(self) -> Total:
        return Total([])

    def add_event_to_state(self, state: Total, payload: int) -> Total:
        state.values.append(payload)
        state.n += 1
        return state

    def remove_event_from_state(self, state: Total, payload: int) -> Total:
        state.values.remove(payload)
        state.n -= 1
        return state

    def compute_result(self, state: Total) -> int:
        return sum(state.values) * state.n


class Box:
    """A state that can only be pickled."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n


class Boxes(sd.IncrementalUDA[int, Box, int]):
    def create_state(self) -> Box:
        return Box(0)

    def add_event_to_state(self, state: Box, payload: int) -> Box:
        state.n += payload
        return state

    def remove_event_from_state(self, state: Box, payload: int) -> Box:
        state.n -= payload
        return state

    def compute_result(self, state: Box) -> int:
        return state.n


MODULES: list[Callable[[Any], sd.Stream[Any]]] = [
    lambda w: w.aggregate(v=IncrementalValues().of(lambda e: e.v), t=Totals().of(lambda e: e.v)),
    lambda w: w.aggregate(v=TimedIncrementalValues().of(lambda e: e.v), n=OnlyAdds().of(lambda e: e.v)),
    lambda w: w.aggregate(v=IncrementalEnds().of(lambda e: e.v), some=sd.Agg(Totals(), lambda e: e.v, lambda e: e.v > 0)),
    lambda w: w.aggregate(v=Boxes().of(lambda e: e.v)),
    lambda w: w.apply(IncrementalEach(), lambda e: e.v),
    lambda w: w.apply(TimedIncrementalEach(), lambda e: e.v),
    lambda w: w.apply(IncrementalSpans(), lambda e: e.v),
]


@pytest.mark.parametrize("kind", KINDS)
@examples(8)
@given(SEEDS)
def test_states_of_modules_go_on(kind: str, seed: int) -> None:
    rng = Random(seed)
    s = sd.source("s0").group_by("k") if rng.random() < 0.4 else sd.source("s0")
    number = rng.randrange(len(MODULES))
    note(f"module {number}")
    query = MODULES[number](rng.choice(KINDS[kind])(s))
    check_stops(query, scenario(rng, unending=kind in UNENDING), rng.choice([*EMITS, HOLD]), rng, trust=True)


@examples(60)
@given(SEEDS)
def test_states_of_scans_go_on(seed: int) -> None:
    rng = Random(seed)
    s = sd.source("s0")
    query = rng.choice([s.scan(Since()), s.group_by("k").apply(lambda g: g.scan(Since))])
    check_stops(query, scenario(rng, unending=True, max_size=16), rng.choice([*EMITS, HOLD]), rng)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Fact:
    k: Any
    v: Any


@dataclass
class Note:
    k: Any
    v: Any


class Pack(NamedTuple):
    k: Any
    v: Any


def value(rng: Random) -> Any:
    """Return a value of some type that is plain, or is built of such."""
    n = rng.randint(-2, 2)
    made: list[Callable[[], Any]] = [
        lambda: n,
        lambda: 10 ** (30 * n) if n > 0 else -(2 ** (70 * -n)),
        lambda: n / 3,
        lambda: rng.choice([float("nan"), float("inf"), -0.0, 1.0, True]),
        lambda: None,
        lambda: rng.choice(["", "ä\ud800", "a" * 40]),
        lambda: (n, [n, {"deep": (None, b"\x00\xff")}]),
        lambda: Decimal(n) / 8,
        lambda: Fraction(n, 7),
        lambda: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(n),
        lambda: date(2020, 1, 3 + n),
        lambda: frozenset([n, "x"]),
        lambda: {n, n + 1},
        lambda: rng.choice(list(Colour)),
        lambda: Note(n, [Pack(n, Fact(n, "x"))]),
        lambda: sd.Record(a=n, b=[sd.Record()]),
        lambda: range(n),
        lambda: complex(n, 1),
        lambda: Colour,
    ]
    return rng.choice(made)()


def with_payloads(rng: Random, chosen: Scenario) -> Scenario:
    """Return a scenario with payloads of another shape, and values of any types in it."""
    shape: Callable[[Any, Any], Any] = rng.choice(
        [Fact, Note, Pack, lambda k, v: sd.Record(k=k, v=v), lambda k, v: {"k": k, "v": v}]
    )
    same = rng.random() < 0.5
    return mapped(chosen, lambda e: shape(e.k, e.v * 0.1 if same else value(rng)))


def mapped(chosen: Scenario, payload: Callable[[Any], Any]) -> Scenario:
    """Return a scenario with other payloads, which retractions leave out."""

    def changed(event: Event[Any]) -> Event[Any]:
        if isinstance(event, Insert):
            return Insert(event.id, event.le, event.re, payload(event.payload))
        return Retract(event.id, event.le, event.re, event.re_new) if isinstance(event, Retract) else event

    return Scenario(tuple((source, tuple(map(changed, events))) for source, events in chosen.pushes))


PLAIN: list[Callable[..., sd.Stream[Any]]] = [
    lambda s, t: s,
    lambda s, t: s.select(lambda e: e.v),
    lambda s, t: s.stitch(),
    lambda s, t: s.distinct(lambda e: e.k),
    lambda s, t: s.select(lambda e: {"k": e.k, "v": (e.v, e.k)}).distinct(),
    lambda s, t: s.select(lambda e: (e.v, e.k)).stitch(),
    lambda s, t: s.select(lambda e: {"k": e.k, "v": e.v}).group_by(lambda e: e).snapshot_window().aggregate(n=sd.count()),
    lambda s, t: s.group_by("v").session_window(3, max_duration=7).aggregate(n=sd.count(), all=sd.collect(lambda e: e.k)),
    lambda s, t: s.union(t),
    lambda s, t: s.join(t, on="v"),
    lambda s, t: s.full_join(t, on="k"),
    lambda s, t: s.asof_join(t, on="v", how="left"),
    lambda s, t: s.anti_join(t, on="v"),
    lambda s, t: s.to_edges(key="v"),
    lambda s, t: s.group_by("v").tumbling_window(5).aggregate(n=sd.count()),
    lambda s, t: s.group_by(lambda e: (e.v, e.k)).snapshot_window().aggregate(n=sd.count()),
    lambda s, t: s.group_by("v").session_window(3).aggregate(n=sd.count(), all=sd.collect(lambda e: e.k)),
    lambda s, t: s.hopping_window(6, 3).aggregate(
        all=sd.collect(lambda e: e), last=sd.last(lambda e: e.v), n=sd.count_distinct(lambda e: e.v)
    ),
    lambda s, t: s.count_window(2).aggregate(all=sd.collect(lambda e: e.v)),
    lambda s, t: s.match(lambda p: p.a.then(p.b.many()).then(p.c).within(7), overlapping=True),
]
SUMS: list[Callable[..., sd.Stream[Any]]] = [
    lambda s, t: s.hopping_window(6, 3).aggregate(v=sd.sum(lambda e: e.v), a=sd.avg(lambda e: e.v), d=sd.stddev(lambda e: e.v)),
    lambda s, t: s.group_by("k").snapshot_window().aggregate(v=sd.sum(lambda e: e.v), a=sd.avg(lambda e: e.v)),
    lambda s, t: s.group_by("k").session_window(3).aggregate(v=sd.sum(lambda e: e.v), m=sd.min(lambda e: e.v)),
    lambda s, t: s.tumbling_window(4).aggregate(v=sd.sum(lambda e: 3 * 2**62 * (e.v > 0) - 2**61)),
]


@pytest.mark.parametrize("number", range(len(PLAIN)))
@examples(10)
@given(SEEDS)
def test_payloads_of_all_kinds_go_on(number: int, seed: int) -> None:
    rng = Random(seed)
    query = PLAIN[number](sd.source("s0"), sd.source("s1"))
    chosen = with_payloads(rng, scenario(rng, 2, unending=False))
    check_stops(query, chosen, rng.choice([*EMITS, HOLD]), rng, types=(Colour, Fact, Note, Pack))


ADDENDS = (0.1, 1e17, -1e17, 3.3, float("inf"), float("nan"), 1e-300)
"""Floats that do not add up exactly, some of them not finite."""


@pytest.mark.parametrize("number", range(len(SUMS)))
@examples(15)
@given(SEEDS)
def test_sums_go_on_exactly(number: int, seed: int) -> None:
    rng = Random(seed)
    query = SUMS[number](sd.source("s0"), None)
    chosen = mapped(scenario(rng, unending=False, max_size=14), lambda e: sd.Record(k=e.k, v=rng.choice(ADDENDS)))
    check_stops(query, chosen, rng.choice([*EMITS, HOLD]), rng)


PROGRESS = [
    sd.Progress.ordered(),
    sd.Progress.slack(3),
    sd.Progress.every(3, delay=2),
    sd.Progress.wall_clock(1, clock=lambda: 0),
    sd.Progress.imported_from("s1", 2),
    sd.Progress.slack(2, max_jump=4).idle_after(3),
]


@examples(60)
@given(SEEDS)
def test_policies_and_what_they_have_refused_go_on(seed: int) -> None:
    rng = Random(seed)
    policy = rng.choice(PROGRESS)
    unit: Any = "s" if policy.kind == "wall" else None
    violation: Any = rng.choice(["drop", "adjust"])
    s = sd.source("s0", unit=unit, progress=policy, on_violation=violation)
    query = (
        s.union(sd.source("s1", unit=unit, on_violation=violation)).clip_duration(9).tumbling_window(4).aggregate(n=sd.count())
    )
    pushes: list[Push] = list(scenario(rng, 2, unending=False, max_size=12).pushes)
    rng.shuffle(pushes)
    check_stops(query, Scenario(tuple(legal(pushes))), rng.choice([*EMITS, HOLD]), rng)


def legal(pushes: Sequence[Push]) -> list[Push]:
    """Return pushes without retractions, and with one insertion of each id: these are late as they are, not wrong."""
    come: set[tuple[str, Hashable]] = set()
    found: list[Push] = []
    for source, events in pushes:
        kept: list[Event[Any]] = []
        for event in events:
            if isinstance(event, Cti) or (isinstance(event, Insert) and (source, event.id) not in come):
                kept.append(event)
                come |= {(source, event.id)} if isinstance(event, Insert) else set()
        found.append((source, tuple(kept)))
    return found


def test_columns_go_on() -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(5)
    frames = [
        pd.DataFrame({"le": n * 50 + rng.integers(0, 100, 4000), "k": rng.integers(0, 900, 4000), "v": rng.random(4000)})
        for n in range(6)
    ]
    s = sd.source("s0", progress=sd.Progress.slack(160))
    queries = [
        s.group_by("k").hopping_window(40, 10).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v), m=sd.max(lambda e: e.v)),
        s.group_by(lambda e: (e.k, e.k % 7)).snapshot_window().aggregate(n=sd.count()),
        s.join(sd.source("s0", progress=sd.Progress.slack(160)).shift(3), on="k"),
    ]
    for query in queries:
        pair = Pair(query, "speculative", None)
        for frame in frames:
            assert_columns(pair, frame)
            pair.stop()
        pair.close()


def assert_columns(pair: Pair, frame: Any) -> None:
    whole, stopped = pair.whole.feed(frame).events(), pair.stopped.feed(frame).events()
    assert stopped == whole
