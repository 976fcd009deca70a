"""Every operator with its variants, as queries for the laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any, TypeAlias

import streamdsl as sd
from streamdsl import astral
from streamdsl.temporal import Unit, to_ticks
from streamdsl.udm.bases import AnyUDA, AnyUDO
from tests.laws.modules import Above, Alone, Ends, Halves, Spread
from tests.operators import entries, kinds
from tests.operators.entry import Operator

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
    unit: Unit | None = None

    def query(self) -> Stream:
        return self.build(*(sd.source(f"s{i}", unit=self.unit) for i in range(self.inputs)))


FIRST = [
    *("where", "select", "select_many", "alter_lifetime", "alter_duration", "shift", "to_points", "to_edges", "distinct", "chop"),
    *("stitch", "match", "clip_interval", "extend", "clip_duration", "to_points_at_end", "quantize", "scan", "throttle", "fill"),
    *("trailing_window", "union", "join", "anti_join", "left_join", "full_join", "band_join", "asof_join", "semi_join"),
    "clip_by",
]
"""The operators in the order in which laws that draw one of all variants know them; others come after."""

KINDS: dict[str, Sequence[Kind]] = {name: entry.variants for name, entry in kinds().items() if entry.variants}
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
UNENDING = {name for name, entry in kinds().items() if entry.unending}
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
    lambda w: w.top_k(2, by="k", rank="place"),
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


def _moved(s: Stream, midnight: str) -> Stream:
    """Return rows of small times around a date of UTC, at which clocks are set somewhere."""
    return s.shift(to_ticks(midnight, "s") - 6)


IN_SECONDS: list[tuple[Callable[..., Stream], int]] = [
    (lambda s: s.shift("2s").extend(timedelta(seconds=4)).clip_duration("7s"), 1),
    (lambda s: s.hopping_window(timedelta(seconds=7), "3s").aggregate(mid=sd.median(lambda e: e.v)), 1),
    (lambda s: s.group_by("k").session_window("3s", max_duration="5s").aggregate(n=sd.count()), 1),
    (lambda s, t: s.band_join(t, on="k", before="3s", after="2s"), 2),
    (lambda s: _moved(s, "2018-11-04T03:00").calendar_window("day", tz="America/Sao_Paulo").aggregate(n=sd.count()), 1),
    (
        lambda s: (
            _moved(s, "2011-12-30T10:00")
            .group_by("k")
            .calendar_window("day", tz="Pacific/Apia")
            .aggregate(n=sd.count(), total=sd.sum(lambda e: e.v))
        ),
        1,
    ),
    (lambda s: _moved(s, "2010-11-07T02:30").calendar_window("week", tz="America/St_Johns").aggregate(lambda w: w.count()), 1),
]
"""Queries over sources that count seconds, and of how many."""


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
    found = {name: _variants(entries()[name]) for name in FIRST}
    found["windows"] = [
        Variant(f"windows {i}", lambda s, make=make, result=result: result(make(s)))
        for i, (make, result) in enumerate(zip(SEQUENCES, itertools.cycle(BUILTINS)))
    ]
    for kind in KINDS:
        found[kind] = _windows(kind, _insensitive())
        found[f"{kind}, time-sensitive"] = _windows(kind, _sensitive())
        if kinds()[kind].time_bound is not None:
            found[f"{kind}, time-sensitive"] += _windows(kind, _time_bound(kinds()[kind].time_bound))
    found["group_by"] = [Variant(f"group_by {i}", build, 1, unending) for i, (build, unending) in enumerate(GROUPED)]
    found |= {name: _variants(entry) for name, entry in entries().items() if name not in FIRST}
    return found


def with_units() -> dict[str, list[Variant]]:
    """Return queries over sources that count time in a calendar unit."""
    return {
        "with a unit": [Variant(f"with a unit {i}", build, inputs, False, "s") for i, (build, inputs) in enumerate(IN_SECONDS)]
    }


def _variants(entry: Operator) -> list[Variant]:
    return [Variant(f"{entry.name} {i}", build, entry.inputs, not entry.ends) for i, build in enumerate(entry.variants)]
