"""WindowIndex: the windows that can still change, by LE (paper 001, V.C, figure 11)."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sortedcontainers import SortedDict

from streamdsl.temporal.lifetime import Lifetime
from streamdsl.udm.incremental import Held, MemberChange


class OutputRow(NamedTuple):
    """An emitted result, kept for corrections; its id ends with an LE and an ordinal, `window` is its window's LE."""

    id: tuple[Any, ...]
    le: int
    re: int
    payload: Any
    key: Hashable
    window: int


@dataclass(slots=True, eq=False)
class WindowEntry:
    """A window: its period, the number of event endpoints at its start, of its members, its states and its results.

    `states` are those of the incremental modules, None if they must be built from the members; `changes` are what they have
    not taken in yet. `results` are what time-insensitive modules made of the members, None if it must be computed.
    """

    le: int
    re: int
    n_endpoints: int = 0
    n_events: int = 0
    output: list[OutputRow] = field(default_factory=list)
    shown: bool = False
    states: list[Held | None] | None = None
    changes: list[MemberChange] = field(default_factory=list)
    results: list[Any] | None = None

    @property
    def period(self) -> Lifetime:
        """The window as a lifetime."""
        return Lifetime(self.le, self.re)

    def forget_computed(self) -> None:
        """Drop the states and the results: they will be computed from the members."""
        self.states = self.results = None
        self.changes = []


class WindowIndex:
    """Windows in order of LE, of which no two are equal; their REs rise with their LEs.

    Methods for adding and removing: `add`, `remove`, `forget`. For looking up: `get`, `covering`, `before`, `after`,
    `between`, iteration in order of LE.

    >>> index = WindowIndex()
    >>> _ = index.add(WindowEntry(0, 10))
    >>> _ = index.add(WindowEntry(10, 20))
    >>> index.covering(10).le
    10
    """

    __slots__ = ("_by_le",)

    def __init__(self) -> None:
        self._by_le = SortedDict()

    def __len__(self) -> int:
        return len(self._by_le)

    def __iter__(self) -> Iterator[WindowEntry]:
        return iter(self._by_le.values())

    def get(self, le: int) -> WindowEntry | None:
        """Return the window that starts at `le`, or None. O(1).

        >>> WindowIndex().get(0) is None
        True
        """
        entry: WindowEntry | None = self._by_le.get(le)
        return entry

    def add(self, entry: WindowEntry) -> WindowEntry:
        """Add and return a window with a new LE. O(log n).

        >>> WindowIndex().add(WindowEntry(0, 10)).re
        10
        """
        self._by_le[entry.le] = entry
        return entry

    def remove(self, le: int) -> WindowEntry:
        """Remove and return the window that starts at `le`; `KeyError` if there is none. O(log n).

        >>> index = WindowIndex()
        >>> _ = index.add(WindowEntry(0, 10))
        >>> index.remove(0).re, len(index)
        (10, 0)
        """
        entry: WindowEntry = self._by_le.pop(le)
        return entry

    def covering(self, time: int) -> WindowEntry | None:
        """Return the latest window with LE <= `time`, or None. O(log n).

        >>> WindowIndex().covering(3) is None
        True
        """
        position = self._by_le.bisect_right(time)
        return self._by_le.peekitem(position - 1)[1] if position else None

    def before(self, time: int) -> WindowEntry | None:
        """Return the latest window with LE < `time`, or None. O(log n).

        >>> index = WindowIndex()
        >>> _ = index.add(WindowEntry(0, 10))
        >>> index.before(0) is None, index.before(1).le
        (True, 0)
        """
        position = self._by_le.bisect_left(time)
        return self._by_le.peekitem(position - 1)[1] if position else None

    def after(self, time: int) -> WindowEntry | None:
        """Return the earliest window with LE > `time`, or None. O(log n).

        >>> index = WindowIndex()
        >>> _ = index.add(WindowEntry(5, 10))
        >>> index.after(4).le, index.after(5) is None
        (5, True)
        """
        position = self._by_le.bisect_right(time)
        return self._by_le.peekitem(position)[1] if position < len(self._by_le) else None

    def between(self, lo: int, hi: int) -> list[WindowEntry]:
        """Return the windows with `lo` <= LE < `hi`, in order. O(log n + those found).

        >>> index = WindowIndex()
        >>> _ = index.add(WindowEntry(0, 10))
        >>> [entry.le for entry in index.between(0, 1)]
        [0]
        """
        return [self._by_le[le] for le in self._by_le.irange(lo, hi, inclusive=(True, False))]

    def forget(self, until: int) -> list[WindowEntry]:
        """Remove and return the windows with RE <= `until`. O(those removed * log n).

        >>> index = WindowIndex()
        >>> _ = index.add(WindowEntry(0, 10))
        >>> [entry.le for entry in index.forget(10)]
        [0]
        """
        closed = []
        while self._by_le and self._by_le.peekitem(0)[1].re <= until:
            closed.append(self._by_le.popitem(0)[1])
        return closed

    def _check(self) -> None:
        """Assert every invariant of the representation."""
        entries = list(self)
        assert [entry.le for entry in entries] == list(self._by_le)
        assert all(a.le < b.le and a.re <= b.re for a, b in itertools.pairwise(entries)), "ends rise with starts"
        assert all(entry.le < entry.re for entry in entries)
        assert all(entry.n_events >= 0 and entry.n_endpoints >= 0 for entry in entries)
