"""Subscriptions: from one state each sends what a session of its own would send."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.engine.starting import restored
from streamdsl.errors import QueryError, SessionError, UnitError
from streamdsl.temporal import CHT, INFINITY
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.fold import Fold
from tests.laws.harness import Run, pushes_for
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario
from tests.laws.stops import assert_same

VARIANTS = [variant for variants in operators().values() for variant in variants]
ALIKE: list[Any] = ["speculative", sd.emit.Emit(hold=6), sd.emit.Emit(hold=0)]
"""What a speculative session and its subscriptions run in the same way, so that ids are the same too."""


@examples(60)
@given(SEEDS)
def test_a_subscription_sends_the_events_of_a_session_of_its_own(seed: int) -> None:
    rng = Random(seed)
    variant, emit, own = rng.choice(VARIANTS), rng.choice(ALIKE), rng.choice(ALIKE)
    note(f"{variant.name}, emit={emit} beside {own}")
    query = variant.query()
    alone, shared = query.open(emit=emit), query.open(emit=own)
    subscription = shared.subscribe(emit)
    for source, events in pushes_for(query, scenario(rng, variant.inputs, variant.unending)):
        shared.push(list(events), source=source)
        assert_same(alone.push(list(events), source=source), subscription.pull())
    shared.close()
    assert_same(alone.close(), subscription.pull())


@pytest.mark.parametrize("own", ["speculative", "watermark"])
@examples(60)
@given(SEEDS)
def test_of_the_rows_that_a_session_sends_a_subscription_sends_the_final_ones(own: Any, seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng) if rng.random() < 0.5 else _operator(rng)
    note(made)
    run = Run(query, own)
    subscription, final = run.session.subscribe("final"), Fold()
    pushes = pushes_for(query, scenario(rng, 2, unending=False, max_size=8))
    for source, events in pushes:
        run.push(source, events)
        sent = subscription.pull()
        assert not any(isinstance(event, sd.Retract) for event in sent)
        final.take(sent)
        rows = [row for row in run.output.cht() if row.re <= run.final]
        if own == "speculative":
            assert_cht_equal(final.cht(), CHT(rows))
        else:  # a row that the watermark lets out after the CTI that makes it final leaves with the next CTI
            assert not Counter(map(repr, final.cht())) - Counter(map(repr, rows))
    run.close()
    final.take(subscription.pull())
    assert_cht_equal(final.cht(), run.output.cht())
    assert final.cti == INFINITY


def _operator(rng: Random) -> tuple[str, sd.Stream[Any]]:
    variant = rng.choice([each for each in VARIANTS if not each.unending])
    return variant.name, variant.query()


@examples(40)
@given(SEEDS)
def test_a_restored_session_goes_on_with_its_subscriptions(seed: int) -> None:
    rng = Random(seed)
    variant, emits = rng.choice(VARIANTS), rng.sample([*ALIKE, "final"], 2)
    note(f"{variant.name}, {emits}")
    query = variant.query()
    whole, stopped = query.open(), query.open()
    kept = [whole.subscribe(emit) for emit in emits]
    for emit in emits:
        stopped.subscribe(emit)
    pushes = pushes_for(query, scenario(rng, variant.inputs, variant.unending))
    stop = rng.randint(0, len(pushes))
    for place, (source, events) in enumerate(pushes):
        if place == stop:
            stopped = restored(query.plan(), None, stopped.snapshot())
        assert_same(whole.push(list(events), source=source), stopped.push(list(events), source=source))
        if rng.random() < 0.5:  # what was not pulled is in the checkpoint
            for one, other in zip(kept, stopped.subscriptions, strict=True):
                assert_same(one.pull(), other.pull())
    assert_same(whole.close(), stopped.close())
    for one, other in zip(kept, stopped.subscriptions, strict=True):
        assert one.emit == other.emit
        assert_same(one.pull(), other.pull())


def counts() -> sd.Stream[Any]:
    return sd.source("trips").tumbling_window(10).aggregate(n=sd.count())


def test_columns_are_fetched_as_a_push_feeds_them() -> None:
    session = counts().open()
    live = session.subscribe("speculative")
    fed = session.feed([sd.point("a", 3, {"v": 1}), sd.Cti(20)])
    assert live.fetch().to_arrow().equals(fed.to_arrow())
    assert repr(live) == "<Subscription emit='speculative': 0 events to pull, 0 rows held back>"


def test_a_push_that_is_undone_is_undone_for_subscriptions() -> None:
    session = sd.source("s").hopping_window(1, 1).aggregate(n=sd.count()).open(engine_options={"most_windows": 10})
    final = session.subscribe("final")
    with pytest.raises(sd.errors.UnboundedOutputError):
        session.push([sd.point("a", 0, 1), sd.Cti(1), sd.interval("c", 1, 10**9, 1), sd.Cti(10**9)])
    session.push([sd.point("b", 1, 1), sd.Cti(5)])
    assert [(row.le, row.payload.n) for row in final.pull() if isinstance(row, sd.Insert)] == [(1, 1)]


@pytest.mark.parametrize(
    ("own", "emit"),
    [
        ("final", "speculative"),
        ("final", "final"),
        ("speculative", "watermark"),
        ("watermark", "speculative"),
        ("watermark", sd.emit.Emit(hold=5)),
    ],
)
def test_what_one_state_cannot_serve_is_refused(own: Any, emit: Any) -> None:
    with pytest.raises(QueryError, match=r"has no subscription with .*: its windows, inner ones too, "):
        counts().open(emit=own).subscribe(emit)


def test_a_subscription_begins_before_the_first_push() -> None:
    session = counts().open()
    session.push([sd.point("a", 3, 7)])
    with pytest.raises(SessionError, match="this session has had input already"):
        session.subscribe()


def test_durations_need_the_unit_of_the_session() -> None:
    with pytest.raises(UnitError, match="counts time in ticks"):
        counts().open().subscribe(sd.emit.Emit(hold="5s"))
    dated = sd.source("trips", unit="us").tumbling_window("10s").aggregate(n=sd.count()).open()
    assert dated.subscribe(sd.emit.Emit(hold="5s")).pull() == []
