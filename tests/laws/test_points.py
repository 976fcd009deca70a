"""Points in columns, whose ids and ends are made late: what is sent is what their events cause, event for event."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, note

from streamdsl.engine import batch
from streamdsl.engine.batch import Points
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.temporal import MIN_TIME, Cti
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


@examples(50)
@given(SEEDS)
def test_some_of_the_points_are_those_rows(seed: int) -> None:
    rng = Random(seed)
    le = np.array([rng.randint(-5, 5) for _ in range(rng.randint(1, 9))])
    points: batch.Batch = Points(rng.randint(0, 9), le, Table.from_payloads(le.tolist()))
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
