"""Which settings explain an engine that can only be run (paper 000, B.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from statistics import mean
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.papers.secret.black_box import BlackBox, Engine, Experiment, ordered
from streamdsl.papers.secret.profile import CORAL8, STREAM, STREAMBASE, T0, Profile, Report, Tick
from streamdsl.papers.secret.report_values import Values, evaluator
from streamdsl.papers.secret.search import ended, some
from streamdsl.papers.secret.simulation import Simulation
from streamdsl.papers.secret.start import At, FromFirst, Grid
from streamdsl.papers.secret.tuples import Given, Tuple, read
from streamdsl.papers.secret.window_scope import Scope, check_window

WINDOWS: Final = ((5, 1), (5, 2), (3, 3))
"""A slide of one time unit, a longer one, and tumbling windows."""
INPUTS: Final = 24
"""The number of inputs per window from which experiments are chosen."""
FEW: Final = 30
MANY: Final = 300
"""With at most FEW settings all inputs are compared, with more than MANY none: any input then rules most of them out."""
AGGREGATES: Final[tuple[Values, ...]] = (sum, mean, len, max, min)
"""What outputs that are no lists may be."""
HELD_OUT: Final = 8
"""Inputs of each window that settings must explain which nothing else has been chosen by."""
_NOTHING: Final = object()
DETAILS: Final = ("t0", "scope", "report", "tick")


@dataclass(frozen=True, eq=False)
class Witness:
    """An input for which an engine was asked, with what it gave and what the nearest settings would give."""

    size: int
    slide: int
    tuples: list[Tuple]
    outputs: list[Any]
    expected: list[Any]


@dataclass(frozen=True, eq=False)
class Inferred:
    """The settings that explain an engine: `profile`, the best known one, None if there is none; true or false in itself.

    `candidates` are all settings that explain everything seen, `undetermined` names what they do not share. `witnesses` are the
    inputs that ruled settings out; without an explanation the last one shows what `nearest` fails at, and so do all settings if
    `alone`: else it takes all of them. `ended`: the engine reports what is left when its input ends.
    """

    profile: Profile | None
    candidates: list[Profile]
    witnesses: list[Witness]
    nearest: Profile | None = None
    ended: bool = False
    alone: bool = False

    def __bool__(self) -> bool:
        return self.profile is not None

    @property
    def undetermined(self) -> dict[str, list[str]]:
        """What the inputs could not tell, by setting.

        >>> from functools import partial
        >>> from streamdsl.secret import STREAMBASE, simulate
        >>> infer(partial(simulate, STREAMBASE), [(2, 1)]).undetermined["tick"]
        ['tuple', 'time', 'batch']
        """
        ways = {name: list(dict.fromkeys(_setting_text(getattr(each, name)) for each in self.candidates)) for name in DETAILS}
        return {name: found for name, found in ways.items() if len(found) > 1}

    def __repr__(self) -> str:
        if self.profile is None:
            last = self.witnesses[-1]
            given = [tuple(each) for each in last.tuples]
            fails = (
                "an input that none explains" if self.alone else f"no settings explain all {len(self.witnesses)} witnesses, as"
            )
            return (
                f"no settings explain it; the nearest are {self.nearest}\n"
                f"  {fails}: size {last.size}, slide {last.slide}, input {given}\n"
                f"  it gives {last.outputs!r}\n  these   {last.expected!r}"
            )
        open_ = "".join(f"\n  undetermined {name}: {', '.join(ways)}" for name, ways in self.undetermined.items())
        return f"{self.profile}{' (reports the rest at the end)' if self.ended else ''}{open_}"


def infer(
    black_box: Engine,
    windows: Sequence[tuple[int, int]] = WINDOWS,
    aggregate: Any = None,
    *,
    inputs: Sequence[Iterable[Given]] | None = None,
    ended: bool | None = None,
    name: str = "inferred",
) -> Inferred:
    """Find the settings that explain an engine: `black_box(size, slide, tuples)` runs it, and gives its outputs in order.

    An engine with one parameter gets the tuples alone: then `windows` is the one that it has.

    An output is the list of a report's values, or `aggregate` of them (without it sum, mean, count, largest and least are tried).
    `windows` are sizes and slides that the engine has. Inputs with gaps, simultaneous tuples and batches are chosen one after the
    other, each so that it tells the remaining settings apart best, until none does; what is left must then explain others that
    were held out, in which tuples expire while others stay. `ended`: whether the engine reports what is left when its input
    ends; both are tried.

    >>> from functools import partial
    >>> from streamdsl.secret import CORAL8, simulate
    >>> infer(partial(simulate, CORAL8), [(3, 1)]).profile == CORAL8
    True
    >>> print(infer(lambda size, slide, tuples: [[value] for value, *_ in tuples], [(3, 1)]).profile)
    None
    """
    if not callable(black_box):
        raise QueryError(
            f"{black_box!r} cannot be run", hint="infer(engine), where engine(size, slide, tuples) gives the outputs"
        )
    ask = BlackBox(black_box)
    given = None if inputs is None else [read(each) for each in inputs]
    pool = [(size, slide, each) for size, slide in _checked(windows) for each in (given or reversed(some(size, slide, INPUTS)))]
    values = (list, *AGGREGATES) if aggregate is None else (evaluator(aggregate),)
    ways = map(_Predictions, (False, True) if ended is None else (ended,))
    trials = [_Search(ask, pool, each, predict) for predict in ways for each in values]
    failed: list[tuple[_Search, Inferred]] = []
    for each in trials:
        found = each.run(name)
        if found:
            return found
        failed.append((each, found))
    return _refuted(*max(failed, key=lambda each: len(each[1].witnesses)), trials)


def _refuted(nearest: _Search, found: Inferred, trials: list[_Search]) -> Inferred:
    """Return what was not explained, with an input that no settings explain whatever is reported, if one of those tried is so."""
    for experiment in nearest.experiments[::-1]:
        if not any(each.explained(experiment) for each in trials):
            return replace(found, witnesses=[*found.witnesses, nearest.witness(experiment, found.nearest)], alone=True)
    return found


def _checked(windows: object) -> list[tuple[int, int]]:
    """Return the sizes and slides that are tried; raises `QueryError` for what is none."""
    listed = list(windows) if isinstance(windows, Iterable) else []
    if not listed or not all(isinstance(each, Sequence) and len(each) == 2 for each in listed):
        hint = "infer(engine, windows=[(5, 1), (3, 3)])"
        raise QueryError(f"the windows of an engine are pairs of size and slide, not {windows!r}", hint=hint)
    for size, slide in listed:
        check_window(size, slide)
    return [(size, slide) for size, slide in listed]


class _Search:
    """The search for settings: the experiments so far, and the settings that explain their outputs.

    Each step picks the experiment that splits the remaining settings into the most classes.
    """

    def __init__(
        self, ask: Callable[[Experiment], list[Any]], pool: list[Experiment], values: Values, predict: _Predictions
    ) -> None:
        self._ask, self._pool, self._values, self._predict = ask, list(pool), values, predict
        self._windows = [(window, HELD_OUT) for window in dict.fromkeys(each[:2] for each in pool)]
        self.experiments: list[Experiment] = []

    def run(self, name: str) -> Inferred:
        left, witnesses = [*_candidates()], list[Witness]()
        while (experiment := self._next(left) or self._held_out()) is not None:
            kept = [each for each in left if self._explains(each, experiment)]
            if len(kept) < len(left) or not witnesses:
                witnesses.append(self.witness(experiment, left[0]))
            if not kept:
                return Inferred(None, [], witnesses, _named(left, "these"), self._predict.ends)
            left = kept
        return Inferred(_named(left, name), left, witnesses, None, self._predict.ends)

    def witness(self, experiment: Experiment, profile: Profile | None) -> Witness:
        """Return an experiment with the engine's outputs, and those that a profile predicts."""
        expected = (
            [] if profile is None else [_aggregate_of(self._values, contents) for contents in self._predict(profile, experiment)]
        )
        return Witness(*experiment, self._ask(experiment), expected)

    def explained(self, experiment: Experiment) -> bool:
        """Say whether any settings predict the outputs of an experiment."""
        return any(self._explains(each, experiment) for each in _candidates())

    def _take(self, experiment: Experiment) -> Experiment:
        self._pool = [each for each in self._pool if each is not experiment]
        self.experiments.append(experiment)
        return experiment

    def _held_out(self) -> Experiment | None:
        """Return the next held-out experiment, as all remaining settings may be wrong."""
        while self._windows:
            window, count = self._windows[0]
            if count and (waiting := [each for each in self._pool if each[:2] == window]):
                self._windows[0] = (window, count - 1)
                return self._take(max(waiting, key=_information))
            del self._windows[0]
        return None

    def _next(self, left: list[Profile]) -> Experiment | None:
        """Return the experiment that splits the settings into the most classes; None if none splits them."""
        few = self._pool if len(left) <= FEW else self._pool[:: max(1, len(self._pool) // 6)]
        if not self.experiments or len(left) > MANY:
            return self._take(few[0]) if few else None
        for looked in (few, self._pool):
            parts = [(len({repr(self._predict(each, experiment)) for each in left}), experiment) for experiment in looked]
            most, chosen = max(parts, key=lambda each: each[0], default=(0, None))
            if most > 1 and chosen is not None:
                return self._take(chosen)
        return None

    def _explains(self, profile: Profile, experiment: Experiment) -> bool:
        """Say whether a profile predicts the engine's outputs, report by report."""
        outputs = self._ask(experiment)
        if outputs and self._values in (list, *AGGREGATES) and isinstance(outputs[0], list) is not (self._values is list):
            return False
        left = iter(outputs)
        for contents in self._predict.reports(profile, experiment):
            if not _equal(next(left, _NOTHING), _aggregate_of(self._values, contents)):
                return False
        return next(left, _NOTHING) is _NOTHING


class _Predictions:
    """Predictions of profiles, cached per experiment; with `ends` the rest of the window is reported at the end of the input."""

    def __init__(self, ends: bool) -> None:
        self.ends = ends
        self._known: dict[tuple[Profile, int], tuple[list[list[Any]], Iterator[list[Any]]]] = {}
        self._last: Experiment | None = None
        self._given: list[Tuple] = []

    def __call__(self, profile: Profile, experiment: Experiment) -> list[list[Any]]:
        return list(self.reports(profile, experiment))

    def reports(self, profile: Profile, experiment: Experiment) -> Iterator[list[Any]]:
        """Yield predicted reports lazily: most profiles are ruled out by the first."""
        key = (profile, id(experiment))
        if key not in self._known:
            self._known[key] = [], self._simulated(profile, experiment)
        found, later = self._known[key]
        yield from found
        for report in later:
            found.append(report)
            yield report

    def _simulated(self, profile: Profile, experiment: Experiment) -> Iterator[list[Any]]:
        size, slide, _ = experiment
        running = Simulation(profile, size, slide)
        for each in self._pushed(experiment):
            for report in running.push(each):
                yield ordered(report.values)

    def _pushed(self, experiment: Experiment) -> list[Tuple]:
        """Return what an engine is given: the same list each time for an experiment, which all profiles are asked of in turn."""
        if self._last is not experiment:
            size, slide, tuples = experiment
            self._last, self._given = experiment, ended(tuples, size, slide) if self.ends else tuples
        return self._given


@cache
def _candidates() -> tuple[Profile, ...]:
    """Return all settings, the best known first."""
    known = (CORAL8, STREAM, STREAMBASE)
    starts: list[T0] = [
        *(Grid(shift) for shift in (-1, 0, -2, 1)),
        *(Grid(shift, whole=False) for shift in (-1, 0)),
        *(FromFirst(shift) for shift in (0, -1, 1)),
        *(FromFirst(shift, whole=False) for shift in (-1, 0)),
        At(0),
        At(-1),
    ]
    on = (False, True)
    reports = [Report(change, close, full, n) for change in on for close in on for full in on for n in (1, 2, 3)]
    made = (Profile("", start, report, tick, scope) for scope, report, tick, start in product(Scope, reports, Tick, starts))
    unnamed = [replace(each, name="") for each in known]
    return (*known, *(each for each in made if each not in unnamed))


def _information(experiment: Experiment) -> tuple[int, int]:
    """Return how informative an experiment is: how often a tuple expires while the next one stays, and its length."""
    size, _, tuples = experiment
    return sum(0 < after.t_app - before.t_app < size for before, after in pairwise(tuples)), len(tuples)


def _named(left: Sequence[Profile], name: str) -> Profile | None:
    """Return the first of the settings, under the name of an engine that has them."""
    return replace(left[0], name=left[0].name or name) if left else None


def _aggregate_of(values: Values, contents: list[Any]) -> Any:
    """Return an aggregate of contents; None for empty contents of which it has no value, as for the mean."""
    if contents:
        return values(contents)
    try:
        return values(contents)
    except Exception:
        return None


def _equal(output: Any, expected: Any) -> bool:
    if isinstance(output, float) and isinstance(expected, (int, float)):
        return abs(output - expected) <= 1e-9 * max(1.0, abs(expected))
    return bool(output == expected)


def _setting_text(setting: Any) -> str:
    if isinstance(setting, (Tick, Scope)):
        return str(setting.value)
    return str(getattr(setting, "formula", setting))
