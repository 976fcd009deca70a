"""Incremental simulation of a profile: it keeps only the tuples that a later Report can see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.papers.secret.content import Content, Observation, content
from streamdsl.papers.secret.profile import Profile, Report, check_profile
from streamdsl.papers.secret.tick import Ticker
from streamdsl.papers.secret.tuples import HEARTBEAT, Given, Tuple, as_tuple, check_order, read
from streamdsl.papers.secret.window_scope import Scope, check_window
from streamdsl.temporal.integers import whole_number

By: TypeAlias = Literal["time", "tuples"]


class Reported(NamedTuple):
    """A report: the system time of the arrival that caused it, the application time, and the values in scope."""

    t_sys: int
    t: int
    values: list[Any]


class Step(NamedTuple):
    """A Report that was invoked: what it saw, and whether it reported that."""

    t_sys: int
    t: int
    seen: Observation | None
    reported: bool


class Simulation:
    """An engine of a profile with a window, to be fed with tuples in order of arrival; `simulate` is one that is fed a list.

    >>> from streamdsl.secret import STREAMBASE
    >>> running = Simulation(STREAMBASE, 5, 1)
    >>> running.push(("a", 30, 1, 1)), running.push(("b", 31, 2, 2))
    ([], [Reported(t_sys=2, t=30, values=['a'])])
    """

    def __init__(self, profile: Profile, size: int, slide: int, t0: int | None = None, by: By = "time") -> None:
        check_profile(profile)
        check_window(size, slide)
        check_by(by, profile.scope)
        self.profile, self.size, self.slide, self.by = profile, size, slide, by
        self.t0 = None if t0 is None else whole_number(t0, "t0 is")
        self._last: int | None = None
        self._observer: Observer | None = None

    @property
    def kept(self) -> int:
        """How many tuples are kept.

        >>> from streamdsl.secret import CORAL8
        >>> running = Simulation(CORAL8, 3, 1)
        >>> [(running.push((t, t, t, t)), running.kept)[1] for t in range(1, 9)]
        [1, 2, 3, 4, 4, 4, 4, 4]
        """
        return 0 if self._observer is None else len(self._observer.content)

    def __repr__(self) -> str:
        return f"<Simulation of {self.profile.name}, size {self.size}, slide {self.slide}, by {self.by}: {self.kept} tuples kept>"

    def push(self, given: Given) -> list[Reported]:
        """Return what a tuple's arrival makes the engine report; raises `QueryError` if it arrives before another did.

        A tuple `(value, t_app)` arrives an instant after the last one, in a batch of its own.

        >>> from streamdsl.secret import CORAL8
        >>> Simulation(CORAL8, 3, 1).push(("a", 30, 1, 1))
        []
        """
        found = self.reported(given)
        return [Reported(step.t_sys, step.t, [each.value for each in step.seen.content]) for step in found if step.seen]

    def reported(self, given: Given) -> list[Step]:
        """Push a tuple, and return the steps that report something: instants at which nothing can be are passed over.

        >>> from streamdsl.secret import STREAMBASE
        >>> running = Simulation(STREAMBASE, 5, 5)
        >>> running.reported(("a", 3, 1, 1)), [step.t for step in running.reported(("b", 10**15, 2, 2))]
        ([], [4])
        """
        arrived = self._checked(given)
        return [step for step in self._looking_at(arrived.t_app).look(arrived) if step.reported]

    def steps(self, given: Given) -> list[Step]:
        """Push a tuple, and return each Report that it invokes, with what it sees; before the first window it sees nothing.

        >>> from streamdsl.secret import CORAL8
        >>> [step.t for step in Simulation(CORAL8, 2, 1).steps(("a", 30, 1, 1))]
        [27, 28, 29]
        """
        arrived = self._checked(given)
        return self._looking_at(arrived.t_app).look(arrived, each=True)

    def _checked(self, given: Given) -> Tuple:
        arrived = given if isinstance(given, Tuple) else as_tuple(given, 1 if self._last is None else self._last + 1)
        if self._last is not None:
            check_order(self._last, arrived)
        self._last = arrived.t_sys
        return arrived

    def _looking_at(self, first: int) -> Observer:
        if self._observer is None:
            if self.t0 is None:
                self.t0 = self.profile.start(first, self.size, self.slide)
            kept = content(self.by, self.profile.scope, self.t0, self.size, self.slide)
            self._observer = Observer(self.profile.report, Ticker(self.t0, self.profile.tick), kept)
        return self._observer


class Observer:
    """What looks at a content, whenever its ticker invokes a Report."""

    def __init__(self, report: Report, ticker: Ticker, content: Content) -> None:
        self.content = content
        self._report = report
        self._ticker = ticker

    def look(self, arrived: Tuple, each: bool = False) -> list[Step]:
        """Return what the Reports see that an arrival invokes: `each`, or only where something may be reported.

        They see only what has arrived before; then the tuple is added, and what no later Report can see forgotten.
        """
        ticker, content, report = self._ticker, self.content, self._report
        invoked = ticker.arrive(arrived.t_app, arrived.bid)
        found = []
        for t in invoked if each else content.instants(report, invoked):
            looked: list[Observation | None] = [*content.at(t)]
            for seen in looked or [None]:
                reported = seen is not None and holds(report, seen, t, ticker.highest)
                found.append(Step(arrived.t_sys, t, seen, reported))
        if arrived.value is not HEARTBEAT:
            content.add(arrived)
        if invoked or arrived.t_app <= ticker.last:
            content.forget(ticker.last)
        return found


def holds(report: Report, seen: Observation, t: int, highest: int) -> bool:
    """Say whether a window's content is reported at t, when `highest` is the highest application time that has arrived."""
    return (
        (not report.content_change or seen.changed)
        and (not report.window_close or (seen.closes and (seen.full or t < highest)))
        and (not report.non_empty or bool(seen.content))
        and t % report.period == 0
    )


def check_by(by: object, scope: Scope) -> None:
    """Raise `QueryError` for windows that are not defined."""
    if by not in ("time", "tuples"):
        raise QueryError(f'windows are by "time" or by "tuples", not by {by!r}')
    if by == "tuples" and scope is not Scope.ACTIVE:
        raise QueryError(f"of windows of tuples only the active one can be looked at, not {scope.words}")


def fed(profile: Profile, tuples: Sequence[Tuple]) -> list[Tuple]:
    """Return tuples as an engine of the profile sees them."""
    check_profile(profile)
    return list(tuples) if profile.feed is None else read(profile.feed(tuples))
