"""What type checkers infer for patterns, and what they refuse."""

from __future__ import annotations

from typing import assert_type

import streamdsl as sd
from tests.typing.payloads import Stats, Trip, trips


def patterns() -> None:
    dear = trips.match(lambda p: p.cheap.then(p.dear.where(lambda e: e.fare > 10)).within("5m"))
    assert_type(dear, sd.Stream[sd.Record])
    assert_type(trips.match(lambda p: p.a.then(p.b).within(5), by="zone"), sd.Stream[sd.Record])
    assert_type(trips.match(lambda p: p.a.then(p.b).within(5), by=["zone", "vendor"]), sd.Stream[sd.Record])
    assert_type(
        trips.match(
            lambda p: p.a.then(p.b.many().optional().where(lambda e, m: e.fare > m.a.fare)).then(p["c"]).unless(p.x).within(5),
            by=lambda e: e.zone,
            overlapping=True,
            select=lambda m: Stats(len(m.b), m.c.fare),
        ),
        sd.Stream[Stats],
    )
    grouped = trips.group_by(lambda e: e.zone).apply(lambda g: g.match(lambda p: p.a.within(5)))
    assert_type(grouped, sd.Stream[tuple[int, sd.Record]])


def written(p: sd.pattern.Steps[Trip]) -> sd.pattern.Pattern[Trip]:
    start: sd.pattern.Step[Trip] = p.start.where(lambda e: e.fare > 3)
    return start.then(p.end).within(5)


def mistakes() -> None:
    trips.match(written)
    trips.match(lambda p: p.a.where(lambda e: e.faer > 3).within(5))  # type: ignore[attr-defined]
    trips.match(lambda p: p.a.where(lambda e, m: e.faer > m.a.fare).within(5))  # type: ignore[arg-type, misc]
    trips.match(lambda p: p.a.then(p.b).many().within(5))  # type: ignore[attr-defined]
    trips.match(lambda p: p.a.then(p.b).unless(p.x.then(p.y)).within(5))  # type: ignore[arg-type]
    trips.match(lambda p: p.a.within(5), by=lambda e: e.zoen)  # type: ignore[attr-defined]
    trips.match(lambda p: 5)  # type: ignore[arg-type, return-value]
