"""Versions: the ids of output rows. A row that comes back after a full retraction gets a new one."""

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
        """Return the event of the change, under this name."""
        _, le, re_old, re_new, payload = self
        return Insert(name, le, re_new, payload) if re_old == le else Retract(name, le, re_old, re_new, payload)

    @property
    def lifetime_order(self) -> tuple[bool, int, int]:
        """Retractions first, then insertions, each by (LE, RE)."""
        _, le, re_old, re_new, _ = self
        return (True, le, re_new) if re_old == le else (False, le, re_old)


class Named(NamedTuple):
    """Changed rows in columns, with the names that they get if these are not taken."""

    ids: Sequence[Hashable]
    names: Sequence[Hashable]
    le: Sequence[int]
    re_old: Sequence[int]
    re_new: Sequence[int]


class Versions:
    """What rows are called in the output: a name that is taken, until the output CTI has passed it, comes again with a version.

    It is taken by a row that was there and is not any more, and by all rows whose ids their senders may use again: two of
    these may have one name. Not so where the output's CTI is `in_step` with that of the only source: what the source has let go,
    the output has.

    >>> versions = Versions()
    >>> versions.events([OutRow("a", 1, 5, 1, "x"), OutRow("a", 1, 1, 7, "y")], ["a", "a"])
    [Retract(id='a', le=1, re=5, re_new=1, payload='x'), Insert(id=RowVersion(id='a', version=1), le=1, re=7, payload='y')]
    """

    def __init__(self, in_step: bool = False) -> None:
        self._in_step = in_step
        self._taken: dict[Hashable, int] = {}
        """Until when a change can reach a row that has, or has had, the name, in any version."""
        self._versions: dict[Hashable, int] = {}
        self._renamed: dict[Hashable, RowVersion] = {}
        self._cti = MIN_TIME
        self._due = _FEW

    def keeps(self, recurs: bool) -> bool:
        """Whether rows that come in have their names, and none has to be looked at; `recurs`: their ids may be used again."""
        return not self._taken and (self._in_step or not recurs)

    def events(self, rows: Sequence[OutRow], names: Sequence[Hashable]) -> list[Event[Any]]:
        """Return the events of changed rows, retractions first, under these names or versions of them."""
        if not rows:
            return []
        ids, le, re_old, re_new, _ = zip(*rows, strict=True)
        return [row.event(name) for row, name in zip(rows, self.names(Named(ids, names, le, re_old, re_new)), strict=True)]

    def names(self, rows: Named) -> list[Hashable]:
        """Return the output ids of changed rows, retractions first."""
        found = list(rows.names)
        if self._are_new(rows):
            return found
        taken, renamed, cti = self._taken, self._renamed, self._cti
        for place, (id, name, start, old, end) in enumerate(zip(*rows, strict=True)):
            last_time = taken.get(name)
            if last_time is None or last_time < cti:
                if end == start or not (id is name or self._in_step) or type(name) is RowVersion:
                    taken[name] = end
                if renamed:
                    renamed.pop(id, None)
                    self._versions.pop(name, None)
                continue
            if old == start:
                renamed[id] = found[place] = made = self._next(name)
                taken[made] = end
            else:
                found[place] = renamed.get(id, name)
            if end > last_time:
                taken[name] = end
        return found

    def _next(self, name: Hashable) -> RowVersion:
        """Return the next version of a name; a row that has come back further up may have one of them as its name."""
        version = self._versions.get(name, 0) + 1
        while (made := RowVersion(name, version)) in self._taken:
            version += 1
        self._versions[name] = version
        return made

    def _are_new(self, rows: Named) -> bool:
        """Take the names of all rows, if all are insertions and no name is taken yet; False, with no effect, if not."""
        if self._in_step or rows.ids[0] is rows.names[0] or rows.le != rows.re_old:
            return False
        given = set(rows.names)
        if len(given) < len(rows.names) or not self._taken.keys().isdisjoint(given):
            return False
        self._taken.update(zip(rows.names, rows.re_new, strict=True))
        return True

    def forget(self, cti: int) -> None:
        """Forget the names that no change after an output CTI can use."""
        self._cti = cti
        if not _FEW < len(self._taken) <= self._due or cti == INFINITY:
            self._taken = {name: last_time for name, last_time in self._taken.items() if last_time >= cti}
            self._versions = {name: version for name, version in self._versions.items() if name in self._taken}
            self._renamed = {id: name for id, name in self._renamed.items() if name.id in self._taken}
            self._due = 2 * len(self._taken)
