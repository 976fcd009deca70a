"""Window sequence descriptions: gamma, the last window at a moment, and the bounds of a window (paper 003, section 4)."""

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
    """The base of all window sequences: frozen values. A window is identified by its number j, its *rank*.

    In a generic sequence the rank is the batch that identifies the window.
    """

    domain: Domain

    @property
    def endless(self) -> bool:
        """Whether non-empty windows may be created for ever, even if no more tuples come."""
        return False

    @property
    def lasts(self) -> bool:
        """Whether some window may have no successor, and so stay the last one for ever."""
        return True

    @property
    def by_clock(self) -> bool:
        """Whether bounds are times, and windows depend on t0 alone and on no tuple."""
        return False

    @property
    def looks_back(self) -> bool:
        """Whether windows may reach back without limit as time goes on, so that all tuples must be kept."""
        return True

    @abstractmethod
    def rank(self, at: Batch, seen: Seen) -> Any:
        """Return gamma(at): the last window at this moment, None if there is none yet; `seen` has the tuples up to it."""

    @abstractmethod
    def bounds(self, rank: Any, seen: Seen) -> Bounds:
        """Return the lower and the upper bound of a window, both inclusive."""

    def positions(self, rank: Any, seen: Seen) -> range:
        """Return the positions of the seen tuples in a window (paper 003, definition 10)."""
        low, high = self.bounds(rank, seen)
        if low > high:
            return range(0)
        if self.domain == "time":
            return range(seen.first_from(low), seen.tau_inv((high, LAST)) + 1)
        return _last_of(seen, _position(low), _position(high))

    def state(self, at: Batch, seen: Seen) -> Any:
        """Return a value that changes exactly when a query over the last window has a new result: by default the window."""
        return self.rank(at, seen)

    def next_change(self, at: Batch, seen: Seen) -> Number | None:
        """Return a lower bound of the time of the next window, if no tuple comes before it; None if there is no next one."""
        raise QueryError(f"it is not known when {self.describe()} changes", hint="evaluate it at each moment with astral.View")

    def is_over(self, at: Batch, seen: Seen) -> bool:
        """Say whether all later windows are empty if no more tuples come; False if unknown."""
        return False

    def horizon(self, at: Batch, seen: Seen) -> Number | None:
        """Return a lower bound of the times that windows created after `at` contain; None if unknown."""
        return None

    def first_needed(self, at: Batch, seen: Seen) -> int:
        """Return a lower bound of the positions that windows created after `at` contain; earlier tuples can be dropped."""
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
    """A sequence that creates windows one by one, each `rate` of time or of tuples; with rate None a single one."""

    rate: Number | None
    delay: Number = 0

    @property
    def rate_domain(self) -> Domain:
        """The domain of the rate, time or tuples; by default that of the bounds."""
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
        """Return floor((now - beta(0)) / rate) (paper 003, definition 9), evaluated `delay` before `at`."""
        first = self.first(at, seen)
        if first is None:
            return None
        moment = (at[0] - self.delay, at[1])
        passed = (moment[0] if self.rate_domain == "time" else seen.tau_inv(moment)) - first
        if passed < 0:
            return None
        return 0 if self.rate is None else passed // self.rate

    def first(self, at: Batch, seen: Seen) -> Number | None:
        """Return beta(0) in the domain of the rate, None if that is not known yet."""
        end = self._first_end(seen)
        if end is None or self.domain == self.rate_domain:
            return end
        if self.domain == "position":
            return seen.tau(_position(end))[0] if end <= seen.last else None
        return seen.tau_inv((end, LAST)) if end <= at[0] else None

    def _first_end(self, seen: Seen) -> Number | None:
        """Return beta(0), None while it depends on a tuple that has not come yet."""
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
    """The windows from `alpha(j)` to `beta(j)`, one created every `rate` (paper 003, definition 8).

    The bounds are functions of `(j)`, or of `(j, v)` if they need the stream: `v` has `t0`, `tau` and `tau_inv` of the tuples
    seen so far. `domain` is the domain of the bounds, time or position, and `rate_domain` that of the rate, by default the same.
    With a `delay` each window is created so much later (6.1.1).

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
        """Whether windows are created by time: it is not known whether a bound that is a function ever passes a tuple."""
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
    """Windows without a fixed rate: `gamma(at, v)` is the batch that identifies the window at `at`, or None.

    `alpha(batch, v)` and `beta(batch, v)` are its bounds; the window exists once its upper bound has passed (definition 12).

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
    """The union over all keys of a sequence's windows, each over the tuples of one key (paper 003, definition 11)."""

    sequence: AnySequence
    by: tuple[str, ...]

    def partitioned(self, by: str | Sequence[str]) -> Partitioned:
        """Return the windows of the same sequence, by other fields."""
        return replace(self, by=(by,) if isinstance(by, str) else tuple(by))


def check_domain(domain: str) -> str:
    """Return a domain; raises `QueryError` for any other value.

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
