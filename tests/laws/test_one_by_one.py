"""Rows that come one by one pass in Python's own values: what is sent is what columns send, event for event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.engine.ingress import Ingress
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.query_session import Session
from streamdsl.engine.row_batch import RowBatch
from streamdsl.engine.starting import restored
from streamdsl.errors import SessionError, StreamDslError, UserCodeError
from streamdsl.temporal import Cti, Event, Insert, Retract
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.harness import EMITS, follow, pushes_for
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario
from tests.laws.test_sorted_runs import small_limits

Stream: TypeAlias = "sd.Stream[Any]"
VARIANTS = [variant for variants in operators().values() for variant in variants]
NUMBERS: list[Any] = [0, 1, -3, 7, True, 2.5, -0.1, 0.1, 1e300, -1e300, 1e-320, None, 2**45, 2**62, -(2**63), 2**70, float("nan")]
KEYS: list[Any] = ["a", "b", 1, 1.0, True, -5, 2**61, 2**64, None, 2.5]


class Total(sd.IncrementalUDA[int, int, int]):
    """A sum whose state knows nothing of sums."""

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, payload: int) -> int:
        return state + payload

    def remove_event_from_state(self, state: int, payload: int) -> int:
        return state - payload

    def compute_result(self, state: int) -> int:
        return state


class Pair(sd.IncrementalUDA[int, Any, Any]):
    """The least and the largest value, from a state that is changed where it is, and from which nothing can be taken."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        state[:] = [min(payload, *state), max(payload, *state)] if state else [payload, payload]
        return state

    def compute_result(self, state: list[int]) -> Any:
        return state


def before(rng: Random, s: Stream) -> Stream:
    steps: list[Callable[[Stream], Stream]] = [
        lambda s: s.where(lambda e: e.v != 7),
        lambda s: s.where(lambda e: sd.is_none(e.v) | (e.n > 0)),
        lambda s: s.where(lambda e: e.v > 0),
        lambda s: s.select(k=lambda e: e.k, n=lambda e: e.n + 1, v=lambda e: e.v),
        lambda s: s.select(k=lambda e: sd.when(e.n > 4).then(e.k).otherwise("x"), n=lambda e: e.n // 2, v=lambda e: e.v),
        lambda s: s.select(k=lambda e: e.k, n=lambda e: e.n, v=lambda e: 10 / e.v),
        lambda s: s.shift(2),
    ]
    for step in rng.sample(steps, rng.choice([0, 0, 1, 2])):
        s = step(s)
    return s


def windowed(rng: Random, s: Any) -> Stream:
    size, hop = rng.choice([(6, 6), (12, 3), (10, 4), (3, 7), (40, 3), (5, 1)])
    output = rng.choice([sd.Output.ALIGN, sd.Output.ALIGN, sd.Output.POINT_AT_END])
    kinds: list[Callable[[], Any]] = [
        lambda: s.hopping_window(size, hop, offset=rng.randint(-3, 3)),
        lambda: s.hopping_window(size, hop, output=sd.Output.POINT_AT_END),
        lambda: s.snapshot_window(output=output),
        lambda: s.session_window(rng.choice([1, 3, 8]), max_duration=(None, 4, 9)[size % 3], output=output),
        lambda: s.count_window(rng.choice([1, 2, 2, 4]), by=rng.choice(["start", "end"]), output=output),
    ]
    windows = rng.choice([kinds[0], *kinds])()
    numbers: dict[str, Any] = {
        "c": sd.count(),
        "m": sd.count(lambda e: e.v),
        "t": sd.sum(lambda e: e.v),
        "a": sd.avg(lambda e: e.v),
        "w": sd.sum(lambda e: e.n, where=lambda e: e.n > 3),
        "f": sd.avg(lambda e: e.n * 0.1),
        "e": sd.stddev(lambda e: e.n * 0.1),
        "g": sd.sum(lambda e: e.v, where=lambda e: e.n < 6),
        "b": sd.max(lambda e: e.n),
        "l": sd.min(lambda e: e.n * 0.5),
        "h": sd.max(lambda e: sd.when(e.n > 4).then(e.n).otherwise(None)),
        "s": Total().of(lambda e: e.n),
        "p": sd.Agg(Pair(), lambda e: e.n, lambda e: e.n != 2),
        "d": sd.median(lambda e: e.n),
        "u": sd.count_distinct(lambda e: e.n, where=lambda e: e.n > 1),
        "o": sd.min(lambda e: e.n, where=lambda e: e.n > 5),
    }
    chosen = rng.sample(list(numbers), rng.randint(1, 3))
    found: Stream = windows.aggregate(**{name: numbers[name] for name in chosen})
    return found


def after(rng: Random, s: Stream) -> Stream:
    steps: list[Callable[[Stream], Stream]] = [
        lambda s: s,
        lambda s: s.select(z=lambda e: 1),
        lambda s: s.union(s.shift(3)),
        lambda s: s.tumbling_window(9).aggregate(n=sd.count()),
        lambda s: s.snapshot_window().aggregate(n=sd.count()),
    ]
    return rng.choice([*[steps[0]] * 4, *steps])(s)


def chain(rng: Random) -> Stream:
    s = before(rng, sd.source("s0"))
    kind = rng.randrange(6)
    if kind == 0:
        return s
    if kind == 1:
        return after(rng, windowed(rng, s))
    key: Any = rng.choice(["k", ["k", "n"], lambda e: e.n % 2, lambda e: (e.n, e.k)])
    if kind == 2:
        nested = s.group_by(key).apply(lambda g: windowed(rng, g.group_by("n")).where(lambda e: e.n != 3))
        return after(rng, nested)
    if kind == 3:
        return after(rng, s.group_by(key).apply(lambda g: windowed(rng, before(rng, g)).select(y=lambda e: 2)))
    return after(rng, windowed(rng, s.group_by(key)))


def keyed(rng: Random, *others: Callable[[Any, Any], object]) -> dict[str, Any]:
    """Return by what rows are joined, under a condition, or one of some others."""
    on = [
        "k",
        "n",
        ["k", "n"],
        (lambda a: a.n % 3, lambda b: b.n % 2),
        (lambda a: (a.n % 2, a.k), lambda b: (b.n % 2, b.k)),
        (lambda a: a.v, lambda b: b.n),
        (lambda a: a.v / a.n, lambda b: b.v),
        None,
    ]
    where = [None, None, None, lambda a, b: a.n < b.n, lambda a, b: (a.v != b.v) & (a.n != 3)]
    return {"on": rng.choice(on), "where": rng.choice([*where, *others])}


def joined(rng: Random, s: Any, t: Any) -> Stream:
    select = [
        lambda a, b: {"k": a.k, "n": a.n + b.n, "v": b.v},
        lambda a, b: {"k": b.k, "n": a.n, "v": a.v},
        lambda a, b: {"k": a.k, "n": b.n, "v": a.v - b.v},
        lambda a, b: sd.when(a.n > 3).then(a).otherwise(b),
        lambda a, b: a,
        lambda a, b: b,
    ]
    found: Stream
    if rng.random() < 0.5:
        found = s.join(t, **keyed(rng, lambda a, b: a.v > b.v), select=rng.choice(select))
        return found
    select[-3:] = [lambda a, b: {"k": a.k, "n": a.n, "v": sd.when(sd.is_none(b)).then(0).otherwise(b.v)}, lambda a, b: a]
    near: dict[str, Any] = {"direction": rng.choice(["back", "forward", "nearest"]), "how": rng.choice(["inner", "left"])}
    if rng.random() < 0.5:
        near["tolerance"] = rng.choice([0, 2, 6, 30])
    # A condition that fails is none here: which rows that are not the nearest are asked for it depends on how they have come.
    found = s.asof_join(t, **keyed(rng), **near, select=rng.choice(select))
    return found


def two_sided(rng: Random) -> Stream:
    s, t = before(rng, sd.source("s0")), before(rng, sd.source("s1"))
    kind = rng.randrange(10)
    if kind == 0:
        return after(rng, windowed(rng, joined(rng, s, t)))
    if kind == 1:
        return joined(rng, joined(rng, s, t), sd.source("s2"))
    if kind == 2:
        return s.group_by("k").apply(lambda g: joined(rng, g.where(lambda e: e.n < 5), g.where(lambda e: e.n > 3)))
    if kind == 3:
        return joined(rng, windowed(rng, s.group_by("k")).select(k=lambda e: e.k, n=lambda e: 4, v=lambda e: e.k), t)
    if kind == 4:
        return rng.choice([s.join(t, **keyed(rng)), after(rng, joined(rng, s, t.union(sd.source("s2"))))])
    if kind in (5, 6):
        value: Any = rng.choice([None, lambda e: e.k, lambda e: e.n % 3, lambda e: (e.k, e.n % 2), lambda e: sd.is_none(e.v)])
        values = s if value is None else s.select(value)
        return after(rng, rng.choice([values.distinct(), s.group_by("n").apply(lambda g: g.select(lambda e: e.k).distinct())]))
    if kind == 7:
        return after(rng, windowed(rng, s.union(t)).union(sd.source("s2").select(c=lambda e: e.n)))
    return after(rng, before(rng, joined(rng, s, t)))


def events_for(rng: Random, lengths: Sequence[int] = (1, 1, 1, 3, 9)) -> Iterator[Event[Any]]:
    """Yield insertions, many of them points, retractions and CTIs, that no CTI forbids."""
    few = rng.random() < 0.6
    values = [1, 2, 3, -4, 7] if few else NUMBERS
    cti, time, known = -10, -10, dict[Any, tuple[int, int, Any]]()
    for number in range(rng.randint(1, 30)):
        time = max(cti, time + rng.choice([-2, 0, 0, 1, 1, 2, 5]))
        change = rng.random()
        if change < 0.12:
            cti = max(cti, time - rng.randint(0, 4))
            yield Cti(cti)
        elif change < 0.3 and known:
            id = rng.choice(list(known))
            le, re, payload = known[id]
            re_new = rng.choice([le, le + 1, max(le, cti), re + 2])
            if min(re, re_new) < cti or re == re_new:
                continue
            yield Retract(id, le, re, re_new, payload)
            known.pop(id)
            if re_new > le:
                known[id] = (le, re_new, payload)
        else:
            re = time + rng.choice(lengths)
            payload = {"k": rng.choice("abc" if few else KEYS), "n": rng.randint(0, 9), "v": rng.choice(values)}
            known[number] = (time, re, payload)
            yield Insert(number, time, re, payload)


class Ways:
    """A session whose rows may pass in scalars, and one whose rows pass in columns."""

    def __init__(self, query: Stream, emit: Any) -> None:
        self.plan = query.plan()
        self.scalars: Session[Any] = query.open(emit=emit)
        self.columns: Session[Any] = query.open(emit=emit)

    def push(self, source: str, events: Sequence[Event[Any]]) -> bool:
        """Push to both; return False after an exception of user code, which both raise."""
        found = outcome(self.scalars, source, events)
        with patch.object(Ingress, "_single_insertion", lambda *_: None), patch.object(Ingress, "_row_batch", lambda *_: None):
            expected = outcome(self.columns, source, events)
        if self.scalars.emit == "final" and isinstance(found, list) != isinstance(expected, list):
            return False  # an error of user code comes when the rows that wait are looked at
        assert sent(found, len(events)) == sent(expected, len(events))
        return isinstance(found, list)

    def swap(self) -> None:
        """Let each go on in the state of the other."""
        states = self.columns.snapshot(), self.scalars.snapshot()
        self.scalars, self.columns = (restored(self.plan, None, state) for state in states)
        for session, state in zip((self.scalars, self.columns), states, strict=True):
            assert session.snapshot() == state

    def figures(self) -> list[Any]:
        names = ("windows", "events", "in", "out", "input_cti", "output_cti", "udm_calls")
        return [{label: [one[name] for name in names] for label, one in s.stats().items()} for s in (self.scalars, self.columns)]

    def close(self) -> None:
        assert sent(outcome(self.scalars), 0) == sent(outcome(self.columns), 0)


def sent(found: Any, size: int) -> Any:
    """Return what was sent as text; rows that are alike in all but their ids come in any order, of several events all do.

    An error in a pair of rows is that of any pair.
    """
    if not isinstance(found, list):
        return re.sub(r"event \(.*", "event", repr(found))
    in_order = [repr(replace(event, id=None)) if size == 1 and not isinstance(event, Cti) else event for event in found]
    return sorted(map(repr, found)), [each for each in in_order if isinstance(each, (str, Cti))]


def outcome(session: Session[Any], *push: Any) -> Any:
    """Return what a push, or else the close, sends or raises."""
    try:
        return session.push(list(push[1]), source=push[0]) if push else session.close()
    except StreamDslError as error:
        return f"{type(error).__name__}: {error}"


def test_scalars_send_the_retraction_of_a_result_that_ends_after_the_watermark_again() -> None:
    query = sd.source("s").session_window(3).aggregate(n=sd.count())
    lives = {"out": (0, 1), "the watermark": (5, 6), "between": (3, 6)}
    follow(query, [[Insert(name, le, re, {"v": 1})] for name, (le, re) in lives.items()], "watermark")


def test_scalars_send_snapshots_that_single_rows_cut_and_give_back() -> None:
    query = sd.source("s").snapshot_window().aggregate(n=sd.count(), total=sd.sum(lambda e: e.v))
    rows = [Insert(n, le, re, {"v": n}) for n, (le, re) in enumerate([(0, 20), (5, 9), (12, 30), (3, 14)], start=1)]
    gone = [Retract(row.id, row.le, row.re, row.le, row.payload) for row in rows[1:]]
    events: list[Event[Any]] = [*rows, *gone]
    follow(query, [[event] for event in events], "speculative")


@examples(120)
@given(SEEDS)
def test_scalars_send_what_columns_send(seed: int) -> None:
    rng = Random(seed)
    with patch.object(KeyTable, "least", rng.choice([0, KeyTable.least])):
        ways = Ways(chain(rng), rng.choice(["speculative", "speculative", "watermark", "final"]))
        with suppress(UserCodeError):  # of rows that wait with "final" until somebody looks at the state
            go_both_ways(rng, ways, list(events_for(rng)))


def go_both_ways(rng: Random, ways: Ways, events: list[Event[Any]]) -> None:
    largest = rng.choice([1, 1, 2, 4, 17])
    while events:
        size = rng.randint(1, largest)
        if not ways.push("s0", events[:size]):
            return
        del events[:size]
        if rng.random() < 0.05:
            ways.swap()
    if ways.scalars.emit != "final":  # then it depends on what has waited together
        one, other = ways.figures()
        assert one == other
    ways.close()


@examples(80)
@given(SEEDS)
def test_scalars_join_what_columns_join(seed: int) -> None:
    rng = Random(seed)
    with small_limits(rng) if rng.random() < 0.5 else nullcontext(), patch.object(KeyTable, "least", rng.choice([0, 1000])):
        query = two_sided(rng)
        ways = Ways(query, rng.choice(EMITS))
        coming = {name: list(events_for(rng, [1, 5, 9, 70])) for name in sorted(ways.scalars.sources)}
        largest = rng.choice([1, 1, 2, 4, 17])
        while coming:
            source, size = rng.choice(list(coming)), rng.randint(1, largest)
            if not ways.push(source, coming[source][:size]):
                return
            del coming[source][:size]
            if not coming[source]:
                del coming[source]
            if rng.random() < 0.05:
                ways.swap()
        one, other = ways.figures()
        assert one == other
        ways.close()


@examples(60)
@given(SEEDS)
def test_scalars_send_what_columns_send_of_any_query(seed: int) -> None:
    rng = Random(seed)
    if rng.random() < 0.5:
        made, query = composition(rng)
        inputs, unending = 2, False
    else:
        variant = rng.choice(VARIANTS)
        made, query, inputs, unending = variant.name, variant.query(), variant.inputs, variant.unending
    note(made)
    ways = Ways(query, rng.choice(EMITS))
    for source, events in pushes_for(query, scenario(rng, inputs, unending)):
        for event in events:
            if not ways.push(source, [event]):
                return
    ways.close()


def test_rows_of_simple_queries_pass_in_scalars() -> None:
    s = sd.source("s", progress=sd.Progress.ordered())
    by_key = s.where(lambda e: e.v > 0).group_by("k").hopping_window(60, 10).aggregate(n=sd.count(), t=sd.sum(lambda e: e.v))
    session = by_key.where(lambda e: e.t > 3).select(k=lambda e: e.k, t=lambda e: e.t / e.n).open(engine_options={"attach": "on"})
    for n in range(6):
        assert session.push([sd.point(n, n, {"k": "a", "v": 2.5})])
    assert type(session.output._batches[-1]) is RowBatch


@pytest.mark.parametrize(
    "query",
    [
        lambda s, t: s.where(lambda e: e.v > 0).join(t, on="k", select=lambda a, b: a.v - b.v).where(lambda v: v < 9),
        lambda s, t: s.join(
            t, on=(lambda a: (a.k, a.v), lambda b: (b.k, b.v)), where=lambda a, b: a.k < "b", select=lambda a, b: a
        ),
        lambda s, t: s.asof_join(t, on="k", how="left", select=lambda a, b: sd.when(sd.is_none(b)).then(0).otherwise(b.v)),
        lambda s, t: s.union(t).select(lambda e: e.v).distinct(),
    ],
)
def test_rows_of_two_sources_pass_in_scalars(query: Callable[[Stream, Stream], Stream]) -> None:
    progress = sd.Progress.ordered()
    s, t = sd.source("s", progress=progress), sd.source("t", progress=progress)
    session = query(s, t).open(engine_options={"attach": "on"})
    for n in range(7):
        out = session.push([sd.interval(n, n, n + 4, {"k": "a", "v": 2.5})], source="st"[n % 2])
    assert len(out) > 1
    assert type(session.output._batches[-1]) is RowBatch


def test_an_error_of_user_code_names_its_event() -> None:
    session = sd.source("s").where(lambda e: e.v > 0).select(w=lambda e: 1 / (e.v - 3)).open()
    session.push([sd.point("good", 1, {"v": 5})])
    with pytest.raises(UserCodeError, match="bad"):
        session.push([sd.point("bad", 2, {"v": 3})])
    with pytest.raises(SessionError, match="has failed"):
        session.push([sd.point("later", 3, {"v": 5})])
