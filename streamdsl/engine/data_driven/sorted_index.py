"""A sorted index from numbers to slots, in pieces: a change takes a portion out, edits it as plain arrays, and puts it back."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.pairs import all_but
from streamdsl.expr.table import Column, Rows, flatnonzero

PIECE: Final = 512
"""The entries of a new piece; one with more than twice as many is split."""
_FEW: Final = 8


class Portion(NamedTuple):
    """Some runs of neighbouring entries, in order; `run` is the run of each entry."""

    numbers: Column
    slots: Rows
    run: Rows
    pieces: list[tuple[int, int]]
    """The pieces `[first, stop)` of the index that each run covers."""

    def insert(self, at: Rows, numbers: Column, slots: Rows) -> Portion:
        """Return the portion with more entries, each before the entry that is `at` now."""
        if not len(at):
            return self
        if not len(self.slots):
            return Portion(numbers, slots, np.zeros(len(slots), dtype=np.intp), self.pieces)
        size = len(self.slots) + len(at)
        places = at + np.arange(len(at))
        stayed = all_but(places, size)
        columns = []
        for old, new in ((self.numbers, numbers), (self.slots, slots), (self.run, self.run[np.maximum(at - 1, 0)])):
            column = np.empty(size, dtype=old.dtype)
            column[stayed], column[places] = old, new
            columns.append(column)
        return Portion(columns[0], columns[1], columns[2], self.pieces)

    def without(self, at: Rows) -> Portion:
        """Return the portion without the entries `at`."""
        if not len(at):
            return self
        rows = all_but(at, len(self.slots))
        return Portion(self.numbers[rows], self.slots[rows], self.run[rows], self.pieces)


class SortedIndex:
    """Slots in the order of their numbers, in pieces: as in a `SortedList`, a change costs by its own size, not by the index's.


    >>> index = SortedIndex()
    >>> index.put(index.all().insert(np.array([0, 0]), np.array([3, 7]), np.array([10, 11])))
    >>> index.portion(np.array([7]), np.array([7])).slots.tolist(), len(index)
    ([10, 11], 2)
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[Column, Rows]] = []
        self._firsts: Column = np.empty(0, dtype=np.int64)
        self._sizes: Rows = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return int(self._sizes.sum())

    def all(self) -> Portion:
        """Return all entries as one run."""
        return self._gathered([(0, len(self._pieces))])

    def portion(self, low: Column, high: Column, margin: int = 0) -> Portion:
        """Return the entries from each `low` to its `high`, the entry before and the entry after, and some around them.

        With a margin these are at least so many on each side.
        """
        if len(self._pieces) <= 3:
            return self.all()
        first = np.maximum(np.searchsorted(self._firsts, low) - 1, 0)
        stop = np.minimum(np.searchsorted(self._firsts, high, side="right") + 1, len(self._pieces))
        if margin:
            ends = np.cumsum(self._sizes)
            begins = np.concatenate([[0], ends[:-1]])
            first = np.maximum(np.searchsorted(begins, begins[first] - margin, side="right") - 1, 0)
            stop = np.minimum(np.searchsorted(ends, ends[stop - 1] + margin) + 1, len(self._pieces))
        steps = np.bincount(first, minlength=len(self._pieces) + 1)
        steps -= np.bincount(stop, minlength=len(self._pieces) + 1)
        inside = np.concatenate([[False], np.cumsum(steps) > 0])
        edges = flatnonzero(inside[1:] != inside[:-1]).tolist()
        return self._gathered(list(zip(edges[::2], edges[1::2], strict=True)))

    def _gathered(self, runs: list[tuple[int, int]]) -> Portion:
        pieces = [piece for first, stop in runs for piece in self._pieces[first:stop]]
        if not pieces:
            nothing = np.empty(0, dtype=np.intp)
            return Portion(np.empty(0, dtype=self._firsts.dtype), nothing, nothing, runs)
        numbers = np.concatenate([piece[0] for piece in pieces])
        slots = np.concatenate([piece[1] for piece in pieces])
        sizes = [int(self._sizes[first:stop].sum()) for first, stop in runs]
        return Portion(numbers, slots, np.repeat(np.arange(len(runs)), sizes), runs)

    def around(self, low: int, high: int) -> tuple[list[int], list[int]]:
        """Return the numbers and slots of the entry before `low`, if there is one, and of those from there to `high`.

        >>> index = SortedIndex()
        >>> for number in (3, 7, 9):
        ...     index.insert_one(number, 10 * number)
        >>> index.around(7, 9)
        ([3, 7], [30, 70])
        """
        numbers: list[int] = []
        slots: list[int] = []
        at = max(int(self._firsts.searchsorted(low)) - 1, 0)
        for piece, of_piece in self._pieces[at:]:
            first = 0 if numbers else max(int(piece.searchsorted(low)) - 1, 0)
            stop = int(piece.searchsorted(high))
            numbers += piece[first:stop].tolist()
            slots += of_piece[first:stop].tolist()
            if stop < len(piece):
                break
        return numbers, slots

    def has_more(self, low: int, high: int, most: int) -> bool:
        """Say whether there are more than `most` entries from `low` to `high`; a few less may count as more.

        >>> index = SortedIndex()
        >>> for number in (3, 7, 9):
        ...     index.insert_one(number, 10 * number)
        >>> index.has_more(3, 9, 2), index.has_more(3, 9, 1)
        (False, True)
        """
        at = max(int(self._firsts.searchsorted(low)) - 1, 0)
        left = most
        for numbers, _ in self._pieces[at : at + 2]:
            last = left + (int(numbers.searchsorted(low)) if left == most else 0)
            if last < len(numbers):
                return bool(numbers[last] < high)
            left = last - len(numbers)
        return at + 2 < len(self._pieces)

    def before(self, number: int, most: int) -> list[int]:
        """Return the slots of at most so many entries that come last before a number, in order.

        >>> index = SortedIndex()
        >>> for number in (3, 7, 9):
        ...     index.insert_one(number, 10 * number)
        >>> index.before(9, 5), index.before(9, 1)
        ([30, 70], [70])
        """
        found: list[int] = []
        for numbers, slots in reversed(self._pieces[: int(self._firsts.searchsorted(number))]):
            stop = int(numbers.searchsorted(number))
            found[:0] = slots[max(stop - most + len(found), 0) : stop].tolist()
            if len(found) >= most:
                break
        return found

    def following(self, number: int) -> int | None:
        """Return the slot of the entry after a number, None if there is none."""
        at = max(int(self._firsts.searchsorted(number, side="right")) - 1, 0)
        for numbers, slots in self._pieces[at : at + 2]:
            place = int(numbers.searchsorted(number, side="right"))
            if place < len(numbers):
                return slots.item(place)
        return None

    def insert_one(self, number: int, slot: int) -> None:
        """Put in a single entry, whose number is not there."""
        if not self._pieces:
            self.put(Portion(np.array([number]), np.array([slot]), np.zeros(1, dtype=np.intp), [(0, 0)]))
            return
        at = max(int(self._firsts.searchsorted(number)) - 1, 0)
        numbers, slots = self._pieces[at]
        place = int(numbers.searchsorted(number))
        entries = _with(numbers, place, number), _with(slots, place, slot)
        if len(numbers) < 2 * PIECE:
            self._pieces[at] = entries
            self._sizes[at] += 1
            self._firsts[at] = entries[0][0]
        else:
            self.put(Portion(*entries, np.zeros(len(entries[0]), dtype=np.intp), [(at, at + 1)]))

    def remove_one(self, number: int) -> None:
        """Take out a single entry."""
        at = int(self._firsts.searchsorted(number, side="right")) - 1
        numbers, slots = self._pieces[at]
        kept = flatnonzero(numbers != number)
        self.put(Portion(numbers[kept], slots[kept], np.zeros(len(kept), dtype=np.intp), [(at, at + 1)]))

    def is_last(self, portion: Portion) -> bool:
        """Say whether nothing is after a portion."""
        return portion.pieces[-1][1] == len(self._pieces)

    def put(self, portion: Portion) -> None:
        """Put a portion back in the place from which it was taken."""
        bounds = np.searchsorted(portion.run, np.arange(len(portion.pieces) + 1)).tolist()
        is_few = len(portion.pieces) <= _FEW
        for (first, stop), low, high in reversed(list(zip(portion.pieces, bounds[:-1], bounds[1:], strict=True))):
            pieces = _cut(portion.numbers[low:high], portion.slots[low:high])
            self._pieces[first:stop] = pieces
            if is_few:
                self._firsts = np.concatenate([self._firsts[:first], _firsts_of(pieces, portion), self._firsts[stop:]])
                self._sizes = np.concatenate([self._sizes[:first], _sizes_of(pieces), self._sizes[stop:]])
        if not is_few:
            self._firsts, self._sizes = _firsts_of(self._pieces, portion), _sizes_of(self._pieces)

    def renumber(self, numbers: Column) -> None:
        """Give all entries other numbers, in the same order."""
        entries = self.all()
        self._firsts = numbers[:0]
        self.put(entries._replace(numbers=numbers))


def _with(column: Column, place: int, value: int) -> Column:
    """Return a column with a value more."""
    longer = np.empty(len(column) + 1, dtype=column.dtype)
    longer[:place], longer[place], longer[place + 1 :] = column[:place], value, column[place:]
    return longer


def _firsts_of(pieces: list[tuple[Column, Rows]], like: Portion) -> Column:
    return np.array([numbers[0] for numbers, _ in pieces], dtype=like.numbers.dtype)


def _cut(numbers: Column, slots: Rows) -> list[tuple[Column, Rows]]:
    """Return entries as pieces."""
    size = len(slots)
    if size <= 2 * PIECE:
        return [(numbers, slots)] if size else []
    starts = range(0, size - PIECE + 1, PIECE)
    return [(numbers[start:stop], slots[start:stop]) for start, stop in zip(starts, [*starts[1:], size], strict=True)]


def _sizes_of(pieces: list[tuple[Column, Rows]]) -> Rows:
    return np.array([len(slots) for _, slots in pieces], dtype=np.intp)
