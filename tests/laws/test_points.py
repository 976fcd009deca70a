"""Points in columns, whose ids and ends are made late, and rows of tuples: what is sent is what their events cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import note

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine import batch
from streamdsl.engine.batch import PointBatch
from streamdsl.expr.table import Table
from streamdsl.io import readers
from streamdsl.io.binding import Inserts
from streamdsl.temporal import MIN_TIME, Cti
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

VARIANTS = [variant for variants in operators().values() for variant in variants]


def pushes(rng: Random, cti: int = MIN_TIME) -> list[Any]:
    """Return insertions of points in columns, and CTIs, in pushes."""
    found: list[Any] = []
    for _ in range(rng.randint(1, 4)):
        starts = [rng.randint(max(cti, -9), max(cti, -9) + 12) for _ in range(rng.choice((1, 2, 5, 12, 40)))]
        payloads = [{"k": rng.choice("ab"), "v": rng.randint(-2, 3)} for _ in starts]
        found.append(Inserts(None, np.array(starts), None, Table.from_payloads(payloads)))
        if rng.random() < 0.5:
            cti = rng.randint(max(cti, -9), max(cti, -9) + 8)
            found.append([Cti(cti)])
    return found


def as_events(pushed: Any, first: int) -> Any:
    return list(pushed.events(first)) if isinstance(pushed, Inserts) else pushed


@examples(150)
@given(SEEDS)
def test_points_in_columns_are_their_events(seed: int) -> None:
    rng = Random(seed)
    variant = rng.choice(VARIANTS)
    emit = rng.choice(EMITS)
    note(f"{variant.name}, {emit}")
    columns, events = variant.query().open(emit=emit), variant.query().open(emit=emit)
    with patch.object(batch, "SLICE", rng.choice((2, 3, 100))):
        for source in columns.sources:
            first = 0
            for pushed in pushes(rng):
                assert columns.push(pushed, source) == events.push(as_events(pushed, first), source)
                first += len(pushed) if isinstance(pushed, Inserts) else 0
    assert columns.close() == events.close()


def tumbling(s: Any) -> sd.Stream[Any]:
    found: sd.Stream[Any] = s.group_by("k").tumbling_window(4).aggregate(n=sd.count(), t=sd.sum(lambda e: e.v))
    return found


QUERIES: list[Callable[[Any], sd.Stream[Any]]] = [
    tumbling,
    lambda s: s.where(lambda e: e.v > 0),
    lambda s: s.shift(3),
    lambda s: s.snapshot_window().aggregate(n=sd.count(), m=sd.max(lambda e: e.v)),
    lambda s: s.join(s.shift(1), on="k", select=lambda a, b: {"a": a.v, "b": b.v}),
]


@examples(100)
@given(SEEDS)
def test_a_run_over_tuples_is_what_the_reference_says_of_their_events(seed: int) -> None:
    rng = Random(seed)
    starts = [rng.randint(-9, 9) for _ in range(rng.randint(1, 12))]
    make = rng.choice(QUERIES)
    long = [] if make is tumbling else [2**40, sd.INFINITY]  # in windows without end there is no last one
    lengths = [1, 1, 1, *rng.choice([[], [], [0, 2, 9], [3, *long]])]
    chosen = rng.choices(lengths, k=len(starts))
    ends = [sd.INFINITY if length == sd.INFINITY else start + length for start, length in zip(starts, chosen, strict=True)]
    payloads = [(rng.randint(0, 1), rng.choice([1, 2, -3, rng.choice([2, 2**33, 0.5, None, 4])])) for _ in starts]
    rows = list(zip(starts, ends, payloads, strict=True))
    if any(value is None for _, value in payloads):
        rows = [(le, re, (k, v or 0)) for le, re, (k, v) in rows]
    source: Any = sd.source("s")
    query = make(source.select(k=lambda e: e._0, v=lambda e: e._1))
    expected = denote(query.plan(), {"s": sd.CHT.from_events([sd.Insert(n, *row) for n, row in enumerate(rows)])})
    with patch.object(readers, "_AT_ONCE", rng.choice((1, 3, 100))):
        assert query.run({"s": rows}).cht() == expected


@examples(50)
@given(SEEDS)
def test_some_of_the_points_are_those_rows(seed: int) -> None:
    rng = Random(seed)
    le = np.array([rng.randint(-5, 5) for _ in range(rng.randint(1, 9))])
    points: batch.Batch = PointBatch(rng.randint(0, 9), le, Table.from_payloads(le.tolist()))
    plain = batch.Batch(points.ids, le, le, le + 1, points.table)
    for _ in range(3):
        begin = rng.randint(0, len(plain))
        some: Any = rng.choice((slice(begin, None), np.array(rng.sample(range(len(plain)), begin), dtype=np.intp)))
        if isinstance(some, slice):
            points, plain = points._mapped(some), plain._mapped(some)
        else:
            points, plain = points.take(some), plain.take(some)
        assert points.are_points
    rows = list(zip(points.ids.tolist(), points.le.tolist(), points.re_old.tolist(), points.re_new.tolist(), strict=True))
    assert rows == list(zip(plain.ids.tolist(), plain.le.tolist(), plain.re_old.tolist(), plain.re_new.tolist(), strict=True))
    assert points.table.payloads() == plain.table.payloads()
