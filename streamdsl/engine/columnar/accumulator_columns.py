"""Accumulator columns: the totals of windows as integers that are only added and subtracted, so that any row can be retracted."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.bag import Bag
from streamdsl.engine.columnar.digits import LARGEST, digit_weights, parts_of, real_parts
from streamdsl.engine.columnar.kernels import DIGIT_ADDER
from streamdsl.engine.columnar.terms import DIGIT, ROWS, ColumnKey, FloatTerms, Part, Terms
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks

_ROOM: Final = 2**62
_HALF: Final = 2 ** (DIGIT - 1)
_ONE: Final = np.ones(1, dtype=np.int64)

RowParts: TypeAlias = list[tuple[ColumnKey, int]]
"""What a row adds to the totals: for each column an amount no larger than a digit."""


class AccumulatorColumns:
    """Totals by position, in one integer column for each count and each digit of a sum. A column is made when it is first needed.

    Sums are exact, in any order of additions and retractions: before a digit can overflow, all are carried to the next one.
    `_bounds` is a bound of the totals of each column that tells when.


    >>> from streamdsl.engine.columnar.terms import Part
    >>> totals = AccumulatorColumns(2)
    >>> totals.add(np.array([0, 0, 1]), Terms(3, [Part(ROWS, None, np.array([1, 1, 1]), 1)]))
    >>> totals.counts(ROWS).tolist()
    [2, 1]
    """

    __slots__ = ("_arrays", "_bags", "_bounds", "_real", "_weights", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._arrays: dict[ColumnKey, Ticks] = {}
        self._bounds: dict[ColumnKey, int] = {}
        self._bags: dict[int, dict[int, Bag]] = {}
        self._weights: dict[int, tuple[int, list[int]]] = {}
        """The weights of each aggregate's digits, with the number of columns for which they were computed."""
        self._real: set[int] = set()
        """The aggregates for which every row has added a float: their count of floats is that of rows, and has no column."""

    @classmethod
    def of_spans(cls, first: Rows, last: Rows, size: int, terms: Terms) -> AccumulatorColumns:
        """Return totals to which each row has added its terms at all positions from its `first` up to its `last`, exclusive.


        >>> from streamdsl.engine.columnar.terms import Part
        >>> terms = Terms(2, [Part(ROWS, None, None, 1)])
        >>> AccumulatorColumns.of_spans(np.array([0, 1]), np.array([2, 4]), 4, terms).counts(ROWS).tolist()
        [1, 2, 1, 1]
        """
        if (last - first == 1).all():
            totals = cls(size)
            totals.add(first, terms)
            return totals
        totals = cls(size + 1)
        if DIGIT_ADDER.over(terms.size) is None:  # then split floats into digits once for both ends
            terms = Terms(terms.size, list(parts_of(terms)), terms.non_numeric)
        totals.add(first, terms)
        totals.add(last, -terms)
        totals.cumulate()
        return totals.take(np.arange(size))

    def counts(self, key: ColumnKey) -> Ticks:
        """Return a column; zeros if it does not exist."""
        array = self._arrays.get(ROWS if key[1] == "floats" and key[0] in self._real else key)
        return np.zeros(self.size, dtype=np.int64) if array is None else array

    def holds(self, key: ColumnKey) -> bool:
        """Say whether a column exists."""
        return key in self._arrays

    def weights(self, aggregate: int) -> list[int]:
        """Return the weights of an aggregate's digits, lowest first."""
        n_columns, found = self._weights.get(aggregate, (0, []))
        if n_columns != len(self._arrays):
            found = sorted(weight for number, weight in self._arrays if number == aggregate and isinstance(weight, int))
            self._weights[aggregate] = len(self._arrays), found
        return found

    def bags(self, aggregate: int) -> dict[int, Bag]:
        """Return the non-numeric values of an aggregate, by position."""
        return self._bags.get(aggregate, {})

    def add(self, index: Rows, terms: Terms) -> None:
        """Add the terms of row i at position `index[i]`."""
        self._count_reals({reals.aggregate for reals in terms.reals if reals.rows is None})
        for part in terms.parts:
            self._add_part(index, part)
        for reals in terms.reals:
            self._add_reals(index, reals)
        for non_numeric in terms.non_numeric:
            for row, value, count in zip(non_numeric.rows, non_numeric.values, non_numeric.counts, strict=True):
                self._bag(non_numeric.aggregate, int(index[row])).add(value, count)

    def add_one(self, key: ColumnKey, slot: int, amount: int) -> int:
        """Add an integer no larger than a digit at one position of a column, and return the total."""
        column, bound = self._arrays.get(key), self._bounds.get(key, 0) + abs(amount)
        if column is None or bound > _ROOM:
            self._reserve(key, abs(amount))
            column = self._column(key)
        else:
            self._bounds[key] = bound
        total: int = column.item(slot) + amount
        column[slot] = total
        return total

    def at(self, key: ColumnKey, slot: int) -> int:
        """Return the total at one position of a column."""
        column = self._arrays.get(ROWS if key[1] == "floats" and key[0] in self._real else key)
        return 0 if column is None else column.item(slot)

    def are_at(self, keys: Iterable[ColumnKey], slot: int) -> bool:
        """Say whether one of these columns is not zero at a position."""
        arrays = self._arrays
        return any(arrays[key].item(slot) for key in keys if key in arrays)

    def digits_at(self, aggregate: int, slot: int) -> tuple[int, int]:
        """Return an aggregate's sum in one position, as an integer and the power of two that divides it.

        >>> totals = AccumulatorColumns(1)
        >>> totals.add_one((0, -1), 0, 2**31), totals.digits_at(0, 0)
        (2147483648, (2147483648, 32))
        """
        weights, arrays = self.weights(aggregate), self._arrays
        lowest = min(weights[0], 0) if weights else 0
        whole = 0
        for weight in weights:
            whole += arrays[aggregate, weight].item(slot) << (DIGIT * (weight - lowest))
        return whole, -DIGIT * lowest

    def add_row(self, parts: RowParts, slot: int, sign: int) -> int:
        """Add (or subtract) a row and its parts at a position, and return the number of rows there."""
        rows = self.add_one(ROWS, slot, sign)
        for key, amount in parts:
            if key[1] != "floats" or key[0] not in self._real:
                self.add_one(key, slot, sign * amount)
        return rows

    def count_reals(self, aggregates: AbstractSet[int]) -> None:
        """Make sure that floats are counted before a row is added that adds a float to just these aggregates."""
        if self._real != aggregates:
            self._count_reals(set(aggregates))

    def _add_part(self, index: Rows, part: Part) -> None:
        at = index if part.rows is None else index[part.rows]
        self._reserve(part.column, part.largest * len(at))
        column = self._column(part.column)
        if len(at) == 1:
            column[at] += 1 if part.amounts is None else part.amounts
        elif part.amounts is None and self.size < 2 * len(at):
            column += np.bincount(at, minlength=self.size)
        else:
            np.add.at(column, at, _ONE if part.amounts is None else part.amounts)

    def _add_reals(self, index: Rows, reals: FloatTerms) -> None:
        adder = DIGIT_ADDER.over(len(reals.values))
        weights = digit_weights(np.abs(reals.values)) if adder is not None else None
        if adder is None or not weights:
            for part in real_parts(reals):
                if part.column[1] != "floats" or reals.aggregate not in self._real:
                    self._add_part(index, part)
            return
        at = index if reals.rows is None else index[reals.rows]
        if reals.aggregate not in self._real:
            count = Part((reals.aggregate, "floats"), reals.rows, None, 1)
            self._add_part(index, count if reals.signs is None else count.times(reals.signs))
        keys: list[ColumnKey] = [(reals.aggregate, weight) for weight in weights]
        for key in keys:
            self._reserve(key, LARGEST * len(at))
        scales = 2.0 ** (DIGIT * np.array(weights, dtype=np.float64))
        adder(reals.signed, at, tuple(map(self._column, keys)), 1 / scales, scales)

    def _count_reals(self, aggregates: set[int]) -> None:
        """Give a count of floats to the aggregates for which it will no longer be that of rows."""
        if ROWS not in self._arrays:
            self._real = aggregates
            return
        for aggregate in self._real - aggregates:
            self._arrays[aggregate, "floats"] = self._arrays[ROWS].copy()
            self._bounds[aggregate, "floats"] = self._bounds[ROWS]
        self._real &= aggregates

    def _columns_of(self, other: AccumulatorColumns) -> Iterator[tuple[ColumnKey, Ticks]]:
        """Yield the columns of other totals, after making them fit here."""
        self._count_reals(set(other._real))
        for key, array in other._arrays.items():
            self._reserve(key, other._bounds.get(key, 0))
            yield key, array
        for aggregate in other._real - self._real:
            self._reserve((aggregate, "floats"), other._bounds.get(ROWS, 0))
            yield (aggregate, "floats"), other.counts(ROWS)

    def add_sums(self, key: ColumnKey, sums: Ticks, amount: int) -> None:
        """Add to a column at every position; `amount` bounds what is added in all."""
        self._reserve(key, amount)
        self._column(key)[:] += sums

    def cumulate(self, width: int = 1) -> None:
        """Replace each position by the sum of all positions up to it, in strides of `width`.

        Bounds stay valid, as they bound the sum over all positions.
        """
        for array in self._arrays.values():
            steps = array.reshape(-1, width)
            np.cumsum(steps, axis=0, out=steps)
        for bags in self._bags.values():
            _cumulate_bags(bags, self.size)

    def merge(self, slots: Rows, other: AccumulatorColumns) -> None:
        """Add the positions of other totals at `slots`, which are distinct."""
        for key, array in self._columns_of(other):
            self._column(key)[slots] += array
        for aggregate, bags in other._bags.items():
            for position, bag in bags.items():
                self._bag(aggregate, int(slots[position])).merge(bag)

    def take(self, slots: Rows) -> AccumulatorColumns:
        """Return the totals at these slots."""
        taken = AccumulatorColumns(len(slots))
        taken._arrays = {key: array[slots] for key, array in self._arrays.items()}
        taken._bounds = dict(self._bounds)
        taken._real = set(self._real)
        for aggregate, bags in self._bags.items():
            at = flatnonzero(np.isin(slots, list(bags))).tolist()
            taken._bags[aggregate] = {position: bags[int(slots[position])] for position in at}
        return taken

    def copy(self, slots: Rows, sources: Rows) -> None:
        """Copy the totals at `sources` to `slots`."""
        for array in self._arrays.values():
            array[slots] = array[sources]
        for bags in self._bags.values():
            for slot, source in zip(slots.tolist(), sources.tolist(), strict=True):
                bags[slot] = Bag()
                bags[slot].merge(bags.get(source, Bag()))

    def add_from(self, slots: Rows, sources: Rows) -> None:
        """Add to each of `slots` the totals of one of `sources`, which are not among them."""
        for array in self._arrays.values():
            np.add.at(array, slots, array[sources])
        for bags in self._bags.values():
            for slot, source in zip(slots.tolist(), sources.tolist(), strict=True):
                if source in bags:
                    bags.setdefault(slot, Bag()).merge(bags[source])

    def add_one_from(self, slot: int, source: int) -> None:
        """Do what `add_from` does, for a single slot without non-numeric values."""
        for key, array in list(self._arrays.items()):
            amount = array.item(source)
            if amount:
                self.add_one(key, slot, amount)

    def copy_one(self, slot: int, source: int) -> None:
        """Do what `copy` does, for a single slot without non-numeric values."""
        for array in self._arrays.values():
            array[slot] = array[source]

    @property
    def are_numbers(self) -> bool:
        """Whether no non-numeric value has been added."""
        return not self._bags

    def run_up(self, slots: Rows, starts: Rows) -> None:
        """Replace each of `slots` by the sum of it and those before it, back to the last position in `starts`."""
        lengths = np.diff(starts, append=len(slots))
        for array in self._arrays.values():
            sums = np.cumsum(array[slots])
            if len(starts) > 1:
                sums -= np.repeat(sums[starts] - array[slots[starts]], lengths)
            array[slots] = sums
        for bags in self._bags.values():
            _run_up_bags(bags, slots, starts)

    def clear(self, slots: Rows) -> None:
        """Set the totals at these slots to zero."""
        for array in self._arrays.values():
            array[slots] = 0
        for bags in self._bags.values():
            for slot in slots.tolist():
                bags.pop(slot, None)

    def are_zero(self, slots: Rows) -> NDArray[np.bool_]:
        """Say which slots have only zeros."""
        zero: NDArray[np.bool_] = self.counts(ROWS)[slots] == 0
        candidates = flatnonzero(zero)
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
        """Carry every digit into `[-2**31, 2**31)`. Equal sums then have equal digits."""
        waiting = [key for key in self._arrays if isinstance(key[1], int)]
        heapq.heapify(waiting)
        while waiting:
            key = heapq.heappop(waiting)
            array = self._arrays[key]
            carried = (array + _HALF) >> DIGIT
            self._bounds[key] = _HALF * max(1, self.size)
            if carried.any():
                array -= carried << DIGIT
                self._carry_to((key[0], int(key[1]) + 1), carried, waiting)

    def _carry_to(self, key: ColumnKey, carried: Ticks, waiting: list[ColumnKey]) -> None:
        if key not in self._arrays:
            heapq.heappush(waiting, key)
        self._column(key)[:] += carried
        self._bounds[key] = self._bounds.get(key, 0) + (_ROOM >> DIGIT)

    def grow(self, size: int) -> None:
        """Add positions."""
        for key, array in self._arrays.items():
            self._arrays[key] = longer(array, size)
        self.size = size

    def _column(self, key: ColumnKey) -> Ticks:
        array = self._arrays.get(key)
        if array is None:
            array = self._arrays[key] = np.zeros(self.size, dtype=np.int64)
        return array

    def _bag(self, aggregate: int, slot: int) -> Bag:
        return self._bags.setdefault(aggregate, {}).setdefault(slot, Bag())

    def _reserve(self, key: ColumnKey, amount: int) -> None:
        """Make sure that a column does not overflow if so much is added."""
        if self._bounds.get(key, 0) + amount > _ROOM:
            self.carry()
        self._bounds[key] = self._bounds.get(key, 0) + amount


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
