"""Binary operators: two windows, and when both become visible to the operator (paper 000, B.2.2).

The paper leaves this open. Here the tuples of both inputs arrive in one order of system time, and both windows tick at each
arrival that the profile ticks at, whichever input it is of; what an engine does to its input is done to that order. Scope,
Content and t0 (of the first tuple of either) are as ever, each with its own size and slide. What is asked of one window is
asked of the pair: `content_change` that either has changed, `window_close` that either closes (or both: `closing="all"`),
`non_empty` that both hold something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamdsl.errors import QueryError
from streamdsl.papers.secret.content import Observation, TimeContent
from streamdsl.papers.secret.profile import Profile, Report, check_profile
from streamdsl.papers.secret.scope import Scope, check_window
from streamdsl.papers.secret.simulation import fed
from streamdsl.papers.secret.tick import Ticker
from streamdsl.papers.secret.tuples import HEARTBEAT, Given, Tuple, read


class Joined(NamedTuple):
    """A report of two windows: the arrival that caused it, the application time, the values in each, and the pairs of them."""

    t_sys: int
    t: int
    left: list[Any]
    right: list[Any]
    pairs: list[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join: its tuples, and its window."""

    tuples: Iterable[Given]
    size: int
    slide: int

    def __post_init__(self) -> None:
        check_window(self.size, self.slide)


def simulate_join(
    profile: Profile,
    left: Side,
    right: Side,
    on: Callable[[Any, Any], object] = lambda left, right: True,
    *,
    closing: str = "any",
) -> list[Joined]:
    """Run a join of two windows under a profile, and return its reports; each keeps what a later one can see.

    `closing="all"`: a window closes only when both do.

    >>> from streamdsl.secret import CORAL8
    >>> left, right = Side([("a", 3, 1, 1), ("b", 4, 3, 3)], 2, 1), Side([("x", 3, 2, 2), ("y", 6, 4, 4)], 2, 1)
    >>> [(each.t, each.pairs) for each in simulate_join(CORAL8, left, right)]
    [(3, [('a', 'x')]), (4, [('a', 'x'), ('b', 'x')])]
    """
    _check(profile, left, right, closing)
    found: list[Joined] = []
    running: _Join | None = None
    for each in fed(profile, _merged(left, right)):
        running = running or _Join(profile, (left, right), each.t_app, closing == "all")
        found.extend(running.push(each, on))
    return found


def _check(profile: Profile, left: object, right: object, closing: object) -> None:
    check_profile(profile)
    for side in (left, right):
        if not isinstance(side, Side):
            raise QueryError(f"{side!r} is no input of a join", hint="secret.Side(tuples, size, slide)")
    if closing not in ("any", "all"):
        raise QueryError(f'a pair closes where "any" of its windows does, or where "all" do, not {closing!r}')
    if profile.scope is not Scope.ACTIVE:
        raise QueryError(f"a join looks at the active windows, not at {profile.scope.words}", hint="replace(profile, scope=...)")


class _Join:
    """Two contents with one ticker."""

    def __init__(self, profile: Profile, sides: tuple[Side, Side], first: int, both: bool) -> None:
        starts = [profile.start(first, side.size, side.slide) for side in sides]
        self._report = profile.report
        self._both = both
        self._ticker = Ticker(min(starts), profile.tick)
        self._contents = [TimeContent(t0, side.size, side.slide) for t0, side in zip(starts, sides, strict=True)]

    def push(self, arrived: Tuple, on: Callable[[Any, Any], object]) -> list[Joined]:
        invoked = self._ticker.arrive(arrived.t_app, arrived.bid)
        found = [joined for t in self._instants(invoked) for joined in self._at(arrived.t_sys, t, on)]
        if arrived.value is not HEARTBEAT:
            number, value = arrived.value
            self._contents[number].add(arrived._replace(value=value))
        for content in self._contents:
            content.forget(self._ticker.last)
        return found

    def _instants(self, invoked: range) -> Iterable[int]:
        """What changes and what closes may be different windows."""
        change = self._report.content_change
        asked = Report(change, self._report.window_close and not change, self._report.non_empty, self._report.periodic)
        return sorted({t for content in self._contents for t in content.instants(asked, invoked)})

    def _at(self, t_sys: int, t: int, on: Callable[[Any, Any], object]) -> Iterable[Joined]:
        seen = [content.at(t) for content in self._contents]
        left, right = (each[0] if each else _NOTHING for each in seen)
        if self._holds(left, right, t):
            values = [each.value for each in left.content], [each.value for each in right.content]
            yield Joined(t_sys, t, *values, [(a, b) for a in values[0] for b in values[1] if on(a, b)])

    def _holds(self, left: Observation, right: Observation, t: int) -> bool:
        closing = (left.closes and right.closes) if self._both else (left.closes or right.closes)
        return (
            (not self._report.content_change or left.changed or right.changed)
            and (not self._report.window_close or (closing and t < self._ticker.highest))
            and (not self._report.non_empty or (bool(left.content) and bool(right.content)))
            and t % self._report.period == 0
        )


_NOTHING = Observation((0, 0), [], False, False)


def _merged(left: Side, right: Side) -> list[Tuple]:
    """Return the tuples of both inputs in order of arrival, their values with the number of their input."""
    both = [
        each if each.value is HEARTBEAT else each._replace(value=(n, each.value))
        for n, side in enumerate((left, right))
        for each in read(side.tuples)
    ]
    return read(both)
