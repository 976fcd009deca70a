"""`throttle`: all that tests and pages know of it."""

from __future__ import annotations

from typing import Any, assert_type

from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.nodes import Field, Whole
from streamdsl.plan import node as algebra
from streamdsl.temporal import CHT, INFINITY, CHTRow
from streamdsl.temporal.payload import payload_order
from streamdsl.udm.throttle import Throttle
from tests.operators.entry import Meaning, Operator, Stream
from tests.unit.denote.reading import histories, meaning
from tests.unit.facade.trips import TRIP, TRIPS, Trip, trips

THROTTLE = """
title: a row passes 5 after the last of its key that did; one that comes late, and one that goes, decide anew of those after it
query: s.throttle(5, key="k")
in: k v
out: k v

> insert a 3 9 - x 1
> insert b 6 7 - y 2
insert a 3 9 - x 1
insert b 6 7 - y 2

> insert c 9 12 - x 3
insert c 9 12 - x 3

> insert d 5 20 - x 4

> insert e 1 2 - x 5
retract a 3 9 3 x 1
insert e 1 2 - x 5

> retract a 3 9 3

> retract e 1 2 1
retract e 1 2 1 x 5
retract c 9 12 9 x 3
insert d 5 20 - x 4

> insert f 5 6 - x 0
retract d 5 20 5 x 4
insert f 5 6 - x 0

> cti - 9
cti - 9

> insert g 9 10 - x 9

close>
cti - inf
"""

OPERATORS = [
    Operator(
        "throttle",
        page="order",
        variants=[
            lambda s: s.throttle(3),
            lambda s: s.throttle(5, key="k"),
            lambda s: s.throttle(4, key=lambda e: (e.k, e.v % 2)),
            lambda s: s.select(lambda e: e.v).quantize(3, 3).throttle(1),
            lambda s: s.group_by("k").apply(lambda g: g.throttle(6, key="v")),
            lambda s: s.throttle(2, key="k").snapshot_window().aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
        ],
        spark={
            "`throttle`": lambda s: s.throttle(3),
            "`throttle` by key": lambda s: s.throttle(5, key="k").where(lambda e: e.n > 0),
        },
        meaning=[
            Meaning(
                "`throttle(period, key)`",
                "of each key the rows whose LE is at least `period` after that of the last one that passed, taken in "
                "order of (LE, payload, RE) [choice]; lifetimes stay",
                "c",
            ),
        ],
        transcripts={"throttle": THROTTLE},
        plans=[
            (trips.throttle("1m"), algebra.Scan(TRIPS, Throttle(60))),
            (
                trips.throttle("1m", key="zone"),
                algebra.GroupApply(TRIPS, Field("zone"), algebra.Scan(algebra.Group(TRIP, "s", 0), Throttle(60)), Whole()),
            ),
        ],
        refused=[
            (lambda: trips.throttle(5, "zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
            (lambda: trips.throttle("0s"), QueryError, ("positive period, not 0", 'throttle("5s", key="id")')),
            (lambda: trips.throttle(5).where(lambda e: e.faer > 3), FieldNotFound, ("'faer'", "zone, fare")),  # type: ignore[attr-defined]
        ],
    ),
]


@given(rows=histories, period=st.integers(1, 9), by_key=st.booleans())
def test_what_passes_is_far_enough_from_what_has_passed(rows: CHT[Any], period: int, by_key: bool) -> None:
    query: Stream = sd.source("left").throttle(period, key="k" if by_key else None)
    found, last, expected = meaning(query.plan(), rows), dict[Any, int](), list[CHTRow[Any]]()
    for row in sorted(rows, key=lambda row: (row.le, payload_order(row.payload), row.re)):
        key = row.payload.k if by_key else None
        if row.le >= last.get(key, -INFINITY) + period:
            last[key] = row.le
            expected.append(row)
    assert found == CHT(expected)


def test_payloads_are_of_the_same_type() -> None:
    assert_type(trips.throttle("5s"), sd.Stream[Trip])
    assert_type(trips.throttle("5s", key=lambda e: (e.zone, e.fare)), sd.Stream[Trip])
    assert trips.throttle(5, key="zone").plan().schema == TRIP


def test_a_key_is_forgotten_when_its_period_is_over() -> None:
    s: Stream = sd.source("s")
    query = s.throttle(5, key="k")
    assert not [found for found in sd.checks.check(query) if "for ever" in found.what]
    session = query.open()
    for time in range(0, 1000, 10):
        session.push([sd.point(time, time, {"k": time}), sd.Cti(time + 5)])
    assert [list(operator.held_groups()) for operator in session._graph.operators if operator.kind.startswith("scan")] == [[]]
