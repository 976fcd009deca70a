"""Binary operators: two windows, and when both become visible to the operator (paper 000, B.2.2).

The paper leaves this open. Here the tuples of both inputs arrive in one order of system time, and both windows tick at each
arrival that the profile ticks at, whichever input it is of; what an engine does to its input is done to that order. Scope,
Content and t0 (of the first tuple of either) are as ever, each with its own size and slide. What is asked of one window is
asked of the pair: `content_change` that either has changed, `window_close` that either closes (or both: `closing="all"`),
`non_empty` that both hold something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamdsl.errors import QueryError
from streamdsl.papers.secret.content import Content, Observation, TimeContent
from streamdsl.papers.secret.profile import Profile, Report, check_profile
from streamdsl.papers.secret.simulation import Observer, Step, fed
from streamdsl.papers.secret.tick import Ticker
from streamdsl.papers.secret.tuples import HEARTBEAT, Given, Tuple, read
from streamdsl.papers.secret.window_scope import Scope, check_window


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
    tuples = fed(profile, _merged(left, right))
    if not tuples:
        return []
    starts = [profile.start(tuples[0].t_app, side.size, side.slide) for side in (left, right)]
    contents = [TimeContent(t0, side.size, side.slide) for t0, side in zip(starts, (left, right), strict=True)]
    observer = Observer(profile.report, Ticker(min(starts), profile.tick), _PairContent(contents, closing == "all"))
    return [_joined(step, on) for each in tuples for step in observer.look(each) if step.reported]


def _joined(step: Step, on: Callable[[Any, Any], object]) -> Joined:
    assert isinstance(step.seen, _PairObservation)
    left, right = step.seen.sides
    return Joined(step.t_sys, step.t, left, right, [(a, b) for a in left for b in right if on(a, b)])


def _check(profile: Profile, left: object, right: object, closing: object) -> None:
    check_profile(profile)
    for side in (left, right):
        if not isinstance(side, Side):
            raise QueryError(f"{side!r} is no input of a join", hint="secret.Side(tuples, size, slide)")
    if closing not in ("any", "all"):
        raise QueryError(f'a pair closes where "any" of its windows does, or where "all" do, not {closing!r}')
    if profile.scope is not Scope.ACTIVE:
        raise QueryError(f"a join looks at the active windows, not at {profile.scope.words}", hint="replace(profile, scope=...)")


@dataclass(frozen=True, slots=True)
class _PairObservation(Observation):
    """What is observed of two windows; the content is empty if that of either is."""

    sides: tuple[list[Any], list[Any]] = ([], [])


class _PairContent(Content):
    """The contents of two windows, observed together."""

    def __init__(self, contents: Sequence[TimeContent], both: bool) -> None:
        self._contents = contents
        self._both = both

    def __len__(self) -> int:
        return sum(map(len, self._contents))

    def add(self, tuple: Tuple) -> None:
        number, value = tuple.value
        self._contents[number].add(tuple._replace(value=value))

    def at(self, t: int) -> list[Observation]:
        left, right = ((*content.at(t), _NOTHING)[0] for content in self._contents)
        closes = (left.closes and right.closes) if self._both else (left.closes or right.closes)
        sides = [each.value for each in left.content], [each.value for each in right.content]
        return [_PairObservation((t, t), left.content and right.content, left.changed or right.changed, closes, sides=sides)]

    def instants(self, report: Report, invoked: range) -> Iterable[int]:
        """What changes and what closes may be different windows."""
        asked = replace(report, window_close=report.window_close and not report.content_change)
        return sorted({t for content in self._contents for t in content.instants(asked, invoked)})

    def forget(self, t: int) -> None:
        for content in self._contents:
            content.forget(t)


_NOTHING = Observation((0, 0), [], False, False)


def _merged(left: Side, right: Side) -> list[Tuple]:
    """Return the tuples of both inputs in order of arrival, their values with the number of their input."""
    both = [
        each if each.value is HEARTBEAT else each._replace(value=(n, each.value))
        for n, side in enumerate((left, right))
        for each in read(side.tuples)
    ]
    return read(both)
