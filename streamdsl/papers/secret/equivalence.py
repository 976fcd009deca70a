"""When profiles agree, and how a query is carried from one to another (paper 000, appendix C)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any, Final

from streamdsl.papers.secret.comparison import Comparison, compare
from streamdsl.papers.secret.input_feeds import bundle
from streamdsl.papers.secret.profile import Profile, Tick, check_profile
from streamdsl.papers.secret.profile_trace import simulate
from streamdsl.papers.secret.search import Assumption, assumed, ended, streams
from streamdsl.papers.secret.tuples import Tuple
from streamdsl.papers.secret.window_scope import check_window


@dataclass(frozen=True, eq=False)
class Equivalence:
    """Whether two profiles agree on the inputs that were tried; true or false in itself.

    `why` says why they always agree where that is known; `counterexample` is the smallest input found on which they do not.
    """

    holds: bool
    tried: int
    why: str | None = None
    counterexample: list[Tuple] | None = None
    comparison: Comparison | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        if self.holds:
            return f"they agree: {self.why or f'no counterexample among {self.tried} inputs'}"
        return f"they differ on {[tuple(each) for each in self.counterexample or ()]!r}\n{self.comparison}"


Assumptions = str | Assumption | Iterable[str | Assumption]


def equivalent(p: Profile, q: Profile, size: int, slide: int, assumptions: Assumptions = ()) -> Equivalence:
    """Say whether two profiles report the same contents on all inputs that keep some assumptions, as far as search can tell.

    Assumptions are "no simultaneous tuples", "no gaps", "one batch per instant", "one tuple per batch".

    >>> from streamdsl.secret import CORAL8, STREAM, Tick
    >>> bool(equivalent(CORAL8, STREAM, 3, 1)), bool(equivalent(CORAL8, STREAM, 3, 1, "one batch per instant"))
    (False, True)
    >>> equivalent(CORAL8, replace(CORAL8, tick=Tick.TUPLE), 3, 1, "no simultaneous tuples")
    they agree: each arrival is a new time and a new batch, so all ticks invoke the same Reports
    """
    check_profile(p, q)
    check_window(size, slide)
    kept = assumed(assumptions)
    tried = 0
    for stream in streams(size, slide, kept, p.report.period * q.report.period):
        tried += 1
        given = ended(stream, size, slide)
        if _contents(p, size, slide, given) != _contents(q, size, slide, given):
            return Equivalence(False, tried, None, stream, compare([p, q], size, slide, given))
    return Equivalence(True, tried, why(p, q, kept))


def agreement(p: Profile, q: Profile, size: int, slide: int) -> list[frozenset[Assumption]]:
    """Return the weakest assumptions under which two profiles agree: the empty set alone if they always do.

    >>> from streamdsl.secret import CORAL8, STREAM
    >>> [sorted(each.value for each in needed) for needed in agreement(CORAL8, STREAM, 2, 1)]
    [['no simultaneous tuples'], ['one batch per instant']]
    """
    found: list[frozenset[Assumption]] = []
    for count in range(len(Assumption) + 1):
        for chosen in map(frozenset, combinations(Assumption, count)):
            if not any(weaker <= chosen for weaker in found) and equivalent(p, q, size, slide, chosen):
                found.append(chosen)
    return found


@dataclass(frozen=True, eq=False)
class Port:
    """The settings under which another engine gives a query's answers; `profile` is None, and false, if none do.

    Then `counterexample` is an input on which the same size and slide give others.
    """

    profile: Profile | None
    size: int
    slide: int
    tried: int
    counterexample: list[Tuple] | None = None
    comparison: Comparison | None = None

    def __bool__(self) -> bool:
        return self.profile is not None

    def __repr__(self) -> str:
        if self.profile is None:
            return f"no settings of {self.tried} give the same answers; size {self.size}, slide {self.slide}:\n{self.comparison}"
        return f"size {self.size}, slide {self.slide} under {self.profile}"


_BUNDLES: Final[tuple[Any, ...]] = (None, partial(bundle, by="tuple"), partial(bundle, by="time"))


def port(
    p: Profile,
    q: Profile,
    size: int,
    slide: int,
    assumptions: Assumptions = (),
    *,
    windows: Sequence[tuple[int, int]] | None = None,
    periods: Sequence[int] | None = None,
) -> Port:
    """Return the settings under `q` that give the answers of `p`: size and slide, bundles for a batch-driven engine, its period.

    `windows` are the sizes and slides that its engine has (else all about as large), `periods` its reporting periods.

    >>> from streamdsl.secret import CORAL8, STREAMBASE, Tick
    >>> found = port(replace(CORAL8, name="by tuples", tick=Tick.TUPLE), CORAL8, 2, 1)
    >>> found.size, found.slide, found.profile.name
    (2, 1, "Coral8, bundle(by='tuple')")
    >>> bool(port(STREAMBASE, CORAL8, 2, 1))
    False
    """
    check_profile(p, q)
    check_window(size, slide)
    inputs = [ended(each, size, slide) for each in streams(size, slide, assumed(assumptions), p.report.period)]
    wanted = [_contents(p, size, slide, each) for each in inputs]
    tried = 0
    for profile, (wide, step) in product(_configured(q, periods), windows or _near(size, slide)):
        tried += 1
        if all(_contents(profile, wide, step, each) == answer for each, answer in zip(inputs, wanted, strict=True)):
            return Port(profile, wide, step, tried)
    found = equivalent(p, q, size, slide, assumptions)
    return Port(None, size, slide, tried, found.counterexample, found.comparison)


def _configured(q: Profile, periods: Sequence[int] | None) -> Iterator[Profile]:
    feeds = _BUNDLES if q.tick is Tick.BATCH and q.feed is None else (q.feed,)
    for feed, period in product(feeds, periods or [q.report.period]):
        name = q.name if feed is q.feed else f"{q.name}, bundle(by={feed.keywords['by']!r})"
        report = q.report if period == q.report.period else replace(q.report, periodic=period)
        yield replace(q, name=name, feed=feed, report=report)


def _near(size: int, slide: int) -> list[tuple[int, int]]:
    """Return sizes and slides, the nearest first."""
    found = product(range(1, size + slide + 1), range(1, max(size, slide) + 1))
    return sorted(found, key=lambda each: (abs(each[0] - size) + abs(each[1] - slide), each))


def _contents(profile: Profile, size: int, slide: int, tuples: list[Tuple]) -> list[list[Any]]:
    return [report.values for report in simulate(profile, size, slide, tuples).reports]


def why(p: Profile, q: Profile, kept: frozenset[Assumption]) -> str | None:
    """Return why two profiles agree on every input that keeps some assumptions, where the model says so.

    >>> from streamdsl.secret import STREAM
    >>> why(STREAM, STREAM, frozenset())
    'their settings are the same'
    """
    if (p.t0, p.report, p.scope, p.feed) != (q.t0, q.report, q.scope, q.feed):
        return None
    if p.tick is q.tick:
        return "their settings are the same"
    if p.feed is not None:
        return None
    # at t0 all ticks but time's report a tuple that is there: an empty window, which a condition of Report hides
    if Assumption.NO_SIMULTANEOUS in kept and (p.report.content_change or p.report.window_close or p.report.non_empty):
        return "each arrival is a new time and a new batch, so all ticks invoke the same Reports"
    drivers = {p.tick, q.tick}
    if Assumption.OWN_BATCH in kept and drivers == {Tick.TUPLE, Tick.BATCH}:
        return "each tuple is a batch, so both ticks are the same"
    return None
