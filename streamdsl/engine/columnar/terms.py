"""Terms: what rows add to the totals of aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks

Counted: TypeAlias = Literal["rows", "missing", "floats", "nan", "inf", "-inf"]
ColumnKey: TypeAlias = tuple[int, Counted | int]
"""The aggregate's number, and what the column counts, or w for the digit of weight 2 ** (32 * w) of its sum."""

ROWS: Final[ColumnKey] = (-1, "rows")
"""The column that counts rows."""
DIGIT: Final = 32
"""The bits of a digit. A column has 64, so many digits can be added before they must be carried."""


SAFE_WEIGHTS: Final = range(-30, 29)
"""Digits of these weights are doubles, and so are their rounding errors."""


class Part(NamedTuple):
    """What rows add to one column: an amount (None: one) for each of `rows` (None: every row), none larger than `largest`."""

    column: ColumnKey
    rows: Rows | None
    amounts: Ticks | None
    largest: int

    def times(self, signs: Ticks) -> Part:
        """Return the part with each amount times the sign of its row."""
        mine = signs if self.rows is None else signs[self.rows]
        return self._replace(amounts=mine if self.amounts is None else self.amounts * mine)

    def take(self, rows: Rows, places: Rows) -> Part:
        """Return what some rows add; `places` are those of all rows among them, -1 for the others."""
        if self.rows is None:
            return self if self.amounts is None else self._replace(amounts=self.amounts[rows])
        at = places[self.rows]
        kept = flatnonzero(at >= 0)
        return self._replace(rows=at[kept], amounts=None if self.amounts is None else self.amounts[kept])


class FloatTerms(NamedTuple):
    """Floats that `rows` (None: every row) add, or subtract where the row's sign is -1.

    They are split into digits only when added.
    """

    aggregate: int
    rows: Rows | None
    values: NDArray[np.float64]
    signs: Ticks | None = None
    """The sign of every row of the terms; None: all are added."""

    @property
    def signed(self) -> NDArray[np.float64]:
        """The floats, with their signs."""
        if self.signs is None:
            return self.values
        return self.values * (self.signs if self.rows is None else self.signs[self.rows])

    def times(self, signs: Ticks) -> FloatTerms:
        """Return the floats, each times the sign of its row."""
        return self._replace(signs=signs if self.signs is None else self.signs * signs)

    def take(self, rows: Rows, places: Rows) -> FloatTerms:
        """Return what some rows add; `places` are those of all rows among them, -1 for the others."""
        signs = None if self.signs is None else self.signs[rows]
        if self.rows is None:
            return self._replace(values=self.values[rows], signs=signs)
        at = places[self.rows]
        kept = flatnonzero(at >= 0)
        return self._replace(rows=at[kept], values=self.values[kept], signs=signs)


class NonNumericTerms(NamedTuple):
    """Values that are not numbers, and are kept as they are: `counts` times each."""

    aggregate: int
    rows: Sequence[int]
    values: Sequence[Any]
    counts: Sequence[int]

    def times(self, signs: Ticks) -> NonNumericTerms:
        """Return the values, each count times the sign of its row."""
        return self._replace(counts=[int(signs[row]) * count for row, count in zip(self.rows, self.counts, strict=True)])

    def take(self, places: Rows) -> NonNumericTerms:
        """Return the values of some rows; `places` are those of all rows among them, -1 for the others."""
        each = zip(self.rows, self.values, self.counts, strict=True)
        kept = [(int(places[row]), value, count) for row, value, count in each if places[row] >= 0]
        rows, values, counts = zip(*kept, strict=True) if kept else ((), (), ())
        return NonNumericTerms(self.aggregate, rows, values, counts)


@dataclass(slots=True)
class Terms:
    """What `size` rows add to all columns."""

    size: int
    parts: list[Part] = field(default_factory=list)
    non_numeric: list[NonNumericTerms] = field(default_factory=list)
    reals: list[FloatTerms] = field(default_factory=list)

    def __neg__(self) -> Terms:
        return self.times(np.full(self.size, -1))

    def times(self, signs: Ticks) -> Terms:
        """Return the terms of rows that are added (1) or subtracted (-1)."""
        parts, non_numeric = (
            [part.times(signs) for part in self.parts],
            [non_numeric.times(signs) for non_numeric in self.non_numeric],
        )
        return Terms(self.size, parts, non_numeric, [reals.times(signs) for reals in self.reals])

    @property
    def counts_rows(self) -> bool:
        """Whether every row just adds one to each column."""
        return not self.non_numeric and not self.reals and all(part.rows is None and part.amounts is None for part in self.parts)

    @staticmethod
    def concat(parts: Sequence[Terms]) -> Terms:
        """Return the terms of rows one after the other."""
        whole, first = Terms(sum(part.size for part in parts)), 0
        if all(part.counts_rows for part in parts):
            return Terms(whole.size, parts[0].parts)
        for part in parts:
            here = np.arange(first, first + part.size)
            whole.parts += [each._replace(rows=here if each.rows is None else here[each.rows]) for each in part.parts]
            whole.non_numeric += [each._replace(rows=[first + row for row in each.rows]) for each in part.non_numeric]
            whole.reals += [_moved(each, here, first, whole.size) for each in part.reals]
            first += part.size
        return whole

    def take(self, rows: Rows) -> Terms:
        """Return the terms of these rows, in this order."""
        if len(rows) == self.size:
            return self
        places = np.full(self.size, -1, dtype=np.intp)
        places[rows] = np.arange(len(rows))
        parts, non_numeric = (
            [part.take(rows, places) for part in self.parts],
            [non_numeric.take(places) for non_numeric in self.non_numeric],
        )
        return Terms(len(rows), parts, non_numeric, [reals.take(rows, places) for reals in self.reals])


def _moved(reals: FloatTerms, here: Rows, first: int, size: int) -> FloatTerms:
    """Return floats of rows that are `here` among more."""
    signs = None
    if reals.signs is not None:
        signs = np.ones(size, dtype=np.int64)
        signs[here] = reals.signs
    return reals._replace(rows=here if reals.rows is None else here[reals.rows], signs=signs)
