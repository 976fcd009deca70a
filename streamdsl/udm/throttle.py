"""Throttling: rows with a minimal distance in time from the last row that passed."""

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

    for_kept_states: ClassVar[str] = "group by a key that has few values"

    def __init__(self, period: int) -> None:
        if period <= 0:
            raise QueryError(f"throttle takes a positive period, not {period}", hint='for example throttle("5s", key="id")')
        self.period = period

    @property
    def label(self) -> str:
        return f"throttle({self.period})"

    def create_state(self) -> int | None:
        """Return None: no row has passed."""
        return None

    def passes(self, state: int | None, payload: Any, le: int) -> tuple[int | None, bool]:
        """Return the LE of the last row that has passed, and whether that is this row."""
        return (le, True) if state is None or le - state >= self.period else (state, False)

    def copy_state(self, state: int | None) -> int | None:
        """Return the state itself, which is immutable."""
        return state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Throttle) and self.period == other.period

    def __hash__(self) -> int:
        return hash(self.period)
