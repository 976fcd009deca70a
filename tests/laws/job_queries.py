"""Queries that the law of jobs runs by the command line."""

from __future__ import annotations

from dataclasses import dataclass

import streamdsl as sd


@dataclass(frozen=True, slots=True)
class Car:
    """A car that was seen; its weight is not always known."""

    road: str
    speed: int
    weight: float | None


declared = sd.source("cars", Car, unit="tick")
plain = sd.source("cars", unit="tick")
chosen = plain.where(lambda e: e.speed > 20).select(lambda e: {"road": e.road, "twice": e.speed * 2, "weight": e.weight})
by_road = (
    plain.group_by("road")
    .tumbling_window(10)
    .aggregate(n=sd.count(), total=sd.sum(lambda e: sd.functions.coalesce(e.weight, 0.0)), mean=sd.avg(lambda e: e.speed))
)
at_once = plain.group_by("road").snapshot_window().aggregate(n=sd.count(), fastest=sd.max(lambda e: e.speed))
slack = sd.source("cars", unit="tick", progress=sd.Progress.slack(10_000)).tumbling_window(20).aggregate(n=sd.count())
both = plain.semi_join(sd.source("tolls", unit="tick"), on="road")

QUERIES = {name: globals()[name] for name in ("declared", "plain", "chosen", "by_road", "at_once", "slack", "both")}
