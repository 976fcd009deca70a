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


def slid(s: Any, start: int | None, **how: Any) -> Any:
    how = {"partial": False} | how
    return s.windows(sd.astral.range_slide(4, 2, **how), start=start).aggregate(n=sd.count(), v=sd.max(lambda e: e.v))


def in_line(s: Any, start: int, offset: int, slope: int = 3, rate: int = 3) -> Any:
    return s.windows(sd.astral.linear((slope, offset), (3, offset + 5), rate), start=start).aggregate(n=sd.count())


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
AT_END = {"output": sd.Output.POINT_AT_END}


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


def numbers() -> dict[str, Any]:
    return {"total": sd.sum(lambda e: e.v), "mean": sd.avg(lambda e: e.v), "n": sd.count(lambda e: e.v)}


def with_none(s: Any) -> Any:
    return s.select(k=lambda e: e.k, v=lambda e: sd.when(e.v == 0).then(None).otherwise(e.v))


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
    "fuse_selects": {
        "a renamed field": lambda s: s.select(w=lambda e: e.v, k=lambda e: e.k).select(x=lambda e: e.w + e.w),
        "a computed field": lambda s: s.select(w=lambda e: e.v * 2).select(x=lambda e: e.w + 1),
        "a field that fails is not read": lambda s: s.select(w=lambda e: e.v // 0, k=lambda e: e.k).select(k=lambda e: e.k),
        "three": lambda s: s.select(w=lambda e: e.v).select(x=lambda e: e.w - 1).select(k=lambda e: e.x),
        "to a scalar": lambda s: s.select(w=lambda e: e.v > 0).select(lambda e: sd.not_(e.w)),
        "of a scalar": lambda s: s.select(lambda e: e.v > 0).select(n=lambda e: e),
    },
    "fuse_filters": {
        "two": lambda s: s.where(lambda e: e.v > 0).where(lambda e: e.k == "a"),
        "three": lambda s: s.where(lambda e: e.v > 0).where(lambda e: e.k == "a").where(lambda e: e.v != 3),
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
    "share_panes": {
        "counts": lambda s: two(s.to_points(), n=sd.count()),
        "minima and maxima": lambda s: two(s.to_points(), lo=sd.min(lambda e: e.v), hi=sd.max(lambda e: e.v)),
        "sums and means of integers": lambda s: two(pairs(s), **numbers()),
        "sums of computed integers": lambda s: two(pairs(s), n=sd.sum(lambda e: 2 - e.v * -e.v)),
        "means of selected integers": lambda s: two(
            pairs(s).select(w=lambda e: e.v + 1).where(lambda e: e.w != 0), n=sd.avg(lambda e: e.w)
        ),
        "of groups": lambda s: two(s.to_points().group_by("k"), n=sd.count(), hi=sd.max(lambda e: e.v)),
        "of groups with two keys": lambda s: two(s.to_points().group_by(["k", "v"]), n=sd.count()),
        "of groups, paired with the key": lambda s: of(
            pairs(s).group_by("k"), lambda g: fives(g).aggregate(sd.count()).union(fifteens(g).aggregate(sd.count()))
        ),
        "a key of the window": lambda s: of(
            s.to_points().group_by("k"),
            lambda g: fives(g).aggregate(lambda w: {"z": w.key, "n": w.count()}).union(fifteens(g).aggregate(z=sd.count())),
        ),
        "inside of groups": lambda s: s.group_by("k").apply(lambda g: two(g.to_points(), n=sd.count())),
        "filtered": lambda s: two(
            pairs(s), n=sd.count(where=lambda e: e.v != 1), v=sd.avg(lambda e: e.v, where=lambda e: e.v != 1)
        ),
        "a filter that leaves nothing": lambda s: two(
            pairs(s), hi=sd.max(lambda e: e.v, where=lambda e: e.k == "z"), n=sd.avg(lambda e: e.v, where=lambda e: e.k == "z")
        ),
        "other aggregates": lambda s: of(
            pairs(s), lambda p: fives(p).aggregate(n=sd.max(lambda e: e.v)).union(fifteens(p).aggregate(n=sd.sum(lambda e: e.v)))
        ),
        "points at the end": lambda s: two(
            s.to_points(), lambda p: fives(p, **AT_END), lambda p: fifteens(p, **AT_END), n=sd.count()
        ),
        "the same windows": lambda s: of(
            s.to_points(), lambda p: fives(p).aggregate(n=sd.count()).union(fives(p).aggregate(n=sd.max(lambda e: e.v)))
        ),
        "an offset": lambda s: two(
            s.to_points(), lambda p: p.hopping_window(6, 3, offset=-2), lambda p: p.tumbling_window(9, offset=1), n=sd.count()
        ),
        "one of three does not fit": lambda s: of(
            s.to_points(), lambda p: two(p, n=sd.count()).union(p.tumbling_window(7).aggregate(n=sd.count()))
        ),
        "joined": lambda s: of(
            s.to_points(),
            lambda p: (
                fives(p)
                .aggregate(n=sd.count())
                .join(fifteens(p).aggregate(n=sd.count()), select=lambda a, b: {"share": a.n / b.n})
            ),
        ),
        "ends of windows": lambda s: two(fives(s, **AT_END).aggregate(v=sd.count()), n=sd.max(lambda e: e.v)),
    },
    "share_transposed": {
        "a later start": lambda s: slid(s, -8).union(slid(s, 2)),
        "an earlier start": lambda s: slid(s, 4).union(slid(s, -20)),
        "three": lambda s: slid(s, -8).union(slid(s, -2), slid(s, 0)),
        "a join": lambda s: slid(s, -8).join(slid(s, 0), on="n", select=lambda a, b: a.n + b.n),
        "bounds by their times": lambda s: in_line(s, -9, -9).union(in_line(s, -3, -3)),
        "windows that are the same from the first one on": lambda s: in_line(s, -9, -3).union(in_line(s, -5, -3)),
        "an operator": lambda s: (
            s.windows(sd.astral.range_slide(5, 5, partial=False), start=-10)
            .apply(BEST)
            .union(s.windows(sd.astral.range_slide(5, 5, partial=False), start=0).apply(BEST))
        ),
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
    "fuse_selects": {
        "a computed field is read twice": lambda s: s.select(w=lambda e: e.v * 2).select(x=lambda e: e.w + e.w),
        "the second is opaque": lambda s: s.select(w=lambda e: e.v).select(x=lambda e: str(e.w)),
        "the field is opaque": lambda s: s.select(w=lambda e: str(e.v)).select(x=lambda e: e.w),
        "the second reads the lifetime": lambda s: s.select(w=lambda e: e.v).select(lambda e, life: {"x": e.w, "y": life.le}),
        "the first reads the lifetime": lambda s: s.select(lambda e, life: {"k": e.k, "y": life.re}).select(x=lambda e: e.k),
        "the whole payload": lambda s: s.select(w=lambda e: e.v).select(lambda e: {"x": e}),
        "read elsewhere too": lambda s: (lambda t: t.select(k=lambda e: e.k).union(t))(s.select(k=lambda e: e.k)),
    },
    "fuse_filters": {
        "the second can fail": lambda s: s.where(lambda e: e.v != 1).where(lambda e: e.v > 0),
        "the second fails": lambda s: with_none(s).where(lambda e: sd.not_(sd.is_none(e.v))).where(lambda e: e.v > 0),
        "the second fails elsewhere": lambda s: with_none(s).where(lambda e: e.v != None).where(lambda e: e.v < 2),  # noqa: E711
        "the first is no bool": lambda s: s.where(lambda e: e.v).where(lambda e: e.k == "a"),
        "the second is no bool": lambda s: s.where(lambda e: e.v > 0).where(lambda e: e.k),
        "the second is opaque": lambda s: s.where(lambda e: e.v > 0).where(lambda e: e.k in ("a", "b")),
        "the first reads the lifetime": lambda s: s.where(lambda e, life: life.re > 4).where(lambda e: e.k == "a"),
        "read elsewhere too": lambda s: doubled(s.where(lambda e: e.k == "a")),
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
    "share_panes": {
        "one window": lambda s: fives(s.to_points()).aggregate(n=sd.count()),
        "events of any length": lambda s: two(s, n=sd.count()),
        "longer durations": lambda s: two(s.alter_duration(2), n=sd.count()),
        "sums of what may be floats": lambda s: two(s.to_points(), n=sd.sum(lambda e: e.v)),
        "sums of quotients": lambda s: two(pairs(s), n=sd.sum(lambda e: e.v / 2)),
        "sums of a field that is computed otherwise": lambda s: two(
            s.select(lambda e: Pair(e.k, e.v / 2)).to_points(), n=sd.sum(lambda e: e.v)
        ),
        "a median beside a count": lambda s: two(s.to_points(), n=sd.count(), m=sd.median(lambda e: e.v)),
        "a module of the user": lambda s: of(
            s.to_points(), lambda p: fives(p).aggregate(Total()).union(fifteens(p).aggregate(Total()))
        ),
        "panes would be smaller than any hop": lambda s: two(
            s.to_points(), lambda p: p.tumbling_window(4), lambda p: p.tumbling_window(6), n=sd.count()
        ),
        "offsets do not meet": lambda s: two(s.to_points(), fives, lambda p: p.tumbling_window(5, offset=2), n=sd.count()),
        "windows with gaps": lambda s: two(
            s.to_points(), lambda p: p.hopping_window(5, 10), lambda p: p.hopping_window(10, 20), n=sd.count()
        ),
        "snapshots": lambda s: two(s.to_points(), fives, lambda p: p.snapshot_window(), n=sd.count()),
        "other rows": lambda s: (
            fives(s.to_points()).aggregate(n=sd.count()).union(fifteens(s.shift(1).to_points()).aggregate(n=sd.count()))
        ),
        "other keys": lambda s: of(
            s.to_points(),
            lambda p: fives(p.group_by("k")).aggregate(sd.count()).union(fifteens(p.group_by("v")).aggregate(sd.count())),
        ),
        "computed keys": lambda s: two(s.to_points().group_by(lambda e: e.v % 2), n=sd.count()),
        "a maximum of the larger windows alone": lambda s: of(
            s.to_points(),
            lambda p: fives(p).aggregate(n=sd.count()).union(p.hopping_window(20, 10).aggregate(n=sd.max(lambda e: e.k))),
        ),
        "an opaque window lambda": lambda s: of(
            s.to_points(), lambda p: fives(p).aggregate(lambda w: min(w.count(), 2)).union(fifteens(p).aggregate(sd.count()))
        ),
    },
    "share_transposed": {
        "another phase": lambda s: slid(s, -8).union(slid(s, 1)),
        "the first windows are cut": lambda s: slid(s, -8, partial=True).union(slid(s, 2, partial=True)),
        "no start": lambda s: slid(s, None).union(slid(s, 2)),
        "another offset": lambda s: in_line(s, -9, -9).union(in_line(s, -3, -2)),
        "another slope": lambda s: in_line(s, -9, -9).union(in_line(s, -3, -3, slope=2)),
        "another rate": lambda s: in_line(s, -9, -9).union(in_line(s, -3, -3, rate=4)),
        "another aggregate": lambda s: slid(s, -8).union(
            s.windows(sd.astral.range_slide(4, 2, partial=False), start=2).aggregate(n=sd.count())
        ),
        "another stream": lambda s: slid(s, -8).union(slid(s.shift(1), 2)),
        "by position": lambda s: (
            s.windows(sd.astral.rows_slide(2, 2), start=-8)
            .aggregate(n=sd.count())
            .union(s.windows(sd.astral.rows_slide(2, 2), start=2).aggregate(n=sd.count()))
        ),
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
