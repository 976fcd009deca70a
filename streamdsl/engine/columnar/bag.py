"""Bags: the non-numeric values of aggregates, with their counts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from streamdsl.temporal.payload import payload_key


class Bag:
    """Values with their counts; equal values are one.

    >>> bag = Bag()
    >>> bag.add("a", 2)
    >>> bag.add("a", -1)
    >>> bag.values()
    ['a']
    """

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[Hashable, tuple[Any, int]] = {}

    def add(self, value: Any, count: int) -> None:
        """Add a value `count` times; a negative count removes it."""
        key = (type(value), payload_key(value))
        kept, total = self._items.get(key, (value, 0))
        if total + count:
            self._items[key] = (kept, total + count)
        else:
            del self._items[key]

    def merge(self, other: Bag) -> None:
        """Add the values of another bag."""
        for value, count in list(other._items.values()):
            self.add(value, count)

    def values(self) -> list[Any]:
        """Return every value as often as it is counted."""
        return [value for value, count in self._items.values() for _ in range(count)]

    def __len__(self) -> int:
        return len(self._items)
