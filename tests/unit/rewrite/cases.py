"""For each rule queries on which it fires, and queries on which it must not, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import streamdsl as sd
from tests.unit.rewrite.modules import (
    Best,
    Busy,
    Columns,
    Distinct,
    Ended,
    Guessed,
    InOrder,
    Inside,
    Known,
    Row,
    Rows,
    Sampled,
    Spells,
    Tally,
    Total,
    anything,
    rows,
)

Build: TypeAlias = Callable[[Any], Any]


@sd.udf
def short(text: str) -> bool:
    return len(text) < 3


@dataclass(frozen=True)
class Pair:
    k: str
    v: int


def best(s: Any) -> Any:
    return s.tumbling_window(5).apply(Best())


def doubled(results: Any) -> Any:
    return results.where(lambda e: e.k == "a").union(results)


def totals(s: Any) -> Any:
    return s.tumbling_window(5).aggregate(n=sd.sum(lambda e: e.v))


def tally(s: Any) -> Any:
    return s.tumbling_window(5).aggregate(k=sd.max(lambda e: e.k))


def counted(s: Any) -> Any:
    return grouped(s, "k")


def grouped(s: Any, key: str) -> Any:
    return s.group_by(key).snapshot_window().aggregate(lambda w: {"n": w.count()})


def points(s: Any) -> Any:
    return s.where(lambda e: e.v != 0).to_points()


def alike(make: Callable[[], Any]) -> Any:
    return make().union(make().shift(5))


def on_two_lines(s: Any) -> Any:
    first = s.tumbling_window(5).aggregate(n=sd.sum(lambda e: e.v))
    second = s.tumbling_window(5).aggregate(n=sd.sum(lambda e: e.v))
    return first.union(second.shift(5))


SAMPLED, BEST = Sampled(), Best()


def pairs(s: Any) -> Any:
    """Return points of which it is declared that `v` is an integer."""
    return s.select(lambda e: Pair(e.k, e.v)).to_points()


def fives(s: Any, **policies: Any) -> Any:
    return s.tumbling_window(5, **policies)


def fifteens(s: Any, **policies: Any) -> Any:
    return s.hopping_window(15, 5, **policies)


def two(stream: Any, first: Build = fives, second: Build = fifteens, **aggregates: Any) -> Any:
    """Return aggregates of two kinds of windows over the same rows."""
    return first(stream).aggregate(**aggregates).union(second(stream).aggregate(**aggregates))


def of(stream: Any, query: Build) -> Any:
    """Return a query that reads a stream several times."""
    return query(stream)


def none_before_5(s: Any) -> Any:
    return s.to_points().select(lambda e, life: {"k": e.k, "v": sd.when(life.le < 5).then(None).otherwise(e.v)})


def latest(s: Any, **options: Any) -> Any:
    """Return each row with those of another stream that started last."""
    return s.asof_join(s.shift(1), on="k", select=lambda a, b: {"k": a.k, "v": a.v, "m": sd.is_none(b)}, **options)


def joined(s: Any) -> Any:
    return s.join(s.shift(1), on="k", select=lambda a, b: {"k": a.k, "v": a.v, "w": b.v})


FIRES: dict[str, dict[str, Build]] = {
    "push_filter_below_module": {
        "equality": lambda s: best(s).where(lambda e: e.k == "a"),
        "hopping windows": lambda s: s.hopping_window(10, 5).apply(Best()).where(lambda e: sd.not_(e.k == "a")),
        "an incremental module": lambda s: s.tumbling_window(5).apply(Tally()).where(lambda e: e.k != "a"),
        "points at the end": lambda s: (
            s.tumbling_window(5, output=sd.Output.POINT_AT_END).apply(Best()).where(lambda e: e.k == "a")
        ),
        "a time-sensitive module": lambda s: s.tumbling_window(5).apply(Spells()).where(lambda e: e.k == "a"),
        "an order": lambda s: best(s).where(lambda e: e.k > "a"),
        "a method": lambda s: best(s).where(lambda e: e.k.startswith("a")),
        "one of two conditions": lambda s: best(s).where(lambda e: (e.v > 0) & (e.k == "a")),
        "beside a condition on the lifetime": lambda s: best(s).where(lambda e, life: (e.k == "a") & (life.le > 0)),
        "two conditions": lambda s: s.tumbling_window(5).apply(Known()).where(lambda e: (e.k == "a") & (e.v > 0)),
        "a filter above another": lambda s: best(s).where(lambda e: e.v > 0).where(lambda e: e.k == "a"),
        "an argument": lambda s: (
            s.tumbling_window(5).apply(Best(), lambda e: {"k": e.k, "v": e.v + 1}).where(lambda e: e.k == "a")
        ),
        "a scalar argument": lambda s: s.tumbling_window(5).apply(Distinct(), lambda e: e.v).where(lambda e: e.value == 1),
        "inside groups": lambda s: s.group_by("v").apply(lambda g: best(g).where(lambda e: e.k == "a")),
        "a sequence by time": lambda s: (
            s.windows(sd.astral.range_slide(6, 3), start=-4).apply(Best()).where(lambda e: e.k == "a")
        ),
    },
    "push_filter_below_select": {
        "a renamed field": lambda s: s.select(w=lambda e: e.v, k=lambda e: e.k).where(lambda e: e.w == 1),
        "a computed field": lambda s: s.select(w=lambda e: e.v * 2 + 1).where(lambda e: e.w > 1),
        "tuples": lambda s: s.select(lambda e: (e.k, e.v)).where(lambda e: e._1 > 0),
        "a class": lambda s: s.select(lambda e: Pair(e.k, e.v)).where(lambda e: e.v > 0),
        "a scalar": lambda s: s.select(lambda e: e.v > 0).where(lambda e: sd.not_(e)),
        "beside an opaque field": lambda s: s.select(k=lambda e: e.k, v=lambda e: str(e.v)).where(lambda e: e.k == "a"),
        "beside the lifetime": lambda s: s.select(lambda e, life: {"k": e.k, "v": life.re}).where(lambda e: e.k != "a"),
        "one of two conditions": lambda s: s.select(k=lambda e: e.k, v=lambda e: str(e.v)).where(
            lambda e: (e.k == "a") & (e.v != "1")
        ),
    },
    "push_filter_below_union": {
        "two inputs": lambda s: s.union(s.shift(2)).where(lambda e: e.v > 0),
        "three inputs": lambda s: s.union(s.shift(2), s.shift(3)).where(lambda e: e.k == "a"),
        "an opaque condition": lambda s: s.union(s.shift(2)).where(lambda e: e.k in ("a", "b")),
        "a condition on the lifetime": lambda s: s.union(s.shift(2)).where(lambda e, life: life.re > 4),
        "an opaque condition on the lifetime": lambda s: s.union(s.shift(2)).where(lambda e, life: life.re in (4, 5, 6)),
        "a function of the user": lambda s: s.union(s.shift(2)).where(lambda e: short(e.k)),
        "payloads that differ": lambda s: s.union(s.select(v=lambda e: e.v, w=lambda e: e.v)).where(lambda e: e.v > 0),
        "an outer join": lambda s: s.left_join(s.shift(1), on="k", select=lambda a, b: {"k": a.k}).where(lambda e: e.k == "a"),
    },
    "push_filter_below_lifetimes": {
        "points": lambda s: s.to_points().where(lambda e: e.v > 0),
        "an opaque condition": lambda s: s.to_points().where(lambda e: e.k in ("a", "b")),
        "durations": lambda s: s.alter_duration(7).where(lambda e: e.v > 0),
        "durations of rows": lambda s: s.alter_duration(lambda e: e.v).where(lambda e: e.k == "a"),
        "starts": lambda s: s.alter_lifetime(start=lambda e, life: life.le + e.v, duration=5).where(lambda e: e.k == "a"),
        "a shift": lambda s: s.shift(3).where(lambda e: e.k == "a"),
        "longer": lambda s: s.extend(3).where(lambda e: e.v > 0),
        "shorter": lambda s: s.extend(-3).where(lambda e: e.v == 1),
        "a clipped duration": lambda s: s.clip_duration(3).where(lambda e: e.v == 1),
        "a clipped interval": lambda s: s.clip_interval(2, 9).where(lambda e: e.v == 1),
        "points at the end": lambda s: s.to_points_at_end().where(lambda e: e.k == "b"),
        "a grid": lambda s: s.quantize(6, 3, offset=1).where(lambda e: e.v > 0),
        "pieces": lambda s: s.chop(4).where(lambda e: e.k == "a"),
        "stitched": lambda s: s.stitch().where(lambda e: e.k == "a"),
        "distinct": lambda s: s.distinct(lambda e: {"k": e.k}).where(lambda e: e.k == "a"),
    },
    "push_filter_below_join": {
        "the left of pairs": lambda s: s.join(s.shift(1), on="k").where(lambda e: e._0.v > 0),
        "the right of pairs": lambda s: s.join(s.shift(1), on="k").where(lambda e: e._1.v == 1),
        "the left of a projection": lambda s: joined(s).where(lambda e: e.v == 1),
        "the right of a projection": lambda s: joined(s).where(lambda e: e.w > 0),
        "both, one by one": lambda s: joined(s).where(lambda e: (e.v == 1) & (e.w == 1)),
        "one of two": lambda s: joined(s).where(lambda e: (e.v == e.w) & (e.k == "a")),
        "a computed field": lambda s: s.join(s.shift(1), on="k", select=lambda a, b: {"v": a.v * 2, "w": b.v}).where(
            lambda e: e.v == 2
        ),
        "an anti-join": lambda s: s.anti_join(s.shift(3), on="k").where(lambda e: e.k == "a"),
        "a semi-join": lambda s: s.semi_join(s.shift(3), on="k").where(lambda e: e.v > 0),
        "clipped rows": lambda s: s.clip_by(s.shift(3), on="k").where(lambda e: e.v != 1),
        "an as-of join": lambda s: latest(s).where(lambda e: e.v == 1),
        "an as-of join that looks ahead": lambda s: latest(s, direction="forward", how="left").where(lambda e: e.v > 0),
        "the nearest": lambda s: s.asof_join(s.shift(2), direction="nearest", tolerance=3).where(lambda e: e._0.k == "a"),
        "an outer join": lambda s: s.left_join(s.shift(1), on="k", select=lambda a, b: {"k": a.k, "n": sd.is_none(b)}).where(
            lambda e: e.k == "a"
        ),
        "a full join": lambda s: s.full_join(
            s.shift(1), on="k", select=lambda a, b: {"n": sd.is_none(a), "m": sd.is_none(b)}
        ).where(lambda e: e.n),
    },
    "push_filter_below_groups": {
        "tumbling windows": lambda s: s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).where(lambda e: e.k == "a"),
        "sessions": lambda s: s.group_by("k").session_window(2).aggregate(n=sd.count()).where(lambda e: e.k == "a"),
        "snapshots": lambda s: s.group_by("k").snapshot_window().aggregate(n=sd.count()).where(lambda e: e.k != "a"),
        "count windows": lambda s: s.group_by("k").count_window(2).aggregate(n=sd.count()).where(lambda e: e.k != "c"),
        "two keys": lambda s: (
            s.group_by(["k", "v"]).tumbling_window(5).aggregate(n=sd.count()).where(lambda e: (e.k == "a") & (e.v != 0))
        ),
        "a key of the window": lambda s: (
            s.group_by("k").tumbling_window(5).aggregate(lambda w: {"z": w.key, "n": w.count()}).where(lambda e: e.z == "a")
        ),
        "a query": lambda s: s.group_by("k").apply(lambda g: g.clip_by(g)).where(lambda e: e._0 == "a"),
        "beside a condition on the result": lambda s: (
            s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).where(lambda e: (e.k != "c") & (e.n != 7))
        ),
    },
    "share_equals": {
        "windows": lambda s: totals(s).union(totals(s).shift(5)),
        "written on two lines": on_two_lines,
        "three": lambda s: totals(s).union(totals(s).shift(5), totals(s)),
        "offsets a hop apart": lambda s: (
            s.tumbling_window(5, offset=7)
            .aggregate(n=sd.count())
            .union(s.tumbling_window(5, offset=-3).aggregate(n=sd.count()).shift(5))
        ),
        "a join": lambda s: tally(s).join(tally(s).shift(5), on="k"),
        "what is grouped": lambda s: counted(s).union(counted(s).shift(5)),
        "filters inside of groups": lambda s: s.group_by("k").apply(lambda g: points(g).union(points(g).shift(5))),
        "a function of the user": lambda s: alike(lambda: s.where(lambda e: short(e.k)).to_points()),
        "both are the same": lambda s: totals(s).union(totals(s)),
    },
    "prune_columns": {
        "a join": lambda s: s.join(s.shift(1), on="k", select=lambda a, b: {"k": b.k}),
        "a join by a condition": lambda s: s.join(s.shift(1), where=lambda a, b: a.v < b.v, select=lambda a, b: {"n": a.v + b.v}),
        "an outer join": lambda s: s.left_join(s.shift(1), on="v", select=lambda a, b: {"v": a.v}),
        "a semi-join": lambda s: s.semi_join(s.shift(1), on="k").select(k=lambda e: e.k),
        "an anti-join": lambda s: s.anti_join(s.shift(3), on="k").tumbling_window(5).aggregate(n=sd.count()),
        "an as-of join": lambda s: s.asof_join(s.shift(1), on="k", select=lambda a, b: {"k": b.k}),
        "an as-of join by a condition": lambda s: s.asof_join(s, where=lambda a, b: a.v != b.v, select=lambda a, b: {"v": a.v}),
        "clipped rows": lambda s: s.clip_by(s, on="k").group_by("k").tumbling_window(5).aggregate(n=sd.count()),
        "pieces": lambda s: s.chop(4).tumbling_window(5).aggregate(n=sd.max(lambda e: e.v)),
        "edges": lambda s: s.where(lambda e: e.v > 0).to_edges(key="v").clip_interval(-9, 60).select(v=lambda e: e.v),
    },
    "clip_right": {
        "an aggregate": lambda s: s.tumbling_window(5).aggregate(Ended()),
        "clipped to the left": lambda s: s.hopping_window(10, 5, clip=sd.Clip.LEFT).aggregate(Ended()),
        "points at the end": lambda s: s.hopping_window(6, 2, output=sd.Output.POINT_AT_END).aggregate(Ended()),
        "snapshots": lambda s: s.snapshot_window().aggregate(Ended()),
        "count windows": lambda s: s.count_window(2).aggregate(Ended()),
        "sessions": lambda s: s.session_window(2, max_duration=9).aggregate(Ended()),
        "an operator": lambda s: s.tumbling_window(5).apply(Inside()),
        "an operator that stamps its results": lambda s: s.snapshot_window(output=sd.Output.UNCHANGED).apply(Inside()),
        "a time-bound operator": lambda s: s.tumbling_window(5, output=sd.Output.TIME_BOUND).apply(Inside()),
        "an operator below a filter": lambda s: s.tumbling_window(5).apply(Inside()).where(lambda e: e.k == "a"),
        "inside groups": lambda s: s.group_by("k").hopping_window(7, 3, offset=-2).aggregate(Ended()),
        "beside one that is always clipped": lambda s: s.tumbling_window(5).aggregate(
            lambda w: (w.count(), w.udm(Ended()), w.time_weighted_avg(lambda e: e.v))
        ),
    },
    "narrow_to_reads": {
        "an aggregate": lambda s: s.tumbling_window(5).aggregate(Total()),
        "a vectorized aggregate": lambda s: s.hopping_window(6, 2).aggregate(Columns()),
        "an operator": lambda s: s.snapshot_window().apply(Tally()),
        "an aggregate that reads nothing": lambda s: s.snapshot_window().aggregate(Rows()),
        "inside groups": lambda s: s.group_by("k").count_window(2).aggregate(Total()),
        "over sessions": lambda s: s.session_window(3, max_duration=9).aggregate(Total()),
        "beside a count": lambda s: (
            s.select(k=lambda e: e.k, v=lambda e: e.v, w=lambda e: -e.v)
            .snapshot_window()
            .aggregate(lambda w: (w.count(), w.udm(Total()), w.sum(lambda e: e.w)))
        ),
    },
}

MUST_NOT_FIRE: dict[str, dict[str, Build]] = {
    "push_filter_below_module": {
        "snapshots would be cut elsewhere": lambda s: s.snapshot_window().apply(Best()).where(lambda e: e.k == "a"),
        "count windows would be others": lambda s: s.count_window(2).apply(Best()).where(lambda e: e.k == "a"),
        "sessions would break": lambda s: s.session_window(3).apply(Best()).where(lambda e: e.k == "a"),
        "a sequence would start elsewhere": lambda s: (
            s.windows(sd.astral.range_slide(6, 3)).apply(Best()).where(lambda e: e.k == "a")
        ),
        "a sequence by position would hold others": lambda s: (
            s.windows(sd.astral.rows_slide(3, 2), start=-4).apply(Best()).where(lambda e: e.k == "a")
        ),
        "a landmark would have fewer rows": lambda s: (
            s.windows(sd.astral.landmark(), start=-4).apply(Best()).where(lambda e: e.k == "a")
        ),
        "the module does not name the field": lambda s: best(s).where(lambda e: e.v > 0),
        "the module names nothing": lambda s: s.tumbling_window(5).apply(anything).where(lambda e: e.k == "a"),
        "the module does not name one of the fields": lambda s: best(s).where(lambda e: (e.k == "a") | (e.v > 0)),
        "the condition reads the lifetime": lambda s: best(s).where(lambda e, life: (e.k == "a") | (life.le > 0)),
        "the condition is opaque": lambda s: best(s).where(lambda e: e.k in ("a", "b")),
        "the condition calls a function of the user": lambda s: best(s).where(lambda e: short(e.k)),
        "the condition reads nothing": lambda s: best(s).where(sd.lit(True)),
        "bitwise and": lambda s: s.tumbling_window(5).apply(Best()).where(lambda e: e.v & 3),
        "the argument is opaque": lambda s: s.tumbling_window(5).apply(Best(), lambda e: dict(e)).where(lambda e: e.k == "a"),
        "the argument does not have the field": lambda s: (
            s.tumbling_window(5).apply(Known(), lambda e: {"v": e.v}).where(lambda e: e.k == "a")
        ),
        "the module is not deterministic": lambda s: s.tumbling_window(5).apply(Sampled()).where(lambda e: e.k == "a"),
        "the results are read elsewhere too": lambda s: doubled(best(s)),
        "results are aggregates": lambda s: s.tumbling_window(5).aggregate(Total()).where(lambda e: e == 1),
    },
    "push_filter_below_select": {
        "the condition is opaque": lambda s: s.select(k=lambda e: e.k).where(lambda e: e.k in ("a", "b")),
        "the condition calls a function of the user": lambda s: s.select(k=lambda e: e.k).where(lambda e: short(e.k)),
        "the condition reads the lifetime": lambda s: s.select(k=lambda e: e.k).where(lambda e, life: life.re > 4),
        "the field is opaque": lambda s: s.select(k=lambda e: str(e.k)).where(lambda e: e.k == "a"),
        "the field is the lifetime": lambda s: s.select(lambda e, life: {"le": life.le}).where(lambda e: e.le > 3),
        "the whole payload": lambda s: s.select(lambda e: e).where(lambda e: e.k == "a"),
        "many": lambda s: s.select_many(lambda e: [{"k": e.k}]).where(lambda e: e.k == "a"),
        "read elsewhere too": lambda s: doubled(s.select(k=lambda e: e.k, v=lambda e: e.v)),
    },
    "push_filter_below_union": {
        "read elsewhere too": lambda s: doubled(s.union(s.shift(2))),
    },
    "push_filter_below_lifetimes": {
        "the condition reads the lifetime": lambda s: s.to_points().where(lambda e, life: life.re > 4),
        "an opaque condition reads the lifetime": lambda s: s.alter_duration(9).where(lambda e, life: life.re not in (9, 12)),
        "rows that are dropped could fail": lambda s: s.clip_interval(2, 9).where(lambda e: e.v > 0),
        "rows that are dropped fail": lambda s: none_before_5(s).clip_interval(5, 60).where(lambda e: e.v > 0),
        "rows that are dropped fail too": lambda s: none_before_5(s).clip_interval(5, 60).where(lambda e: e.v < 2),
        "a row that is moved beyond the end of time would fail": lambda s: s.shift(3).where(lambda e: e.v > 0),
        "a duration of a row may be none": lambda s: s.alter_duration(lambda e: e.v).where(lambda e: e.v > 0),
        "a row ends as the next starts": lambda s: s.to_edges(key="k").where(lambda e: e.k == "a"),
        "equal payloads may fail or not": lambda s: s.stitch().where(lambda e: e.v > 0),
        "read elsewhere too": lambda s: doubled(s.to_points()),
    },
    "push_filter_below_join": {
        "both sides are read": lambda s: joined(s).where(lambda e: e.v == e.w),
        "the pair is read": lambda s: s.join(s.shift(1), on="k").where(lambda e: sd.not_(sd.is_none(e))),
        "the condition is opaque": lambda s: joined(s).where(lambda e: e.k in ("a", "b")),
        "the condition reads the lifetime": lambda s: joined(s).where(lambda e, life: (e.v == 1) | (life.le > 4)),
        "the right rows of an as-of join": lambda s: s.asof_join(s.shift(1), select=lambda a, b: {"v": b.v}).where(
            lambda e: e.v == 1
        ),
        "whether there is a row": lambda s: latest(s, how="left").where(lambda e: e.m),
        "nothing is read": lambda s: joined(s).where(lambda e: sd.lit(1) == 1),
        "the projection is opaque": lambda s: s.join(s.shift(1), on="k", select=lambda a, b: {"v": str(a.v)}).where(
            lambda e: e.v == "1"
        ),
        "read elsewhere too": lambda s: doubled(joined(s)),
    },
    "push_filter_below_groups": {
        "the condition reads the result": lambda s: (
            s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).where(lambda e: e.n == 1)
        ),
        "the condition can fail": lambda s: s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).where(lambda e: e.k > "a"),
        "the key is computed": lambda s: (
            s.group_by(lambda e: e.v % 2).tumbling_window(5).aggregate(n=sd.count()).where(lambda e: e.key == 1)
        ),
        "the field is not the key": lambda s: (
            s.group_by("k").tumbling_window(5).aggregate(v=sd.max(lambda e: e.v)).where(lambda e: e.v == 1)
        ),
        "read elsewhere too": lambda s: doubled(s.group_by("k").tumbling_window(5).aggregate(v=sd.count())),
    },
    "share_equals": {
        "functions that look alike": lambda s: alike(lambda: s.where(lambda e: e.k in ("a", "b"))),
        "constants of other types": lambda s: (
            s.to_points().where(lambda e: e.v == 1).union(s.to_points().where(lambda e: e.v == 1.0))
        ),
        "modules that look alike": lambda s: s.tumbling_window(5).apply(Best()).union(s.tumbling_window(5).apply(Best())),
        "windows of another size": lambda s: (
            s.tumbling_window(5).aggregate(sd.count()).union(s.tumbling_window(6).aggregate(sd.count()))
        ),
        "a module that is not deterministic": lambda s: alike(lambda: s.tumbling_window(5).apply(SAMPLED)),
        "groups of another key": lambda s: grouped(s, "k").union(grouped(s, "v")),
    },
    "prune_columns": {
        "payloads are results": lambda s: s.semi_join(s.shift(1), on="k"),
        "pairs are results": lambda s: s.join(s.shift(1), on="k"),
        "all fields are read": lambda s: joined(s),
        "the projection is opaque": lambda s: s.join(s.shift(1), on="k", select=lambda a, b: {"k": str(a.k)}),
        "a row is read as a whole": lambda s: s.join(s.shift(1), on="k", select=lambda a, b: {"a": a, "k": b.k}),
        "payloads are compared": lambda s: s.chop(4).distinct().select(k=lambda e: e.k),
        "order matters": lambda s: s.chop(4).tumbling_window(5).aggregate(k=sd.first(lambda e: e.k)),
        "a module is given payloads": lambda s: s.chop(4).tumbling_window(5).apply(anything).select(k=lambda e: e.k),
        "nothing keeps payloads": lambda s: s.where(lambda e: e.k == "a").select(k=lambda e: e.k),
        "the fields are not known": lambda s: sd.source("s0").chop(4).select(k=lambda e: e.k),
    },
    "clip_right": {
        "the module promises nothing": lambda s: s.tumbling_window(5).aggregate(Busy()),
        "another module promises nothing": lambda s: s.tumbling_window(5).aggregate(lambda w: (w.udm(Ended()), w.udm(Busy()))),
        "ends beyond the window matter": lambda s: s.tumbling_window(5, output=sd.Output.UNCHANGED).apply(Spells()),
        "it is clipped already": lambda s: s.tumbling_window(5, clip=sd.Clip.FULL).aggregate(Ended()),
        "it always is": lambda s: s.tumbling_window(5).aggregate(sd.time_weighted_avg(lambda e: e.v)),
        "no module sees ends": lambda s: s.tumbling_window(5).aggregate(rows),
        "the module is not deterministic": lambda s: s.tumbling_window(5).aggregate(Guessed()),
    },
    "narrow_to_reads": {
        "positions go by whole payloads": lambda s: s.windows(sd.astral.rows_slide(3, 2)).aggregate(Total()),
        "the fields are not known": lambda s: sd.source("s0").tumbling_window(5).aggregate(Total()),
        "the payload is a class": lambda s: s.select(lambda e: Pair(e.k, e.v)).tumbling_window(5).aggregate(Total()),
        "the payload is a tuple": lambda s: s.select(lambda e: (e.k, e.v)).tumbling_window(5).aggregate(Total()),
        "order matters": lambda s: s.tumbling_window(5).aggregate(InOrder()),
        "order matters to another aggregate": lambda s: s.tumbling_window(5).aggregate(
            lambda w: (w.udm(Total()), w.first(lambda e: e.v))
        ),
        "all fields are read": lambda s: s.tumbling_window(5).apply(Best()),
        "the module promises nothing": lambda s: s.tumbling_window(5).apply(Known()),
        "the module reads another field": lambda s: s.select(w=lambda e: e.v).tumbling_window(5).aggregate(Total()),
        "another aggregate is opaque": lambda s: s.tumbling_window(5).aggregate(
            lambda w: (w.udm(Total()), w.sum(lambda e: len(e.k)))
        ),
        "no module is given whole payloads": lambda s: s.tumbling_window(5).aggregate(Total(), lambda e: {"v": e.v}),
    },
}


def source(progress: sd.Progress | None = None) -> Any:
    return sd.source("s0", Row, progress=progress)
