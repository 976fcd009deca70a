"""Lanes: what aggregates keep of the rows of a window, as integers that only add up, so that any row can be taken out again."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Rows
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import Ticks

Counted: TypeAlias = Literal["rows", "missing", "floats", "nan", "inf", "-inf"]
LaneKey: TypeAlias = tuple[int, Counted | int]
"""The aggregate's number, and what the lane counts, or w for a digit of weight 2 ** (32 * w) of its sum."""

ROWS: Final[LaneKey] = (-1, "rows")
"""The number of rows, whatever the aggregates make of them."""
DIGIT: Final = 32
"""The bits of a digit; a lane has room for many sums of digits before they must be carried."""
_ROOM: Final = 2**62
_HALF: Final = 2 ** (DIGIT - 1)


class Part(NamedTuple):
    """What rows add to one lane: an amount (None: one) for each of `rows` (None: every row), none larger than `largest`."""

    lane: LaneKey
    rows: Rows | None
    amounts: Ticks | None
    largest: int

    def times(self, signs: Ticks) -> Part:
        """Return the part with the amounts of some rows taken out."""
        mine = signs if self.rows is None else signs[self.rows]
        return self._replace(amounts=mine if self.amounts is None else self.amounts * mine)

    def take(self, rows: Rows, places: Rows) -> Part:
        """Return what some rows add; `places` are those of all rows among them, -1 for the others."""
        if self.rows is None:
            return self if self.amounts is None else self._replace(amounts=self.amounts[rows])
        at = places[self.rows]
        kept = np.flatnonzero(at >= 0)
        return self._replace(rows=at[kept], amounts=None if self.amounts is None else self.amounts[kept])


class Loose(NamedTuple):
    """Values that are not numbers: they are kept as they are, `counts` times each."""

    aggregate: int
    rows: Sequence[int]
    values: Sequence[Any]
    counts: Sequence[int]

    def times(self, signs: Ticks) -> Loose:
        """Return the values, those of some rows to be taken out."""
        return self._replace(counts=[int(signs[row]) * count for row, count in zip(self.rows, self.counts, strict=True)])

    def take(self, places: Rows) -> Loose:
        """Return the values of some rows; `places` are those of all rows among them, -1 for the others."""
        each = zip(self.rows, self.values, self.counts, strict=True)
        kept = [(int(places[row]), value, count) for row, value, count in each if places[row] >= 0]
        rows, values, counts = zip(*kept, strict=True) if kept else ((), (), ())
        return Loose(self.aggregate, rows, values, counts)


@dataclass(slots=True)
class Terms:
    """What `size` rows add to all lanes."""

    size: int
    parts: list[Part] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)

    def __neg__(self) -> Terms:
        return self.times(np.full(self.size, -1))

    def times(self, signs: Ticks) -> Terms:
        """Return the terms of rows that are added (1) or taken out (-1)."""
        return Terms(self.size, [part.times(signs) for part in self.parts], [loose.times(signs) for loose in self.loose])

    @property
    def counts_rows(self) -> bool:
        """Whether every row adds one to each lane."""
        return not self.loose and all(part.rows is None and part.amounts is None for part in self.parts)

    @staticmethod
    def concat(parts: Sequence[Terms]) -> Terms:
        """Return the terms of rows one after the other."""
        whole, first = Terms(sum(part.size for part in parts)), 0
        if all(part.counts_rows for part in parts):
            return Terms(whole.size, parts[0].parts)
        for part in parts:
            here = np.arange(first, first + part.size)
            whole.parts += [each._replace(rows=here if each.rows is None else here[each.rows]) for each in part.parts]
            whole.loose += [each._replace(rows=[first + row for row in each.rows]) for each in part.loose]
            first += part.size
        return whole

    def take(self, rows: Rows) -> Terms:
        """Return what some rows add, in this order."""
        if len(rows) == self.size:
            return self
        places = np.full(self.size, -1, dtype=np.intp)
        places[rows] = np.arange(len(rows))
        return Terms(len(rows), [part.take(rows, places) for part in self.parts], [loose.take(places) for loose in self.loose])


class Bag:
    """Values with their numbers; equal values are one.

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
        """Put a value in `count` times, or take it out if that is negative."""
        key = (type(value), payload_key(value))
        kept, total = self._items.get(key, (value, 0))
        if total + count:
            self._items[key] = (kept, total + count)
        else:
            del self._items[key]

    def merge(self, other: Bag) -> None:
        """Put in what another bag holds."""
        for value, count in list(other._items.values()):
            self.add(value, count)

    def values(self) -> list[Any]:
        """Return every value as often as it is in."""
        return [value for value, count in self._items.values() for _ in range(count)]

    def __len__(self) -> int:
        return len(self._items)


class Lanes:
    """Lanes of one length, made when something is first added to them; position by position they hold sums of terms.

    Sums are exact: a lane's digits are carried to the next before they can overflow.

    >>> lanes = Lanes(2)
    >>> lanes.add(np.array([0, 0, 1]), Terms(3, [Part(ROWS, None, np.array([1, 1, 1]), 1)]))
    >>> lanes.counts(ROWS).tolist()
    [2, 1]
    """

    __slots__ = ("_arrays", "_bags", "_bounds", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._arrays: dict[LaneKey, Ticks] = {}
        self._bounds: dict[LaneKey, int] = {}
        self._bags: dict[int, dict[int, Bag]] = {}

    def counts(self, key: LaneKey) -> Ticks:
        """Return a lane; zeros if nothing was added to it."""
        array = self._arrays.get(key)
        return np.zeros(self.size, dtype=np.int64) if array is None else array

    def holds(self, key: LaneKey) -> bool:
        """Say whether something was ever added to a lane."""
        return key in self._arrays

    def weights(self, aggregate: int) -> list[int]:
        """Return the weights of an aggregate's digits, lowest first."""
        return sorted(key[1] for key in self._arrays if key[0] == aggregate and isinstance(key[1], int))

    def bags(self, aggregate: int) -> dict[int, Bag]:
        """Return the values that are not numbers, by position."""
        return self._bags.get(aggregate, {})

    def add(self, index: Rows, terms: Terms) -> None:
        """Add the terms of row i at position `index[i]`."""
        for part in terms.parts:
            at = index if part.rows is None else index[part.rows]
            self._reserve(part.lane, part.largest * len(at))
            lane = self._lane(part.lane)
            if part.amounts is None and self.size < 2 * len(at):
                lane += np.bincount(at, minlength=self.size)
            else:
                np.add.at(lane, at, 1 if part.amounts is None else part.amounts)
        for loose in terms.loose:
            for row, value, count in zip(loose.rows, loose.values, loose.counts, strict=True):
                self._bag(loose.aggregate, int(index[row])).add(value, count)

    def add_sums(self, key: LaneKey, sums: Ticks, amount: int) -> None:
        """Add to a lane at every position, no more than `amount` in all."""
        self._reserve(key, amount)
        self._lane(key)[:] += sums

    def cumulate(self, width: int = 1) -> None:
        """Make each position the sum of all up to it, in steps of `width`.

        No bound grows by that, as it counts what all positions have been given.
        """
        for array in self._arrays.values():
            steps = array.reshape(-1, width)
            np.cumsum(steps, axis=0, out=steps)
        for bags in self._bags.values():
            _cumulate_bags(bags, self.size)

    def merge(self, slots: Rows, other: Lanes) -> None:
        """Add another's positions to `slots`, of which no two are equal."""
        for key, array in list(other._arrays.items()):
            self._reserve(key, other._bounds.get(key, 0))
            self._lane(key)[slots] += array
        for aggregate, bags in other._bags.items():
            for position, bag in bags.items():
                self._bag(aggregate, int(slots[position])).merge(bag)

    def take(self, slots: Rows) -> Lanes:
        """Return these slots as positions of their own."""
        taken = Lanes(len(slots))
        taken._arrays = {key: array[slots] for key, array in self._arrays.items()}
        taken._bounds = dict(self._bounds)
        for aggregate, bags in self._bags.items():
            at = np.flatnonzero(np.isin(slots, list(bags))).tolist()
            taken._bags[aggregate] = {position: bags[int(slots[position])] for position in at}
        return taken

    def copy(self, slots: Rows, sources: Rows) -> None:
        """Let `slots` hold what the `sources` hold."""
        for array in self._arrays.values():
            array[slots] = array[sources]
        for bags in self._bags.values():
            for slot, source in zip(slots.tolist(), sources.tolist(), strict=True):
                bags[slot] = Bag()
                bags[slot].merge(bags.get(source, Bag()))

    def add_from(self, slots: Rows, sources: Rows) -> None:
        """Add to each of `slots` what one of `sources` holds, to which nothing is added."""
        for array in self._arrays.values():
            np.add.at(array, slots, array[sources])
        for bags in self._bags.values():
            for slot, source in zip(slots.tolist(), sources.tolist(), strict=True):
                if source in bags:
                    bags.setdefault(slot, Bag()).merge(bags[source])

    def add_lanes(self, index: Rows, other: Lanes) -> None:
        """Add another's position i at position `index[i]`."""
        for key, array in other._arrays.items():
            self._reserve(key, other._bounds.get(key, 0))
            np.add.at(self._lane(key), index, array)
        for aggregate, bags in other._bags.items():
            for position, bag in bags.items():
                self._bag(aggregate, int(index[position])).merge(bag)

    def run_up(self, slots: Rows, starts: Rows) -> None:
        """Make each of `slots` the sum of those before it and itself, from the last position in `starts` on."""
        lengths = np.diff(starts, append=len(slots))
        for array in self._arrays.values():
            sums = np.cumsum(array[slots])
            if len(starts) > 1:
                sums -= np.repeat(sums[starts] - array[slots[starts]], lengths)
            array[slots] = sums
        for bags in self._bags.values():
            _run_up_bags(bags, slots, starts)

    def clear(self, slots: Rows) -> None:
        """Make these slots as if nothing had been added to them."""
        for array in self._arrays.values():
            array[slots] = 0
        for bags in self._bags.values():
            for slot in slots.tolist():
                bags.pop(slot, None)

    def are_zero(self, slots: Rows) -> NDArray[np.bool_]:
        """Say in which slots all that was added has been taken out again."""
        zero: NDArray[np.bool_] = self.counts(ROWS)[slots] == 0
        candidates = np.flatnonzero(zero)
        if len(candidates):
            taken = self.take(slots[candidates])
            taken.carry()
            zero[candidates] = taken._nothing()
        return zero

    def _nothing(self) -> NDArray[np.bool_]:
        zero = np.ones(self.size, dtype=np.bool_)
        for array in self._arrays.values():
            zero &= array == 0
        for bags in self._bags.values():
            zero[[position for position, bag in bags.items() if len(bag)]] = False
        return zero

    def carry(self) -> None:
        """Bring every digit into `[-2**31, 2**31)`; equal sums then have equal digits."""
        waiting = [key for key in self._arrays if _is_digit(key)]
        heapq.heapify(waiting)
        while waiting:
            key = heapq.heappop(waiting)
            array = self._arrays[key]
            carried = (array + _HALF) >> DIGIT
            self._bounds[key] = _HALF * max(1, self.size)
            if carried.any():
                array -= carried << DIGIT
                self._carry_to((key[0], int(key[1]) + 1), carried, waiting)

    def _carry_to(self, key: LaneKey, carried: Ticks, waiting: list[LaneKey]) -> None:
        if key not in self._arrays:
            heapq.heappush(waiting, key)
        self._lane(key)[:] += carried
        self._bounds[key] = self._bounds.get(key, 0) + (_ROOM >> DIGIT)

    def grow(self, size: int) -> None:
        """Make the lanes longer."""
        for key, array in self._arrays.items():
            self._arrays[key] = np.zeros(size, dtype=np.int64)
            self._arrays[key][: self.size] = array
        self.size = size

    @property
    def nbytes(self) -> int:
        """The memory of the lanes."""
        return sum(array.nbytes for array in self._arrays.values())

    def _lane(self, key: LaneKey) -> Ticks:
        array = self._arrays.get(key)
        if array is None:
            array = self._arrays[key] = np.zeros(self.size, dtype=np.int64)
        return array

    def _bag(self, aggregate: int, slot: int) -> Bag:
        return self._bags.setdefault(aggregate, {}).setdefault(slot, Bag())

    def _reserve(self, key: LaneKey, amount: int) -> None:
        """Make room for so much more in every position of a lane."""
        if not _is_digit(key):
            return
        if self._bounds.get(key, 0) + amount > _ROOM:
            self.carry()
        self._bounds[key] = self._bounds.get(key, 0) + amount


def _is_digit(key: LaneKey) -> bool:
    return isinstance(key[1], int)


def _cumulate_bags(bags: dict[int, Bag], size: int) -> None:
    running = Bag()
    for position in range(size):
        running.merge(bags.get(position, Bag()))
        bags[position] = Bag()
        bags[position].merge(running)


def _run_up_bags(bags: dict[int, Bag], slots: Rows, starts: Rows) -> None:
    running, begins = Bag(), set(starts.tolist())
    for position, slot in enumerate(slots.tolist()):
        running = Bag() if position in begins else running
        running.merge(bags.get(slot, Bag()))
        bags[slot] = Bag()
        bags[slot].merge(running)


def distinct(slots: Iterable[Rows]) -> Rows:
    """Return the slots, each once, in order.

    >>> distinct([np.array([3, 1]), np.array([1])]).tolist()
    [1, 3]
    """
    found = np.sort(np.concatenate([np.empty(0, dtype=np.intp), *slots]))
    return found[np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))] if len(found) else found
