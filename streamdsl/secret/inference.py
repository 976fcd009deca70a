"""Which settings explain an engine that can only be run (paper 000, B.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.secret.asking import Asked, Asking, Engine, ordered
from streamdsl.secret.profile import CORAL8, STREAM, STREAMBASE, T0, Profile, Report, Tick
from streamdsl.secret.scope import Scope, check_window
from streamdsl.secret.search import ended, some
from streamdsl.secret.simulation import Simulation
from streamdsl.secret.start import At, FromFirst, Grid
from streamdsl.secret.trace import simulate
from streamdsl.secret.tuples import Given, Tuple, read
from streamdsl.secret.values import Values, evaluator

WINDOWS: Final = ((5, 1), (5, 2), (3, 3))
"""A slide of one time unit, a longer one, and tumbling windows."""
INPUTS: Final = 24
"""Inputs from which those are chosen that tell the remaining settings apart."""
FEW: Final = 30
MANY: Final = 300
"""Of few settings all inputs are looked at, of many none: then any input rules most of them out."""
AGGREGATES: Final[tuple[Values, ...]] = (sum, mean, len, max, min)
"""What outputs that are no lists may be."""
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
    inputs that ruled settings out; without an explanation the last one shows what `nearest` fails at. `ended`: the engine
    reports what is left when its input ends.
    """

    profile: Profile | None
    candidates: list[Profile]
    witnesses: list[Witness]
    nearest: Profile | None = None
    ended: bool = False

    def __bool__(self) -> bool:
        return self.profile is not None

    @property
    def undetermined(self) -> dict[str, list[str]]:
        """What the inputs could not tell, by setting.

        >>> from functools import partial
        >>> from streamdsl.secret import STREAMBASE
        >>> infer(partial(simulate, STREAMBASE), [(2, 1)]).undetermined["tick"]
        ['tuple', 'time', 'batch']
        """
        ways = {name: list(dict.fromkeys(_shown(getattr(each, name)) for each in self.candidates)) for name in DETAILS}
        return {name: found for name, found in ways.items() if len(found) > 1}

    def __repr__(self) -> str:
        if self.profile is None:
            last = self.witnesses[-1]
            given = [tuple(each) for each in last.tuples]
            return (
                f"no settings explain it; the nearest are {self.nearest}\n  size {last.size}, slide {last.slide}, input {given}\n"
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
    other, each so that it tells the remaining settings apart best, until none does. `ended`: whether the engine reports what is
    left when its input ends; both are tried.

    >>> from functools import partial
    >>> from streamdsl.secret import CORAL8
    >>> infer(partial(simulate, CORAL8), [(3, 1)]).profile == CORAL8
    True
    >>> print(infer(lambda size, slide, tuples: [[value] for value, *_ in tuples], [(3, 1)]).profile)
    None
    """
    if not callable(black_box):
        raise QueryError(
            f"{black_box!r} cannot be run", hint="infer(engine), where engine(size, slide, tuples) gives the outputs"
        )
    ask = Asking(black_box)
    given = None if inputs is None else [read(each) for each in inputs]
    pool = [(size, slide, each) for size, slide in _checked(windows) for each in (given or reversed(some(size, slide, INPUTS)))]
    values = None if aggregate is None else evaluator(aggregate)
    found = _Trials(ask, pool, values, bool(ended)).run(name)
    if found or ended is not None:
        return found
    other = _Trials(ask, pool, values, True).run(name)
    return max(found, other, key=lambda each: (bool(each), len(each.witnesses)))


def _checked(windows: object) -> list[tuple[int, int]]:
    """Return the sizes and slides that are tried; raises `QueryError` for what is none."""
    listed = list(windows) if isinstance(windows, Iterable) else []
    if not listed or not all(isinstance(each, Sequence) and len(each) == 2 for each in listed):
        hint = "infer(engine, windows=[(5, 1), (3, 3)])"
        raise QueryError(f"the windows of an engine are pairs of size and slide, not {windows!r}", hint=hint)
    for size, slide in listed:
        check_window(size, slide)
    return [(size, slide) for size, slide in listed]


class _Trials:
    """The engine's answers so far, and the settings that explain them."""

    def __init__(self, ask: Callable[[Asked], list[Any]], pool: list[Asked], values: Values | None, ends: bool) -> None:
        self._ask, self._pool, self._values, self._ends = ask, pool, values, ends
        self._unconfirmed = list(dict.fromkeys(each[:2] for each in pool))
        self._witnesses: list[Witness] = []
        self._predicted: dict[tuple[Profile, int, int, int], list[list[Any]]] = {}

    def run(self, name: str) -> Inferred:
        left = list(_candidates())
        while (asked := self._next(left)) is not None:
            self._pool = [each for each in self._pool if each is not asked]
            outputs = self._ask(asked)
            kept = self._kept(left, asked, outputs)
            if len(kept) < len(left) or not self._witnesses:
                self._witnesses.append(Witness(*asked, outputs, self._expected(left[0], asked)))
            if not kept:
                return Inferred(None, [], self._witnesses, _named(left, "these"), self._ends)
            left = kept
        return Inferred(_named(left, name), left, self._witnesses, None, self._ends)

    def _next(self, left: list[Profile]) -> Asked | None:
        """Return the input that splits the settings into the most parts; None if none does, and each window has been tried."""
        few = self._pool if len(left) <= FEW else self._pool[:: max(1, len(self._pool) // 6)]
        if self._witnesses and len(left) <= MANY:
            for looked in (few, self._pool):
                parts = [(len({repr(self._predict(each, asked)) for each in left}), asked) for asked in looked]
                most, chosen = max(parts, key=lambda each: each[0], default=(0, None))
                if most > 1:
                    return chosen
        elif few:
            return few[0]
        return self._confirming()

    def _confirming(self) -> Asked | None:
        """Return an input of a window that has not been tried: settings that cannot be told apart may all be wrong."""
        tried = {(each.size, each.slide) for each in self._witnesses}
        self._unconfirmed = [each for each in self._unconfirmed if each not in tried]
        if not self._unconfirmed:
            return None
        window = self._unconfirmed.pop(0)
        return next((asked for asked in self._pool if asked[:2] == window), None)

    def _kept(self, left: list[Profile], asked: Asked, outputs: list[Any]) -> list[Profile]:
        """Return the settings that explain an answer; the aggregate is the first one with which some do."""
        if self._values is not None or all(isinstance(each, list) for each in outputs):
            return [each for each in left if self._explains(each, asked, outputs, self._values or list)]
        for values in AGGREGATES:
            kept = [each for each in left if self._explains(each, asked, outputs, values)]
            if kept:
                self._values = values
                return kept
        return []

    def _explains(self, profile: Profile, asked: Asked, outputs: list[Any], values: Values) -> bool:
        """Say whether settings give an answer, report by report; most are wrong from the start."""
        size, slide, _ = asked
        running, place = Simulation(profile, size, slide), 0
        for each in self._given(asked):
            for report in running.push(each):
                if place == len(outputs) or not _equal(outputs[place], _valued(values, ordered(report.values))):
                    return False
                place += 1
        return place == len(outputs)

    def _predict(self, profile: Profile, asked: Asked) -> list[list[Any]]:
        size, slide, tuples = asked
        key = (profile, size, slide, id(tuples))
        if key not in self._predicted:
            reports = simulate(profile, size, slide, self._given(asked)).reports
            self._predicted[key] = [ordered(report.values) for report in reports]
        return self._predicted[key]

    def _given(self, asked: Asked) -> list[Tuple]:
        size, slide, tuples = asked
        return ended(tuples, size, slide) if self._ends else tuples

    def _expected(self, profile: Profile, asked: Asked) -> list[Any]:
        return [_valued(self._values or list, contents) for contents in self._predict(profile, asked)]


def _candidates() -> Iterator[Profile]:
    """Yield all settings, the best known first."""
    known = (CORAL8, STREAM, STREAMBASE)
    yield from known
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
    for scope, report, tick, start in product(Scope, reports, Tick, starts):
        made = Profile("", start, report, tick, scope)
        if not any(replace(each, name="") == made for each in known):
            yield made


def _named(left: Sequence[Profile], name: str) -> Profile | None:
    """Return the first of the settings, under the name of an engine that has them."""
    return replace(left[0], name=left[0].name or name) if left else None


def _valued(values: Values, contents: list[Any]) -> Any:
    """Return an aggregate; None of nothing where it has no value for that, as the mean has none."""
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


def _shown(setting: Any) -> str:
    if isinstance(setting, (Tick, Scope)):
        return str(setting.value)
    return str(getattr(setting, "formula", setting))
