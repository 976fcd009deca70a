"""All that is wrong with a job, said at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from streamdsl.errors import QueryError

P = ParamSpec("P")
T = TypeVar("T")


class Mistakes:
    """Collects refusals, so that whoever has made several mistakes hears of them in one run.

    >>> mistakes = Mistakes()
    >>> mistakes.note([QueryError("there is no source 'trip'"), QueryError("no input", hint="--input trips=path")])
    >>> mistakes.refuse()
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: 2 mistakes:
    - there is no source 'trip'
    - no input
      Hint: --input trips=path
    """

    def __init__(self) -> None:
        self._found: list[QueryError] = []

    def note(self, mistakes: Iterable[QueryError]) -> None:
        """Collect refusals."""
        self._found += mistakes

    def of(self, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what a call gives; None where it refuses, which is collected."""
        try:
            return ask(*args, **kwargs)
        except QueryError as error:
            self._found.append(error)
            return None

    def refuse(self) -> None:
        """Raise what was collected: one refusal as it is, several as a list; nothing if there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            listed = [f"- {error}".replace("\n", "\n  ") for error in self._found]
            raise QueryError("\n".join([f"{len(listed)} mistakes:", *listed]))
