"""Queries that are attached to a running one mean their own plan, of the rows that were live then and those that came later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from hypothesis import example, note

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.attached import Attached
from streamdsl.engine.published import LEAST
from streamdsl.plan.node import Source
from streamdsl.rewrite import with_equal_parts
from streamdsl.temporal import CHT, INFINITY, Cti
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.expected import sources_of
from tests.laws.fold import Fold
from tests.laws.harness import EMITS, Run, pushes_for
from tests.laws.operators import Variant, operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, Push, scenario

Stream = sd.Stream[Any]

VARIANTS = [variant for variants in operators().values() for variant in variants]
SOURCES = {variant.name: set(sources_of(variant.query().plan())) for variant in VARIANTS}
READERS: tuple[Callable[[Stream], Stream], ...] = (
    lambda out: out,
    lambda out: out.shift(3),
    lambda out: out.alter_duration(4),
    lambda out: out.clip_duration(9).hopping_window(6, 2).aggregate(n=sd.count()),
    lambda out: out.snapshot_window().aggregate(n=sd.count()),
    lambda out: out.count_window(2).aggregate(n=sd.count()),
    lambda out: out.union(out.to_points()),
    lambda out: out.group_by(lambda e: 7).apply(lambda g: g.stitch()),
)
"""Queries over the output of any other."""


class Reading:
    """A query that was attached, the rows of the streams that it reads as they were then, and what it has sent."""

    def __init__(self, host: Run, attached: Attached[Any], query: Stream, streams: dict[str, Fold]) -> None:
        self.attached = attached
        self.query = query
        self.streams = streams
        self.ctis = {name: stream.cti for name, stream in streams.items()}
        self.output = Fold()
        self.host = host

    def pull(self) -> None:
        self.output.take(self.attached.pull())

    def check(self) -> None:
        """Raise unless the output is that of the rows that were live, and of what came later."""
        self.pull()
        rows = {name: CHT(row for row in fold.cht() if row.re >= self.ctis[name]) for name, fold in self.streams.items()}
        assert_cht_equal(self.output.cht(), denote(self.query.plan(), rows))
        assert self.output.cti == INFINITY


@example(3_128)  # a row that comes few at a time changes twice, as in few others
@examples(60)
@given(SEEDS)
def test_an_attached_query_means_its_plan_over_what_was_live_and_what_came_later(seed: int) -> None:
    rng = Random(seed)
    with patch("streamdsl.engine.published.LEAST", rng.choice([0, 2, LEAST])):
        _check(rng)


def _check(rng: Random) -> None:
    variant = rng.choice(VARIANTS)
    query = variant.query()
    pushes = pushes_for(query, scenario(rng, variant.inputs, variant.unending))
    host = Run(query, rng.choice(EMITS), {"attach": "on"})
    folds: dict[str, Fold] = {name: Fold() for name in host.session.sources}
    published = Run(query, "speculative" if host.emit == "final" else host.emit)
    readings = []
    note(f"{variant.name}, emit={host.emit}")
    for place in range(len(pushes) + 1):
        if rng.random() < 0.4:
            note(f"attached after {place} pushes")
            readings.append(_attached(rng, host, variant, query, folds, published.output))
        if place < len(pushes):
            _push(pushes[place], host, published, folds)
            for reading in readings:
                if rng.random() < 0.5:
                    reading.pull()
    for run in (host, published):
        run.close()
    for fold in folds.values():
        fold.take([Cti(INFINITY)])
    for reading in readings:
        reading.check()


def _push(push: Push, host: Run, published: Run, folds: dict[str, Fold]) -> None:
    source, events = push
    folds[source].take(events)
    for run in (host, published):
        run.push(source, events)


def _attached(rng: Random, host: Run, variant: Variant, query: Stream, folds: dict[str, Fold], output: Fold) -> Reading:
    emit = rng.choice([*EMITS, sd.emit.Emit(4)])
    if rng.random() < 0.6:
        reader = rng.choice(READERS)
        attached = host.session.attach(reader(query), emit)
        return Reading(host, attached, reader(sd.source("out")), {"out": output})
    fitting = [each for each in VARIANTS if each.inputs <= variant.inputs and (each.unending or not variant.unending)]
    fitting = [each for each in fitting if each.unit == variant.unit and SOURCES[each.name] <= folds.keys()]
    other = rng.choice(fitting).query()
    if with_equal_parts(other.plan(), query.plan(), Source("out")) is not other.plan():
        return _attached(rng, host, variant, query, folds, output)
    return Reading(host, host.session.attach(other, emit), other, folds)


def test_published_rows_that_have_ended_are_dropped_as_the_cti_passes_them() -> None:
    session = sd.source("s").where(lambda e: e.v >= 0).open(engine_options={"attach": "on"})
    session.push([sd.Insert(n, n, n + 9_000, {"v": n}) for n in range(6_000)])
    kept = session.published["s"]._batches
    assert sum(map(len, kept)) == 6_000
    session.push([Cti(20_000)])
    assert session.published["s"]._batches == []
