"""Modules that a distribution of its own provides to every program in whose environment it is installed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import streamdsl as sd


class GeometricMean(sd.UDA[float, float]):
    """The n-th root of the product of n positive values.

    >>> GeometricMean().compute_result([2.0, 8.0])
    4.0
    """

    def compute_result(self, payloads: Sequence[float]) -> float:
        return math.exp(math.fsum(map(math.log, payloads)) / len(payloads))


class Spikes(sd.UDO[float, float]):
    """The values above a multiple of their window's mean.

    >>> list(Spikes(factor=1.5).compute_result([1.0, 1.0, 4.0]))
    [4.0]
    """

    def __init__(self, factor: float = 2.0) -> None:
        self.factor = factor

    def compute_result(self, payloads: Sequence[float]) -> Iterable[float]:
        limit = self.factor * math.fsum(payloads) / len(payloads)
        return [value for value in payloads if value > limit]
