"""Session windows: the periods in which events follow one another with pauses shorter than the gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from streamdsl.errors import QueryError
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, Unit, add_time, format_duration
from streamdsl.windows.grid import unending
from streamdsl.windows.spec import ALL_TIME, Ends, Windows, open_starts


@dataclass(frozen=True, slots=True)
class Session(Windows):
    """In order of LE an event joins the current session if its LE < end + `gap`, where `end` is the largest RE so far.

    The session is the window `[first LE, end + gap)`. With a `max_duration` it is cut into windows at each
    `first LE + k * max_duration`; an event is in each window that it overlaps, and windows without events have no result.

        events      [--)   [-)          [--)
        gap 4       [------------)      [------)
        max 8       [------)[----)      [------)

    >>> Session(4).over([Lifetime(0, 4), Lifetime(7, 10), Lifetime(20, 24)])
    [Lifetime(le=0, re=14), Lifetime(le=20, re=28)]
    >>> Session(4, 8).over([Lifetime(0, 4), Lifetime(7, 10), Lifetime(20, 24)])
    [Lifetime(le=0, re=8), Lifetime(le=8, re=14), Lifetime(le=20, re=28)]
    """

    gap: int
    max_duration: int | None = None

    def __post_init__(self) -> None:
        if self.gap <= 0:
            raise QueryError(
                f"a session's gap is a positive duration, not {self.gap}",
                hint="an event joins a session if it starts less than the gap after the session's last end",
            )
        if self.max_duration is not None and self.max_duration <= 0:
            raise QueryError(
                f"a session's max_duration is a positive duration, not {self.max_duration}",
                hint="leave it out for sessions of any length",
            )

    @property
    def kind(self) -> str:
        return "session" if self.max_duration is None else "cut_session"

    are_apart = True
    ends = Ends.WITH_ROWS
    ends_count = True
    completed_by_rows = False

    @property
    def horizon(self) -> int:
        return self.gap + (self.max_duration or 0)

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """The smallest W.LE of the windows that are not closed, empty ones included; at most c.

        A session that reaches beyond c can still get an event at c, which does not move its start, so its window at c is open.
        """
        going_on = [session for session in self.sessions(lives) if session.le < c < session.re]
        around_c = [self.window(session, self.number(session, c)).le for session in going_on]
        return min([c, *around_c, *open_starts(self, lives, reads_re, c)])

    def fewest(self) -> Session:
        return self if self.max_duration is None else Session(min(self.gap, self.max_duration), self.max_duration)

    def bounded(self) -> Iterator[tuple[str, Windows]]:
        if self.max_duration is None:
            yield "max_duration=...", Session(self.gap, self.gap)

    @property
    def longest(self) -> int:
        return self.max_duration or ALL_TIME

    def reach(self, re: int) -> int:
        """Return the time before which the next event must start to join; raises `TimeOverflow` beyond the range of times.

        >>> Session(4).reach(9), Session(4).reach(INFINITY) == INFINITY
        (13, True)
        """
        return add_time(re, self.gap)

    def sessions(self, lifetimes: Iterable[Lifetime]) -> list[Lifetime]:
        """Return the sessions of some lifetimes in order, not cut by `max_duration`.

        >>> Session(4, 10).sessions([Lifetime(7, 11), Lifetime(0, 4)])
        [Lifetime(le=0, re=15)]
        """
        found: list[Lifetime] = []
        for life in sorted(life for life in lifetimes if not life.is_empty):
            reach = self.reach(life.re)
            if found and life.le < found[-1].re:
                found[-1] = Lifetime(found[-1].le, max(found[-1].re, reach))
            else:
                found.append(Lifetime(life.le, reach))
        return found

    def window(self, session: Lifetime, k: int) -> Lifetime:
        """Return window number `k` of a session.

        >>> Session(4, 10).window(Lifetime(0, 15), 1)
        Lifetime(le=10, re=15)
        """
        le = session.le + k * self.longest
        return Lifetime(le, min(le + self.longest, session.re))

    def number(self, session: Lifetime, time: int) -> int:
        """Return the number of the window in a session that contains a time.

        >>> Session(4, 10).number(Lifetime(0, 15), 14)
        1
        """
        return (time - session.le) // self.longest

    def numbers(self, session: Lifetime, life: Lifetime, until: int = INFINITY) -> range:
        """Return the numbers of the windows in a session that overlap a lifetime and start before `until`.

        >>> Session(4, 10).numbers(Lifetime(0, 42), Lifetime(7, 38)), Session(4, 10).numbers(Lifetime(0, 42), Lifetime(7, 38), 20)
        (range(0, 4), range(0, 2))
        """
        if life.is_empty:
            return range(0)
        return range(self.number(session, life.le), self.number(session, min(life.re, until) - 1) + 1)

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty windows. An event without end makes an endless window; with `max_duration` it needs `until`."""
        lives = list(lifetimes)
        found = []
        for session in self.sessions(lives):
            inside = [life for life in lives if self.belongs(life, session)]
            endless = next((life for life in inside if life.re == INFINITY), None)
            if endless and self.max_duration is not None and until == INFINITY:
                raise unending(self, endless)
            numbers = {k for life in inside for k in self.numbers(session, life, until)}
            found += [self.window(session, k) for k in sorted(numbers)]
        return [w for w in found if w.re <= until]

    def describe(self, unit: Unit | None = None) -> str:
        """Return `session(gap)`, with the longest duration if there is one."""
        longest = "" if self.max_duration is None else f", max_duration={format_duration(self.max_duration, unit)}"
        return f"session({format_duration(self.gap, unit)}{longest})"
