"""What a kind of window is: which windows lifetimes make, and which events belong to one (paper 001, II.E and III.B)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from streamdsl.temporal.cht import Row
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY
from streamdsl.windows.policies import Output

R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Windows:
    """The base of all window kinds: frozen values, compared by their settings."""

    @property
    def by_position(self) -> bool:
        """Whether the order of simultaneous rows can count."""
        return False

    @property
    def by_clock(self) -> bool:
        """Whether no row decides when windows are, and which rows a window has depends on each by itself."""
        return False

    def check_use(self, output: Output, sensitive: Sequence[str] = ()) -> None:
        """Raise `QueryError` where an output policy, or time-sensitive modules (by name), mean nothing over these windows."""

    @abstractmethod
    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty windows with RE <= `until` that these lifetimes make, in order.

        Raises `UnboundedOutputError` where there would be infinitely many.
        """

    def belongs(self, life: Lifetime, window: Lifetime) -> bool:
        """Say whether an event belongs to a window: their periods overlap. An empty lifetime belongs to none."""
        return not life.is_empty and life.le < window.re and window.le < life.re

    def divide(self, rows: Iterable[R], until: int = INFINITY) -> list[tuple[Lifetime, list[R]]]:
        """Return each non-empty window with RE <= `until` and the rows that belong to it, both in order."""
        alive = [(row, Lifetime(row.le, row.re)) for row in rows]
        windows = self.over([life for _, life in alive], until)
        return [(window, [row for row, life in alive if self.belongs(life, window)]) for window in windows]

    @abstractmethod
    def describe(self) -> str:
        """Return the kind and its settings as `explain()` shows them."""
