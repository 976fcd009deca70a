"""Versions: the ids of output rows, of which one that comes back after a full retraction gets a new one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, NamedTuple

from streamdsl.temporal import INFINITY, MIN_TIME, Event, Insert, Retract

_FEW: Final = 32
"""So many ids are looked through at every CTI; more of them when they are twice as many as were needed the last time."""


@dataclass(frozen=True, slots=True, init=False)
class RowVersion:
    """The id of a row that came back after a full retraction."""

    id: Hashable
    version: int

    def __init__(self, id: Hashable, version: int) -> None:
        _put_id(self, id)
        _put_version(self, version)


def row_versions(ids: Sequence[Hashable], versions: Sequence[int]) -> list[RowVersion]:
    """Return the ids of columns, row by row, at a third of the cost of one by one.

    >>> row_versions(["a"], [2])
    [RowVersion(id='a', version=2)]
    """
    found = list(map(object.__new__, repeat(RowVersion, len(ids))))
    for put, values in ((_put_id, ids), (_put_version, versions)):
        deque(map(put, found, values), maxlen=0)
    return found


_put_id: Final = RowVersion.__dict__["id"].__set__
_put_version: Final = RowVersion.__dict__["version"].__set__


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

    def event(self, name: Hashable) -> Event[Any]:
        """Return the event that tells of the change, of a row with this name."""
        _, le, re_old, re_new, payload = self
        return Insert(name, le, re_new, payload) if re_old == le else Retract(name, le, re_old, re_new, payload)

    @property
    def lifetime_order(self) -> tuple[bool, int, int]:
        """Retractions first, then insertions, each by (LE, RE)."""
        _, le, re_old, re_new, _ = self
        return (True, le, re_new) if re_old == le else (False, le, re_old)


class _Known:
    """What an id is called in the output, and until when a change can reach it, or an earlier row of this id."""

    __slots__ = ("last_time", "name", "version")

    def __init__(self, name: Hashable, version: int, last_time: int) -> None:
        self.name = name
        self.version = version
        self.last_time = last_time


class Versions:
    """The names of the rows that have been retracted, or have come back, until the output CTI has passed them.

    >>> versions = Versions()
    >>> versions.events([OutRow("a", 1, 5, 1, "x"), OutRow("a", 1, 1, 7, "y")])
    [Retract(id='a', le=1, re=5, re_new=1, payload='x'), Insert(id=RowVersion(id='a', version=1), le=1, re=7, payload='y')]
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}
        self._cti = MIN_TIME
        self._due = _FEW

    def __bool__(self) -> bool:
        return bool(self._known)

    def events(self, rows: Sequence[OutRow]) -> list[Event[Any]]:
        """Return the events that tell of changes, retractions first."""
        return list(map(self._event, rows))

    def _event(self, row: OutRow) -> Event[Any]:
        id, le, _, re_new, _ = row
        known = self._known.get(id)
        if known is not None and known.last_time >= self._cti:
            known.last_time = max(known.last_time, re_new)
            if row.is_insertion:
                known.version += 1
                known.name = RowVersion(id, known.version)
            return row.event(known.name)
        if re_new == le:
            self._known[id] = _Known(id, 0, re_new)
        return row.event(id)

    def names(self, ids: list[Any], le: Sequence[int], re_old: Sequence[int], re_new: Sequence[int]) -> list[Hashable]:
        """Return what changed rows are called, retractions first: what `events` does for many."""
        names = list(ids)
        for place, (id, start, old, end) in enumerate(zip(ids, le, re_old, re_new, strict=True)):
            known = self._known.get(id)
            if known is not None and known.last_time >= self._cti:
                if old == start:
                    known.version += 1
                    known.name = RowVersion(id, known.version)
                names[place] = known.name
                if end > known.last_time:
                    known.last_time = end
            elif end == start:
                self._known[id] = _Known(id, 0, end)
        return names

    def forget(self, cti: int) -> None:
        """Forget the rows that nothing can reach after an output CTI."""
        self._cti = cti
        if not _FEW < len(self._known) <= self._due or cti == INFINITY:
            self._known = {id: known for id, known in self._known.items() if known.last_time >= cti}
            self._due = 2 * len(self._known)
