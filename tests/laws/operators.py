"""Every operator with its variants, as queries for the laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import streamdsl as sd
from streamdsl import astral
from streamdsl.udm.bases import AnyUDA, AnyUDO
from tests.laws.modules import Above, Alone, Ends, Halves, Latest, Since, Spread, Through

Stream: TypeAlias = "sd.Stream[Any]"
Windowed: TypeAlias = Any
Kind: TypeAlias = Callable[..., Windowed]


@dataclass(frozen=True)
class Variant:
    """A query over `inputs` sources; `unending`: whether it takes rows that never end."""

    name: str
    build: Callable[..., Stream]
    inputs: int = 1
    unending: bool = True

    def query(self) -> Stream:
        return self.build(*(sd.source(f"s{i}") for i in range(self.inputs)))


def rises(e: Any, m: Any) -> bool:
    return bool(e.v > (m.b[-1] if m.b else m.a).v)


def falls(e: Any, m: Any) -> bool:
    return bool(e.v < m.b[0].v)


SPANS: dict[str, list[Callable[[Stream], Stream]]] = {
    "where": [
        lambda s: s.where(lambda e: e.v > 0),
        lambda s: s.where(lambda e: e.v > 0 and e.k != "b"),
        lambda s: s.where(lambda e, life: life.re - 3 > life.le),
    ],
    "select": [
        lambda s: s.select(lambda e: e.v // 2),
        lambda s: s.select(k=lambda e: e.k, w=lambda e: e.v * 0.5),
        lambda s: s.select(lambda e: f"{e.k}{e.v}"),
        lambda s: s.select(lambda e, life: life.le + e.v),
        lambda s: s.select(lambda e, life: life.re > 5),
    ],
    "select_many": [
        lambda s: s.select_many(lambda e: [e.k] * e.v),
        lambda s: s.select_many(lambda e: range(e.v)),
    ],
    "alter_lifetime": [
        lambda s: s.alter_lifetime(start=lambda e, life: life.le + e.v, duration=lambda e: e.v + 1),
        lambda s: s.alter_lifetime(start=lambda e, life: life.le - 2, duration=4),
        lambda s: s.alter_lifetime(duration=lambda e: e.v),
    ],
    "alter_duration": [
        lambda s: s.alter_duration(5),
        lambda s: s.alter_duration(lambda e: e.v),
        lambda s: s.alter_duration(lambda e, life: sd.when(life.re > 10).then(2).otherwise(life.re - life.le)),
    ],
    "shift": [lambda s: s.shift(4), lambda s: s.shift(-7)],
    "to_points": [lambda s: s.to_points()],
    "to_edges": [lambda s: s.to_edges(), lambda s: s.to_edges(key="k"), lambda s: s.to_edges(key=lambda e: e.v % 2)],
    "distinct": [lambda s: s.distinct(lambda e: e.k), lambda s: s.distinct(), lambda s: s.distinct(lambda e: (e.k, e.v % 2))],
    "chop": [lambda s: s.chop(5), lambda s: s.chop(7, offset=3), lambda s: s.chop(1, offset=-2)],
    "stitch": [
        lambda s: s.stitch(),
        lambda s: s.select(lambda e: e.k).stitch(),
        lambda s: s.select(lambda e: 1).alter_duration(3).stitch(),
        lambda s: s.select(lambda e: 1).union(s.select(lambda e: 1).shift(4)).stitch(),
    ],
    "match": [
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
    "clip_interval": [lambda s: s.clip_interval(2, 9), lambda s: s.clip_interval(-30, 3)],
    "extend": [lambda s: s.extend(4), lambda s: s.extend(-3)],
    "clip_duration": [lambda s: s.clip_duration(3), lambda s: s.clip_duration(20)],
    "to_points_at_end": [lambda s: s.to_points_at_end()],
    "quantize": [lambda s: s.quantize(5, 5), lambda s: s.quantize(9, 4, offset=-1), lambda s: s.quantize(2, 7, offset=3)],
    "scan": [
        lambda s: s.scan(Since()),
        lambda s: s.group_by("k").apply(lambda g: g.scan(Since)),
        lambda s: s.quantize(3, 3).select(k=lambda e: 0, v=lambda e: e.v % 2).scan(Since),
        lambda s: s.to_points().scan(Since).snapshot_window().aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    ],
    "throttle": [
        lambda s: s.throttle(3),
        lambda s: s.throttle(5, key="k"),
        lambda s: s.throttle(4, key=lambda e: (e.k, e.v % 2)),
        lambda s: s.select(lambda e: e.v).quantize(3, 3).throttle(1),
        lambda s: s.group_by("k").apply(lambda g: g.throttle(6, key="v")),
        lambda s: s.throttle(2, key="k").snapshot_window().aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    ],
    "fill": [
        lambda s: s.fill(4, {"k": "-", "v": 0}, start=-5, end=25),
        lambda s: s.fill(3, {"k": "-", "v": 0}, end=20, offset=1),
        lambda s: s.group_by("k").tumbling_window(5).aggregate(n=sd.count()).fill(5, {"k": "-", "n": 0}, start=0, end=30),
        lambda s: s.group_by("k").apply(lambda g: g.fill(6, {"k": "-", "v": 0}, end=15)),
        lambda s: s.group_by("k").apply(lambda g: g.tumbling_window(4).aggregate(n=sd.count()).fill(4, {"n": 0}, end=24)),
    ],
    "trailing_window": [
        lambda s: s.trailing_window(6).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
        lambda s: s.trailing_window(7, 3, 1).aggregate(v=sd.max(lambda e: e.v)),
        lambda s: s.group_by("k").trailing_window(3, 5).apply(Above(), lambda e: e.v),
        lambda s: s.trailing_window(8, 4, clip=sd.Clip.FULL).aggregate(Ends(), lambda e: e.v),
    ],
}
BOUNDED = {"chop", "fill", "trailing_window"}
"""Operators that need rows that end."""

PAIRS: dict[str, list[Callable[[Stream, Stream], Stream]]] = {
    "union": [lambda s, t: s.union(t), lambda s, t: s.union(t, s), lambda s, t: s.where(lambda e: e.v > 0).union(s, t)],
    "join": [
        lambda s, t: s.join(t, on="k"),
        lambda s, t: s.join(t, on=["k", "v"], select=lambda a, b: a.v + b.v),
        lambda s, t: s.join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
        lambda s, t: s.join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: a.v * 10 + b.v),
        lambda s, t: s.join(t, where=lambda a, b: a.v == 0 or b.v > a.v),
        lambda s, t: s.join(t),
        lambda s, t: s.join(s, on="k", select=lambda a, b: a.v - b.v),
    ],
    "anti_join": [
        lambda s, t: s.anti_join(t, on="k"),
        lambda s, t: s.anti_join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
        lambda s, t: s.anti_join(t, where=lambda a, b: a.v < b.v),
        lambda s, t: s.anti_join(t),
    ],
    "left_join": [
        lambda s, t: s.left_join(t, on="k"),
        lambda s, t: s.left_join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: a.v if b is None else b.v),
    ],
    "full_join": [
        lambda s, t: s.full_join(t, on="k"),
        lambda s, t: s.full_join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
        lambda s, t: s.full_join(t, where=lambda a, b: a.v < b.v and a.k != "c"),
        lambda s, t: s.full_join(s.shift(2), on="k", select=lambda a, b: (sd.is_none(a), sd.is_none(b))),
    ],
    "band_join": [
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
    "asof_join": [
        lambda s, t: s.asof_join(t, on="k"),
        lambda s, t: s.asof_join(t, on="k", tolerance=4, how="left"),
        lambda s, t: s.asof_join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: a.v * 10 + b.v),
        lambda s, t: s.asof_join(t, on="k", direction="forward", how="left"),
        lambda s, t: s.asof_join(t, direction="forward", tolerance=3, where=lambda a, b: a.v <= b.v),
        lambda s, t: s.asof_join(t, on="k", direction="nearest"),
        lambda s, t: s.asof_join(s, on="v", direction="nearest", tolerance=5, how="left", where=lambda a, b: a.k != b.k),
    ],
    "semi_join": [
        lambda s, t: s.semi_join(t, on="k"),
        lambda s, t: s.semi_join(t, on=(lambda a: a.v, lambda b: b.v + 1), where=lambda a, b: a.k != b.k),
        lambda s, t: s.semi_join(t, where=lambda a, b: a.v < b.v),
        lambda s, t: s.semi_join(t),
    ],
    "clip_by": [
        lambda s, t: s.clip_by(t, on="k"),
        lambda s, t: s.clip_by(t, where=lambda a, b: a.v < b.v),
        lambda s, t: s.clip_by(t),
        lambda s, t: s.clip_by(s, on="k"),
    ],
}

KINDS: dict[str, list[Kind]] = {
    "tumbling": [lambda s, **p: s.tumbling_window(5, **p), lambda s, **p: s.tumbling_window(7, offset=3, **p)],
    "hopping": [
        lambda s, **p: s.hopping_window(10, 5, **p),
        lambda s, **p: s.hopping_window(7, 3, offset=-2, **p),
        lambda s, **p: s.hopping_window(3, 8, offset=1, **p),
    ],
    "snapshot": [lambda s, **p: s.snapshot_window(**p)],
    "count by start": [
        lambda s, **p: s.count_window(1, **p),
        lambda s, **p: s.count_window(2, **p),
        lambda s, **p: s.count_window(3, **p),
    ],
    "count by end": [lambda s, **p: s.count_window(1, by="end", **p), lambda s, **p: s.count_window(2, by="end", **p)],
    "session": [
        lambda s, **p: s.session_window(1, **p),
        lambda s, **p: s.session_window(3, **p),
        lambda s, **p: s.session_window(8, **p),
    ],
    "cut session": [
        lambda s, **p: s.session_window(1, 4, **p),
        lambda s, **p: s.session_window(3, 5, **p),
        lambda s, **p: s.session_window(2, 11, **p),
        lambda s, **p: s.session_window(9, 2, **p),
    ],
}
SEQUENCES: list[Kind] = [
    lambda s: s.windows(astral.range_slide(6, 4)),
    lambda s: s.windows(astral.range_slide(5, 2, partial=False), start=3),
    lambda s: s.windows(astral.range_slide(4)),
    lambda s: s.windows(astral.linear((2, -4), (3, 1), 3), start=0),
    lambda s: s.windows(astral.five_uplet(2, 5, 5, 1, 4)),
    lambda s: s.windows(astral.linear((Fraction(1, 2), 0), (Fraction(1, 2), Fraction(7, 2)), Fraction(2, 3)), start=-2),
    lambda s: s.windows(astral.fixed(2, 9)),
    lambda s: s.windows(astral.for_loop(2, lambda u: u < 14, lambda u: u + 3, lambda u: (u - 4, u - 1))),
    lambda s: s.windows(astral.rows_slide(3, 2)),
    lambda s: s.windows(astral.rows_slide(2, 1, partial=False), start=4),
    lambda s: s.windows(astral.landmark()),
    lambda s: s.windows(astral.linear((1, 1), (2, 3), 2, "position")),
    lambda s: s.windows(astral.fixed(1, 3, "position")),
    lambda s: s.windows(astral.WindowSequence(lambda j: j, lambda j: j + 2, 1, "position", delay=3)),
    lambda s: s.windows(astral.WindowSequence(lambda j, v: v.t0, lambda j, v: v.tau(j)[0], 2, "time", "position")),
]
"""Window sequences of which each has an end over rows that do."""
UNENDING = {"snapshot", "count by start", "count by end", "session"}
CLIPS = (sd.Clip.NONE, sd.Clip.LEFT, sd.Clip.RIGHT, sd.Clip.FULL)

Result: TypeAlias = Callable[[Windowed], Stream]

BUILTINS: list[Result] = [
    lambda w: w.aggregate(n=sd.count(), total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.v)),
    lambda w: w.aggregate(low=sd.min(lambda e: e.v), high=sd.max(lambda e: e.v), mid=sd.median(lambda e: e.v)),
    lambda w: w.aggregate(n=sd.count(where=lambda e: e.v > 0), total=sd.sum(lambda e: e.v, where=lambda e: e.k == "a")),
    lambda w: w.aggregate(sd.sum(lambda e: e.v / 3)),
    lambda w: w.aggregate(first=sd.first(lambda e: e.v), last=sd.last(lambda e: e.k), all=sd.collect(lambda e: e.v)),
    lambda w: w.aggregate(q=sd.quantile(lambda e: e.v, 0.3), kinds=sd.count_distinct(lambda e: e.k)),
    lambda w: w.aggregate(dev=sd.stddev(lambda e: e.v), var=sd.variance(lambda e: e.v)),
    lambda w: w.aggregate(lambda w: (w.count(), w.sum(lambda e: e.v))),
    lambda w: w.aggregate(Spread(), lambda e: e.v),
    lambda w: w.aggregate(n=sd.count(), spread=Spread().of(lambda e: e.v)),
    lambda w: w.top_k(2, by=lambda e: e.v),
    lambda w: w.top_k(1, by="k", rank=True),
    lambda w: w.apply(Above(), lambda e: e.v),
]


def _insensitive() -> Iterator[tuple[dict[str, Any], Result]]:
    for result in BUILTINS:
        yield {}, result
    for result in BUILTINS[:1] + BUILTINS[-1:]:
        yield {"output": sd.Output.POINT_AT_END}, result


def _time_bound(module: AnyUDO[Any, Any]) -> Iterator[tuple[dict[str, Any], Result]]:
    for clip in (sd.Clip.NONE, sd.Clip.LEFT):
        yield {"clip": clip, "output": sd.Output.TIME_BOUND}, lambda w: w.apply(module, lambda e: e.v)


def _sensitive() -> Iterator[tuple[dict[str, Any], Result]]:
    ends: AnyUDA[Any, Any] = Ends()
    alone: AnyUDO[Any, Any] = Alone()
    for clip, output in itertools.product(CLIPS, (sd.Output.ALIGN, sd.Output.POINT_AT_END)):
        yield {"clip": clip, "output": output}, lambda w: w.aggregate(ends, lambda e: e.v)
        yield {"clip": clip, "output": output}, lambda w: w.apply(alone, lambda e: e.v)
    for clip in CLIPS:
        yield {"clip": clip, "output": sd.Output.UNCHANGED}, lambda w: w.apply(alone, lambda e: e.v)
        yield {"clip": clip, "output": sd.Output.CLIP}, lambda w: w.apply(Halves(), lambda e: e.v)
    yield {}, lambda w: w.aggregate(mean=sd.time_weighted_avg(lambda e: e.v))


GROUPED: list[tuple[Callable[[Stream], Stream], bool]] = [
    (lambda s: s.group_by(lambda e: e.k).tumbling_window(5).aggregate(n=sd.count()), False),
    (lambda s: s.group_by("k").hopping_window(8, 3).aggregate(Ends(), lambda e: e.v), False),
    (lambda s: s.group_by("k").snapshot_window().aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)), True),
    (lambda s: s.group_by(lambda e: e.v % 2).count_window(2).apply(Above(), lambda e: e.v), True),
    (lambda s: s.group_by("k").session_window(3).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)), True),
    (lambda s: s.group_by("k").session_window(2, 4).aggregate(Ends(), lambda e: e.v), False),
    (lambda s: s.group_by(lambda e: (e.k, e.v)).snapshot_window(output=sd.Output.POINT_AT_END).aggregate(n=sd.count()), True),
    (lambda s: s.group_by("k").windows(astral.rows_slide(2, 1)).aggregate(n=sd.count(), all=sd.collect(lambda e: e.v)), True),
    (lambda s: s.group_by("k").windows(astral.range_slide(6, 3)).top_k(2, by="v", rank=True), True),
    (lambda s: s.group_by("k").windows(astral.range_slide(4), start=2).aggregate(Spread(), lambda e: e.v), True),
    (lambda s: s.group_by("k").apply(lambda g: g.where(lambda e: e.v > 0).to_points()), True),
    (lambda s: s.group_by("k").apply(lambda g: g.to_edges().snapshot_window().aggregate(n=sd.count())), True),
    (lambda s: s.group_by("k").apply(lambda g: g.anti_join(g.where(lambda e: e.v > 0), on="v")), True),
    (lambda s: s.group_by("k").apply(lambda g: g.join(g.shift(2), select=lambda a, b: a.v - b.v)), True),
    (lambda s: s.group_by("k").apply(lambda g: g.group_by("v").snapshot_window().aggregate(n=sd.count())), True),
    (
        lambda s: s.group_by("k").apply(lambda g: g.group_by("v").apply(lambda h: h.tumbling_window(4).aggregate(n=sd.count()))),
        False,
    ),
    (lambda s: s.group_by("k").apply(lambda g: g.union(g.shift(3)).clip_by(g)), True),
    (lambda s: s.group_by("k").apply(lambda g: g.chop(4, 1)), False),
    (lambda s: s.group_by("k").apply(lambda g: g.distinct(lambda e: e.v)), True),
    (lambda s: s.group_by("k").apply(lambda g: g.union(g.shift(2)).stitch()), True),
    (lambda s: s.group_by("k").apply(lambda g: g.semi_join(g.where(lambda e: e.v > 0).shift(3), on="v")), True),
    (lambda s: s.group_by("k").apply(lambda g: g.left_join(g.where(lambda e: e.v > 0), on="v")), True),
    (lambda s: s.group_by("k").apply(lambda g: g.match(lambda p: p.a.then(p.b.where(lambda e, m: e.v > m.a.v)).within(9))), True),
    (
        lambda s: s.group_by("k").apply(lambda g: g.match(lambda p: p.a.many().then(p.b).within(7), by="v", overlapping=True)),
        True,
    ),
    (lambda s: s.group_by("k").apply(lambda g: g.extend(2).quantize(5, 5)), True),
    (lambda s: s.group_by("k").apply(lambda g: g.tumbling_window(6).top_k(2, by="v", rank=True)), False),
]


def _windows(kind: str, settings: Iterator[tuple[dict[str, Any], Result]]) -> list[Variant]:
    built: list[Variant] = []
    for number, (policies, result) in enumerate(settings):
        shapes = KINDS[kind]
        make = shapes[number % len(shapes)]

        def build(s: Stream, make: Kind = make, policies: dict[str, Any] = policies, result: Result = result) -> Stream:
            return result(make(s, **policies))

        built.append(Variant(f"{kind} {number}", build, unending=kind in UNENDING))
    return built


def operators() -> dict[str, list[Variant]]:
    """Return the variants of every operator, by its name."""
    found = {
        name: [Variant(f"{name} {i}", build, unending=name not in BOUNDED) for i, build in enumerate(builds)]
        for name, builds in SPANS.items()
    }
    for name, pairs in PAIRS.items():
        found[name] = [Variant(f"{name} {i}", build, 2) for i, build in enumerate(pairs)]
    found["windows"] = [
        Variant(f"windows {i}", lambda s, make=make, result=result: result(make(s)))
        for i, (make, result) in enumerate(zip(SEQUENCES, itertools.cycle(BUILTINS)))
    ]
    for kind in KINDS:
        found[kind] = _windows(kind, _insensitive())
        found[f"{kind}, time-sensitive"] = _windows(kind, _sensitive())
        if kind != "count by end":
            found[f"{kind}, time-sensitive"] += _windows(kind, _time_bound(Latest() if "count" in kind else Through()))
    found["group_by"] = [Variant(f"group_by {i}", build, 1, unending) for i, (build, unending) in enumerate(GROUPED)]
    return found
