"""Laws: a check that raises `Breach` on an example that violates it, with the conditions under which it applies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from streamdsl.testing.examples import long_examples, rows_examples, stream_examples, window_examples
from streamdsl.testing.laws.applicability import Condition
from streamdsl.testing.laws.trials import Breach, RowsTrial, StreamTrial, WindowTrial
from streamdsl.testing.subject import Subject

_ROUNDS: Final = 200
"""The most rounds of shrinking."""
_TRIES: Final = 4
"""The number of seeds that a smaller example is tried with."""
_WORK: Final = 30_000
"""The most rows that shrinking may try in all."""
Check: TypeAlias = Callable[[Any], None]
Draw: TypeAlias = Callable[[Subject, Random, int, int], Iterable[Any]]
"""Draws so many examples with at least so many rows."""
T = TypeVar("T")


@dataclass(frozen=True)
class Law:
    """A law of user-defined modules: its name and statement, its check, and how its examples are drawn."""

    name: str
    statement: str
    hint: str
    check: Check
    conditions: tuple[Condition, ...]
    trial: Callable[[Subject, Any], Any]
    draw: Draw
    least: int
    share: float

    def reason_to_skip(self, subject: Subject) -> str | None:
        """Return why the law does not apply, None if it does."""
        return next((reason for condition in self.conditions if (reason := condition(subject))), None)

    def examples(self, subject: Subject, seed: int, n: int) -> Sequence[Any]:
        """Return examples, small ones first, the same for all laws; `n` of them, or the law's share."""
        count = max(1, round(n * self.share))
        key = (self.draw, seed, count, self.least)
        return subject.once(key, lambda: list(self.draw(subject, Random(seed), count, self.least)))

    def breach(self, subject: Subject, example: Any) -> Breach | None:
        """Return the violation of the law on an example, or None."""
        trial = self.trial(subject, example)
        try:
            self.check(trial)
        except Breach as breach:
            return breach
        except Exception as error:
            failure: Breach = trial.failure(error)
            failure.__cause__ = error
            return failure
        return None

    def smallest(self, subject: Subject, example: Any, breach: Breach) -> Breach:
        """Return the violation of the smallest example that shrinking finds."""
        work = 0
        for _ in range(_ROUNDS):
            for candidate in self._smaller(example):
                broken = self.breach(subject, candidate) if work < _WORK else None
                work += len(candidate)
                if broken is not None:
                    example, breach = candidate, broken
                    break
            else:
                break
        return breach

    def _smaller(self, example: Any) -> Iterator[Any]:
        for found in example.smaller(self.least):
            yield from (replace(found, seed=seed) for seed in (found.seed, *range(_TRIES)))


def _law_on(trial: Callable[[Subject, Any], T], draw: Draw) -> Callable[..., Callable[[Callable[[T], None]], Law]]:
    """Return the decorator that makes laws of functions of a trial; a function's docstring is its statement."""

    def on(*conditions: Condition, hint: str, least: int = 1, share: float = 1.0) -> Callable[[Callable[[T], None]], Law]:
        def law(check: Callable[[T], None]) -> Law:
            statement = (inspect.getdoc(check) or "").splitlines()[0]
            return Law(check.__name__, statement, hint, check, conditions, trial, draw, least, share)

        return law

    return on


on_windows = _law_on(WindowTrial, window_examples)
"""Make a law of a function that tries a module on the members of one window, at least `least`."""
on_large_windows = _law_on(WindowTrial, long_examples)
"""Make a law of a function that tries a module on windows of many members, on `share` as many examples."""
on_rows = _law_on(RowsTrial, rows_examples)
"""Make a law of a function that tries a stream operator on rows in order, at least `least`."""
on_streams = _law_on(StreamTrial, stream_examples)
"""Make a law of a function that tries a module in a query over a stream, on `share` as many examples."""
