"""Window sequence descriptions: which window is the last one at a moment, and what its bounds are (paper 003, section 4)."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from streamdsl.errors import PositionError, QueryError
from streamdsl.windows.sequences.numbers import LAST, Batch, Given, Number, batch, exact, positive
from streamdsl.windows.sequences.seen import Seen

Domain: TypeAlias = Literal["time", "position"]
Bounds: TypeAlias = tuple[Number, Number]


class AnySequence(ABC):
    """What all window sequences share. They are frozen values; a window is known by its number j.

    A generic sequence has the batch that stands for a window in the place of j.
    """

    domain: Domain

    @property
    def endless(self) -> bool:
        """Whether new windows may hold tuples for ever, though no more of these come."""
        return False

    @property
    def lasts(self) -> bool:
        """Whether the last window may stay the last one for ever."""
        return True

    @property
    def by_clock(self) -> bool:
        """Whether the windows and their bounds depend on t0 alone, and the bounds are times."""
        return False

    @property
    def looks_back(self) -> bool:
        """Whether later windows may look back further and further."""
        return True

    @abstractmethod
    def rank(self, at: Batch, seen: Seen) -> Any:
        """Return gamma(at): the last window by this moment, None if there is none yet; `seen` is what has come by then."""

    @abstractmethod
    def bounds(self, rank: Any, seen: Seen) -> Bounds:
        """Return the lower and the upper bound of a window; both are inside."""

    def positions(self, rank: Any, seen: Seen) -> range:
        """Return the positions of the tuples in a window, of those that have been seen (paper 003, definition 10)."""
        low, high = self.bounds(rank, seen)
        if low > high:
            return range(0)
        if self.domain == "time":
            return range(seen.first_from(low), seen.tau_inv((high, LAST)) + 1)
        return _last_of(seen, _position(low), _position(high))

    def state(self, at: Batch, seen: Seen) -> Any:
        """Return what stays the same for as long as a query's result over the last window holds: which window it is."""
        return self.rank(at, seen)

    def next_change(self, at: Batch, seen: Seen) -> Number | None:
        """Return a time after `at` before which no other window is created, if no tuple comes; None: there is none such."""
        raise QueryError(f"nothing tells when {self.describe()} changes", hint="ask it at every moment, as a View does")

    def is_over(self, at: Batch, seen: Seen) -> bool:
        """Say whether every window that is created later is empty, if no tuple comes; False where nothing tells."""
        return False

    def horizon(self, at: Batch, seen: Seen) -> Number | None:
        """Return a time before which no window created after `at` looks, whatever tuples there are; None: nothing tells."""
        return None

    def first_needed(self, at: Batch, seen: Seen) -> int:
        """Return a position such that no window created after `at` holds a tuple before it."""
        horizon = self.horizon(at, seen)
        return 0 if horizon is None else seen.first_from(horizon)

    def describe(self) -> str:
        """Return the sequence as `explain()` shows it."""
        return f"a {type(self).__name__}"

    def partitioned(self, by: str | Sequence[str]) -> Partitioned:
        """Return the union of this sequence's windows over each key's tuples alone; `by` is a field's name, or a list of them.

        >>> from streamdsl.astral import View, rows_slide
        >>> view = View([({"loc": "x"}, 0), ({"loc": "y"}, 1), ({"loc": "x"}, 2)])
        >>> view.content(rows_slide(1, 1).partitioned("loc"), 2)
        [{'loc': 'y'}, {'loc': 'x'}]
        """
        return Partitioned(self, (by,) if isinstance(by, str) else tuple(by))


def _position(value: Number) -> int:
    if not isinstance(value, int):
        raise QueryError(f"{value} is no position", hint="in the domain of positions all bounds are whole numbers")
    return value


def _last_of(seen: Seen, low: int, high: int) -> range:
    """Return the last `high - low + 1` positions of the batches from that of `low` to that of `high`."""
    if low > seen.last or high < -1:
        return range(0)
    end = seen.tau_inv(seen.tau(min(high, seen.last)))
    first = seen.tau_inv(_before(seen.tau(low))) + 1 if low >= 0 else 0
    return range(max(first, end - (high - low)), end + 1)


def _before(at: Batch) -> Batch:
    return (at[0], at[1] - 1)


class Periodic(AnySequence):
    """A sequence of windows that are created one after the other, at a fixed rate of time or of tuples; None: only one."""

    rate: Number | None
    delay: Number = 0

    @property
    def rate_domain(self) -> Domain:
        """Whether the rate counts time or tuples; where nothing else is said, what the bounds are."""
        return self.domain

    @property
    def lasts(self) -> bool:
        return self.rate is None or self.rate_domain == "position"

    @abstractmethod
    def lower(self, j: int, seen: Seen) -> Number:
        """Return alpha(j)."""

    @abstractmethod
    def upper(self, j: int, seen: Seen) -> Number:
        """Return beta(j)."""

    def bounds(self, rank: int, seen: Seen) -> Bounds:
        return self.lower(rank, seen), self.upper(rank, seen)

    def rank(self, at: Batch, seen: Seen) -> int | None:
        """Return floor((now - beta(0)) / rate) (paper 003, definition 9), as of `delay` ago."""
        first = self.first(at, seen)
        if first is None:
            return None
        moment = (at[0] - self.delay, at[1])
        passed = (moment[0] if self.rate_domain == "time" else seen.tau_inv(moment)) - first
        if passed < 0:
            return None
        return 0 if self.rate is None else passed // self.rate

    def first(self, at: Batch, seen: Seen) -> Number | None:
        """Return beta(0) as a time or as a position, as the rate has it; None if it has not come yet."""
        end = self._first_end(seen)
        if end is None or self.domain == self.rate_domain:
            return end
        if self.domain == "position":
            return seen.tau(_position(end))[0] if end <= seen.last else None
        return seen.tau_inv((end, LAST)) if end <= at[0] else None

    def _first_end(self, seen: Seen) -> Number | None:
        """Return beta(0), None while it depends on a tuple that has not come."""
        try:
            return self.upper(0, seen)
        except PositionError:
            return None

    def next_change(self, at: Batch, seen: Seen) -> Number | None:
        first = self.first(at, seen)
        if first is None:
            return self._first_end(seen) if self.domain == "time" else None
        if self.rate_domain == "position":
            position = seen.tau_inv((at[0] - self.delay, at[1])) + 1
            return seen.tau(position)[0] + self.delay if position <= seen.last else None
        rank = self.rank(at, seen)
        if self.rate is None:
            return first + self.delay if rank is None else None
        return first + self.delay + self.rate * (0 if rank is None else rank + 1)


Bound: TypeAlias = Callable[[int], Given] | Callable[[int, Seen], Given]


@dataclass(frozen=True)
class WindowSequence(Periodic):
    """The windows from `alpha(j)` to `beta(j)`, of which one is created every `rate` (paper 003, definition 8).

    The bounds are functions of `(j)`, or of `(j, v)` where they need the stream: `v` has `t0`, `tau` and `tau_inv`, as of now.
    They are times or positions, as `domain` says, and the rate one of `rate_domain`, by default the same. With a `delay` each
    window comes so much later (6.1.1).

    >>> from streamdsl.astral import View
    >>> tens = WindowSequence(lambda j: 100 * j + 91, lambda j: 100 * (j + 1), 100, "position")
    >>> view = View([(n, n) for n in range(1030)])
    >>> view.gamma(tens, 1024), view.bounds(tens, 199)
    (9, (91, 100))
    """

    alpha: Bound
    beta: Bound
    rate: Any
    domain: Domain = "time"
    rate_domain: Any = None
    delay: Any = 0
    _want_stream: tuple[bool, bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_want_stream", (_wants_stream(self.alpha), _wants_stream(self.beta)))
        object.__setattr__(self, "rate", positive(self.rate, "rate"))
        object.__setattr__(self, "rate_domain", self.rate_domain or self.domain)
        object.__setattr__(self, "delay", exact(self.delay))
        check_domain(self.domain)
        check_domain(self.rate_domain)
        if self.delay < 0:
            raise QueryError(f"a delay is at least 0, not {self.delay}")

    @property
    def by_clock(self) -> bool:
        return self.domain == self.rate_domain == "time" and not any(self._want_stream)

    @property
    def endless(self) -> bool:
        """Whether windows are created by time: nothing tells how long a bound that is a function stays behind."""
        return bool(self.rate_domain == "time")

    def describe(self) -> str:
        every = f"every {self.rate} {'tuples' if self.rate_domain == 'position' else 'of time'}"
        return f"[{_name(self.alpha)}(j), {_name(self.beta)}(j)] by {self.domain}, {every}"

    def lower(self, j: int, seen: Seen) -> Number:
        return _called(self.alpha, j, seen, self._want_stream[0])

    def upper(self, j: int, seen: Seen) -> Number:
        return _called(self.beta, j, seen, self._want_stream[1])


def _called(bound: Any, j: int, seen: Seen, wants_stream: bool) -> Number:
    return exact(bound(j, seen) if wants_stream else bound(j))


def _name(bound: Any) -> str:
    return getattr(bound, "__name__", "function")


def _wants_stream(bound: Any) -> bool:
    """Say whether a bound is a function of `(j, v)`."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(bound).parameters.values()
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters) > 1


@dataclass(frozen=True)
class GenericWindowSequence(AnySequence):
    """Windows at no fixed rate: `gamma(at, v)` is the batch that stands for the window at `at`, or None.

    `alpha(batch, v)` and `beta(batch, v)` are its bounds; while the upper one is still to come there is no window (definition
    12).

    >>> from streamdsl.astral import View
    >>> hourly = GenericWindowSequence(lambda b, v: b[0] - 60, lambda b, v: b[0], lambda at, v: (at[0] // 60 * 60, 0))
    >>> View([("a", 10), ("b", 70)]).content(hourly, 100)
    ['a']
    """

    alpha: Callable[[Batch, Seen], Given]
    beta: Callable[[Batch, Seen], Given]
    gamma: Callable[[Batch, Seen], Any]
    domain: Domain = "time"

    def __post_init__(self) -> None:
        check_domain(self.domain)

    def rank(self, at: Batch, seen: Seen) -> Batch | None:
        found = self.gamma(at, seen)
        if found is None:
            return None
        rank = batch(found)
        end = exact(self.beta(rank, seen))
        reached = end <= at[0] if self.domain == "time" else end <= seen.last
        return rank if reached else None

    def bounds(self, rank: Batch, seen: Seen) -> Bounds:
        return exact(self.alpha(rank, seen)), exact(self.beta(rank, seen))


@dataclass(frozen=True)
class Partitioned:
    """The union of the windows of a sequence over each key's tuples alone (paper 003, definition 11)."""

    sequence: AnySequence
    by: tuple[str, ...]

    def partitioned(self, by: str | Sequence[str]) -> Partitioned:
        """Return the windows of the same sequence, by other fields."""
        return replace(self, by=(by,) if isinstance(by, str) else tuple(by))


def check_domain(domain: str) -> str:
    """Return a domain; raises `QueryError` for what is none.

    >>> check_domain("rows")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: 'rows' is no domain of bounds and rates
    Hint: the domains are "time" and "position"
    """
    if domain not in ("time", "position"):
        raise QueryError(f"{domain!r} is no domain of bounds and rates", hint='the domains are "time" and "position"')
    return domain


__all__ = ["AnySequence", "Domain", "GenericWindowSequence", "Partitioned", "Periodic", "WindowSequence"]
