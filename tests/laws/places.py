"""Every place of a query where a registered function may be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamdsl as sd
from streamdsl.plan.node import sources

Trips = sd.Stream[Any]
WORDS = ["van", "Vienna", "", "Wien", "ab"]
LEFT = sd.CHT.from_rows([(n, n + 3, {"k": n % 3, "v": n * 1.5 - 2, "s": WORDS[n % 5], "m": n % 2 or None}) for n in range(9)])
RIGHT = sd.CHT.from_rows([(n, n + 4, {"k": n % 4, "v": float(n), "s": WORDS[n % 4], "m": None}) for n in range(0, 9, 2)])


@sd.udf
def parity(n: int) -> str:
    return "odd" if n % 2 else "even"


@sd.udf
def above(value: float, limit: float = 0.0) -> bool:
    return value > limit


@sd.udf
def near(left: float, right: float) -> bool:
    return abs(left - right) <= 3


@sd.udf
def either(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


@sd.udf
def letters(text: str) -> list[str]:
    return list(text)


@sd.udf
def labelled(row: Any) -> str:
    return f"{row.k}:{row.s}"


def bindings(query: Trips) -> dict[str, list[Any]]:
    """Return the events for the sources that a query has."""
    rows = {"a": LEFT, "b": RIGHT}
    return {name: [sd.Insert(n, *row) for n, row in enumerate(rows[name])] for name in sources(query.plan())}


def both_near(left: Any, right: Any) -> Any:
    return near(left.v, right.v)


def of_parity(e: Any) -> Any:
    return parity(e.k)


PLACES: dict[str, Callable[[Trips, Trips], Trips]] = {
    "where": lambda a, b: a.where(lambda e: above(e.v, limit=1) & (e.k > 0)),
    "where, without a lambda": lambda a, b: a.where(above(sd.col("v"))),
    "select": lambda a, b: a.select(lambda e: {"p": parity(e.k), "m": either(e.m, 7) * 2}),
    "select by names": lambda a, b: a.select(p=lambda e: parity(e.k), whole=labelled),
    "select of the row": lambda a, b: a.select(lambda e: labelled(e)),
    "select of the lifetime": lambda a, b: a.select(lambda e, life: parity(life.le)),
    "select_many": lambda a, b: a.select_many(lambda e: letters(e.s)),
    "choice": lambda a, b: a.select(lambda e: sd.when(above(e.v)).then(parity(e.k)).otherwise("low")),
    "distinct": lambda a, b: a.distinct(of_parity),
    "group key": lambda a, b: a.group_by(of_parity).tumbling_window(4).aggregate(n=sd.count()),
    "group, apply": lambda a, b: a.group_by(of_parity).apply(lambda g: g.where(lambda e: above(e.v))),
    "join keys": lambda a, b: a.join(b, on=(of_parity, of_parity)),
    "join predicate": lambda a, b: a.join(b, on="k", where=both_near),
    "join predicate alone": lambda a, b: a.join(b, where=both_near, select=lambda x, y: (x.k, y.k)),
    "join result": lambda a, b: a.join(b, on="k", select=lambda x, y: {"p": parity(x.k), "n": near(x.v, y.v)}),
    "left_join": lambda a, b: a.left_join(b, on="k", where=both_near),
    "anti_join": lambda a, b: a.anti_join(b, on=(of_parity, of_parity), where=both_near),
    "aggregate argument": lambda a, b: a.tumbling_window(5).aggregate(
        n=sd.sum(lambda e: either(e.m, 3)), s=sd.max(parity(sd.col("k")))
    ),
    "aggregate condition": lambda a, b: a.tumbling_window(5).aggregate(n=sd.count(where=lambda e: above(e.v))),
    "window lambda": lambda a, b: a.tumbling_window(5).aggregate(lambda w: {"n": either(w.sum(lambda e: either(e.m, 3)), 0)}),
    "top_k": lambda a, b: a.tumbling_window(5).top_k(1, by=lambda e: either(e.m, 3) * e.v),
    "duration": lambda a, b: a.alter_duration(lambda e: either(e.m, 2)),
    "many in one": lambda a, b: (
        a.where(lambda e: above(e.v, limit=-1))
        .select(lambda e: sd.Record(p=parity(e.k), m=either(e.m, 7), v=e.v))
        .group_by(lambda e: parity(either(e.m, 0)))
        .tumbling_window(4)
        .aggregate(n=sd.sum(lambda e: either(e.m, 3)), k=sd.count(where=lambda e: above(e.v)))
    ),
    "join in one": lambda a, b: a.join(b, on=(of_parity, of_parity), where=both_near, select=lambda x, y: (labelled(x), y.s)),
}
SOME = ("many in one", "join in one")
"""The places that Spark is tried on: where, select, key, join keys and predicate, what is aggregated and where."""
