"""Lists of numbers in slots, of which the items are held in one column."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.held import Column, Held, Rows
from streamdsl.expr.lists import Lists, items_of

_LEAST = 64


class ListSlots:
    """A list for each slot, empty at first. No item is overwritten: who has taken lists may keep them.

    >>> slots = ListSlots(2, np.dtype(np.int64))
    >>> slots.put(np.array([1]), Held(Lists(np.array([5, 7]), np.array([0]), np.array([2]))))
    >>> slots.take(np.array([0, 1])).tolist()
    [[], [5, 7]]
    """

    def __init__(self, size: int, dtype: np.dtype[np.generic]) -> None:
        self.items: Column = np.empty(0, dtype=dtype)
        self._lo: Rows = np.zeros(size, dtype=np.intp)
        self._hi: Rows = np.zeros(size, dtype=np.intp)
        self._n_items = 0

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        self._lo, self._hi = longer(self._lo, size), longer(self._hi, size)

    def clear(self, slots: Rows) -> None:
        """Let the lists of slots be empty."""
        self._lo[slots] = self._hi[slots] = 0

    def take(self, slots: Rows | slice) -> Held:
        """Return the lists of slots."""
        return Held(Lists(self.items, self._lo[slots], self._hi[slots]))

    def put(self, slots: Rows, lists: Held) -> None:
        """Put lists, with items of the type that is held here, in the places of others."""
        items, sizes = items_of(lists)
        stop = self._n_items + len(items)
        if stop > len(self.items):
            self.clear(slots)
            stop = self._make_room(len(items))
        self.items[stop - len(items) : stop] = items
        stops = np.cumsum(sizes) + (stop - len(items))
        self._lo[slots], self._hi[slots], self._n_items = stops - sizes, stops, stop

    def _make_room(self, number: int) -> int:
        """Let go of what is in no list any more, and return where so many more items end."""
        kept, sizes = items_of(self.take(slice(None)))
        self.items = np.empty(max(_LEAST, 2 * (len(kept) + number)), dtype=kept.dtype)
        self.items[: len(kept)] = kept
        self._hi = np.cumsum(sizes)
        self._lo = self._hi - sizes
        return len(kept) + number
