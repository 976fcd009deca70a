"""Chains of rows: which is joined with which, and where a chain begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.growing import GrowingColumn, GrowingIds, GrowingTable
from streamdsl.engine.sorted.stored_rows import StoredRows
from streamdsl.engine.sorting import order_by
from streamdsl.expr.table import Column, Rows, flatnonzero

_NO_ROWS: Final = np.empty(0, dtype=np.intp)
_FEW: Final = 64
"""So few rows are paired sooner as Python's own values."""


class ChainRows(StoredRows):
    """Rows that know where their chain begins if the row before them has been let go; `starts` is LE if it has not.

    `came` is the order in which they have come, whatever their slots: of rows that are alike it says which is first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.starts, self.came = (GrowingColumn(np.empty(0, dtype=np.int64)) for _ in range(2))
        self._count = 0
        self.keep_notes(-1)

    def _all(self) -> Iterator[GrowingColumn | GrowingIds | GrowingTable]:
        yield from super()._all()
        yield from (self.starts, self.came)

    def append(self, batch: Batch, numbers: Column) -> Rows:
        self.starts.append(batch.le)
        self.came.append(np.arange(self._count, self._count + len(batch)))
        self._count += len(batch)
        return super().append(batch, numbers)

    def again(self, slots: Rows) -> Rows:
        new = super().again(slots)
        for column in (self.starts, self.came):
            column.put(new, column.take(slots))
        return new

    def in_order(self, slots: Rows) -> Rows:
        """Return slots in the order in which the rows have come."""
        order = order_by([self.came.take(slots)]) if len(slots) > 1 else None
        return slots if order is None else slots[order]


def in_step(ones: Sequence[Column], others: Sequence[Column]) -> tuple[Rows, Rows]:
    """Pair rows, the first of a key with the first, the second with the second; the last column is the order within a key.

    >>> [rows.tolist() for rows in in_step((np.array([5, 5, 6]), np.array([9, 1, 0])), (np.array([5, 7]), np.array([0, 0])))]
    [[1], [0]]
    """
    size = len(ones[0])
    if not size or not len(others[0]):
        return _NO_ROWS, _NO_ROWS
    if size + len(others[0]) <= _FEW:
        return _few_in_step(ones, others)
    both = [np.concatenate(pair) for pair in zip(_placed(ones), _placed(others), strict=True)]
    order = _order(both)
    columns = [column[order] for column in both]
    same = flatnonzero(np.logical_and.reduce([column[1:] == column[:-1] for column in columns]))
    return order[same], order[same + 1] - size


def _few_in_step(ones: Sequence[Column], others: Sequence[Column]) -> tuple[Rows, Rows]:
    waiting: dict[tuple[int, ...], list[int]] = {}
    for place, (*key, _) in reversed(_ranked(ones)):
        waiting.setdefault(tuple(key), []).append(place)
    pairs = [(found.pop(), place) for place, (*key, _) in _ranked(others) if (found := waiting.get(tuple(key)))]
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return first, second


def _ranked(columns: Sequence[Column]) -> list[tuple[int, tuple[int, ...]]]:
    """Return rows with their places, in order of the last column."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return sorted(enumerate(rows), key=lambda row: row[1][-1])


def _placed(columns: Sequence[Column]) -> list[Column]:
    """Return columns with the place of each row among those of its key instead of the last one."""
    *keys, _ = columns
    order = _order(columns)
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = np.logical_or.reduce([column[order[1:]] != column[order[:-1]] for column in keys])
    firsts = flatnonzero(is_first)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - np.repeat(firsts, np.diff(firsts, append=len(order)))
    return [*keys, places]


def _order(columns: Sequence[Column]) -> Rows:
    order = order_by(columns)
    return np.arange(len(columns[0])) if order is None else order


def followed(before: Rows) -> Rows:
    """Return the first row of the chain of each, given the one before each, -1 if there is none; in as many steps as digits.

    >>> followed(np.array([-1, 0, 1, -1])).tolist()
    [0, 0, 0, 3]
    """
    heads = np.where(before < 0, np.arange(len(before)), before)
    while len(heads):
        further = heads[heads]
        if (further == heads).all():
            break
        heads = further
    return heads
