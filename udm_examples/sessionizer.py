"""Sessions inside a window as a user-defined operator: clicks in, visits out, each with its own period.

Sessions that end after a time without activity are how web logs have been read since L. Catledge, J. Pitkow, "Characterizing
Browsing Strategies in the World-Wide Web", Computer Networks and ISDN Systems 27(6), 1995. `session_window(gap)` makes windows of
them. This module finds them inside any window, such as a day, for all users at once; a visit lives from its first click to its
end, without the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import streamdsl as sd
from udm_examples.settings import ticks


@dataclass(frozen=True, slots=True)
class Click:
    """A page that a user looks at, for as long as the event lives."""

    user: str
    page: str


@dataclass(frozen=True, slots=True)
class Visit:
    """The pages of one session in order of time; pages of the same start in order of name."""

    user: str
    pages: tuple[str, ...]


class Sessionizer(sd.TimeSensitiveUDO[Click, Visit]):
    """The sessions of each user: a click belongs to a session if it starts less than `gap` ticks after all earlier ones ended.

    This is the rule of `session_window`. A visit lives from the start of its first click, or of the window, to the largest end of
    its clicks; with right clipping, to the end of the window at most. Not time-bound: a late click changes a visit that began
    before it.

    Raises `QueryError` if `gap`, in ticks, is not a positive whole number.

    >>> clicks = [(1, 4, Click("ann", "/")), (6, 9, Click("ann", "/buy")), (20, 21, Click("ann", "/")), (2, 3, Click("bob", "/"))]
    >>> events = [sd.IntervalEvent(*click) for click in clicks]
    >>> for visit in Sessionizer(gap=5).compute_result(events, sd.WindowDescriptor(0, 100)):
    ...     print(visit.start_time, visit.end_time, visit.payload)
    1 9 Visit(user='ann', pages=('/', '/buy'))
    20 21 Visit(user='ann', pages=('/',))
    2 3 Visit(user='bob', pages=('/',))

    In a query, which gives the length of each visit:

    >>> day = sd.from_rows(clicks).tumbling_window(100, clip=sd.Clip.RIGHT, output=sd.Output.UNCHANGED)
    >>> for le, re, visit in day.apply(Sessionizer(gap=5)).run():
    ...     print(visit.user, re - le)
    ann 8
    bob 1
    ann 1
    """

    commutes_with_filter_on: ClassVar[Sequence[str]] = ("user",)
    reads: ClassVar[Sequence[str] | None] = ("user", "page")

    def __init__(self, gap: int) -> None:
        self.gap = ticks("gap", gap)

    def compute_result(
        self, events: Sequence[sd.IntervalEvent[Click]], window: sd.WindowDescriptor
    ) -> Iterator[sd.IntervalEvent[Visit]]:
        """Yield the visits of each user in order of time."""
        by_user: dict[str, list[sd.IntervalEvent[Click]]] = {}
        for event in events:
            by_user.setdefault(event.payload.user, []).append(event)
        for user, clicks in by_user.items():
            for session in self._sessions(clicks):
                start, end = max(session[0].start_time, window.start_time), max(event.end_time for event in session)
                yield sd.IntervalEvent(start, end, Visit(user, tuple(event.payload.page for event in session)))

    def _sessions(self, clicks: list[sd.IntervalEvent[Click]]) -> Iterator[list[sd.IntervalEvent[Click]]]:
        session: list[sd.IntervalEvent[Click]] = []
        end = 0
        for click in sorted(clicks, key=lambda event: (event.start_time, event.payload.page)):
            if session and click.start_time - end >= self.gap:
                yield session
                session = []
            end = max(end, click.end_time) if session else click.end_time
            session.append(click)
        yield session
