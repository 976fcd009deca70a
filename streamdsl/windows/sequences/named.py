"""Window sequences by name, after the descriptions of other systems (paper 003, section 6.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from math import floor
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.windows.sequences.description import AnySequence, Bounds, Domain, Periodic, check_domain
from streamdsl.windows.sequences.numbers import LAST, Batch, Given, Number, exact, positive
from streamdsl.windows.sequences.seen import Seen

Line = tuple[Number, Number]
"""The slope and the offset of a bound: `slope * j + offset`."""


_LONG: Final = 100_000
"""The number of iterations after which a loop is taken to be endless."""


@dataclass(frozen=True)
class Linear(Periodic):
    """Windows with bounds linear in j: with `cut` not before t0 (position 0), with `relative` counted from t0."""

    start: Line
    end: Line
    rate: Number | None
    domain: Domain = "time"
    cut: bool = True
    relative: bool = False

    def __post_init__(self) -> None:
        check_domain(self.domain)
        if self.rate is not None:
            positive(self.rate, "rate")
        parts = (*self.start, *self.end, *(() if self.rate is None else (self.rate,)))
        if self.domain == "position" and not all(isinstance(part, int) for part in parts):
            raise QueryError(f"positions are whole numbers, which not all of {', '.join(map(str, parts))} are")

    def lower(self, j: int, seen: Seen) -> Number:
        slope, offset = self.start
        bound = slope * j + offset + self._origin(seen)
        return max(bound, seen.t0 if self.domain == "time" else 0) if self.cut else bound

    def upper(self, j: int, seen: Seen) -> Number:
        slope, offset = self.end
        return slope * j + offset + self._origin(seen)

    def _origin(self, seen: Seen) -> Number:
        return seen.t0 if self.relative else 0

    @property
    def by_clock(self) -> bool:
        return self.domain == "time"

    @property
    def looks_back(self) -> bool:
        return self.rate is not None and self.start[0] < self.rate

    @property
    def endless(self) -> bool:
        """Whether windows are created by time with a fixed lower bound, so that no tuple ever leaves them."""
        return self.domain == "time" and self.rate is not None and self.start[0] == 0

    def is_over(self, at: Batch, seen: Seen) -> bool:
        if self.domain == "position":
            return True
        following = self._after(at, seen)
        first = seen.first_from(self.lower(following, seen))
        return first > (seen.last if self.end[0] else seen.tau_inv((self.upper(following, seen), LAST)))

    def horizon(self, at: Batch, seen: Seen) -> Number | None:
        return self.lower(self.rank(at, seen) or 0, seen) if self.domain == "time" else None

    def first_needed(self, at: Batch, seen: Seen) -> int:
        rank = self.rank(at, seen)
        if self.rate is None and rank is not None:
            return seen.last + 1
        if self.domain == "time":
            return super().first_needed(at, seen)
        return max(0, int(self.lower(rank or 0, seen)))

    def _after(self, at: Batch, seen: Seen) -> int:
        rank = self.rank(at, seen)
        return 0 if rank is None else rank + 1

    def describe(self) -> str:
        origin = "t0" if self.relative else ""
        low, high = _written(*self.start, origin), _written(*self.end, origin)
        low = f"max({low}, {'t0' if self.domain == 'time' else 0})" if self.cut else low
        every = "once" if self.rate is None else f"every {self.rate}"
        return f"[{low}, {high}] by {self.domain}, {every}"

    def absolute(self, t0: Number) -> Linear:
        """Return the same windows for a query started at t0, with absolute bounds.

        >>> range_slide(4, 2).absolute(10)
        Linear(start=(2, 6), end=(2, 10), rate=2, domain='time', cut=True, relative=False)
        """
        if not self.relative:
            return self
        (a, b), (c, d) = self.start, self.end
        return replace(self, start=(a, b + t0), end=(c, d + t0), relative=False)


@dataclass(frozen=True)
class LastN(Periodic):
    """The last `n` tuples, every `rate` of time from t0 on."""

    n: int
    rate: Number

    def __post_init__(self) -> None:
        check_count(self.n)
        positive(self.rate, "period")

    domain = "position"
    rate_domain = "time"

    def lower(self, j: int, seen: Seen) -> Number:
        return max(self.upper(j, seen) - self.n + 1, 0)

    def upper(self, j: int, seen: Seen) -> int:
        return seen.tau_inv((self.rate * j + seen.t0, LAST))

    def first(self, at: Batch, seen: Seen) -> Number:
        return seen.t0

    looks_back = False

    @property
    def endless(self) -> bool:
        """Always: the last tuples are in every later window."""
        return True

    def first_needed(self, at: Batch, seen: Seen) -> int:
        return int(self.lower(self.rank(at, seen) or 0, seen))

    def describe(self) -> str:
        return f"the last {self.n} every {self.rate}"


@dataclass(frozen=True)
class Sliding(AnySequence):
    """At each time the tuples of the last `size` of time, both bounds inclusive."""

    size: Number
    domain = "time"
    lasts = False
    looks_back = False

    def __post_init__(self) -> None:
        positive(self.size, "range")

    def rank(self, at: Batch, seen: Seen) -> Batch:
        return at

    def bounds(self, rank: Batch, seen: Seen) -> Bounds:
        return max(rank[0] - self.size, seen.t0), rank[0]

    def state(self, at: Batch, seen: Seen) -> tuple[int, int]:
        """Return the first and the last position: the result changes when a tuple comes or leaves (6.1.2)."""
        return seen.first_from(at[0] - self.size), seen.tau_inv(at)

    def next_change(self, at: Batch, seen: Seen) -> Number | None:
        """Return the first whole time at which the oldest tuple has left the window."""
        first = seen.first_from(at[0] - self.size)
        return floor(seen.tau(first)[0] + self.size) + 1 if first <= seen.last else None

    def horizon(self, at: Batch, seen: Seen) -> Number:
        return at[0] - self.size

    def describe(self) -> str:
        return f"the last {self.size} of time, always"


@dataclass(frozen=True)
class ForLoop(AnySequence):
    """TelegraphCQ's loop: at each time the window of the largest value of the loop variable up to that time (6.1.4)."""

    init: Number
    condition: Callable[[Any], object]
    step: Callable[[Any], Given]
    window: Callable[[Any], tuple[Given, Given]]
    domain = "time"
    by_clock = True

    def values(self) -> Iterator[tuple[Number, bool]]:
        """Yield the values of the variable, each with whether the condition holds; for the last one it does not."""
        value = self.init
        while self.condition(value):
            yield value, True
            following = exact(self.step(value))
            if following <= value:
                raise QueryError(f"the loop's variable is a time, which must increase: {value} is followed by {following}")
            value = following
        yield value, False

    def rank(self, at: Batch, seen: Seen) -> Batch | None:
        found = None
        for value, goes_on in self.values():
            if value > at[0]:
                break
            found = (value, 0) if goes_on else None
        return found if found is not None and self.bounds(found, seen)[1] <= at[0] else None

    def bounds(self, rank: Batch, seen: Seen) -> Bounds:
        begin, end = self.window(rank[0])
        return exact(begin), exact(end)

    @property
    def endless(self) -> bool:
        """Whether the loop has more than `_LONG` iterations."""
        return next(islice(self.values(), _LONG, None), None) is not None

    def next_change(self, at: Batch, seen: Seen) -> Number | None:
        times = [value for value, _ in takewhile(lambda each: each[0] <= at[0], self.values())]
        later = next((value for value, _ in islice(self.values(), len(times), None)), None)
        end = self.bounds((times[-1], 0), seen)[1] if times else at[0]
        return min((time for time in (later, end) if time is not None and time > at[0]), default=None)

    def describe(self) -> str:
        return f"a for-loop from {self.init}"


def linear(start: tuple[Given, Given], end: tuple[Given, Given], rate: Given, domain: Domain = "time") -> Linear:
    """Return the windows from `max(a * j + b, t0)` (position 0) to `c * j + d`, one created every `rate`.

    `start` is the pair `(a, b)`, `end` the pair `(c, d)`. Bounds are times, or positions counted from 0.

    >>> from streamdsl.astral import View
    >>> View([(n, n) for n in range(20)]).content(linear((10, 8), (10, 10), 10, "position"), 19)
    [8, 9, 10]
    """
    return Linear(_line(start), _line(end), exact(rate), domain)


def five_uplet(start: Given, end: Given, rate: Given, start_adv: Given, end_adv: Given, domain: Domain = "time") -> Linear:
    """Return SStreamWare's windows: the first from `start` to `end`, each next one moved by `start_adv` and `end_adv` (6.1.3).

    >>> from streamdsl.astral import View
    >>> View([]).bounds(five_uplet(2, 5, 5, 1, 5), 20)
    (5, 20)
    """
    return Linear(_line((start_adv, start)), _line((end_adv, end)), exact(rate), domain, cut=False)


def range_slide(x: Given, slide: Given | None = None, partial: bool = True) -> AnySequence:
    """Return CQL's `RANGE x SLIDE slide`, counted from t0; without a slide, at each time the tuples of the last x (6.1.1-2).

    `partial=True` begins with windows that t0 cuts, False with the first full one. Both bounds of a window are inclusive.

    >>> from streamdsl.astral import View
    >>> view = View([(n, n) for n in range(9)])
    >>> view.bounds(range_slide(4, 2), 3), view.bounds(range_slide(4, 2, partial=False), 3)
    ((0, 2), None)
    """
    size = positive(x, "range")
    if slide is None:
        return Sliding(size)
    hop = exact(slide)
    start, end = ((hop, -size), (hop, 0)) if partial else ((hop, 0), (hop, size))
    return Linear(start, end, hop, cut=partial, relative=True)


def rows_slide(n: int, slide: int, partial: bool = True) -> Linear:
    """Return CQL's `ROWS n SLIDE slide`: the last n tuples, every `slide` tuples.

    `partial=True` begins with windows of fewer tuples, False with the first full one.

    >>> from streamdsl.astral import View
    >>> view = View([(n, n) for n in range(9)])
    >>> view.content(rows_slide(3, 2), 3), view.content(rows_slide(3, 2, partial=False), 3)
    ([0, 1, 2], [0, 1, 2])
    """
    check_count(n)
    check_count(slide)
    start, end = (1 - n, 0) if partial else (0, n - 1)
    return linear((slide, start), (slide, end), slide, "position")


def last_n_every(n: int, period: Given) -> LastN:
    """Return the last `n` tuples, every `period` of time from t0 on (6.1.5).

    >>> from streamdsl.astral import View
    >>> View([(n, n) for n in range(10)]).content(last_n_every(3, 4), 7)
    [2, 3, 4]
    """
    return LastN(n, exact(period))


def landmark() -> Linear:
    """Return the unbounded sequence `[0, j, 1n]`: all tuples from t0 on, a new window with each (property 3).

    >>> from streamdsl.astral import View
    >>> View([("a", 1), ("b", 5)]).content(landmark(), 9)
    ['a', 'b']
    """
    return linear((0, 0), (1, 0), 1, "position")


def fixed(alpha: Given, beta: Given, domain: Domain = "time") -> Linear:
    """Return the single window from `alpha` to `beta`, which is created once and stays the last one.

    >>> from streamdsl.astral import View
    >>> view = View([("a", 1), ("b", 5)])
    >>> view.content(fixed(0, 4), 3), view.content(fixed(0, 4), 9)
    ([], ['a'])
    """
    return Linear(_line((0, alpha)), _line((0, beta)), None, domain, cut=False)


def for_loop(
    init: Given,
    condition: Callable[[Any], object],
    step: Callable[[Any], Given],
    window: Callable[[Any], tuple[Given, Given]],
) -> ForLoop:
    """Return TelegraphCQ's windows `for (u = init; condition(u); u = step(u)) WindowIs(window(u))` (6.1.4).

    `window(u)` is the pair of bounds. There is no window before the first value of `u`, nor from the first value on for which the
    condition does not hold.

    >>> from streamdsl.astral import View
    >>> loop = for_loop(2, lambda u: u < 8, lambda u: u + 3, lambda u: (u - 2, u))
    >>> view = View([(n, n) for n in range(10)])
    >>> [view.content(loop, t) for t in (1, 4, 7, 8)]
    [[], [0, 1, 2], [3, 4, 5], []]
    """
    return ForLoop(exact(init), condition, step, window)


def check_count(n: object) -> None:
    """Raise `QueryError` for values that are not positive integers.

    >>> check_count(0)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: a window holds at least one tuple, not 0
    """
    if type(n) is not int or n < 1:
        raise QueryError(f"a window holds at least one tuple, not {n!r}")


def _written(slope: Number, offset: Number, origin: str) -> str:
    """Return a linear bound as text, without terms that are 0."""
    text = " + ".join(filter(None, [origin, ("j" if slope == 1 else f"{slope}j") if slope else ""]))
    if not text:
        return str(offset)
    return f"{text} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else text


def _line(given: tuple[Given, Given]) -> Line:
    slope, offset = given
    return exact(slope), exact(offset)
