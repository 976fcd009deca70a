"""`given` and `Random` for laws that are tried on seeds: hypothesis makes the choices fewer and smaller with which one fails.

An example follows from its seed, so that all are unlike one another and cost nothing to draw. When one fails, what the law has
chosen becomes a row of integers, which hypothesis shrinks as if it had drawn them one by one.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import hypothesis
from hypothesis import Phase, settings
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import HypothesisException, NoSuchExample
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
Law: TypeAlias = Callable[..., Any]
Choose: TypeAlias = Callable[[int], int]
"""What gives an integer of so many bits."""

SHRINKS: Final = os.environ.get("LAW_SHRINK") != "0"
"""Whether what fails is made small; `tests/sabotage.py` asks only whether it fails."""
SHRINKING: Final = [Phase.explicit, Phase.generate, *([Phase.shrink] if SHRINKS else [])]
"""For laws whose examples hypothesis draws itself."""
_SECONDS: Final = 60.0
_KEY: Final = b"choices"
_REUSE = settings(database=None, deadline=None, phases=[Phase.reuse, Phase.shrink])


class Random(random.Random):
    """Numbers that follow from a seed; where a law that failed is run again, they are recorded, or hypothesis chooses them."""

    chooser: ClassVar[Callable[[random.Random], Choose] | None] = None
    shrinks: ClassVar[bool] = False
    """Whether it is asked only whether a law fails: what is raised is not shown."""

    def __new__(cls, seed: int | str) -> Random:
        return super().__new__(_Chosen if Random.chooser is not None and cls is Random else cls)


class _Chosen(Random):
    """Numbers made of integers that are chosen one by one. Where all are 0, each choice is the first one."""

    def __init__(self, seed: int | str) -> None:
        assert Random.chooser is not None
        self._choose = Random.chooser(random.Random(seed))

    def getrandbits(self, k: int, /) -> int:
        return self._choose(k)

    def random(self) -> float:
        return self._choose(53) / 2**53


@contextmanager
def _choosing(chooser: Callable[[random.Random], Choose]) -> Iterator[None]:
    Random.chooser = chooser
    try:
        yield
    finally:
        Random.chooser = None


@contextmanager
def _asking() -> Iterator[None]:
    Random.shrinks = SHRINKS
    try:
        yield
    finally:
        Random.shrinks = False


class _Failure:
    """A law that fails with some arguments, and the choices with which it does."""

    def __init__(self, law: Callable[[], Any], error: Exception) -> None:
        self._law = law
        self._kind = type(error)
        self.choices = self._recorded()

    def _recorded(self) -> list[int]:
        choices: list[int] = []

        def recorder(numbers: random.Random) -> Choose:
            def choose(k: int) -> int:
                choices.append(numbers.getrandbits(k) if k != 53 else int(numbers.random() * 2**53))
                return choices[-1]

            return choose

        self._fails(recorder)
        return choices

    def _fails(self, chooser: Callable[[random.Random], Choose]) -> bool:
        try:
            with _choosing(chooser), _asking():
                self._law()
        except HypothesisException:
            raise
        except Exception as error:
            return type(error) is self._kind
        return False

    def shrink(self) -> None:
        """Let hypothesis find fewer and smaller choices with which the law fails in the same way."""
        database = InMemoryExampleDatabase()
        # One more than are drawn: what is found again exactly is taken for what was made small before.
        database.save(_KEY, choices_to_bytes([*self.choices, 0]))
        end = time.monotonic() + _SECONDS

        def fails(data: ConjectureData) -> bool:
            if time.monotonic() > end:
                raise _Enough
            choices: list[int] = []

            def choose(k: int) -> int:
                choices.append(data.draw_integer(0, 2**k - 1))
                return choices[-1]

            found = self._fails(lambda _: choose)
            if found and _size(choices) < _size(self.choices):
                self.choices = choices
            return found

        with suppress(_Enough, NoSuchExample):
            hypothesis.find(_Data(), fails, settings=settings(_REUSE, database=database), database_key=_KEY)

    def again(self) -> None:
        """Run the law with the choices, and zeros after them."""
        left = iter(self.choices)
        with _choosing(lambda _: lambda k: next(left, 0) & (1 << k) - 1):
            self._law()


class _Enough(BaseException):
    """The time is over."""


class _Data(SearchStrategy[ConjectureData]):
    """What hypothesis draws from: choices are drawn in the law itself, one by one."""

    def do_draw(self, data: ConjectureData) -> ConjectureData:
        return data


def shown(drawn: T) -> T:
    """Return what was drawn, which is shown where the law fails."""
    if hypothesis.currently_in_test_context() and not Random.shrinks:
        hypothesis.note(str(drawn))
    return drawn


def _size(choices: Sequence[int]) -> tuple[int, Sequence[int]]:
    return len(choices), choices


def given(*drawn: Any, **named: Any) -> Callable[[Law], Law]:
    """Do what `hypothesis.given` does; what fails is shown with the smallest choices of `Random` that are found."""

    def decorated(law: Law) -> Law:
        failures: dict[str, _Failure] = {}

        @wraps(law)
        def attempt(*args: Any, **options: Any) -> None:
            key = repr((args, options))
            try:
                if key not in failures:
                    with _asking():
                        law(*args, **options)
            except Exception as error:
                if not SHRINKS or isinstance(error, HypothesisException):
                    raise
                failures[key] = _Failure(lambda: law(*args, **options), error)
                failures[key].shrink()
            if key in failures:
                failures[key].again()
                law(*args, **options)  # it fails only with its seed

        tried: Any = hypothesis.given(*drawn, **named)
        return tried(attempt)  # type: ignore[no-any-return]

    return decorated
