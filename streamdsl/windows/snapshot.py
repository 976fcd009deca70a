"""Snapshot windows: the maximal periods in which no event starts or ends (paper 001, III.B.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, Unit
from streamdsl.windows.spec import Ends, Windows, first_with_open_end


@dataclass(frozen=True, slots=True)
class Snapshot(Windows):
    """The periods between consecutive distinct endpoints, the starts and ends of events; INFINITY is an endpoint.

        events      [------------)
                        [------------)
        snapshots   [---)[-------)[--)

    >>> Snapshot().over([Lifetime(1, 8), Lifetime(4, 12)])
    [Lifetime(le=1, re=4), Lifetime(le=4, re=8), Lifetime(le=8, re=12)]
    """

    are_apart = True
    ends = Ends.WITH_ROWS
    ends_count = True
    completed_by_rows = True
    horizon = 1

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """c for a time-insensitive module, else the last endpoint before c, as the snapshot from there may still be cut.

        If the module reads REs, the result is at most the LE of the first snapshot with a member whose end may still change.
        """
        if not time_sensitive:
            return c
        last_endpoint = max((time for life in lives for time in life if time < c), default=c)
        return min(last_endpoint, first_with_open_end(self, lives, c)) if reads_re else last_endpoint

    def fewest(self) -> Snapshot:
        return self

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty snapshots."""
        lives = [life for life in lifetimes if not life.is_empty]
        points = sorted({time for life in lives for time in life})
        windows = [Lifetime(le, re) for le, re in itertools.pairwise(points) if re <= until]
        return [w for w in windows if any(self.belongs(life, w) for life in lives)]

    def describe(self, unit: Unit | None = None) -> str:
        """Return `snapshot`."""
        return "snapshot"
