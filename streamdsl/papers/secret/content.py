"""Content: which tuples are in scope, of those that have arrived; what no later Report can see is forgotten (3.2.2, B.2.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from streamdsl.papers.secret.profile import Report
from streamdsl.papers.secret.tuples import Tuple
from streamdsl.papers.secret.window_scope import Interval, Scope, closes, intervals, leaving, opening

COMPACT = 256
"""The number of forgotten tuples, besides that of kept ones, at which storage is compacted."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a query observes at an instant: an interval, its content, the conditions of Report; `full` if it cannot grow."""

    interval: Interval
    content: list[Tuple]
    changed: bool
    closes: bool
    full: bool = False


class Content(ABC):
    """The kept tuples by position: an application time, or a number."""

    def __init__(self, t0: int, size: int, slide: int) -> None:
        self.t0, self.size, self.slide = t0, size, slide
        self._places: list[int] = []
        self._tuples: list[Tuple] = []
        self._gone = 0

    def __len__(self) -> int:
        return len(self._places) - self._gone

    @abstractmethod
    def add(self, tuple: Tuple) -> None:
        """Add a tuple on arrival."""

    @abstractmethod
    def at(self, t: int) -> list[Observation]:
        """Return what a Report at an instant sees, interval by interval."""

    @abstractmethod
    def instants(self, report: Report, invoked: range) -> Iterable[int]:
        """Return the instants at which something may be reported, in order: each that is, of those that are invoked."""

    @abstractmethod
    def forget(self, t: int) -> None:
        """Forget what no Report at `t` or later sees, nor compares with."""

    def _drop(self, gone: int) -> None:
        self._gone = max(self._gone, gone)
        if self._gone > max(COMPACT, len(self)):
            del self._places[: self._gone], self._tuples[: self._gone]
            self._gone = 0


class TimeContent(Content):
    """Windows of application time."""

    def __init__(self, t0: int, size: int, slide: int, kind: Scope = Scope.ACTIVE) -> None:
        super().__init__(t0, size, slide)
        self._kind = kind
        self._disorder = False

    def add(self, tuple: Tuple) -> None:
        if not self._places or tuple.t_app >= self._places[-1]:
            self._places.append(tuple.t_app)
            self._tuples.append(tuple)
            return
        self._disorder = True
        place = bisect_right(self._places, tuple.t_app, self._gone)
        self._places.insert(place, tuple.t_app)
        self._tuples.insert(place, tuple)

    def at(self, t: int) -> list[Observation]:
        before = {self._key(n, interval): self._inside(interval) for n, interval in enumerate(self._scopes(t - 1))}
        ends = closes(t, self.t0, self.size, self.slide)
        found = []
        for number, interval in enumerate(self._scopes(t)):
            inside = self._inside(interval)
            changed = not _same(inside, before.get(self._key(number, interval), (0, 0)))
            closing = ends and interval[1] == t and interval[1] - interval[0] == self.size
            found.append(Observation(interval, self._of(inside), changed, closing))
        return found

    def _scopes(self, t: int) -> list[Interval]:
        return intervals(t, self.t0, self.size, self.slide, self._kind)

    def _key(self, number: int, interval: Interval) -> int:
        """Return what a window has in common with itself an instant before: its start, where there are several."""
        return interval[0] if self._kind is Scope.ALL_OPEN else number

    def _inside(self, interval: Interval) -> Interval:
        low = bisect_right(self._places, interval[0], self._gone)
        return low, bisect_right(self._places, interval[1], low)

    def _of(self, inside: Interval) -> list[Tuple]:
        content = self._tuples[slice(*inside)]
        return sorted(content, key=lambda each: each.t_sys) if self._disorder else content

    def instants(self, report: Report, invoked: range) -> Iterable[int]:
        if report.content_change or report.non_empty:
            invoked = self._in_sight(invoked)
        if report.window_close or (report.content_change and self._kind is Scope.LAST_CLOSED):
            invoked = _multiples(invoked, self.slide, self.t0 + self.size)
        found: Iterable[int] = invoked
        if report.content_change and not report.window_close and self._kind is not Scope.LAST_CLOSED:
            found = self._changes(invoked)
        return found if report.period == 1 else (t for t in found if t % report.period == 0)

    def _in_sight(self, invoked: range) -> range:
        """Return the part of a range in which a kept tuple may be in scope, or just not be any more."""
        if not len(self):
            return range(0)
        last = self._places[-1] + self.size + 2 * self.slide + 2
        return range(max(invoked.start, self._places[self._gone]), min(invoked.stop, last))

    def _changes(self, invoked: range) -> list[int]:
        """Return the instants at which a tuple comes into scope or leaves it; an open window is left by none."""
        low, high = invoked.start, invoked.stop
        if high - low <= 1:
            return list(invoked)
        entering = self._places[bisect_left(self._places, low, self._gone) : bisect_left(self._places, high, self._gone)]
        if self._kind is Scope.ALL_OPEN:
            return sorted(set(entering))
        first = bisect_left(self._places, low, self._gone, key=self._leaving)
        last = bisect_left(self._places, high, first, key=self._leaving)
        return sorted({*entering, *map(self._leaving, self._places[first:last])})

    def _leaving(self, place: int) -> int:
        return leaving(place, self.t0, self.size, self.slide)

    def forget(self, t: int) -> None:
        earliest = self._scopes(t - 1) if self._kind is Scope.LAST_CLOSED else []
        low = earliest[0][0] if earliest else self.t0
        if self._kind is not Scope.LAST_CLOSED and t > self.t0:
            low = opening(t - 1, self.t0, self.size, self.slide)
        self._drop(bisect_right(self._places, low, self._gone))


class CountContent(Content):
    """Windows of numbered tuples: the n-th holds those after the first n * slide, at most `size` (paper 000, B.2.1).

    A late tuple counts as one of the highest time before it. A window closes at the time of the tuple that fills it.
    """

    def __init__(self, t0: int, size: int, slide: int) -> None:
        super().__init__(t0, size, slide)
        self._forgotten = 0
        self._mark: tuple[int, int] | None = None
        """A time of which tuples are forgotten, and how many came before it: of simultaneous ones only the last are kept."""

    def add(self, tuple: Tuple) -> None:
        self._places.append(max(tuple.t_app, self._places[-1]) if self._places else tuple.t_app)
        self._tuples.append(tuple)

    def at(self, t: int) -> list[Observation]:
        interval, before = self._scope(t), self._scope(t - 1)
        content = self._of(interval)
        closing = len(content) == self.size and self._places[interval[1] - 1 - self._forgotten] == t
        return [Observation(interval, content, not _same(interval, before), closing, len(content) == self.size)]

    def _scope(self, t: int) -> Interval:
        seen = self._count(t)
        return opening(seen, 0, self.size, self.slide), seen

    def _count(self, t: int) -> int:
        """Return how many tuples there are by an instant."""
        if self._mark is not None and t < self._mark[0]:
            return self._mark[1]
        return self._forgotten + bisect_right(self._places, t, self._gone)

    def _of(self, interval: Interval) -> list[Tuple]:
        low, high = (number - self._forgotten for number in interval)
        return self._tuples[low:high] if low < high else []

    def instants(self, report: Report, invoked: range) -> Iterable[int]:
        if report.content_change or report.window_close:
            low = bisect_left(self._places, invoked.start, self._gone)
            found: Iterable[int] = sorted(set(self._places[low : bisect_left(self._places, invoked.stop, low)]))
        elif report.non_empty and len(self):
            found = range(max(invoked.start, self._places[self._gone]), invoked.stop)
        else:
            found = range(0) if report.non_empty else invoked
        return (t for t in found if t % report.period == 0)

    def forget(self, t: int) -> None:
        if len(self):
            before, (low, _) = self._count(t - 1), self._scope(t)
            self._mark = (t, before) if low > before else None
            self._drop(min(low - self._forgotten, len(self._places) - 1))

    def _drop(self, gone: int) -> None:
        before = len(self._places)
        super()._drop(gone)
        self._forgotten += before - len(self._places)


def content(by: str, kind: Scope, t0: int, size: int, slide: int) -> Content:
    """Return the empty content of windows of time, or of numbered tuples."""
    return CountContent(t0, size, slide) if by == "tuples" else TimeContent(t0, size, slide, kind)


def _same(inside: Interval, before: Interval) -> bool:
    return inside == before or (inside[0] >= inside[1] and before[0] >= before[1])


def _multiples(invoked: range, step: int, origin: int) -> range:
    """Return the instants of a range that are `origin`, or multiples of a step after it."""
    start = max(invoked.start, origin)
    return range(start + (origin - start) % step, invoked.stop, step)
