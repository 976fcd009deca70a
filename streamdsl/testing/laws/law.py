"""Laws: a check that raises `Breach` on an example that violates it, with the conditions under which it applies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TypeAlias

from streamdsl.testing.examples import long_examples, rows_examples, stream_examples, window_examples
from streamdsl.testing.laws.trials import Breach, RowsTrial, StreamTrial, WindowTrial
from streamdsl.testing.subject import Subject

_ROUNDS: Final = 200
"""The most rounds of shrinking."""
_TRIES: Final = 4
"""The number of seeds that a smaller example is tried with."""
_WORK: Final = 30_000
"""The most rows that shrinking may try in all."""
Condition: TypeAlias = Callable[[Subject], str | None]
"""Why a law does not apply to a subject; None if it does."""
Check: TypeAlias = Callable[[Any], None]


@dataclass(frozen=True)
class Law:
    """A law of user-defined modules: its name and statement, its check, and how its examples are drawn."""

    name: str
    statement: str
    hint: str
    check: Check
    conditions: tuple[Condition, ...]
    trial: Callable[[Subject, Any], Any]
    draw: Callable[[Subject, Random, int, int], Iterable[Any]]
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


def on_windows(*conditions: Condition, hint: str, least: int = 1) -> Callable[[Callable[[WindowTrial], None]], Law]:
    """Make a law of a function that tries a module on the members of one window; the docstring is its statement."""
    return lambda check: _law(check, conditions, hint, WindowTrial, window_examples, least, 1.0)


def on_large_windows(*conditions: Condition, hint: str, share: float) -> Callable[[Callable[[WindowTrial], None]], Law]:
    """Make a law of a function that tries a module on windows of many members, `share` as many."""
    return lambda check: _law(check, conditions, hint, WindowTrial, long_examples, 1, share)


def on_rows(*conditions: Condition, hint: str, least: int = 1) -> Callable[[Callable[[RowsTrial], None]], Law]:
    """Make a law of a function that tries a stream operator on rows in order; the docstring is its statement."""
    return lambda check: _law(check, conditions, hint, RowsTrial, rows_examples, least, 1.0)


def on_streams(*conditions: Condition, hint: str, share: float = 1.5) -> Callable[[Callable[[StreamTrial], None]], Law]:
    """Make a law of a function that tries a module in a query over a stream, on `share` as many examples."""
    return lambda check: _law(check, conditions, hint, StreamTrial, stream_examples, 1, share)


def _law(check: Any, conditions: tuple[Condition, ...], hint: str, trial: Any, draw: Any, least: int, share: float) -> Law:
    statement = (inspect.getdoc(check) or "").splitlines()[0]
    return Law(check.__name__, statement, hint, check, conditions, trial, draw, least, share)
