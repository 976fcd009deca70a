"""Rows that pass by those that have passed: with a minimal distance in time from the last one, or only the first."""

from __future__ import annotations

from typing import Any, ClassVar

from streamdsl.errors import QueryError
from streamdsl.udm.stream_operator import Sieve


class Throttle(Sieve[int | None]):
    """A row passes if its LE is at least `period` after that of the last row that passed, which is the state.

    Rows come in order of (LE, payload, RE), and `period` is positive: of those with the same LE only the first can pass.

    >>> throttle = Throttle(5)
    >>> throttle.process(None, "a", 3), throttle.process(3, "b", 7), throttle.process(3, "c", 8)
    ((3, ['a']), (3, []), (8, ['c']))
    """

    called: ClassVar[str] = "throttle"
    example: ClassVar[str] = 'throttle("5s", key="id")'

    def __init__(self, period: int) -> None:
        if period <= 0:
            raise QueryError(f"{self.called} takes a positive period, not {period}", hint=f"for example {self.example}")
        self.period = period

    @property
    def label(self) -> str:
        return f"{self.called}({self.period})"

    def create_state(self) -> int | None:
        """Return None: no row has passed."""
        return None

    def passes(self, state: int | None, payload: Any, le: int) -> tuple[int | None, bool]:
        """Return the LE of the last row that has passed, and whether that is this row."""
        return (le, True) if state is None or le - state >= self.period else (state, False)

    def copy_state(self, state: int | None) -> int | None:
        """Return the state itself, which is immutable."""
        return state

    def fresh_from(self, state: int | None) -> int | None:
        """Return the first LE of which every row passes."""
        return None if state is None else state + self.period

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Throttle) and (type(self), self.period) == (type(other), other.period)

    def __hash__(self) -> int:
        return hash(self.period)


class Unrepeated(Throttle):
    """`Throttle` for duplicates: a row passes unless the last one that passed is less than `period` before it."""

    called: ClassVar[str] = "drop_duplicates"
    example: ClassVar[str] = 'drop_duplicates("id", within="5s")'


class OnlyFirst(Sieve[bool]):
    """The first row passes; the state is whether it has.

    >>> first = OnlyFirst()
    >>> first.process(False, "a", 3), first.process(True, "b", 7)
    ((True, ['a']), (True, []))
    """

    for_kept_states: ClassVar[str] = "say how long a duplicate may be behind the row it repeats: drop_duplicates(key, within=...)"

    @property
    def label(self) -> str:
        return "drop_duplicates()"

    def create_state(self) -> bool:
        """Return False: no row has passed."""
        return False

    def passes(self, state: bool, payload: Any, le: int) -> tuple[bool, bool]:
        """Return True, for then a row has passed, and whether that is this one."""
        return True, not state

    def copy_state(self, state: bool) -> bool:
        """Return the state itself, which is immutable."""
        return state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnlyFirst)

    def __hash__(self) -> int:
        return hash(OnlyFirst)
