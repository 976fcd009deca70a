"""What a kind of window is: which windows lifetimes make, and which events belong to one (paper 001, II.E and III.B)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY


@dataclass(frozen=True, slots=True)
class Windows:
    """The base of all window kinds: frozen values, compared by their settings."""

    @abstractmethod
    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty windows with RE <= `until` that these lifetimes make, in order.

        Raises `UnboundedOutputError` where there would be infinitely many.
        """

    def belongs(self, life: Lifetime, window: Lifetime) -> bool:
        """Say whether an event belongs to a window: their periods overlap. An empty lifetime belongs to none."""
        return not life.is_empty and life.le < window.re and window.le < life.re

    @abstractmethod
    def describe(self) -> str:
        """Return the kind and its settings as `explain()` shows them."""
