"""Which settings explain an engine that can only be run (paper 000, B.3)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean
from typing import Any, Final, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.secret.profile import CORAL8, STREAM, STREAMBASE, T0, Profile, Report, Tick
from streamdsl.secret.scope import Scope
from streamdsl.secret.search import ended, some
from streamdsl.secret.start import At, FromFirst, Grid
from streamdsl.secret.trace import Trace, simulate
from streamdsl.secret.tuples import Tuple
from streamdsl.secret.values import evaluator

Engine: TypeAlias = Callable[..., Any]
"""`engine(size, slide, tuples)` gives the outputs, in order: of each report its values, or an aggregate of them."""
WINDOWS: Final = ((5, 1), (5, 2), (3, 3))
"""A slide of one time unit, a longer one, and tumbling windows."""
INPUTS: Final = 24
"""Inputs from which those are chosen that tell the remaining settings apart."""
Asked: TypeAlias = tuple[int, int, list[Tuple]]
"""Size, slide and input of one run."""
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
    inputs: Sequence[Sequence[Tuple]] | None = None,
    ended: bool | None = None,
    name: str = "inferred",
) -> Inferred:
    """Find the settings that explain an engine: `black_box(size, slide, tuples)` runs it, and gives its outputs in order.

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
    if not windows:
        raise QueryError("without a window nothing can be inferred", hint="infer(engine, windows=[(5, 1), (3, 3)])")
    found = _Trials(black_box, windows, aggregate, inputs, bool(ended)).run(name)
    if found or ended is not None:
        return found
    other = _Trials(black_box, windows, aggregate, inputs, True).run(name)
    return max(found, other, key=lambda each: (bool(each), len(each.witnesses)))


class _Trials:
    """The engine's answers so far, and the settings that explain them."""

    def __init__(
        self,
        engine: Engine,
        windows: Sequence[tuple[int, int]],
        aggregate: Any,
        inputs: Sequence[Sequence[Tuple]] | None,
        ends: bool,
    ) -> None:
        self._engine, self._ends = engine, ends
        self._aggregate = None if aggregate is None else evaluator(aggregate)
        self._pool = [
            (size, slide, list(each)) for size, slide in windows for each in (inputs or reversed(some(size, slide, INPUTS)))
        ]
        self._witnesses: list[Witness] = []
        self._predicted: dict[tuple[Profile, int, int, int], list[list[Any]]] = {}

    def run(self, name: str) -> Inferred:
        left = list(_candidates())
        while True:
            chosen, left_inputs = self._best(left)
            if chosen is None:
                best = _named(left, name)
                return Inferred(best, left, self._witnesses, None, self._ends)
            outputs = _answer(self._engine, *chosen)
            kept = [each for each in left if self._fits(outputs, self._predict(each, *chosen))]
            self._note(chosen, outputs, left, kept)
            if not kept:
                return Inferred(None, [], self._witnesses, _named(left, "these"), self._ends)
            left, self._pool = kept, left_inputs

    def _best(self, left: list[Profile]) -> tuple[Asked | None, list[Asked]]:
        """Return the input that splits the settings into the most parts, and the other ones that may still split them."""
        if not self._witnesses:
            return self._pool[0], self._pool[1:]
        if len(left) > 200:
            chosen = max(self._pool[::10] or self._pool, key=lambda each: len(each[2]), default=None)
            return chosen, [each for each in self._pool if each is not chosen]
        parts = [(len({repr(self._predict(each, *given)) for each in left}), given) for given in self._pool]
        open_ = [(count, given) for count, given in parts if count > 1]
        if not open_ and self._unsure:
            open_ = parts[:6]
            self._unsure = False
        if not open_:
            return None, []
        _, chosen = max(open_, key=lambda each: each[0])
        return chosen, [given for _, given in parts if given is not chosen]

    _unsure = True
    """Settings that cannot be told apart are tried on some inputs more: all of them may be wrong."""

    def _predict(self, profile: Profile, size: int, slide: int, tuples: list[Tuple]) -> list[list[Any]]:
        asked = (profile, size, slide, id(tuples))
        if asked not in self._predicted:
            given = ended(tuples, size, slide) if self._ends else tuples
            self._predicted[asked] = [sorted(report.values) for report in simulate(profile, size, slide, given).reports]
        return self._predicted[asked]

    def _fits(self, outputs: list[Any], predicted: list[list[Any]]) -> bool:
        if len(outputs) != len(predicted):
            return False
        if self._aggregate is None:
            self._aggregate = _guess(outputs, predicted)
        apply = self._aggregate or list
        return all(_equal(output, apply(values)) for output, values in zip(outputs, predicted, strict=True))

    def _note(self, chosen: Asked, outputs: list[Any], left: list[Profile], kept: list[Profile]) -> None:
        if len(kept) < len(left) or not self._witnesses:
            apply = self._aggregate or list
            expected = [apply(values) for values in self._predict(_named(left, "") or left[0], *chosen)]
            self._witnesses.append(Witness(*chosen, outputs, expected))


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


def _answer(engine: Engine, size: int, slide: int, tuples: list[Tuple]) -> list[Any]:
    """Run an engine; its parameters may be in any order if they are called size, slide and tuples."""
    named = {"size": size, "slide": slide, "tuples": [tuple(each) for each in tuples]}
    try:
        names = list(inspect.signature(engine).parameters)
    except (TypeError, ValueError):
        names = []
    found = engine(**named) if named.keys() <= set(names) else engine(*named.values())
    outputs = found.outputs if isinstance(found, Trace) else found
    return [sorted(each) if isinstance(each, (list, tuple, set, frozenset)) else each for each in outputs]


def _guess(outputs: list[Any], predicted: list[list[Any]]) -> Callable[[list[Any]], Any] | None:
    """Return the aggregate that explains outputs which are no lists; None where there is none such."""
    if all(isinstance(each, list) for each in outputs):
        return None
    pairs = [(out, values) for out, values in zip(outputs, predicted, strict=True) if values]
    for function in (sum, mean, len, max, min):
        if len({len(values) for _, values in pairs}) > 1 and all(_equal(out, function(values)) for out, values in pairs):
            return function
    return None


def _equal(output: Any, expected: Any) -> bool:
    if isinstance(output, float) and isinstance(expected, (int, float)):
        return abs(output - expected) <= 1e-9 * max(1.0, abs(expected))
    return bool(output == expected)


def _shown(setting: Any) -> str:
    if isinstance(setting, (Tick, Scope)):
        return str(setting.value)
    return str(getattr(setting, "formula", setting))
