"""Operators over two inputs and more."""

from __future__ import annotations

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError, UnitError
from streamdsl.expr.nodes import Binary, Field, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan import node as algebra
from streamdsl.plan.asof import Nearness
from streamdsl.plan.derived import full_join, left_join
from streamdsl.plan.node import Matching
from tests.operators.entry import Meaning, Operator
from tests.unit.facade.trips import FARE, TRIPS, ZONES, Trip, Zone, trips, zones

OPERATORS = [
    Operator(
        "union",
        page="combining",
        inputs=2,
        variants=[lambda s, t: s.union(t), lambda s, t: s.union(t, s), lambda s, t: s.where(lambda e: e.v > 0).union(s, t)],
        spark={
            "`union`": lambda s, t: s.union(t),
        },
        plans=[
            (trips.union(zones, trips), algebra.Union((TRIPS, ZONES, TRIPS))),
        ],
        refused=[
            (lambda: trips.union(sd.source("t", unit="ms")), UnitError, ("ms, s",)),
            (lambda: trips.union(sd.source("trips", Zone, unit="s")), QueryError, ("two different sources", "'trips'")),
        ],
    ),
    Operator(
        "join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.join(t, on="k"),
            lambda s, t: s.join(t, on=["k", "v"], select=lambda a, b: a.v + b.v),
            lambda s, t: s.join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
            lambda s, t: s.join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: a.v * 10 + b.v),
            lambda s, t: s.join(t, where=lambda a, b: a.v == 0 or b.v > a.v),
            lambda s, t: s.join(t),
            lambda s, t: s.join(s, on="k", select=lambda a, b: a.v - b.v),
        ],
        spark={
            "`join` by key": lambda s, t: s.join(t, on="k"),
            "`join` without key": lambda s, t: s.join(t, where=lambda a, b: a.v > b.v),
        },
        meaning=[
            Meaning("`join`", "each matching pair, lifetimes intersected", "c"),
        ],
        plans=[
            (trips.join(zones), algebra.Join(TRIPS, ZONES, Matching())),
            (trips.join(zones, on="fare"), algebra.Join(TRIPS, ZONES, Matching(FARE, FARE))),
            (
                trips.join(trips, on=["zone", "fare"]),
                algebra.Join(TRIPS, TRIPS, Matching(*[Make(Schema.tuple(2), (Field("zone"), FARE))] * 2)),
            ),
            (
                trips.join(
                    zones, on=(lambda t: t.zone, lambda z: z.id), where=lambda t, z: t.fare > z.fare, select=lambda t, z: z
                ),
                algebra.Join(TRIPS, ZONES, Matching(Field("zone"), Field("id"), Binary(">", FARE, Field("fare", 1))), Whole(1)),
            ),
        ],
        refused=[
            (lambda: trips.join(zones, on="zone"), FieldNotFound, ("'zone'", "id, fare")),
            (lambda: trips.join(zones, on=["fare", "id"]), FieldNotFound, ("'id'", "zone, fare")),
            (lambda: trips.join(zones, on=(lambda t: t.zone, lambda z: z.zone)), FieldNotFound, ("'zone'", "id, fare")),  # type: ignore[attr-defined]
            (lambda: trips.join(zones, on=lambda t: t.zone), QueryError, ("on=", "pair of lambdas")),  # type: ignore[call-overload]
            (lambda: trips.join(Trip(1, 2.0)), QueryError, ("not with Trip", "sd.from_rows")),  # type: ignore[call-overload]
            (lambda: trips.join(trips.group_by("zone")), QueryError, ("not with GroupedStream", "aggregate or apply")),  # type: ignore[call-overload]
        ],
    ),
    Operator(
        "left_join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.left_join(t, on="k"),
            lambda s, t: s.left_join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: a.v if b is None else b.v),
        ],
        spark={
            "`left_join` by key": lambda s, t: s.left_join(t, on="k"),
        },
        meaning=[
            Meaning("`left_join`", "as `join`, and the rows of the anti-join with None for the right one", "c"),
        ],
        plans=[
            (trips.left_join(zones, on="fare"), left_join(TRIPS, ZONES, Matching(FARE, FARE))),
        ],
    ),
    Operator(
        "full_join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.full_join(t, on="k"),
            lambda s, t: s.full_join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
            lambda s, t: s.full_join(t, where=lambda a, b: a.v < b.v and a.k != "c"),
            lambda s, t: s.full_join(s.shift(2), on="k", select=lambda a, b: (sd.is_none(a), sd.is_none(b))),
        ],
        spark={
            "`full_join` by key": lambda s, t: s.full_join(t, on="k"),
        },
        meaning=[
            Meaning(
                "`full_join`", "as `left_join`, and the rows of the anti-join the other way round with None for the left one", "c"
            ),
        ],
        plans=[
            (trips.full_join(zones, on="fare", select=lambda t, z: z), full_join(TRIPS, ZONES, Matching(FARE, FARE), Whole(1))),
        ],
    ),
    Operator(
        "anti_join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.anti_join(t, on="k"),
            lambda s, t: s.anti_join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
            lambda s, t: s.anti_join(t, where=lambda a, b: a.v < b.v),
            lambda s, t: s.anti_join(t),
        ],
        spark={
            "`anti_join` by key": lambda s, t: s.anti_join(t, on="k"),
        },
        meaning=[
            Meaning("`anti_join`", "left lifetime minus the union of matching right ones, as maximal pieces", "c"),
        ],
        plans=[
            (trips.anti_join(zones, on="fare"), algebra.AntiJoin(TRIPS, ZONES, Matching(FARE, FARE))),
        ],
    ),
    Operator(
        "band_join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.band_join(t, on="k", before=3, after=2),
            lambda s, t: s.band_join(t, before=0, after=0, where=lambda a, b: a.v < b.v),
            lambda s, t: s.band_join(t, before=-2, after=6),
            lambda s, t: s.band_join(t, before=9, after=-4),
            lambda s, t: s.band_join(t, before=3, after=4, time="left"),
            lambda s, t: s.band_join(t, on="k", before=3, after=4, time="min"),
            lambda s, t: s.band_join(t, before=5, after=2, time="both"),
            lambda s, t: s.band_join(t, on="k", before=2, after=3, time="both", select=lambda a, b: {"k": a.k, "v": a.v - b.v}),
            lambda s, t: s.band_join(s, on="k", before=3, after=4, time="right", select=lambda a, b: a.v - b.v),
        ],
        spark={
            "`band_join` by key": lambda s, t: s.band_join(t, on="k", before=3, after=3),
        },
        meaning=[
            Meaning(
                "`band_join(before, after)`",
                "a point at the later LE of each matching pair with right LE in [left LE - before, left LE + after], or"
                ' by `time` at the earlier one (`"min"`), at `"left"`, `"right"`; by `"both"` `[earlier, later + 1)` '
                "[choice]",
                'c; `"left"`: c - after; `"right"`: c - before; `"min"`, `"both"`: the smaller of these',
            ),
        ],
    ),
    Operator(
        "asof_join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.asof_join(t, on="k"),
            lambda s, t: s.asof_join(t, on="k", tolerance=4, how="left"),
            lambda s, t: s.asof_join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: a.v * 10 + b.v),
            lambda s, t: s.asof_join(t, on="k", direction="forward", how="left"),
            lambda s, t: s.asof_join(t, direction="forward", tolerance=3, where=lambda a, b: a.v <= b.v),
            lambda s, t: s.asof_join(t, on="k", direction="nearest"),
            lambda s, t: s.asof_join(s, on="v", direction="nearest", tolerance=5, how="left", where=lambda a, b: a.k != b.k),
            lambda s, t: s.asof_join(t, on="k", ties="last"),
            lambda s, t: s.asof_join(t, ties="last", select=lambda a, b: a.v * 10 + b.v),
            lambda s, t: s.asof_join(t, direction="nearest", how="left", where=lambda a, b: a.v != b.v, ties="last"),
        ],
        spark={
            "`asof_join` by key": lambda s, t: s.asof_join(t, on="k"),
            "`asof_join` without key": lambda s, t: s.asof_join(t),
            '`asof_join`, `ties="last"`': lambda s, t: s.asof_join(t, on="k", ties="last"),
        },
        meaning=[
            Meaning(
                "`asof_join`",
                "each left row, its lifetime as it is, with all matching right rows of the greatest LE <= left LE; "
                '`direction="forward"`: the smallest LE >= left LE; `"nearest"`: of two as near the earlier [choice]; '
                '`ties="last"`: of those that start together only the last by payload [choice]',
                "c; forward and nearest also no later than the first left LE for which a nearer row may come",
            ),
        ],
        plans=[
            (
                trips.asof_join(zones, on="fare", tolerance="1m", how="left"),
                algebra.AsofJoin(TRIPS, ZONES, Matching(FARE, FARE), None, Nearness("back", 60), True),
            ),
        ],
        refused=[
            (lambda: trips.asof_join(zones, how="outer"), QueryError, ('"inner" or "left"',)),  # type: ignore[call-overload]
            (lambda: trips.asof_join(zones, direction="up"), QueryError, ('"nearest"', "'up'")),  # type: ignore[call-overload]
            (lambda: trips.asof_join(zones, tolerance=-1), QueryError, (">= 0",)),
            (lambda: trips.asof_join(zones, ties="first"), QueryError, ('"all" or "last"', "'first'")),  # type: ignore[call-overload]
        ],
    ),
    Operator(
        "semi_join",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.semi_join(t, on="k"),
            lambda s, t: s.semi_join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
            lambda s, t: s.semi_join(t, where=lambda a, b: a.v < b.v),
            lambda s, t: s.semi_join(t),
        ],
        spark={
            "`semi_join` by key": lambda s, t: s.semi_join(t, on="k"),
            "`semi_join`, `anti_join`, `clip_by` without key": lambda s, t: s.semi_join(t).union(s.anti_join(t)).clip_by(t),
        },
        meaning=[
            Meaning("`semi_join`", "left lifetime where some matching right one is, as maximal pieces", "c"),
        ],
        plans=[
            (trips.semi_join(zones, on="fare"), algebra.SemiJoin(TRIPS, ZONES, Matching(FARE, FARE))),
        ],
    ),
    Operator(
        "clip_by",
        page="combining",
        inputs=2,
        variants=[
            lambda s, t: s.clip_by(t, on="k"),
            lambda s, t: s.clip_by(t, where=lambda a, b: a.v < b.v),
            lambda s, t: s.clip_by(t),
            lambda s, t: s.clip_by(s, on="k"),
        ],
        spark={
            "`clip_by` by key": lambda s, t: s.clip_by(t, on="k"),
        },
        meaning=[
            Meaning("`clip_by`", "RE := first matching right LE strictly after LE, if that is earlier", "c"),
        ],
        plans=[
            (trips.clip_by(zones, on="fare"), algebra.ClipBy(TRIPS, ZONES, Matching(FARE, FARE))),
        ],
    ),
]
