"""The payloads and modules of the typing tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import streamdsl as sd


@dataclass(frozen=True, slots=True)
class Trip:
    zone: int
    fare: float
    vendor: str
    value: float


class Zone(NamedTuple):
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Stats:
    n: int
    mean: float


@dataclass(frozen=True, slots=True)
class ZoneStats:
    zone: int
    n: int


class Median(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return sorted(payloads)[len(payloads) // 2]


class Fares(sd.UDA[Trip, list[float]]):
    def compute_result(self, payloads: Sequence[Trip]) -> list[float]:
        return [trip.fare for trip in payloads]


class Longest(sd.TimeSensitiveUDA[str, int]):
    def compute_result(self, events: Sequence[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> int:
        return max(event.end_time - event.start_time for event in events)


class Top(sd.UDO[float, int]):
    def __init__(self, k: int = 1) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> Iterable[int]:
        return [round(payload) for payload in sorted(payloads)[-self.k :]]


class Samples(sd.TimeSensitiveUDO[float, str]):
    def compute_result(
        self, events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor
    ) -> Iterable[sd.IntervalEvent[str]]:
        return [sd.IntervalEvent(event.start_time, window.end_time, str(event.payload)) for event in events]


@sd.uda
def spread(prices: Sequence[float]) -> float:
    return max(prices) - min(prices)


@sd.uda
def busy(events: Sequence[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> int:
    return len(events) * window.duration


@sd.udo
def extremes(prices: Sequence[float]) -> list[float]:
    return [min(prices), max(prices)]


trips = sd.source("trips", Trip)
zones = sd.source("zones", Zone)
numbers = sd.from_rows([(1, 5, 1.5), (2, 3, 2.5)])
