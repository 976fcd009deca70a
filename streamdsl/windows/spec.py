"""The base of window kinds: which windows lifetimes define, and which events belong to one (paper 001, II.E and III.B)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from streamdsl.temporal.cht import Row
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, Unit
from streamdsl.windows.policies import Output

R = TypeVar("R", bound=Row)
ALL_TIME: Final = 2**64
"""A duration longer than any window."""


class Ends(Enum):
    """Whether windows with rows certainly end."""

    ALWAYS = "each ends, whatever becomes of its rows"
    WITH_ROWS = "a window with a row that never ends may have no end"
    NEVER = "the last window has no end"


@dataclass(frozen=True, slots=True)
class Windows(ABC):
    """The base of all window kinds: frozen values, compared by their settings.

    The properties below are the facts that plan, checks and optimizer read. A fact of which either value could be wrong is
    abstract, so that each kind states it; a fact that only permits something defaults to "not permitted". Laws compare each fact
    with the actual windows (tests/laws/test_facts.py).
    """

    @property
    def kind(self) -> str:
        """The name of the kind, by which the engine finds its frame: that of its module, unless the kind says another."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def time_unit(self) -> Unit | None:
        """The unit that the stream must have, None for any."""
        return None

    @property
    def by_position(self) -> bool:
        """Whether the order of simultaneous rows can affect windows."""
        return False

    @property
    def by_clock(self) -> bool:
        """Whether window periods do not depend on rows, and a row's membership does not depend on other rows."""
        return False

    @property
    def fixed_size(self) -> int | None:
        """The duration of each window, None if durations may differ."""
        return None

    @property
    def longest(self) -> int:
        """An upper bound of the duration of a window."""
        return ALL_TIME

    @property
    def least_hop(self) -> int:
        """A lower bound of the average duration from one window's start to the next one's, of windows that do not overlap."""
        return self.longest

    @property
    def are_apart(self) -> bool:
        """Whether no two windows of the same rows overlap."""
        return False

    @property
    @abstractmethod
    def ends(self) -> Ends:
        """Whether windows with rows certainly end."""

    @property
    @abstractmethod
    def ends_count(self) -> bool:
        """Whether the windows of a row depend on its end."""

    @property
    @abstractmethod
    def completed_by_rows(self) -> bool:
        """Whether a row that starts after all members of a window may cut or complete the window."""

    @property
    def follows_ctis(self) -> bool:
        """Whether the output CTI is a function of the input CTI alone, and of no row, if no module sees ends."""
        return False

    @abstractmethod
    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """Return the time before which no result aligned to its window changes after `Cti(c)`: the rule of liveliness.

        `lives` are the lifetimes of the input's rows; `reads_re` is whether some module sees ends beyond its window.
        """

    @property
    @abstractmethod
    def horizon(self) -> int:
        """A duration at least as long as each setting, for checks that need a period that is long for these windows."""

    @abstractmethod
    def fewest(self) -> Windows:
        """Return windows of this kind whose CTI is held back by the same inputs, with settings that give few windows."""

    def bounded(self) -> Iterator[tuple[str, Windows]]:
        """Yield settings that bound windows of unlimited length, as a query writes them, each with the resulting windows."""
        yield from ()

    def check_use(self, output: Output, sensitive: Sequence[str] = ()) -> None:
        """Raise `QueryError` if an output policy, or time-sensitive modules (by name), cannot be used with these windows."""

    @abstractmethod
    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty windows of these lifetimes with RE <= `until`, in order.

        Raises `UnboundedOutputError` if there are infinitely many.
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
    def describe(self, unit: Unit | None = None) -> str:
        """Return the kind and its settings as `explain()` shows them."""


def closed(windows: Windows, window: Lifetime, lifetimes: Iterable[Lifetime], reads_re: bool, c: int) -> bool:
    """Say whether no change after Cti(c) affects a window's result: W.RE <= c and, if the module reads REs, all REs < c.

    >>> from streamdsl.windows import Hopping
    >>> closed(Hopping(10, 10), Lifetime(0, 10), [Lifetime(3, 17)], True, 17)
    False
    """
    return window.re <= c and not (reads_re and any(life.re >= c for life in lifetimes if windows.belongs(life, window)))


def open_starts(windows: Windows, lives: Sequence[Lifetime], reads_re: bool, c: int) -> list[int]:
    """Return the LEs of the windows that end by `c` and are not closed."""
    return [w.le for w in windows.over(lives, until=c) if not closed(windows, w, lives, reads_re, c)]


def first_with_open_end(windows: Windows, lives: Sequence[Lifetime], c: int) -> int:
    """Return the LE of the first window with a member whose end may still change, `c` if there is none."""
    open_lives = [life for life in lives if life.re >= c]
    return min((w.le for w in windows.over(lives) if any(windows.belongs(life, w) for life in open_lives)), default=c)
