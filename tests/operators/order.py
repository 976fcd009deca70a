"""Operators over one input in which rows meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.nodes import Attribute, Binary, Constant, Field
from streamdsl.plan import node as algebra
from streamdsl.plan.pattern_steps import PatternStep
from streamdsl.udm import UDSO
from tests.laws.modules import Since
from tests.operators.entry import Meaning, Operator
from tests.unit.facade.trips import FARE, TRIPS, trips

DEAR = Binary(">", FARE, Constant(3))


class Followed(UDSO[Any, Any, Any]):
    def create_state(self) -> Any:
        return None

    def process(self, state: Any, payload: Any, le: int) -> tuple[Any, Iterable[Any]]:
        return state, [payload]


def rises(e: Any, m: Any) -> bool:
    return bool(e.v > (m.b[-1] if m.b else m.a).v)


def falls(e: Any, m: Any) -> bool:
    return bool(e.v < m.b[0].v)


OPERATORS = [
    Operator(
        "to_edges",
        page="order",
        variants=[lambda s: s.to_edges(), lambda s: s.to_edges(key="k"), lambda s: s.to_edges(key=lambda e: e.v % 2)],
        spark={
            "`to_edges`": lambda s: s.to_edges("k"),
        },
        meaning=[
            Meaning(
                "`to_edges(key)`",
                "RE := next strictly later LE of the key, else INFINITY; simultaneous rows share their end",
                "c",
            ),
        ],
        plans=[
            (trips.to_edges(), algebra.ToEdges(TRIPS, None)),
            (trips.to_edges("zone"), algebra.ToEdges(TRIPS, Field("zone"))),
            (trips.to_edges(lambda e: e.zone), algebra.ToEdges(TRIPS, Field("zone"))),
        ],
        refused=[
            (lambda: trips.to_edges("zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
        ],
    ),
    Operator(
        "distinct",
        page="order",
        variants=[lambda s: s.distinct(lambda e: e.k), lambda s: s.distinct(), lambda s: s.distinct(lambda e: (e.k, e.v % 2))],
        spark={
            "`distinct`": lambda s: s.distinct(),
        },
        meaning=[
            Meaning("`distinct(f)`", "each value of f once, for the time that some row has it, as maximal pieces", "c"),
        ],
        plans=[
            (trips.distinct(), algebra.Distinct(TRIPS)),
            (trips.distinct(lambda e: e.fare), algebra.Distinct(algebra.Select(TRIPS, FARE))),
        ],
    ),
    Operator(
        "scan",
        page="order",
        variants=[
            lambda s: s.scan(Since()),
            lambda s: s.group_by("k").apply(lambda g: g.scan(Since)),
            lambda s: s.quantize(3, 3).select(k=lambda e: 0, v=lambda e: e.v % 2).scan(Since),
            lambda s: s.to_points().scan(Since).snapshot_window().aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
        ],
        spark={
            "`scan`": lambda s: s.scan(Followed()),
        },
        meaning=[
            Meaning(
                "`scan(module)`",
                "what the stream operator makes of each row and of the state after the rows before it, in order of (LE,"
                " payload, RE), with the row's lifetime",
                "c",
            ),
        ],
    ),
    Operator(
        "fill",
        page="order",
        ends=True,
        variants=[
            lambda s: s.fill(4, {"k": "-", "v": 0}, start=-5, end=25),
            lambda s: s.fill(3, {"k": "-", "v": 0}, end=20, offset=1),
            lambda s: s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).fill(5, {"k": "-", "n": 0}, start=0, end=30),
            lambda s: s.group_by("k").apply(lambda g: g.fill(6, {"k": "-", "v": 0}, end=15)),
            lambda s: s.group_by("k").apply(lambda g: g.tumbling_window(4).aggregate(n=sd.count()).fill(4, {"n": 0}, end=24)),
        ],
        spark={
            "`fill`": lambda s: s.fill(5, {"k": "", "v": 0.0, "n": 0}, end=100),
        },
        meaning=[
            Meaning(
                "`fill(every, value, start, end)`",
                "the rows, and the value for the time from `start` (none given: the first LE; in a group always) to "
                "`end` in which no row lives, cut at offset + k * every; what is between two cuts comes when a CTI "
                "reaches the first",
                "c",
            ),
        ],
    ),
    Operator(
        "stitch",
        page="order",
        variants=[
            lambda s: s.stitch(),
            lambda s: s.select(lambda e: e.k).stitch(),
            lambda s: s.select(lambda e: 1).alter_duration(3).stitch(),
            lambda s: s.select(lambda e: 1).union(s.select(lambda e: 1).shift(4)).stitch(),
        ],
        spark={
            "`stitch`": lambda s: s.stitch(),
        },
        meaning=[
            Meaning(
                "`stitch()`",
                "rows with equal payloads that meet are one; at each time those that end there, by LE, are joined one "
                "to one with those that start, by RE [choice]",
                "c",
            ),
        ],
        plans=[
            (trips.stitch(), algebra.Stitch(TRIPS)),
        ],
    ),
    Operator(
        "match",
        page="order",
        variants=[
            lambda s: s.match(lambda p: p.a.then(p.b).within(4)),
            lambda s: s.match(lambda p: p.a.where(lambda e: e.v > 0).then(p.b.where(lambda e: e.v <= 0)).within(6), by="k"),
            lambda s: s.match(lambda p: p.a.then(p.b.many().where(rises)).then(p.c.where(falls)).within(9), overlapping=True),
            lambda s: s.match(lambda p: p.a.then(p.b.many().where(rises)).then(p.c.where(falls)).within(30)),
            lambda s: s.match(lambda p: p.a.optional().where(lambda e: e.k == "a").then(p.b.where(lambda e: e.v != 0)).within(7)),
            lambda s: s.match(
                lambda p: (
                    p.a.then(p.b.many().optional().where(lambda e, m: e.v > m.a.v))
                    .then(p.c.where(lambda e, m: e.v < m.a.v))
                    .within(12)
                ),
                by=lambda e: e.k == "a",
                overlapping=True,
                select=lambda m: (m.a.v, len(m.b), m.c.k),
            ),
            lambda s: s.match(
                lambda p: p.a.then(p.b).unless(p.x.where(lambda e: e.v > 1).where(lambda e, m: e.k != m.a.k)).within(8),
                select=lambda m: 1,
            ),
            lambda s: s.match(lambda p: p.a.where(lambda e: e.v == 2).within(3), overlapping=True, select=lambda m: m.a.v),
        ],
        spark={
            "`match`": lambda s: s.match(lambda p: p.a.then(p.b).within(5)),
            "`match` by key": lambda s: s.match(lambda p: p.a.then(p.b).within(5), by="k"),
        },
        meaning=[
            Meaning(
                "`match`",
                "the runs of a pattern that count, by the rules of [patterns.md](patterns.md): `[LE of the last event, "
                "LE of the first + within)` [choice]; the payload is a record of the steps",
                "c: a change at s changes no row with LE < s",
            ),
        ],
        plans=[
            (
                trips.match(
                    lambda p: (
                        p.a.optional()
                        .then(p.b.many().where(lambda e, m: e.fare > m.a.fare).where(sd.col("fare") > 3))
                        .then(p.c)
                        .unless(p.x.where(sd.col("fare") > 3))
                        .within("1m")
                    ),
                    by="zone",
                    overlapping=True,
                    select=lambda m: m.c,
                ),
                algebra.Select(
                    algebra.Match(
                        TRIPS,
                        (
                            PatternStep("a", optional=True),
                            PatternStep("b", (DEAR,), (Binary(">", FARE, Attribute(Field("a", 1), "fare")),), many=True),
                            PatternStep("c"),
                        ),
                        60,
                        Field("zone"),
                        (PatternStep("x", (DEAR,)),),
                        overlapping=True,
                    ),
                    Field("c"),
                ),
            ),
        ],
        refused=[
            (lambda: trips.match(lambda p: p.a.then(p.b)), QueryError, ("a then b has no within", 'within("5m")')),
            (
                lambda: trips.match(lambda p: p.a.then(p.b.many()).within(5)),
                QueryError,
                ("last step, 'b', is many", "single, required"),
            ),
            (lambda: trips.match(lambda p: p.a.optional().within(5)), QueryError, ("last step, 'a', is many or optional",)),
            (
                lambda: trips.match(lambda p: p.a.then(p.b).then(p.a).within(5)),
                QueryError,
                ("called 'a'", "a, b, a", "p.a.many()"),
            ),
            (lambda: trips.match(lambda p: p.a.then(p.b).within(0)), QueryError, ("finite within > 0, not 0",)),
            (lambda: trips.match(lambda p: p.a.then(p.b).within(sd.INFINITY)), QueryError, ("finite within", "dropped")),
            (lambda: trips.match(lambda p: p.a.within(5).then(p.b)), QueryError, ("then comes before within",)),
            (lambda: trips.match(lambda p: p.a.within(5).within(6)), QueryError, ("has a within already: 5",)),
            (lambda: trips.match(lambda p: p.a.then("b").within(6)), QueryError, ("then takes a pattern, not 'b'", "p.b.many()")),  # type: ignore[arg-type]
            (lambda: trips.match(lambda p: "a then b"), QueryError, ("match takes a pattern, not 'a then b'",)),  # type: ignore[arg-type, return-value]
            (lambda: trips.match("a then b"), QueryError, ("match takes a lambda, not 'a then b'",)),  # type: ignore[call-overload]
            (lambda: trips.match(lambda p: p.a.then(p.b).unless(p.x.many()).within(5)), QueryError, ("one event is enough",)),
            (lambda: trips.match(lambda p: p.a.where(lambda e: e.faer > 3).within(5)), FieldNotFound, ("'faer'", "zone, fare")),  # type: ignore[attr-defined]
            (
                lambda: trips.match(lambda p: p.top.then(p.fall.where(lambda e, m: e.fare < m.tops.fare)).within(5)),
                FieldNotFound,
                ("'tops'", "top, fall", "did you mean 'top'"),
            ),
            (lambda: trips.match(lambda p: p.a.where("fare").within(5)), QueryError, ("'fare'", "sd.col('fare')")),  # type: ignore[call-overload]
            (lambda: trips.match(lambda p: p.a.then(p.b).within(5), by="zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
            (lambda: trips.match(lambda p: p.a.then(p.b).within(5), select=lambda m: m.c), FieldNotFound, ("'c'", "a, b")),
        ],
    ),
]
