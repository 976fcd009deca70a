"""For each rule queries on which it fires, and queries on which it must not, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import streamdsl as sd
from tests.unit.rewrite.modules import Best, Columns, Distinct, InOrder, Known, Row, Rows, Sampled, Spells, Tally, Total, anything

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


def shared(s: Any) -> Any:
    results = best(s)
    return results.where(lambda e: e.k == "a").union(results)


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
        "the results are read elsewhere too": shared,
        "results are aggregates": lambda s: s.tumbling_window(5).aggregate(Total()).where(lambda e: e.value == 1),
    },
    "narrow_to_reads": {
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
