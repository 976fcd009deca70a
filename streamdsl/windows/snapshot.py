"""Snapshot windows: the maximal periods without an endpoint inside (paper 001, III.B.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY
from streamdsl.windows.spec import Windows


@dataclass(frozen=True, slots=True)
class Snapshot(Windows):
    """The periods between consecutive distinct endpoints; INFINITY is an endpoint.

        events      [------------)
                        [------------)
        snapshots   [---)[-------)[--)

    >>> Snapshot().over([Lifetime(1, 8), Lifetime(4, 12)])
    [Lifetime(le=1, re=4), Lifetime(le=4, re=8), Lifetime(le=8, re=12)]
    """

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty snapshots."""
        lives = [life for life in lifetimes if not life.is_empty]
        points = sorted({time for life in lives for time in life})
        windows = [Lifetime(le, re) for le, re in itertools.pairwise(points) if re <= until]
        return [w for w in windows if any(self.belongs(life, w) for life in lives)]

    def describe(self) -> str:
        """Return `snapshot`."""
        return "snapshot"
