"""Versions: the ids of output rows, of which one that comes back after a full retraction gets a new one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streamdsl.temporal import INFINITY, MIN_TIME, Event, Insert, Retract
from streamdsl.temporal.events import inserts, retracts

_FEW: Final = 8
"""So many events are made column by column; fewer one by one."""
_LEAST: Final = 256
"""So many ids may be remembered before they are looked through for those that the CTI has passed."""


@dataclass(frozen=True, slots=True)
class RowVersion:
    """The id of a row that came back after a full retraction."""

    id: Hashable
    version: int


class OutRow(NamedTuple):
    """One changed row of the output."""

    id: Any
    le: int
    re_old: int
    re_new: int
    payload: Any

    @property
    def is_insertion(self) -> bool:
        """Whether the row was not there before."""
        return self.re_old == self.le

    @property
    def lifetime_order(self) -> tuple[bool, int, int]:
        """Retractions first, then insertions, each by (LE, RE)."""
        _, le, re_old, re_new, _ = self
        return (True, le, re_new) if re_old == le else (False, le, re_old)


class _Known(NamedTuple):
    """What an id is called in the output, and until when a change can reach it, or an earlier row of this id."""

    name: Hashable
    version: int
    last_time: int


class Versions:
    """The names of the rows that have been retracted, or have come back, until the output CTI has passed them.

    >>> versions = Versions()
    >>> versions.events([OutRow("a", 1, 5, 1, "x"), OutRow("a", 1, 1, 7, "y")])
    [Retract(id='a', le=1, re=5, re_new=1, payload='x'), Insert(id=RowVersion(id='a', version=1), le=1, re=7, payload='y')]
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}
        self._cti = MIN_TIME
        self._due = _LEAST

    def __bool__(self) -> bool:
        return bool(self._known)

    def events(self, rows: Sequence[OutRow]) -> list[Event[Any]]:
        """Return the events that tell of changes, all retractions first."""
        if len(rows) < _FEW:
            return list(map(self._event, rows))
        n_gone = sum(row.re_old != row.le for row in rows)
        gone, come = rows[:n_gone], rows[n_gone:]
        found: list[Event[Any]] = []
        if gone:
            _, le, re_old, re_new, payloads = zip(*gone, strict=True)
            found += retracts(list(map(self._left, gone)), le, re_old, re_new, payloads)
        if come:
            _, le, _, re_new, payloads = zip(*come, strict=True)
            found += inserts(list(map(self._entered, come)), le, re_new, payloads)
        return found

    def _event(self, row: OutRow) -> Event[Any]:
        _, le, re_old, re_new, payload = row
        if re_old == le:
            return Insert(self._entered(row), le, re_new, payload)
        return Retract(self._left(row), le, re_old, re_new, payload)

    def _left(self, row: OutRow) -> Hashable:
        known = self._reached(row.id)
        if known is not None:
            if row.re_new > known.last_time:
                self._known[row.id] = known._replace(last_time=row.re_new)
            return known.name
        if row.re_new == row.le:
            self._known[row.id] = _Known(row.id, 0, row.re_new)
        name: Hashable = row.id
        return name

    def _entered(self, row: OutRow) -> Hashable:
        known = self._reached(row.id)
        if known is None:
            name: Hashable = row.id
            return name
        new = _Known(RowVersion(row.id, known.version + 1), known.version + 1, max(known.last_time, row.re_new))
        self._known[row.id] = new
        return new.name

    def _reached(self, id: Hashable) -> _Known | None:
        known = self._known.get(id)
        return None if known is None or known.last_time < self._cti else known

    def forget(self, cti: int) -> None:
        """Forget the rows that nothing can reach after an output CTI."""
        self._cti = cti
        if len(self._known) > self._due or cti == INFINITY:
            self._known = {id: known for id, known in self._known.items() if known.last_time >= cti}
            self._due = max(_LEAST, 2 * len(self._known))
