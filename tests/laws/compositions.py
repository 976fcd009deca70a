"""Random queries of two to six operators. Every step takes and gives rows of `k` and `v`, so any can follow any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import streamdsl as sd
from tests.laws.modules import Above, Alone, Ends, Since

Stream: TypeAlias = "sd.Stream[Any]"


@dataclass(frozen=True)
class Step:
    """An operator: `bounded` if it needs rows that end, `unbounds` if its rows may never end."""

    name: str
    apply: Callable[..., Stream]
    inputs: int = 1
    bounded: bool = False
    unbounds: bool = False

    def __repr__(self) -> str:
        return self.name


def record(s: Stream) -> Stream:
    """Return rows `k`, `v` from rows of bare numbers."""
    return s.select(k=lambda e: "a", v=lambda e: e)


STEPS = [
    Step("where", lambda s: s.where(lambda e: e.v > -1)),
    Step("where (opaque)", lambda s: s.where(lambda e: e.v < 2 and e.k != "b")),
    Step("select", lambda s: s.select(k=lambda e: e.k, v=lambda e: 1 - e.v)),
    Step("select_many", lambda s: s.select_many(lambda e: [{"k": e.k, "v": i} for i in range(min(e.v, 3))])),
    Step("shift", lambda s: s.shift(3)),
    Step("shift back", lambda s: s.shift(-2)),
    Step("to_points", lambda s: s.to_points()),
    Step("alter_duration", lambda s: s.alter_duration(6)),
    Step("alter_duration (v)", lambda s: s.alter_duration(lambda e: e.v + 2)),
    Step("alter_lifetime", lambda s: s.alter_lifetime(start=lambda e, life: life.le + e.v, duration=5)),
    Step("to_edges", lambda s: s.to_edges(), unbounds=True),
    Step("to_edges (k)", lambda s: s.to_edges(key="k"), unbounds=True),
    Step("clip_interval", lambda s: s.clip_interval(-4, 12)),
    Step("extend", lambda s: s.extend(3)),
    Step("extend back", lambda s: s.extend(-2)),
    Step("clip_duration", lambda s: s.clip_duration(4)),
    Step("to_points_at_end", lambda s: s.to_points_at_end()),
    Step("quantize", lambda s: s.quantize(6, 3, offset=1)),
    Step("distinct", lambda s: s.distinct(lambda e: {"k": e.k, "v": e.v // 2})),
    Step("top_k", lambda s: s.snapshot_window().top_k(1, by="v")),
    Step("chop", lambda s: s.chop(5, offset=2), bounded=True),
    Step("stitch", lambda s: s.select(k=lambda e: e.k, v=lambda e: e.v // 3).stitch()),
    Step(
        "match",
        lambda s: s.match(
            lambda p: p.a.then(p.b.where(lambda e, m: e.v >= m.a.v)).within(8),
            by="k",
            select=lambda m: {"k": m.a.k, "v": m.b.v},
        ),
    ),
    Step("tumbling", lambda s: s.tumbling_window(6).aggregate(k=sd.max(lambda e: e.k), v=sd.count()), bounded=True),
    Step("hopping", lambda s: record(s.hopping_window(9, 4, offset=1).apply(Above(), lambda e: e.v)), bounded=True),
    Step(
        "hopping with gaps",
        lambda s: s.hopping_window(3, 7).aggregate(k=sd.min(lambda e: e.k), v=sd.sum(lambda e: e.v)),
        bounded=True,
    ),
    Step("snapshot", lambda s: s.snapshot_window().aggregate(k=sd.min(lambda e: e.k), v=sd.sum(lambda e: e.v))),
    Step(
        "snapshot, time-sensitive",
        lambda s: (
            s.snapshot_window(clip=sd.Clip.FULL)
            .aggregate(Ends(), lambda e: e.v)
            .select(k=lambda e: "c", v=lambda e: e._1 - e._0 if e._1 < sd.INFINITY else 2)
        ),
    ),
    Step("session", lambda s: s.session_window(3).aggregate(k=sd.max(lambda e: e.k), v=sd.count())),
    Step(
        "session, time-sensitive",
        lambda s: (
            s.session_window(2)
            .aggregate(Ends(), lambda e: e.v)
            .select(k=lambda e: "c", v=lambda e: e._1 - e._0 if e._1 < sd.INFINITY else 2)
        ),
    ),
    Step("session, cut", lambda s: record(s.session_window(4, 6).apply(Above(), lambda e: e.v)), bounded=True),
    Step("grouped session", lambda s: s.group_by("k").session_window(2).aggregate(v=sd.max(lambda e: e.v))),
    Step("count by start", lambda s: s.count_window(2).aggregate(k=sd.min(lambda e: e.k), v=sd.count())),
    Step("count by end", lambda s: s.count_window(2, by="end").aggregate(k=sd.max(lambda e: e.k), v=sd.sum(lambda e: e.v))),
    Step(
        "windows by time",
        lambda s: s.windows(sd.astral.range_slide(7, 3)).aggregate(k=sd.max(lambda e: e.k), v=sd.sum(lambda e: e.v)),
    ),
    Step(
        "windows by position",
        lambda s: record(s.windows(sd.astral.rows_slide(3, 2)).apply(Above(), lambda e: e.v)),
        unbounds=True,
    ),
    Step(
        "operator, unchanged",
        lambda s: record(s.tumbling_window(8, output=sd.Output.UNCHANGED).apply(Alone(), lambda e: e.v)),
        bounded=True,
    ),
    Step(
        "point at end",
        lambda s: s.snapshot_window(output=sd.Output.POINT_AT_END).aggregate(k=sd.min(lambda e: e.k), v=sd.count()),
    ),
    Step("grouped tumbling", lambda s: s.group_by("k").tumbling_window(5).aggregate(v=sd.count()), bounded=True),
    Step("grouped snapshot", lambda s: s.group_by("k").snapshot_window().aggregate(v=sd.max(lambda e: e.v))),
    Step("group apply", lambda s: s.group_by("k").apply(lambda g: g.clip_by(g)).select(k=lambda e: e._0, v=lambda e: e._1.v)),
    Step("union", lambda s, t: s.union(t), inputs=2),
    Step("join", lambda s, t: s.join(t, on="k", select=lambda a, b: {"k": a.k, "v": a.v - b.v}), inputs=2),
    Step(
        "join (where)", lambda s, t: s.join(t, where=lambda a, b: a.v < b.v, select=lambda a, b: {"k": b.k, "v": a.v}), inputs=2
    ),
    Step("anti_join", lambda s, t: s.anti_join(t, on="k"), inputs=2),
    Step("anti_join (where)", lambda s, t: s.anti_join(t, where=lambda a, b: a.v <= b.v), inputs=2),
    Step(
        "left_join",
        lambda s, t: s.left_join(t, on="k", select=lambda a, b: {"k": a.k, "v": sd.when(sd.is_none(b)).then(0).otherwise(a.v)}),
        inputs=2,
    ),
    Step("full_join", lambda s, t: s.full_join(t, on="v", select=lambda a, b: {"k": (a or b).k, "v": (b or a).v}), inputs=2),
    Step("scan", lambda s: s.scan(Since).select(lambda e: {"k": e.k, "v": e.v})),
    Step("fill", lambda s: s.select(v=lambda e: e.v, k=lambda e: e.k).fill(7, {"k": "-", "v": 0}, start=-3, end=33)),
    Step("asof_join", lambda s, t: s.asof_join(t, on="k", select=lambda a, b: {"k": a.k, "v": a.v - b.v}), inputs=2),
    Step("semi_join", lambda s, t: s.semi_join(t, on="k"), inputs=2),
    Step("semi_join (where)", lambda s, t: s.semi_join(t, where=lambda a, b: a.v <= b.v), inputs=2),
    Step("clip_by", lambda s, t: s.clip_by(t, on="k"), inputs=2),
]


def composition(rng: Random) -> tuple[str, Stream]:
    """Return a random query over sources `s0` and `s1`, and how it was made; a second input may be the stream itself."""
    made: list[tuple[Stream, bool]] = [(sd.source("s0"), False), (sd.source("s1"), False)]
    names = []
    for number in range(rng.randint(2, 6)):
        step = rng.choice(STEPS)
        reads = [len(made) - 1 if number and not i else rng.randrange(len(made)) for i in range(step.inputs)]
        unending = any(made[i][1] for i in reads)
        streams = [made[i][0].clip_interval(-20, 50) if step.bounded and unending else made[i][0] for i in reads]
        made.append((step.apply(*streams), step.unbounds or (unending and not step.bounded)))
        names.append(f"{len(made) - 1} = {step.name} of {reads}")
    return "; ".join(names), made[-1][0]
