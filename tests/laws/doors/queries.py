"""The queries: an operator over payloads as they come, now and then behind another one, or a composition of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

import streamdsl as sd
from streamdsl import astral
from tests.laws.compositions import STEPS, Step
from tests.laws.doors.history import Draw
from tests.laws.doors.payloads import Kind

Stream: TypeAlias = "sd.Stream[Any]"


@dataclass(frozen=True)
class Operator:
    """A query over a stream, or over two; `bounded` if it needs rows that end."""

    apply: Callable[[Stream, Stream, Kind], Stream]
    inputs: int = 1
    bounded: bool = False


def of_one(apply: Callable[[Stream, Kind], Stream], bounded: bool = False) -> Operator:
    return Operator(lambda s, t, kind: apply(s, kind), 1, bounded)


def of_two(apply: Callable[[Stream, Stream, Kind], Stream]) -> Operator:
    return Operator(apply, 2)


OPERATORS = {
    "identity": of_one(lambda s, kind: s),
    "where": of_one(lambda s, kind: s.where(kind.test)),
    "where, called": of_one(lambda s, kind: s.where(called(kind, lambda n: n > 0))),
    "select a number": of_one(lambda s, kind: s.select(kind.number)),
    "select fields": of_one(lambda s, kind: s.select(k=kind.key, v=kind.number)),
    "select the payload": of_one(lambda s, kind: s.select(p=lambda e: e, n=kind.key)),
    "extend": of_one(lambda s, kind: s.extend(4)),
    "extend back": of_one(lambda s, kind: s.extend(-2)),
    "shift": of_one(lambda s, kind: s.shift(3)),
    "to_points": of_one(lambda s, kind: s.to_points()),
    "to_points_at_end": of_one(lambda s, kind: s.to_points_at_end()),
    "alter_lifetime": of_one(lambda s, kind: s.alter_lifetime(start=lambda e, life: life.le + 1, duration=5)),
    "clip_duration": of_one(lambda s, kind: s.clip_duration(3)),
    "clip_interval": of_one(lambda s, kind: s.clip_interval(2, 12)),
    "quantize": of_one(lambda s, kind: s.quantize(6, 3, offset=1)),
    "to_edges": of_one(lambda s, kind: s.to_edges(key=kind.key)),
    "chop": of_one(lambda s, kind: s.chop(4), bounded=True),
    "stitch": of_one(lambda s, kind: s.stitch()),
    "distinct": of_one(lambda s, kind: s.distinct(kind.key)),
    "distinct payloads": of_one(lambda s, kind: s.distinct()),
    "match": of_one(lambda s, kind: s.match(lambda p: p.a.then(p.b).within(8))),
    "union": of_two(lambda s, t, kind: s.union(t)),
    "union with itself": of_one(lambda s, kind: s.union(s.shift(2)).clip_interval(1, 15)),
    "join": of_two(lambda s, t, kind: s.join(t, on=(kind.key, kind.key))),
    "left_join": of_two(lambda s, t, kind: s.left_join(t, on=(kind.key, kind.key))),
    "full_join": of_two(lambda s, t, kind: s.full_join(t, on=(kind.key, kind.key))),
    "semi_join": of_two(lambda s, t, kind: s.semi_join(t, on=(kind.key, kind.key))),
    "anti_join": of_two(lambda s, t, kind: s.anti_join(t, on=(kind.key, kind.key))),
    "asof_join": of_two(lambda s, t, kind: s.asof_join(t, on=(kind.key, kind.key))),
    "band_join": of_two(lambda s, t, kind: s.band_join(t, on=(kind.key, kind.key), before=2, after=3)),
    "clip_by": of_two(lambda s, t, kind: s.clip_by(t, on=(kind.key, kind.key))),
    "tumbling": of_one(
        lambda s, kind: s.tumbling_window(5).aggregate(n=sd.count(), v=sd.max(kind.number), s=sd.sum(kind.number)), bounded=True
    ),
    "grouped hopping": of_one(
        lambda s, kind: s.group_by(kind.key).hopping_window(6, 4).aggregate(rows=sd.count(), mean=sd.avg(kind.number)),
        bounded=True,
    ),
    "snapshot": of_one(lambda s, kind: s.snapshot_window().aggregate(n=sd.count(), v=sd.min(kind.number))),
    "grouped session": of_one(lambda s, kind: s.group_by(kind.key).session_window(2).aggregate(rows=sd.count())),
    "cut session": of_one(
        lambda s, kind: s.group_by(kind.key).session_window(3, max_duration=5).aggregate(n=sd.count(), m=sd.max(kind.number)),
        bounded=True,
    ),
    "sequence": of_one(lambda s, kind: s.windows(astral.rows_slide(2, 1)).aggregate(n=sd.count(), v=sd.sum(kind.number))),
    "count window": of_one(lambda s, kind: s.count_window(2).aggregate(n=sd.count(), last=sd.last(kind.number))),
    "collect": of_one(lambda s, kind: s.snapshot_window().aggregate(all=sd.collect(kind.number))),
    "top_k": of_one(lambda s, kind: s.snapshot_window().top_k(1, by=kind.number)),
    "group apply": of_one(lambda s, kind: s.group_by(kind.key).apply(lambda g: g.clip_by(g))),
    "composition": Operator(lambda s, t, kind: s, 2, bounded=True),
}
BEFORE: dict[str, Operator] = {
    name: OPERATORS[name] for name in ("identity", "where", "extend", "shift", "clip_duration", "quantize", "union")
}
"""What may stand before an operator: it leaves payloads as they are."""
IN_TICKS = ("composition", "clip_interval", "union with itself")
"""What names moments, as ticks near 0."""


def called(kind: Kind, test: Callable[[int], bool]) -> Callable[[Any], bool]:
    """Return a predicate that is no expression: it is called with each payload."""
    count = kind.count

    def keep(payload: Any) -> bool:
        return bool(test(int(count(payload))))

    return keep


def as_numbers(kind: Kind) -> Callable[[Any], dict[str, Any]]:
    """Return a function from payloads to rows of `k` and `v`, as compositions have them."""
    count = kind.count

    def made(payload: Any) -> dict[str, Any]:
        v = count(payload)
        return {"k": "abc"[v % 3], "v": v}

    return made


def query(draw: Draw, operator: str, kind: Kind, s: Stream, t: Stream) -> tuple[str, Stream]:
    """Return a query with this operator over one or two sources, and how it was made."""
    chosen = OPERATORS[operator]
    if operator == "composition":
        return composed(draw, [s.select(as_numbers(kind)), t.select(as_numbers(kind))])
    before = draw(st.sampled_from(list(BEFORE))) if draw(st.integers(0, 3)) == 3 else "identity"
    return f"{operator} of {before}", chosen.apply(BEFORE[before].apply(s, t, kind), t, kind)


def composed(draw: Draw, streams: list[Stream]) -> tuple[str, Stream]:
    """Return two to four of the steps of random compositions, one after the other."""
    names = []
    unending = False
    for _ in range(draw(st.integers(2, 4))):
        step: Step = draw(st.sampled_from(STEPS))
        reads = [streams[-1], *(draw(st.sampled_from(streams)) for _ in range(step.inputs - 1))]
        if unending:
            reads = [each.clip_interval(-20, 50) for each in reads]
        streams.append(step.apply(*reads))
        unending = unending or step.unbounds
        names.append(step.name)
    return ", ".join(names), streams[-1]
