"""An index of pairs of integers, whole columns at a time: a block with a place for each pair, or a hash table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.pairs import distinct, few_pairs, span_of
from streamdsl.expr.table import Rows, flatnonzero, largest, least
from streamdsl.temporal.time import Ticks

_EMPTY: Final = -1
_GONE: Final = -2
_CLAIM: Final = -3
_LEAST: Final = 64
_SPARSE: Final = ((2**10, 2**10), (2**16, 64), (math.inf, 4))
"""A block of up to so many places has at most so many for each pair in use when it is made; it then gets more for later pairs."""
_SLACK: Final = 8
"""A block has room for so many more groups, and for so many numbers, at least."""
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
_MIX: Final = tuple(map(np.uint64, (*_FACTORS, 32)))
_ALL: Final = 2**64 - 1

Places = NDArray[np.int32]


class PairIndex:
    """A slot for each pair that is in use; `number` and `group` say which pair it is of. Slots that are released are used again.

    A place of `_table` has a slot or none. Pairs that lie close together, as windows that are open and groups that have small
    numbers do, have each a place of its own in a block: the numbers from `_first` on, `_width` groups from `_lowest` on of each.
    Others are hashed: then a place may have had a slot that is gone, and where another pair has the place the next one is tried.

    >>> index = PairIndex()
    >>> slots = index.find(np.array([7, 7, 8]), np.array([30, 20, 30]))
    >>> len(index), index.find(np.array([7, 7]), np.array([20, 20])).tolist() == [slots[1]] * 2
    (3, True)
    >>> index.release(slots[:2])
    >>> index.slots().tolist() == [slots[2]]
    True
    """

    def __init__(self) -> None:
        self.size = 0
        self.number: Ticks = np.empty(0, dtype=np.int64)
        self.group: Ticks = np.empty(0, dtype=np.int64)
        self._places: Places = np.empty(0, dtype=np.int32)
        self._table: Places = np.full(_LEAST, _EMPTY, dtype=np.int32)
        self._n_taken = 0
        """The number of places of the hash table that are not empty."""
        self._first = self._lowest = 0
        self._width = 1
        """The number of groups in the block; 0: pairs are hashed."""
        self._released: Places = np.empty(0, dtype=np.int32)
        self._n_released = 0
        self._fresh = 0
        """The first slot that has never been used."""
        self.grow(_LEAST)

    def __len__(self) -> int:
        return self._fresh - self._n_released

    @property
    def stop(self) -> int:
        """A number that all slots are below."""
        return self._fresh

    @property
    def n_free(self) -> int:
        """The number of released slots."""
        return self._n_released

    @property
    def is_empty(self) -> bool:
        """Whether no slot is in use."""
        return self._fresh == self._n_released

    def find(self, numbers: Ticks, groups: Ticks) -> Rows:
        """Return the slot of each pair; missing pairs get one. O(1) each."""
        if len(numbers) == 1:
            return np.array([self.find_one(int(numbers[0]), int(groups[0]))])
        pairs = few_pairs(numbers, groups) if not self._width else None
        if pairs is None:
            return self.find_different(numbers, groups)
        return self.find_different(pairs.first, pairs.second)[pairs.index]

    def find_one(self, number: int, group: int) -> int:
        """Return the slot of a single pair, which gets one if it is missing, without columns."""
        table, place = self._table, self._home_of(number, group)
        if place is None:
            return int(self.find_different(np.array([number]), np.array([group]))[0])
        slot = table.item(place)
        while slot != _EMPTY:
            if slot >= 0 and self.group.item(slot) == group and self.number.item(slot) == number:
                return slot
            place = (place + 1) & (len(table) - 1)
            slot = table.item(place)
        is_full = not self._width and 2 * (self._n_taken + 1) > len(table)
        if is_full or not (self._n_released or self._fresh < self.size):
            return int(self.find_different(np.array([number]), np.array([group]))[0])
        slot = self._take_one()
        table[place], self._places[slot] = slot, place
        self.number[slot], self.group[slot] = number, group
        self._n_taken += 1
        self.made_one(slot, number, group)
        return slot

    def find_different(self, numbers: Ticks, groups: Ticks) -> Rows:
        """Do what `find` does, faster if most of the pairs are different."""
        if len(numbers):
            self._fit(numbers, groups)
        places = self._home(numbers, groups)
        slots = self._seek(numbers, groups, places)
        missing = flatnonzero(slots < 0)
        while len(missing):
            asked, wanted, at = numbers[missing], groups[missing], places[missing]
            if self._make_room(asked, wanted):
                at = self._home(asked, wanted)
                self._seek(asked, wanted, at)
            self._claim(asked, wanted, at)
            slots[missing], places[missing] = self._seek(asked, wanted, at), at
            missing = missing[slots[missing] < 0]
        return slots

    def seek(self, numbers: Ticks, groups: Ticks) -> Rows:
        """Return the slot of each pair, a negative number where there is none."""
        if not self._width or not len(numbers) or self._holds(numbers, groups):
            return self._seek(numbers, groups, self._home(numbers, groups))
        stop = self._first + len(self._table) // self._width
        within = (numbers >= self._first) & (numbers < stop) & (groups >= self._lowest) & (groups < self._lowest + self._width)
        rows = flatnonzero(within)
        slots = np.full(len(numbers), _EMPTY, dtype=np.intp)
        slots[rows] = self._table[self._home(numbers[rows], groups[rows])]
        return slots

    def _seek(self, numbers: Ticks, groups: Ticks, places: Rows) -> Rows:
        """Return the slots of pairs, -1 for a missing one, probing from `places` on; these become the places of the slots."""
        slots = self._table[places].astype(np.intp)
        if self._width:
            return slots
        left = flatnonzero(~self._is_settled(slots, numbers, groups))
        while len(left):
            places[left] = (places[left] + 1) & (len(self._table) - 1)
            found: Rows = self._table[places[left]].astype(np.intp)
            slots[left] = found
            left = left[~self._is_settled(found, numbers[left], groups[left])]
        return slots

    def _is_settled(self, slots: Rows, numbers: Ticks, groups: Ticks) -> NDArray[np.bool_]:
        """Say which slots are the right ones, or empty: their probing ends."""
        settled: NDArray[np.bool_] = (self.group[slots] == groups) & (self.number[slots] == numbers) & (slots >= 0)
        settled |= slots == _EMPTY
        return settled

    def _claim(self, numbers: Ticks, groups: Ticks, places: Rows) -> None:
        """Make slots at empty places. If several rows claim one place, one of them gets it."""
        claims = _CLAIM - np.arange(len(places), dtype=np.int32)
        self._table[places] = claims
        got = flatnonzero(self._table[places] == claims)
        slots = self._take(len(got))
        self._table[places[got]] = slots
        self._places[slots] = places[got]
        self.number[slots], self.group[slots] = numbers[got], groups[got]
        self._n_taken += len(got)
        self.made(slots)

    def made(self, slots: Rows) -> None:
        """Record slots that have just been made."""

    def made_one(self, slot: int, number: int, group: int) -> None:
        """Record a single slot that has just been made."""
        self.made(np.array([slot]))

    def _home_of(self, number: int, group: int) -> int | None:
        """Return what `_home` does, for a single pair; None if the block has no place for it."""
        if self._width:
            row, column = number - self._first, group - self._lowest
            is_within = 0 <= column < self._width and 0 <= row < len(self._table) // self._width
            return row * self._width + column if is_within else None
        first, second, last = _FACTORS
        mixed = (group * first + number * second) & _ALL
        mixed = ((mixed ^ (mixed >> 32)) * last) & _ALL
        return mixed >> (65 - len(self._table).bit_length())

    def _home(self, numbers: Ticks, groups: Ticks) -> Rows:
        """Return the first place to be probed for each pair."""
        if self._width:
            places = numbers - self._first
            places *= self._width
            places += groups
            places -= self._lowest
            return places
        first, second, last, half = _MIX
        mixed = groups.view(np.uint64) * first
        mixed += numbers.view(np.uint64) * second
        mixed ^= mixed >> half
        mixed *= last
        mixed >>= np.uint64(65 - len(self._table).bit_length())
        return mixed.view(np.int64)

    def _make_room(self, numbers: Ticks, groups: Ticks) -> bool:
        """Rebuild the table if it has no room for so many more slots, and say whether it was rebuilt."""
        if self._width or 2 * (self._n_taken + len(numbers)) <= len(self._table):
            return False
        wanted = len(self) + _count_pairs(numbers, groups)
        if 2 * (self._n_taken - len(self) + wanted) <= len(self._table):
            return False
        self._rebuild(numbers, groups, wanted)
        return True

    def _fit(self, numbers: Ticks, groups: Ticks) -> None:
        """Make sure that a block has a place for each of these pairs."""
        if self._width and not (self._holds(numbers, groups)):
            self._rebuild(numbers, groups, len(self) + _count_pairs(numbers, groups))

    def _holds(self, numbers: Ticks, groups: Ticks) -> bool:
        stop = self._first + len(self._table) // self._width
        is_within = least(groups) >= self._lowest and largest(groups) < self._lowest + self._width
        return is_within and least(numbers) >= self._first and largest(numbers) < stop

    def _rebuild(self, numbers: Ticks, groups: Ticks, wanted: int) -> None:
        """Make a table for the pairs that are in use and for these, so many in all: a block if they lie close together."""
        slots = self.slots()
        known, known_groups = self.number[slots], self.group[slots]
        held = len(slots) > 0
        (first, n), (lowest, width) = span_of([numbers, *[known] * held]), span_of([groups, *[known_groups] * held])
        self._n_taken = len(slots)
        if n * width <= wanted * next(each for most, each in _SPARSE if n * width <= most):
            # Numbers and groups that come later are larger, mostly.
            self._first, self._lowest, self._width = first, lowest, width + max(width // 4, _SLACK)
            size = max(2 * n, _SLACK) * self._width
        else:
            self._width, size = 0, max(_LEAST, 1 << (3 * wanted - 1).bit_length())
        self._table = np.full(size, _EMPTY, dtype=np.int32)
        places = self._home(known, known_groups)
        while len(slots):
            empty = flatnonzero(self._table[places] == _EMPTY)
            self._table[places[empty]] = slots[empty]
            is_in = self._table[places] == slots
            self._places[slots[is_in]] = places[is_in]
            slots, places = slots[~is_in], (places[~is_in] + 1) & (size - 1)

    def _take_one(self) -> int:
        if self._n_released:
            self._n_released -= 1
            return self._released.item(self._n_released)
        self._fresh += 1
        return self._fresh - 1

    def _take(self, n: int) -> Rows:
        again = min(n, self._n_released)
        self._n_released -= again
        slots = self._released[self._n_released : self._n_released + again].astype(np.intp)
        if again == n:
            return slots
        first, self._fresh = self._fresh, self._fresh + n - again
        if self._fresh > self.size:
            self.grow(max(self.size + max(self.size // 8, _LEAST), self._fresh))
        return np.concatenate([slots, np.arange(first, self._fresh)])

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        old, self.size = self.size, size
        self._places = np.concatenate([self._places, np.full(size - old, _EMPTY, dtype=np.int32)])
        self.number, self.group = longer(self.number, size), longer(self.group, size)

    def release(self, slots: Rows) -> None:
        """Release slots; they are used again."""
        if len(slots):
            self._table[self._places[slots]] = _EMPTY if self._width else _GONE
            self._places[slots] = _GONE
            before, self._n_released = self._n_released, self._n_released + len(slots)
            if self._n_released > len(self._released):
                self._released = longer(self._released, max(self._n_released, 2 * len(self._released)))
            self._released[before : self._n_released] = slots

    def slots(self) -> Rows:
        """Return all slots in use, those of a block by number and group, others in their own order."""
        return self._table[flatnonzero(self._table >= 0)].astype(np.intp) if self._width else flatnonzero(self._places >= 0)

    def each_once(self, parts: Iterable[Rows]) -> Rows:
        """Return slots in use in the order in which `slots` has them, each once.

        >>> index = PairIndex()
        >>> slots = index.find(np.array([8, 7, 8]), np.array([1, 2, 1]))
        >>> index.each_once([slots]).tolist() == slots[[1, 0]].tolist()
        True
        """
        columns = list(parts)
        slots = columns[0] if len(columns) == 1 else np.concatenate([np.empty(0, dtype=np.intp), *columns])
        if len(slots) < 2:
            return slots
        if not self._width:
            return distinct(slots, self.size)
        return self._table[distinct(self._places[slots].astype(np.intp), len(self._table))].astype(np.intp)


def longer(column: NDArray[Any], size: int) -> NDArray[Any]:
    """Return a column with zeros after it."""
    return np.concatenate([column, np.zeros(size - len(column), dtype=column.dtype)])


def _count_pairs(numbers: Ticks, groups: Ticks) -> int:
    """Estimate the number of distinct pairs, from below."""
    mixed = np.sort(groups * 0x9E3779B97F4A7C1 + numbers)
    return 1 + int(np.count_nonzero(mixed[1:] != mixed[:-1]))
