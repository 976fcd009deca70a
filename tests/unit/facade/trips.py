"""What the tests of the facade share: payloads, modules and sources of trips, and their plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import streamdsl as sd
from streamdsl.expr.nodes import Field
from streamdsl.expr.schema import Schema


@dataclass(frozen=True)
class Trip:
    zone: int
    fare: float


class Zone(NamedTuple):
    id: int
    fare: float


@dataclass(frozen=True)
class Stats:
    zone: int
    n: int


class Fares(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return sum(payloads)


class Top(sd.UDO[float, float]):
    def __init__(self, k: int) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> Iterable[float]:
        return sorted(payloads)[-self.k :]


trips = sd.source("trips", Trip, unit="s")
zones = sd.source("zones", Zone, unit="s")
TRIPS, ZONES = trips.plan(), zones.plan()
FARE = Field("fare")
TRIP = Schema.of_type(Trip)
STATS = Schema.of_type(Stats) or Schema.scalar()
