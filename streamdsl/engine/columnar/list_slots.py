"""Lists by slot, with all items in one column."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.growing import growing
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.deferred import DeferredColumn, Rows
from streamdsl.expr.lists import ListSource, items_of

_SPARE = 64
_ALL = slice(None)


class ListSlots:
    """A list for each slot, empty at first. Items are never overwritten, so lists that were taken stay valid.

    >>> lists = ListSource(np.array([5, 7]), np.array([0]), np.array([2]))
    >>> slots = ListSlots(2, lists)
    >>> slots.put(np.array([1]), DeferredColumn(lists))
    >>> slots.take(np.array([0, 1])).tolist()
    [[], [5, 7]]
    """

    def __init__(self, size: int, like: ListSource) -> None:
        self._items = growing(like.items[:0])
        self._lo: Rows = np.zeros(size, dtype=np.intp)
        self._hi: Rows = np.zeros(size, dtype=np.intp)
        self._n_items = 0
        self._most = _SPARE

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        self._lo, self._hi = longer(self._lo, size), longer(self._hi, size)

    def clear(self, slots: Rows) -> None:
        """Make the lists of slots empty."""
        self._lo[slots] = self._hi[slots] = 0

    def take(self, slots: Rows | slice) -> DeferredColumn:
        """Return the lists of slots."""
        return DeferredColumn(ListSource(self._items.part(_ALL), self._lo[slots], self._hi[slots]))

    def are_like(self, lists: ListSource) -> bool:
        """Say whether the items of lists have the column type of those here."""
        items, known = lists.items, self._items.part(slice(0, 0))
        return (
            isinstance(items, DeferredColumn)
            if isinstance(known, DeferredColumn)
            else not isinstance(items, DeferredColumn) and items.dtype == known.dtype
        )

    def put(self, slots: Rows, lists: DeferredColumn) -> None:
        """Replace the lists of slots by others with the same column type."""
        items, sizes = items_of(lists)
        if self._n_items + len(items) > self._most:
            self.clear(slots)
            self._let_go()
            self._most = 2 * (self._n_items + len(items)) + _SPARE
        self._items.append(items)
        stops = np.cumsum(sizes) + self._n_items
        self._lo[slots], self._hi[slots], self._n_items = stops - sizes, stops, self._n_items + len(items)

    def _let_go(self) -> None:
        """Drop the items that are in no list any more."""
        kept, sizes = items_of(self.take(_ALL))
        self._items, self._n_items = growing(kept), len(kept)
        self._hi = np.cumsum(sizes)
        self._lo = self._hi - sizes
