"""The windows of a sequence, instant by instant: which one is the last, and what is in it (paper 003, definitions 8 to 10)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from math import ceil, floor
from typing import Any

from streamdsl.temporal.time import INFINITY
from streamdsl.windows import Sequenced
from streamdsl.windows.sequence import endless
from streamdsl.windows.sequences.description import AnySequence
from streamdsl.windows.sequences.numbers import LAST, At, batch
from streamdsl.windows.sequences.seen import Prefix, Seen


class OrderedRows(Seen):
    """The rows of a partition by position; simultaneous rows are one batch."""

    @property
    @abstractmethod
    def last_id(self) -> Hashable:
        """The id of the last row."""

    @abstractmethod
    def position_from(self, time: int) -> int:
        """Return the first position of a row that does not start before a time."""

    def tau_inv(self, at: At) -> int:
        time, number = batch(at)
        return self.position_from(floor(time) + 1 if number >= 0 else ceil(time)) - 1

    def by(self, time: int) -> Seen:
        """Return what is seen at an instant."""
        return Prefix(self, self.tau_inv((time, LAST)))


def created(windows: Sequenced, rows: OrderedRows, start: int, held: bool, limit: int) -> Iterator[tuple[int, range]]:
    """Yield each instant from `start` on at which another window is the last one, and the positions in it.

    `held` says whether the window just before has rows. Raises `UnboundedOutputError` where all input has come, and windows with
    rows would be created for ever.
    """
    sequence = windows.sequence
    state, time = _state(sequence, start - 1, rows.by(start - 1)), start
    while time < INFINITY:
        seen = rows.by(time)
        now = _state(sequence, time, seen)
        if now != state:
            rank = sequence.rank((time, LAST), seen) if time >= seen.t0 else None
            positions = range(0) if rank is None else sequence.positions(rank, seen)
            state, held = now, bool(positions)
            yield time, positions
        time = _next(windows, rows, time, seen, held, limit)


def _state(sequence: AnySequence, time: int, seen: Seen) -> Any:
    """Return which window is the last one at an instant."""
    return sequence.state((time, LAST), seen) if time >= seen.t0 else None


def _next(windows: Sequenced, rows: OrderedRows, time: int, seen: Seen, held: bool, limit: int) -> int:
    """Return the next instant at which there may be another window; INFINITY if none of those has a row."""
    coming = int(rows.batch_at(seen.last + 1)[0]) if seen.last < rows.last else INFINITY
    if not held and windows.sequence.is_over((time, LAST), seen):
        return coming
    change = windows.sequence.next_change((time, LAST), seen)
    if change is None or change >= INFINITY:
        return coming
    if coming == INFINITY and limit == INFINITY - 1 and windows.sequence.endless:
        raise endless(windows, rows.last_id)
    return min(coming, ceil(change))
