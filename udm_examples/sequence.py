"""Sequence patterns as a user-defined operator: steps with predicates, some of them repeated or left out, in order of time.

The vocabulary is that of J. Agrawal, Y. Diao, D. Gyllstrom, N. Immerman, "Efficient Pattern Matching over Event Streams",
SIGMOD 2008 (SASE+). Which matches are reported is fixed, so that every engine and every order of arrival gives the same ones:

1. *Order.* Events are ordered by start. Events that start together have no order: an instant moves a run by one step at most.
2. *Runs.* A run begins at each instant at which an event satisfies a step that may come first.
3. *Skip till next match.* What does not fit a run is skipped; what fits is taken at once. A run moves to the furthest step that
   it can reach, passing over optional steps only; if it can reach none and its step is `many`, it takes more events of that
   step. A `many` step takes all events of an instant that satisfy it, another step the first of them in payload order.
4. *End.* The last step is a single, required event, so a run is complete at once, and never waits for more.
5. *Within.* Less than `within` ticks lie between the first event and the last; a run that lasts longer is dropped.
6. *Leftmost.* Matches of a key do not overlap in time: a complete run ends all others, and of runs that are complete at the same
   instant the one that began first counts. With `overlapping=True` every run that is completed is reported.

Without windows, and with predicates over what has been taken, there is `Stream.match`, by the same rules (docs/patterns.md).

From rule 3 follows: no match that begins at the same instant is complete earlier than the one that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Generic, TypeAlias, TypeVar

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.temporal import payload_order
from udm_examples.settings import ticks

P = TypeVar("P")


@dataclass(frozen=True)
class Step(Generic[P]):
    """One step of a pattern: an event that satisfies a predicate; `many`: one or more of them; `optional`: or none."""

    name: str
    where: Callable[[P], bool]
    many: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Match(Generic[P]):
    """The events of one match in order of time, each with the name of its step."""

    key: Hashable
    events: tuple[tuple[str, P], ...]


@dataclass(frozen=True, slots=True)
class _Run(Generic[P]):
    """A match that has begun: where it stands in the pattern, and what it has taken."""

    start: int
    step: int = -1
    events: tuple[tuple[str, P], ...] = ()


Instant: TypeAlias = tuple[int, list[P]]


class SequencePattern(sd.TimeSensitiveUDO[P, Match[P]]):
    """The matches of a list of steps within a duration, for each key by itself.

    A match lives from the start of its last event until `within` after the start of its first, and never before its window. Ends
    of events do not count: right clipping changes nothing, left clipping changes the order. Raises `QueryError` for a pattern
    without steps, with two steps of one name, or whose last step is `many` or `optional`, or if `within`, in ticks, is not a
    positive whole number.

    Time-bound: what starts at s is in no match that lives before s. Not so over count windows, whose bounds depend on later
    events.

    >>> def refused(event: tuple[str, str]) -> bool:
    ...     return event[1] == "refused"
    >>> def granted(event: tuple[str, str]) -> bool:
    ...     return event[1] == "granted"
    >>> def user(event: tuple[str, str]) -> str:
    ...     return event[0]
    >>> guessed = SequencePattern(
    ...     [Step("guess", refused), Step("more", refused, many=True), Step("in", granted)], within=60, key=user
    ... )
    >>> logins = [(1, "refused"), (4, "refused"), (9, "refused"), (12, "granted"), (15, "granted")]
    >>> events = [sd.IntervalEvent(t, t + 1, ("eve", what)) for t, what in logins]
    >>> for found in guessed.compute_result(events, sd.WindowDescriptor(0, 100)):
    ...     print(found.start_time, found.end_time, found.payload.key, [name for name, _ in found.payload.events])
    12 61 eve ['guess', 'more', 'more', 'in']

    In a query:

    >>> rows = [(t, t + 1, ("eve", what)) for t, what in logins] + [(2, 3, ("bob", "refused")), (5, 6, ("bob", "granted"))]
    >>> windows = sd.from_rows(rows).tumbling_window(100, output=sd.Output.TIME_BOUND)
    >>> for le, re, match in windows.apply(guessed).run():
    ...     print(le, re, match.key)
    12 61 eve
    """

    time_bound: ClassVar[bool] = True
    ignores_ends_beyond_window: ClassVar[bool] = True

    def __init__(
        self,
        steps: Sequence[Step[P]],
        within: int,
        key: Callable[[P], Hashable] | None = None,
        overlapping: bool = False,
    ) -> None:
        _check(steps)
        self.steps = tuple(steps)
        self.within = ticks("within", within)
        self.key = key
        self.overlapping = overlapping
        self._reach = [self._reachable(position) for position in range(-1, len(steps))]

    def compute_result(
        self, events: Sequence[sd.IntervalEvent[P]], window: sd.WindowDescriptor
    ) -> Iterator[sd.IntervalEvent[Match[P]]]:
        """Yield the matches that live inside the window or after it."""
        for key, track in self._divided(events).items():
            for end, run in self._complete(track):
                since, until = max(end, window.start_time), run.start + self.within
                if since < until:
                    yield sd.IntervalEvent(since, until, Match(key, run.events))

    def _divided(self, events: Sequence[sd.IntervalEvent[P]]) -> dict[Hashable, list[Instant[P]]]:
        """Return the instants of each key, with the payloads that start there in payload order."""
        divided: dict[Hashable, list[sd.IntervalEvent[P]]] = {}
        for event in events:
            divided.setdefault(self.key(event.payload) if self.key else None, []).append(event)
        return {key: instants(members) for key, members in divided.items()}

    def _complete(self, track: list[Instant[P]]) -> Iterator[tuple[int, _Run[P]]]:
        """Yield each complete run that is reported, with the start of its last event."""
        runs: list[_Run[P]] = []
        for time, payloads in track:
            open_runs = [run for run in runs if time - run.start < self.within]
            runs = [self._moved(run, payloads) for run in [*open_runs, _Run(time)]]
            complete = [run for run in runs if run.step == len(self.steps) - 1]
            runs = [run for run in runs if -1 < run.step < len(self.steps) - 1]
            if complete and not self.overlapping:
                complete, runs = complete[:1], []
            yield from ((time, run) for run in complete)

    def _moved(self, run: _Run[P], payloads: list[P]) -> _Run[P]:
        for position in self._reach[run.step + 1]:
            step = self.steps[position]
            taken = [payload for payload in payloads if step.where(payload)]
            if taken:
                taken = taken if step.many else taken[:1]
                return _Run(run.start, position, (*run.events, *((step.name, payload) for payload in taken)))
        return run

    def _reachable(self, position: int) -> list[int]:
        """Return the steps that may follow a step, the furthest first, the step itself last."""
        reach = [position] if position >= 0 and self.steps[position].many else []
        for following in range(position + 1, len(self.steps)):
            reach.append(following)
            if not self.steps[following].optional:
                break
        return reach[::-1]


def instants(events: Sequence[sd.IntervalEvent[P]]) -> list[Instant[P]]:
    """Return the payloads that start at each time, in order of time; those of one time in payload order.

    >>> instants([sd.IntervalEvent(3, 4, "b"), sd.IntervalEvent(3, 9, "a"), sd.IntervalEvent(1, 5, "c")])
    [(1, ['c']), (3, ['a', 'b'])]
    """
    ordered = sorted(events, key=lambda event: (event.start_time, payload_order(event.payload)))
    by_start = groupby(ordered, key=lambda event: event.start_time)
    return [(time, [event.payload for event in together]) for time, together in by_start]


def _check(steps: Sequence[Step[P]]) -> None:
    names = [step.name for step in steps]
    if not steps or len(set(names)) < len(names):
        raise QueryError(f"the steps of a pattern are {names}", hint="give at least one step, and each a name of its own")
    if steps[-1].many or steps[-1].optional:
        raise QueryError(
            f"the last step, {names[-1]!r}, is many or optional, so nothing says when a match is complete",
            hint="end the pattern with a single, required step",
        )
