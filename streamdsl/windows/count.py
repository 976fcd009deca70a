"""Count windows: the periods from one start (or end) of an event to the N-th from there (paper 001, III.B.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import CHRONON, INFINITY, Unit, add_time
from streamdsl.windows.spec import Ends, Windows, first_with_open_end

CountBy: TypeAlias = Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Count(Windows):
    """For every N consecutive distinct starts `s_1 .. s_N` the window `[s_1, s_N + 1)`; with `by="end"` for finite ends.

    An event belongs if its start (end) is inside the window; overlap does not matter. With fewer than N there is no window.

        starts      |   |      |
        N = 2       [----)
                        [-------)

    >>> Count(2).over([Lifetime(1, 8), Lifetime(4, 12), Lifetime(11, 14)])
    [Lifetime(le=1, re=5), Lifetime(le=4, re=12)]
    """

    n: int
    by: CountBy = "start"

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise QueryError(f"a count window counts at least one endpoint, not {self.n!r}", hint="count_window(3)")
        if self.by not in ("start", "end"):
            raise QueryError(f'a count window counts by="start" or by="end", not {self.by!r}', hint='count_window(3, by="end")')

    ends = Ends.ALWAYS

    @property
    def ends_count(self) -> bool:
        return self.by == "end"

    completed_by_rows = True

    @property
    def horizon(self) -> int:
        return self.n

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """The (N-1)-th largest distinct start (end) before c, the smallest if there are fewer, c if none or N = 1.

        A window from there on still lacks its last start (end). If windows count starts and the module reads REs, the result is
        at most the LE of the first window with a member whose end may still change.
        """
        points = sorted({p for life in lives if (p := self.position(life)) is not None and p < c})
        waiting = points[-(self.n - 1) :] if self.n > 1 else []
        first_waiting = waiting[0] if waiting else c
        if reads_re and self.by == "start":
            return min(first_waiting, first_with_open_end(self, lives, c))
        return first_waiting

    def fewest(self) -> Count:
        return Count(min(self.n, 2), self.by)

    def position(self, life: Lifetime) -> int | None:
        """Return the counted endpoint; None for an event without one (no finite end, or an empty lifetime).

        >>> Count(2, "end").position(Lifetime(1, INFINITY)) is None
        True
        """
        if life.is_empty:
            return None
        if self.by == "start":
            return life.le
        return life.re if life.re != INFINITY else None

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the windows; each holds at least N events."""
        points = sorted({p for life in lifetimes if (p := self.position(life)) is not None})
        windows = [Lifetime(first, add_time(last, CHRONON)) for first, last in zip(points, points[self.n - 1 :], strict=False)]
        return [w for w in windows if w.re <= until]

    def belongs(self, life: Lifetime, window: Lifetime) -> bool:
        """Say whether the counted endpoint is inside the window."""
        position = self.position(life)
        return position is not None and window.le <= position < window.re

    def describe(self, unit: Unit | None = None) -> str:
        """Return `count(n, by)`."""
        return f"count({self.n}, by={self.by})"
