"""The engine under inference as a black box."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.papers.secret.profile_trace import Trace
from streamdsl.papers.secret.tuples import Tuple
from streamdsl.temporal.payload import payload_order

Engine: TypeAlias = Callable[..., Any]
"""`engine(size, slide, tuples)` gives the outputs, in order: of each report its values, or an aggregate of them."""
Experiment: TypeAlias = tuple[int, int, list[Tuple]]
"""One experiment: size, slide and input."""


class BlackBox:
    """An engine that runs each experiment once, and caches the outputs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers: dict[int, list[Any]] = {}

    def __call__(self, experiment: Experiment) -> list[Any]:
        if id(experiment) not in self._answers:
            self._answers[id(experiment)] = _answer(self._engine, *experiment)
        return self._answers[id(experiment)]


def _answer(engine: Engine, size: int, slide: int, tuples: list[Tuple]) -> list[Any]:
    found = _call(engine, size, slide, [tuple(each) for each in tuples])
    outputs = found.outputs if isinstance(found, Trace) else found
    if not isinstance(outputs, Iterable) or isinstance(outputs, (str, bytes)):
        raise QueryError(f"an engine gives its outputs as a list, not {outputs!r}", hint="one for each report, in order")
    return [ordered(each) if isinstance(each, (list, tuple, set, frozenset)) else each for each in outputs]


def _call(engine: Engine, size: int, slide: int, tuples: list[Any]) -> Any:
    """Run an engine; its parameters may be in any order if two of them are called size and slide."""
    try:
        names = list(inspect.signature(engine).parameters)
    except (TypeError, ValueError):
        names = []
    if {"size", "slide"} <= set(names):
        other = next((name for name in names if name not in ("size", "slide")), "tuples")
        return engine(**{"size": size, "slide": slide, other: tuples})
    return engine(tuples) if len(names) == 1 else engine(size, slide, tuples)


def ordered(values: Iterable[Any]) -> list[Any]:
    """Return values in a canonical order."""
    listed = list(values)
    try:
        return sorted(listed)
    except TypeError:
        return sorted(listed, key=payload_order)
