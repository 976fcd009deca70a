"""Deferred columns of lists: all items in one column, with the bounds of each list; a list is made when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.deferred import AnyColumn, Column, DeferredColumn, Rows, UnencodedSource, object_column


class ListSource(UnencodedSource):
    """Lists of integers, floats, bools or payloads: row i is `items[lo[i]:hi[i]]`; lists may overlap. [Arrow: ListView]

    >>> held = DeferredColumn(ListSource(np.array([5, 7, 9]), np.array([0, 1]), np.array([2, 3])))
    >>> held.tolist(), held[np.array([1])].tolist(), [part.tolist() for part in items_of(held)]
    ([[5, 7], [7, 9]], [[7, 9]], [[5, 7, 7, 9], [2, 2]])
    """

    def __init__(self, items: AnyColumn, lo: Rows, hi: Rows) -> None:
        self.size = len(lo)
        self.items = items
        self.lo = lo
        self.hi = hi

    def values(self, rows: Rows | slice) -> Column:
        items, lo, hi = self.items, self.lo[rows], self.hi[rows]
        if int((hi - lo).sum()) < len(items):
            items, lo, hi = _compacted(items, lo, hi)
        listed: list[Any] = items.tolist()
        return object_column([listed[start:stop] for start, stop in zip(lo.tolist(), hi.tolist(), strict=True)])

    def only(self, rows: Rows | slice) -> ListSource:
        return ListSource(*_compacted(self.items, self.lo[rows], self.hi[rows]))


def _compacted(items: AnyColumn, lo: Rows, hi: Rows) -> tuple[AnyColumn, Rows, Rows]:
    """Return the items of lists, one list after the other and nothing else, and the bounds of each list in them."""
    sizes = hi - lo
    stops = np.cumsum(sizes)
    starts = stops - sizes
    if len(lo) and (lo[1:] == hi[:-1]).all():
        return items[lo[0] : hi[-1]], starts, stops
    return items[np.repeat(lo - starts, sizes) + np.arange(int(sizes.sum()))], starts, stops


def list_source(column: AnyColumn) -> ListSource | None:
    """Return the source of a deferred column of lists; None for any other column."""
    return column.source if isinstance(column, DeferredColumn) and isinstance(column.source, ListSource) else None


def items_of(column: DeferredColumn) -> tuple[AnyColumn, Rows]:
    """Return the items of all lists, one list after the other, and how many each has."""
    source = column.source
    assert isinstance(source, ListSource)
    items, lo, hi = _compacted(source.items, source.lo[column.rows], source.hi[column.rows])
    return items, hi - lo


def concat_lists(columns: Sequence[DeferredColumn]) -> DeferredColumn | None:
    """Return columns of lists one after the other; None where their items are not all numbers of one type."""
    found = [(items, sizes) for items, sizes in map(items_of, columns) if not isinstance(items, DeferredColumn)]
    if len(found) < len(columns) or len({items.dtype for items, _ in found}) > 1:
        return None
    sizes = np.concatenate([each for _, each in found])
    stops = np.cumsum(sizes)
    return DeferredColumn(ListSource(np.concatenate([items for items, _ in found]), stops - sizes, stops))


def equal_lists(left: DeferredColumn, right: DeferredColumn) -> NDArray[np.bool_] | None:
    """Say row by row whether two lists are equal, NaN equals NaN; None where their items are not numbers of one type."""
    (one, sizes), (other, others) = items_of(left), items_of(right)
    if isinstance(one, DeferredColumn) or isinstance(other, DeferredColumn) or one.dtype != other.dtype:
        return None
    same: NDArray[np.bool_] = sizes == others
    if not same.all():
        one, other = one[np.repeat(same, sizes)], other[np.repeat(same, others)]
    differ = one != other
    if one.dtype.kind == "f":
        differ &= (one == one) | (other == other)
    at = differ.nonzero()[0]
    if len(at):
        like = same.nonzero()[0]
        same[like[np.searchsorted(np.cumsum(sizes[like]), at, side="right")]] = False
    return same
