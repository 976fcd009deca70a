"""Operators that handle each row by itself, and leave lifetimes as they are."""

from __future__ import annotations

from typing import Any

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.nodes import Binary, Constant, Field, Life, Make
from streamdsl.expr.schema import Schema
from streamdsl.plan import node as algebra
from tests.operators.entry import Meaning, Operator
from tests.unit.facade.trips import FARE, STATS, TRIPS, Stats, trips


@sd.udf
def opaque(value: Any) -> Any:
    return value


OPERATORS = [
    Operator(
        "where",
        page="rows",
        variants=[
            lambda s: s.where(lambda e: e.v > 0),
            lambda s: s.where(lambda e: e.v > 0 and e.k != "b"),
            lambda s: s.where(lambda e, life: life.re - 3 > life.le),
        ],
        spark={
            "`where`, `select`": lambda s: s.where(lambda e: e.v > 0).select(w=lambda e: e.v * 2),
        },
        meaning=[
            Meaning(
                "`where`, `select`, `select_many`, `union`",
                "lifetimes stay",
                "c; none before the end if a lambda reads `life.re` [choice]",
            ),
        ],
        plans=[
            (trips.where(lambda e: e.fare > 3), algebra.Where(TRIPS, Binary(">", FARE, Constant(3)))),
            (trips.where(sd.col("fare") > 3), algebra.Where(TRIPS, Binary(">", FARE, Constant(3)))),
            (trips.where(lambda e, life: life.le > 3), algebra.Where(TRIPS, Binary(">", Life("le"), Constant(3)))),
        ],
        refused=[
            (lambda: trips.where(lambda e: e.faer > 3), FieldNotFound, ("'faer'", "zone, fare", "'fare'")),  # type: ignore[attr-defined]
        ],
    ),
    Operator(
        "select",
        page="rows",
        variants=[
            lambda s: s.select(lambda e: e.v // 2),
            lambda s: s.select(k=lambda e: e.k, w=lambda e: e.v * 0.5),
            lambda s: s.select(lambda e: f"{e.k}{e.v}"),
            lambda s: s.select(lambda e, life: life.le + e.v),
            lambda s: s.select(lambda e, life: life.re > 5),
        ],
        spark={
            "`where`, `select` with an `sd.udf` or other opaque Python": lambda s: s.select(w=lambda e: opaque(e.v)),
        },
        plans=[
            (trips.select(lambda e: e.fare), algebra.Select(TRIPS, FARE)),
            (
                trips.select(lambda e: Stats(e.zone, e.zone)),
                algebra.Select(TRIPS, Make(STATS, (Field("zone"),) * 2)),
            ),
            (trips.select(f=lambda e: e.fare), algebra.Select(TRIPS, Make(Schema.record(["f"]), (FARE,)))),
        ],
        refused=[
            (lambda: trips.select(), QueryError, ("one lambda, or named ones",)),
            (lambda: trips.select(lambda e: e.fare, x=lambda e: e.fare), QueryError, ("one lambda, or named ones",)),  # type: ignore[call-overload]
            (lambda: trips.select(x=5), QueryError, ("x=5", "sd.lit(5)")),  # type: ignore[call-overload]
        ],
    ),
    Operator(
        "select_many",
        page="rows",
        variants=[
            lambda s: s.select_many(lambda e: [e.k] * e.v),
            lambda s: s.select_many(lambda e: range(e.v)),
        ],
        spark={
            "`select_many`": lambda s: s.select_many(lambda e: [e.k]),
            "`select_many` of a tuple or of a field of lists": lambda s: s.select_many(lambda e: (e.k, e.k)),
        },
        plans=[
            (trips.select_many(lambda e: (e.fare, e.fare)), algebra.SelectMany(TRIPS, Make(Schema.tuple(2), (FARE, FARE)))),
        ],
    ),
]
