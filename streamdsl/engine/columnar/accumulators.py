"""The aggregates that have totals (counts, sums, means, variances): what a row adds to them, and how results are computed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns, RowParts
from streamdsl.engine.columnar.digits import (
    DIRECT,
    SPECIAL,
    digit_places,
    huge_parts,
    integer_parts,
    integer_square_parts,
    square_parts,
    square_places,
    squares_of,
)
from streamdsl.engine.columnar.exact import floats, integers, rounded, variance_of, variances
from streamdsl.engine.columnar.terms import ROWS, ColumnKey, FloatTerms, NonNumericTerms, Part, Terms
from streamdsl.expr.evaluate import RowError
from streamdsl.expr.table import Column, Rows, column_of, flatnonzero
from streamdsl.temporal.time import Ticks
from streamdsl.udm.builtin import Avg, Builtin, Count, Stddev, Sum, Variance, exact_sum, exactly, sample_variance

_MISSING, _INTEGER, _FLOAT, _OTHER = range(4)
_KINDS: Final = {type(None): _MISSING, int: _INTEGER, bool: _INTEGER, float: _FLOAT}
_EXACT: Final = 2**53


class Accumulator(ABC):
    """One aggregate of a window operator; `number` is its index among them."""

    def __init__(self, number: int) -> None:
        self.number = number

    @abstractmethod
    def add_terms(self, column: Column, chosen: NDArray[np.bool_] | None, terms: Terms) -> None:
        """Append what rows add to the totals, given their arguments and which of them `where` selects (None: all)."""

    @abstractmethod
    def results(self, totals: AccumulatorColumns) -> Column:
        """Return the aggregate at every position. Raises `RowError` if it cannot be computed."""

    @abstractmethod
    def parts_of(self, value: Any) -> RowParts | None:
        """Return what the value of a single row adds to the totals; None if only `add_terms` can tell."""

    @abstractmethod
    def result(self, totals: AccumulatorColumns, slot: int, rows: int) -> Any:
        """Return the result at a position with so many rows. Raises `ArithmeticError` if only `results` can compute it."""

    def kept(self, totals: AccumulatorColumns, slot: int) -> dict[str, Any]:
        """Return what is summed up at a position, for a debugger."""
        return {"values": totals.at(ROWS, slot) - totals.at((self.number, "missing"), slot)}

    def counted(self, totals: AccumulatorColumns) -> Ticks:
        """Return the numbers of values that are not None."""
        rows = totals.counts(ROWS)
        return rows - totals.counts((self.number, "missing")) if totals.holds((self.number, "missing")) else rows

    def _add_missing(self, rows: Rows, terms: Terms) -> None:
        if len(rows):
            terms.parts.append(Part((self.number, "missing"), rows, None, 1))


class CountAccumulator(Accumulator):
    """The number of values that are not None."""

    def add_terms(self, column: Column, chosen: NDArray[np.bool_] | None, terms: Terms) -> None:
        if column.dtype == object or chosen is not None:
            self._add_missing(flatnonzero(_kinds(column, chosen) == _MISSING), terms)

    def results(self, totals: AccumulatorColumns) -> Column:
        return self.counted(totals)

    def parts_of(self, value: Any) -> RowParts | None:
        return [((self.number, "missing"), 1)] if value is None else []

    def result(self, totals: AccumulatorColumns, slot: int, rows: int) -> Any:
        key: ColumnKey = (self.number, "missing")
        return rows - totals.at(key, slot) if totals.holds(key) else rows


class SumAccumulator(Accumulator):
    """The exact sum."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._specials: list[ColumnKey] = [(number, special) for special in SPECIAL]

    def add_terms(self, column: Column, chosen: NDArray[np.bool_] | None, terms: Terms) -> None:
        if column.dtype == object:
            self._add_objects(column, _kinds(column, chosen), terms)
            return
        rows = None if chosen is None else flatnonzero(chosen)
        if chosen is not None:
            self._add_missing(flatnonzero(~chosen), terms)
        values = column if rows is None else column[rows]
        if column.dtype.kind == "f":
            self._add_reals(rows, values, terms)
        else:
            self._add_integers(rows, values.astype(np.int64, copy=False), terms)

    def _add_objects(self, column: Column, kinds: NDArray[np.int8], terms: Terms) -> None:
        missing, whole, real, other = (flatnonzero(kinds == kind) for kind in range(4))
        self._add_missing(missing, terms)
        self._add_reals(real, column[real].astype(np.float64), terms)
        try:
            integers_here = column[whole].astype(np.int64)
        except OverflowError:
            self._add_huge(whole.tolist(), list(map(int, column[whole].tolist())), terms)
        else:
            self._add_integers(whole, integers_here, terms)
        if len(other):
            terms.non_numeric.append(NonNumericTerms(self.number, other.tolist(), column[other].tolist(), [1] * len(other)))

    def _add_reals(self, rows: Rows | None, values: NDArray[np.float64], terms: Terms) -> None:
        if len(values):
            terms.reals.append(FloatTerms(self.number, rows, values))

    def _add_integers(self, rows: Rows | None, values: Ticks, terms: Terms) -> None:
        terms.parts += integer_parts(self.number, rows, values)

    def _add_huge(self, rows: list[int], values: list[int], terms: Terms) -> None:
        terms.parts += huge_parts(self.number, rows, values)

    def results(self, totals: AccumulatorColumns) -> Column:
        counted = self.counted(totals)
        column = self._numbers(totals, counted)
        bags = totals.bags(self.number)
        if (counted > 0).all() and not bags:
            return column
        values = column.tolist()
        for row in flatnonzero(counted == 0).tolist():
            values[row] = None
        for row, bag in bags.items():
            if len(bag):
                total = int(counted[row])
                values[row] = _on_row(row, self._of_values, self._values_in(totals, row, bag.values(), total), total)
        return column_of(values)

    def _numbers(self, totals: AccumulatorColumns, counted: Ticks) -> Column:
        """Return the sums of the numeric values: integers if all are, else floats."""
        real = totals.counts((self.number, "floats")) > 0
        if real.all() and len(real):
            return self._of_floats(floats(totals, self.number), counted)
        whole = self._of_integers(integers(totals, self.number), counted) if not real.any() else None
        if whole is not None:
            return whole
        mixed = np.empty(totals.size, dtype=object)
        for rows, sums, finish in ((real, floats, self._of_floats), (~real, integers, self._of_integers)):
            at = flatnonzero(rows)
            mixed[at] = finish(sums(totals.take(at), self.number), counted[at])
        return mixed

    def _values_in(self, totals: AccumulatorColumns, row: int, non_numeric: list[Any], total: int) -> list[Any]:
        """Return the non-numeric values of a position, after the sum of the numeric ones if there are any."""
        one = totals.take(np.array([row]))
        real = int(one.counts((self.number, "floats"))[0])
        if real:
            return [float(floats(one, self.number)[0]), *non_numeric]
        return [*integers(one, self.number).tolist(), *non_numeric] if total > len(non_numeric) else non_numeric

    def parts_of(self, value: Any) -> RowParts | None:
        kind = type(value)
        if kind is float:
            digits = digit_places(value)
            if digits is None:
                return None
            return [((self.number, "floats"), 1), *[((self.number, weight), digit) for weight, digit in digits]]
        if value is None:
            return [((self.number, "missing"), 1)]
        return [((self.number, 0), int(value))] if kind in _KINDS and -DIRECT <= value <= DIRECT else None

    def result(self, totals: AccumulatorColumns, slot: int, rows: int) -> Any:
        counted = rows - totals.at((self.number, "missing"), slot)
        if not counted:
            return None
        if totals.bags(self.number):
            raise ArithmeticError("there may be values that are no numbers")
        whole, scale = totals.digits_at(self.number, slot)
        if not totals.at((self.number, "floats"), slot):
            return self._of_one(whole >> scale, counted)
        if totals.are_at(self._specials, slot):
            raise ArithmeticError("a value is not finite")
        return self._of_one(rounded(whole, scale), counted)

    def kept(self, totals: AccumulatorColumns, slot: int) -> dict[str, Any]:
        found = {**super().kept(totals, slot), "sum": _total(totals, self.number, slot)}
        found |= {str(kind): n for _, kind in self._specials if (n := totals.at((self.number, kind), slot))}
        bag = totals.bags(self.number).get(slot)
        return found | ({"others": bag.values()} if bag else {})

    def _of_one(self, total: float, counted: int) -> Any:
        return total

    def _of_integers(self, sums: Column, counted: Ticks) -> Column:
        return sums

    def _of_floats(self, sums: NDArray[np.float64], counted: Ticks) -> Column:
        return sums

    def _of_values(self, values: list[Any], counted: int) -> Any:
        return exact_sum(values)


class AvgAccumulator(SumAccumulator):
    """The exact sum, divided by the number of values."""

    def _of_integers(self, sums: Column, counted: Ticks) -> Column:
        if sums.dtype != object and (not len(sums) or max(-int(sums.min()), int(sums.max())) <= _EXACT):
            return sums / np.maximum(counted, 1)
        pairs = enumerate(zip(sums.tolist(), np.maximum(counted, 1).tolist(), strict=True))
        return column_of([_on_row(row, lambda total, n: total / n, *pair) for row, pair in pairs])

    def _of_floats(self, sums: NDArray[np.float64], counted: Ticks) -> Column:
        return sums / np.maximum(counted, 1)

    def _of_one(self, total: float, counted: int) -> Any:
        return total / counted

    def _of_values(self, values: list[Any], counted: int) -> Any:
        return exact_sum(values) / counted


class VarianceAccumulator(SumAccumulator):
    """The variance of a sample, from the exact sums of its values and of their squares, rounded once."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._squares = squares_of(number)

    def kept(self, totals: AccumulatorColumns, slot: int) -> dict[str, Any]:
        return {**super().kept(totals, slot), "squares": _total(totals, self._squares, slot)}

    def _add_reals(self, rows: Rows | None, values: NDArray[np.float64], terms: Terms) -> None:
        super()._add_reals(rows, values, terms)
        terms.parts += square_parts(self._squares, rows, values)

    def _add_integers(self, rows: Rows | None, values: Ticks, terms: Terms) -> None:
        super()._add_integers(rows, values, terms)
        terms.parts += integer_square_parts(self._squares, rows, values)

    def _add_huge(self, rows: list[int], values: list[int], terms: Terms) -> None:
        super()._add_huge(rows, values, terms)
        terms.parts += huge_parts(self._squares, rows, [value * value for value in values])

    def results(self, totals: AccumulatorColumns) -> Column:
        counted, bags = self.counted(totals), totals.bags(self.number)
        found = self._of_variances(variances(totals, self.number, self._squares, counted))
        if (counted > 1).all() and not bags:
            return found
        values: list[Any] = found.tolist()
        for row, bag in bags.items():
            if len(bag) and counted[row] > 1:
                values[row] = _on_row(row, self._of_bag, totals.take(np.array([row])), bag.values(), int(counted[row]))
        for row in flatnonzero(counted < 2).tolist():
            values[row] = None
        return column_of(values)

    def _of_bag(self, one: AccumulatorColumns, non_numeric: list[Any], counted: int) -> float:
        """Return the result at the one position of `one`, some of whose values are not numbers of the usual kinds."""
        if one.are_at(self._specials, 0) or not all(map(math.isfinite, non_numeric)):
            return math.nan
        sums = (one.digits_at(number, 0) for number in (self.number, self._squares))
        total, squares = (Fraction(whole, 1 << scale) for whole, scale in sums)
        others = list(map(exactly, non_numeric))
        found = sample_variance(total + sum(others), squares + sum(each * each for each in others), counted)
        return float(self._of_one(found, counted))

    def parts_of(self, value: Any) -> RowParts | None:
        parts = super().parts_of(value)
        return parts and parts + [((self._squares, weight), digit) for weight, digit in square_places(value)]

    def result(self, totals: AccumulatorColumns, slot: int, rows: int) -> Any:
        counted = rows - totals.at((self.number, "missing"), slot)
        if counted < 2:
            return None
        if totals.bags(self.number) or totals.are_at(self._specials, slot):
            raise ArithmeticError("there may be values that are no numbers, or not finite ones")
        found = variance_of(totals.digits_at(self.number, slot), totals.digits_at(self._squares, slot), counted)
        return self._of_one(found, counted)

    def _of_variances(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        return found


class StddevAccumulator(VarianceAccumulator):
    """The square root of the variance."""

    def _of_variances(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(found)

    def _of_one(self, total: float, counted: int) -> float:
        return math.sqrt(total)


def _total(totals: AccumulatorColumns, number: int, slot: int) -> int | float:
    """Return an exact sum, as an integer where it is one."""
    whole, scale = totals.digits_at(number, slot)
    return rounded(whole, scale) if whole % (1 << scale) else whole >> scale


ACCUMULATORS: Final[dict[type[Builtin], type[Accumulator]]] = {
    Count: CountAccumulator,
    Sum: SumAccumulator,
    Avg: AvgAccumulator,
    Variance: VarianceAccumulator,
    Stddev: StddevAccumulator,
}
"""The modules that have totals."""


def _kinds(column: Column, chosen: NDArray[np.bool_] | None) -> NDArray[np.int8]:
    """Return the kind of each value; one that is not selected counts as missing."""
    if column.dtype == object:
        types = list(map(type, column.tolist()))
        known = {kind: _kind_of(kind) for kind in set(types)}
        kinds = np.fromiter(map(known.__getitem__, types), dtype=np.int8, count=len(column))
    else:
        kinds = np.full(len(column), _INTEGER, dtype=np.int8)
    if chosen is not None:
        kinds[~chosen] = _MISSING
    return kinds


def _kind_of(kind: type) -> int:
    if kind in _KINDS:
        return _KINDS[kind]
    if issubclass(kind, float):
        return _FLOAT
    adds_as_int = issubclass(kind, int) and kind.__add__ is int.__add__ and kind.__radd__ is int.__radd__
    return _INTEGER if adds_as_int else _OTHER


def _on_row(row: int, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise RowError(row, error) from error


def result_columns(accumulators: list[Accumulator], totals: AccumulatorColumns) -> dict[str, Column]:
    """Return the results of all aggregates as the columns `a0`, `a1`, ... that projections read."""
    return {f"a{accumulator.number}": accumulator.results(totals) for accumulator in accumulators}
