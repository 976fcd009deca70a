"""Operators that change lifetimes, row by row."""

from __future__ import annotations

from datetime import timedelta

import streamdsl as sd
from streamdsl.errors import QueryError, UnitError
from streamdsl.expr.nodes import Constant, Field, Life
from streamdsl.plan import node as algebra
from streamdsl.windows import Hopping
from tests.operators.entry import Meaning, Operator
from tests.unit.facade.trips import TRIPS, trips

OPERATORS = [
    Operator(
        "alter_lifetime",
        page="rows",
        variants=[
            lambda s: s.alter_lifetime(start=lambda e, life: life.le + e.v, duration=lambda e: e.v + 1),
            lambda s: s.alter_lifetime(start=lambda e, life: life.le - 2, duration=4),
            lambda s: s.alter_lifetime(duration=lambda e: e.v),
        ],
        spark={
            "`alter_lifetime`, `alter_duration`": lambda s: s.alter_lifetime(start=lambda e, life: life.le + 1, duration=5),
        },
        meaning=[
            Meaning("`alter_lifetime`", "`[start, start + duration)`", "none before the end"),
        ],
        plans=[
            (trips.alter_lifetime(5, lambda e: e.zone), algebra.alter_lifetime(TRIPS, Constant(5), Field("zone"))),
            (trips.alter_lifetime("1970-01-01T00:00:07", "1m"), algebra.alter_lifetime(TRIPS, Constant(7), Constant(60))),
            (trips.alter_lifetime(lambda e, life: life.re, 1), algebra.alter_lifetime(TRIPS, Life("re"), Constant(1))),
        ],
        refused=[
            (lambda: trips.alter_lifetime(5), QueryError, ("needs a duration", "shift(d)")),
        ],
    ),
    Operator(
        "alter_duration",
        page="rows",
        variants=[
            lambda s: s.alter_duration(5),
            lambda s: s.alter_duration(lambda e: e.v),
            lambda s: s.alter_duration(lambda e, life: sd.when(life.re > 10).then(2).otherwise(life.re - life.le)),
        ],
        meaning=[
            Meaning("`to_points()`, `alter_duration(constant)`", "`[LE, LE + d)`; nothing for d <= 0", "c"),
            Meaning("`alter_duration(f)`", "the same", "c; none before the end if f reads RE"),
        ],
        plans=[
            (trips.alter_duration(timedelta(minutes=2)), algebra.alter_lifetime(TRIPS, None, Constant(120))),
            (trips.alter_duration("1h"), algebra.alter_lifetime(TRIPS, None, Constant(3600))),
            (trips.alter_duration(lambda e: e.zone), algebra.alter_lifetime(TRIPS, None, Field("zone"))),
        ],
    ),
    Operator(
        "shift",
        page="rows",
        variants=[lambda s: s.shift(4), lambda s: s.shift(-7)],
        spark={
            "`shift`, `extend`, `to_points`": lambda s: s.shift(1).extend(2).to_points(),
        },
        meaning=[
            Meaning("`shift(d)`", "both ends + d", "c + d"),
        ],
        plans=[
            (trips.shift("-5s"), algebra.shift(TRIPS, -5)),
        ],
        refused=[
            (lambda: trips.shift("five"), UnitError, ("'five'",)),
        ],
    ),
    Operator(
        "to_points",
        page="rows",
        variants=[lambda s: s.to_points()],
        plans=[
            (trips.to_points(), algebra.alter_lifetime(TRIPS, None, Constant(1))),
        ],
    ),
    Operator(
        "clip_interval",
        page="rows",
        variants=[lambda s: s.clip_interval(2, 9), lambda s: s.clip_interval(-30, 3)],
        spark={
            "`clip_interval`, `clip_duration`": lambda s: s.clip_interval(0, 9).clip_duration(5),
        },
        meaning=[
            Meaning("`clip_interval(lo, hi)`", "intersected with `[lo, hi)`", "c"),
        ],
        plans=[
            (trips.clip_interval(1, "1970-01-01T00:00:09Z"), algebra.clip_interval(TRIPS, 1, 9)),
        ],
        refused=[
            (lambda: trips.clip_interval(5, 3), QueryError, ("lo <= hi",)),
        ],
    ),
    Operator(
        "to_points_at_end",
        page="rows",
        variants=[lambda s: s.to_points_at_end()],
        meaning=[
            Meaning("`to_points_at_end()`", "`[RE, RE + 1)`; nothing for RE = INFINITY", "c"),
        ],
        plans=[
            (trips.to_points_at_end(), algebra.to_points_at_end(TRIPS)),
        ],
    ),
    Operator(
        "extend",
        page="rows",
        variants=[lambda s: s.extend(4), lambda s: s.extend(-3)],
        meaning=[
            Meaning(
                "`extend(d)`",
                "RE := RE + d; nothing where that is not after LE",
                "c for d >= 0: a row that ends at c may still end later; c + d for d < 0",
            ),
        ],
        plans=[
            (trips.extend("1m"), algebra.extend(TRIPS, 60)),
        ],
    ),
    Operator(
        "clip_duration",
        page="rows",
        variants=[lambda s: s.clip_duration(3), lambda s: s.clip_duration(20)],
        meaning=[
            Meaning("`clip_duration(d)`", "RE := min(RE, LE + d)", "c"),
        ],
        plans=[
            (trips.clip_duration(timedelta(minutes=2)), algebra.clip_duration(TRIPS, 120)),
        ],
    ),
    Operator(
        "quantize",
        page="rows",
        variants=[lambda s: s.quantize(5, 5), lambda s: s.quantize(9, 4, offset=-1), lambda s: s.quantize(2, 7, offset=3)],
        meaning=[
            Meaning(
                "`quantize(size, period, offset)`",
                "LE down to the grid offset + k * period; RE up to the first offset + size + k * period that is not "
                "less than RE and LE (moved) + size",
                "c down to the grid",
            ),
        ],
        plans=[
            (trips.quantize("1m", "30s", offset=5), algebra.quantize(TRIPS, 60, 30, 5)),
        ],
        refused=[
            (lambda: trips.quantize(0, 5), QueryError, ("size and a period > 0",)),
            (lambda: trips.quantize(5, -5), QueryError, ("size and a period > 0",)),
        ],
    ),
    Operator(
        "chop",
        page="rows",
        ends=True,
        spark={
            "`quantize`, `chop`, `to_points_at_end`": lambda s: s.quantize(5, 5).chop(5).to_points_at_end(),
        },
        variants=[lambda s: s.chop(5), lambda s: s.chop(7, offset=3), lambda s: s.chop(1, offset=-2)],
        meaning=[
            Meaning(
                "`chop(period, offset)`",
                "cut at every offset + k * period; the pieces between two cuts come when the high water reaches the "
                "first, those of a bounded run if they end by its bound, as windows do",
                "c",
            ),
        ],
        plans=[
            (trips.chop("1m", offset=5), algebra.Chop(TRIPS, Hopping(60, 60, 5))),
        ],
    ),
]
