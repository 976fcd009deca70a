"""Final means final: what is sent stays whatever comes, and what stays whatever comes is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.engine.held_rows import FEW
from streamdsl.temporal import Event
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.continuations import possible_outputs, rows_that_stay
from tests.laws.expected import sources_of
from tests.laws.fold import Fold
from tests.laws.harness import Run, check_law, pushes_for, rows_without
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, Scenario, scenario

Stream: TypeAlias = "sd.Stream[Any]"
Part: TypeAlias = Callable[[Any], Any]
VARIANTS = [variant for variants in operators().values() for variant in variants]
WINDOWS: list[Part] = [
    lambda s: s.tumbling_window(5, offset=2),
    lambda s: s.hopping_window(9, 3),
    lambda s: s.hopping_window(3, 7, offset=1),
    lambda s: s.tumbling_window(5, output=sd.Output.POINT_AT_END),
    lambda s: s.snapshot_window(),
    lambda s: s.session_window(2),
    lambda s: s.session_window(3, max_duration=8),
    lambda s: s.count_window(1),
    lambda s: s.count_window(2),
    lambda s: s.count_window(3, by="end"),
]
AGGREGATES: list[Part] = [
    lambda w: w.aggregate(n=sd.count()),
    lambda w: w.aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    lambda w: w.aggregate(n=sd.count(), v=sd.max(lambda e: e.v)),
    lambda w: w.aggregate(n=sd.count(), v=sd.median(lambda e: e.v)),
]
BELOW: list[Part] = [
    lambda s: s.where(lambda e: e.v > -2),
    lambda s: s.select(k=lambda e: e.k, v=lambda e: e.v * 2),
    lambda s: s.shift(4),
    lambda s: s.shift(-3),
]
ABOVE: list[Part] = [
    lambda s: s.where(lambda e: e.n != 2),
    lambda s: s.where(lambda e, life: life.re % 2 == 0),
    lambda s: s.shift(6),
    lambda s: s.shift(-1),
    lambda s: s.extend(3),
    lambda s: s.extend(-1),
    lambda s: s.to_points_at_end(),
]
WITHOUT_KEY: list[Part] = [
    lambda s: s.select(n=lambda e: e.n * 10),
    lambda s: s.select(n=lambda e: e.n, long=lambda e, life: life.re - life.le > 3),
]
"""Steps after which rows of two groups may be equal, of which a multiset does not tell which one has changed."""


class Final:
    """A session of final results, and what its input means so far."""

    def __init__(self, query: Stream) -> None:
        self.plan = query.plan()
        self.run = Run(query, "final")
        self.inputs = {name: Fold() for name in sources_of(self.plan)}

    def push(self, source: str, events: Sequence[Event[Any]]) -> None:
        self.inputs[source].take(events)
        self.run.push(source, events)

    def close(self) -> None:
        self.run.close()
        (_, expected) = next(possible_outputs(self.plan, self.inputs))
        assert_cht_equal(self.run.output.cht(), expected)


@contextmanager
def held_in(rng: Random) -> Iterator[None]:
    """Let rows wait in columns, also if they are few, or one by one."""
    few, rare = rng.choice([(FEW, 16), (1, 16), (1, 0), (2, 2)])
    with patch("streamdsl.engine.egress.FEW", few), patch("streamdsl.engine.held_rows._RARE", rare):
        yield


def check_what_is_sent_stays(query: Stream, given: Scenario) -> None:
    final = Final(query)
    for source, events in pushes_for(query, given):
        final.push(source, events)
        for how, output in possible_outputs(final.plan, final.inputs):
            taken_back = rows_without(final.run.output.cht(), output)
            assert not taken_back, f"rows that have been sent change with {how}: {taken_back}"
    final.close()


@examples(60)
@given(SEEDS)
def test_what_final_sends_stays_whatever_comes_of_operators(seed: int) -> None:
    rng = Random(seed)
    variant = rng.choice(VARIANTS)
    note(variant.name)
    with held_in(rng):
        check_what_is_sent_stays(variant.query(), scenario(rng, variant.inputs, unending=False, max_size=5))


def test_what_final_sends_stays_of_a_pair_of_which_one_row_may_still_end() -> None:
    pairs = sd.source("s0").join(sd.source("s1"), on="k")
    first, second = (sd.Insert(name, 0, re, {"k": "a", "v": 1}) for name, re in (("a", 10), ("b", 20)))
    for ahead, behind in (("s0", "s1"), ("s1", "s0")):
        ctis = ((ahead, (sd.Cti(15),)), (behind, (sd.Cti(5),)))
        check_what_is_sent_stays(pairs, Scenario((("s0", (first,)), ("s1", (second,)), *ctis)))


@examples(40)
@given(SEEDS)
def test_what_final_sends_stays_whatever_comes_of_compositions(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    note(made)
    with held_in(rng):
        check_what_is_sent_stays(query, scenario(rng, 2, unending=False, max_size=4))


def window_query(rng: Random) -> Stream:
    """Return a window with operators that look at single rows around it."""
    window, aggregate = rng.choice(WINDOWS), rng.choice(AGGREGATES)
    stream: Stream = sd.source("s0")
    for step in rng.sample(BELOW, rng.randint(0, 2)):
        stream = step(stream)
    is_grouped = rng.random() < 0.5
    stream = aggregate(window(stream.group_by("k") if is_grouped else stream))
    for step in rng.sample(ABOVE if is_grouped else ABOVE + WITHOUT_KEY, rng.randint(0, 2)):
        stream = step(stream)
    return stream


@examples(60)
@given(SEEDS)
def test_nothing_that_is_final_is_held_back(seed: int) -> None:
    rng = Random(seed)
    query = window_query(rng)
    final = Final(query)
    note(query.explain())
    for source, events in pushes_for(query, scenario(rng, unending=False, max_size=6)):
        final.push(source, events)
        assert_cht_equal(final.run.output.cht(), rows_that_stay(final.plan, final.inputs))
    final.close()


@pytest.mark.xfail(strict=True, reason="a window that waits holds its CTI back though a filter above drops its result")
def test_a_result_that_a_filter_drops_holds_no_cti_back() -> None:
    few = sd.source("s0").snapshot_window().aggregate(n=sd.count()).where(lambda e: e.n > 100)
    rows = tuple(sd.Insert(number, le, re, {"v": 1}) for number, (le, re) in enumerate([(-1, 12), (0, 12), (4, 7)]))
    check_law(few, Scenario((("s0", rows), ("s0", (sd.Cti(7),)))), "final")
