"""EventIndex: the events that can still matter, by RE and then LE (paper 001, V.C, figure 11)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedDict

from streamdsl.temporal.payload import payload_order
from streamdsl.temporal.time import INFINITY

_SMALL = 8


@dataclass(slots=True, eq=False)
class EventRow:
    """An event as operators remember it; `payload` and `arguments` are whatever the operator keeps of it."""

    id: Hashable
    le: int
    re: int
    payload: Any = None
    arguments: Any = ()
    _rank: tuple[Any, ...] | None = None

    def rank(self) -> tuple[Any, ...]:
        """Return what orders the payload, found once.

        >>> EventRow("a", 1, 5, payload="x").rank()
        (2, 'x')
        """
        if self._rank is None:
            self._rank = payload_order(self.payload)
        return self._rank


class EventIndex:
    """Events in two layers, RE and then LE, so that those of a period are found without looking at the others.

    Events are kept apart by the order of magnitude of their duration: within one class, what overlaps `[lo, hi)` has its RE
    between `lo` and `hi` plus the class's longest duration, so one long event never makes the search for short ones long.

    Methods for adding and removing: `add`, `remove`, `forget`. For looking up: `overlapping`, `ending_from`, `latest_end`,
    `get`, iteration.

    >>> index = EventIndex()
    >>> index.add(EventRow("a", 1, 5))
    >>> index.add(EventRow("b", 4, 9))
    >>> [row.id for row in index.overlapping(5, 6)]
    ['b']
    """

    __slots__ = ("_by_id", "_classes")

    def __init__(self) -> None:
        self._by_id: dict[tuple[Hashable, int], EventRow] = {}
        self._classes: dict[int, SortedDict] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[EventRow]:
        return iter(self._by_id.values())

    def get(self, id: Hashable, le: int) -> EventRow | None:
        """Return the event with this id and LE, or None. O(1).

        >>> EventIndex().get("a", 1) is None
        True
        """
        return self._by_id.get((id, le))

    def add(self, row: EventRow) -> None:
        """Add an event with LE < RE and a new (id, LE); a source may use an id again once a CTI has passed it. O(log n).

        >>> index = EventIndex()
        >>> index.add(EventRow("a", 1, 5))
        >>> len(index)
        1
        """
        self._by_id[row.id, row.le] = row
        magnitude = _magnitude(row)
        by_re = self._classes.get(magnitude)
        if by_re is None:
            by_re = self._classes[magnitude] = SortedDict()
        by_le = by_re.get(row.re)
        if by_le is None:
            by_re[row.re] = {row.le: {row.id: row}}
            return
        by_le.setdefault(row.le, {})[row.id] = row
        if len(by_le) > _SMALL and type(by_le) is dict:
            by_re[row.re] = SortedDict(by_le)

    def remove(self, id: Hashable, le: int) -> EventRow:
        """Remove and return the event with this id and LE; `KeyError` if there is none. O(log n).

        >>> index = EventIndex()
        >>> index.add(EventRow("a", 1, 5))
        >>> index.remove("a", 1).re, len(index)
        (5, 0)
        """
        row = self._by_id.pop((id, le))
        magnitude = _magnitude(row)
        by_re = self._classes[magnitude]
        by_le = by_re[row.re]
        rows = by_le[row.le]
        del rows[id]
        if not rows:
            del by_le[row.le]
            if not by_le:
                del by_re[row.re]
                if not by_re:
                    del self._classes[magnitude]
        return row

    def overlapping(self, lo: int, hi: int) -> list[EventRow]:
        """Return the events with LE < `hi` and RE > `lo`. O(log n + those found), up to the spread of one duration class.

        >>> index = EventIndex()
        >>> index.add(EventRow("a", 1, INFINITY))
        >>> [row.id for row in index.overlapping(0, 1)], [row.id for row in index.overlapping(0, 2)]
        ([], ['a'])
        """
        found: list[EventRow] = []
        if hi <= lo:
            return found
        for magnitude, by_re in self._classes.items():
            longest = 2**magnitude - 1
            last = hi - 1 + longest if hi < INFINITY - longest else INFINITY
            for re in by_re.irange(lo, last, inclusive=(False, True)):
                by_le = by_re[re]
                for le in _before(by_le, hi):
                    found.extend(by_le[le].values())
        return found

    def latest_end(self) -> int | None:
        """Return the largest RE, or None if there is no event. O(1).

        >>> EventIndex().latest_end() is None
        True
        """
        return max((by_re.peekitem(-1)[0] for by_re in self._classes.values()), default=None)

    def ending_from(self, time: int) -> Iterator[EventRow]:
        """Yield the events with RE >= `time`. O(log n + those found).

        >>> index = EventIndex()
        >>> index.add(EventRow("a", 1, 5))
        >>> [row.id for row in index.ending_from(5)], list(index.ending_from(6))
        (['a'], [])
        """
        for by_re in self._classes.values():
            for re in by_re.irange(time):
                for rows in by_re[re].values():
                    yield from rows.values()

    def forget(self, before: int) -> list[EventRow]:
        """Remove and return the events with RE < `before`. O(those removed * log n).

        >>> index = EventIndex()
        >>> index.add(EventRow("a", 1, 5))
        >>> [row.id for row in index.forget(6)]
        ['a']
        """
        dead = [
            row
            for by_re in self._classes.values()
            for re in by_re.irange(maximum=before, inclusive=(True, False))
            for rows in by_re[re].values()
            for row in rows.values()
        ]
        for row in dead:
            self.remove(row.id, row.le)
        return dead

    def _check(self) -> None:
        """Assert every invariant of the representation."""
        listed = {}
        for magnitude, by_re in self._classes.items():
            assert by_re, "no empty class is kept"
            for re, by_le in by_re.items():
                assert by_le, "no empty RE layer is kept"
                assert len(by_le) <= _SMALL or isinstance(by_le, SortedDict), "a large layer is in order"
                for le, rows in by_le.items():
                    assert rows, "no empty LE layer is kept"
                    for id, row in rows.items():
                        assert (row.id, row.le, row.re) == (id, le, re)
                        assert row.le < row.re
                        assert _magnitude(row) == magnitude
                        listed[id, le] = row
        assert listed == self._by_id


def _before(by_le: Any, hi: int) -> Iterable[int]:
    """Return the LEs of a layer that are < `hi`; a small layer is a plain dict, which is made faster than a sorted one."""
    if isinstance(by_le, SortedDict):
        les: Iterable[int] = by_le.irange(maximum=hi, inclusive=(True, False))
        return les
    return [le for le in by_le if le < hi]


def _magnitude(row: EventRow) -> int:
    """Return the smallest m with RE - LE < 2 ** m; events without end have a class of their own."""
    return 64 if row.re == INFINITY else (row.re - row.le).bit_length()
