"""PointIndex: the events of count windows by the endpoint that counts (paper 001, III.B.4)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from sortedcontainers import SortedDict

from streamdsl.engine.general.event_index import EventRow


class PointIndex:
    """Events by one point in time each, their start or their end; windows are counted over the distinct points.

    Methods for adding and removing: `add`, `remove`, `forget`. For looking up: `get`, `last`, `following`, `between`, `first`.

    >>> index = PointIndex()
    >>> index.add(4, EventRow("a", 4, 9))
    True
    >>> index.add(4, EventRow("b", 4, 6)), len(index), index.n_events
    (False, 1, 2)
    """

    __slots__ = ("_points", "n_events")

    def __init__(self) -> None:
        self._points: Any = SortedDict()
        self.n_events = 0

    def __len__(self) -> int:
        return len(self._points)

    def __contains__(self, point: int) -> bool:
        return point in self._points

    def add(self, point: int, row: EventRow) -> bool:
        """Add an event at a point; say whether the point is new. O(log n).

        >>> PointIndex().add(4, EventRow("a", 4, 9))
        True
        """
        rows = self._points.get(point)
        is_new = rows is None
        if is_new:
            rows = self._points[point] = {}
        rows[row.id] = row
        self.n_events += 1
        return is_new

    def remove(self, point: int, id: Hashable) -> tuple[EventRow, bool]:
        """Remove an event; return it, and whether its point is gone with it. O(log n).

        >>> index = PointIndex()
        >>> _ = index.add(4, EventRow("a", 4, 9))
        >>> index.remove(4, "a")[1], len(index)
        (True, 0)
        """
        rows: dict[Hashable, EventRow] = self._points[point]
        row = rows.pop(id)
        self.n_events -= 1
        if not rows:
            del self._points[point]
        return row, not rows

    def get(self, point: int, id: Hashable) -> EventRow | None:
        """Return the event with this id at a point, or None. O(1).

        >>> PointIndex().get(4, "a") is None
        True
        """
        row: EventRow | None = self._points.get(point, {}).get(id)
        return row

    def first(self) -> int | None:
        """Return the smallest point, or None. O(1).

        >>> PointIndex().first() is None
        True
        """
        return self._points.peekitem(0)[0] if self._points else None

    def last(self, n: int, before: int) -> list[int]:
        """Return the last `n` points before a time, or as many as there are, in order. O(log n + those found).

        >>> index = PointIndex()
        >>> _ = index.add(4, EventRow("a", 4, 9)), index.add(6, EventRow("b", 6, 9)), index.add(7, EventRow("c", 7, 9))
        >>> index.last(2, before=7), index.last(5, before=7)
        ([4, 6], [4, 6])
        """
        stop = self._points.bisect_left(before)
        return list(self._points.keys()[max(0, stop - n) : stop])

    def following(self, point: int, n: int) -> int | None:
        """Return the point that comes `n` after this one (0: itself), or None if there are not so many. O(log n).

        >>> index = PointIndex()
        >>> _ = index.add(4, EventRow("a", 4, 9)), index.add(6, EventRow("b", 6, 9))
        >>> index.following(4, 1), index.following(4, 2)
        (6, None)
        """
        position = self._points.bisect_left(point) + n
        return self._points.keys()[position] if position < len(self._points) else None

    def between(self, lo: int, hi: int) -> Iterator[EventRow]:
        """Yield the events with their point in `[lo, hi)`, in order of points. O(log n + those found).

        >>> index = PointIndex()
        >>> _ = index.add(4, EventRow("a", 4, 9))
        >>> [row.id for row in index.between(4, 5)], list(index.between(0, 4))
        (['a'], [])
        """
        for point in self._points.irange(lo, hi, inclusive=(True, False)):
            yield from self._points[point].values()

    def forget(self, before: int) -> None:
        """Remove the points before a time with their events. O(those removed * log n).

        >>> index = PointIndex()
        >>> _ = index.add(4, EventRow("a", 4, 9))
        >>> index.forget(5); len(index), index.n_events
        (0, 0)
        """
        while self._points and self._points.peekitem(0)[0] < before:
            self.n_events -= len(self._points.popitem(0)[1])

    def _check(self) -> None:
        """Assert every invariant of the representation."""
        assert all(self._points.values()), "no point without events is kept"
        assert self.n_events == sum(map(len, self._points.values()))
        assert all(row.id == id for rows in self._points.values() for id, row in rows.items())
