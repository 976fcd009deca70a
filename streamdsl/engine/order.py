"""The order in which rows go out, found in columns: by lifetime, and only where lifetimes are equal by payload."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.expr.table import Column, Rows, Table, column_of
from streamdsl.temporal import payload_order


def ordered(batch: Batch) -> Batch:
    """Return changes in the order in which they go out: retractions first, then insertions, each by (LE, RE, payload).

    >>> from streamdsl.engine.batch import Changes
    >>> changes = Changes()
    >>> for change in [("a", 4, 4, 9, "x"), ("b", 1, 1, 5, "y"), ("c", 4, 9, 4, "z"), ("d", 4, 4, 9, "w")]:
    ...     changes.add(*change)
    >>> ordered(changes.batch(keyed=False)).ids.tolist()
    ['c', 'b', 'd', 'a']
    """
    if len(batch) < 2:
        return batch
    is_insertion = batch.re_old == batch.le
    order = _order(batch.table, np.where(is_insertion, batch.re_new, batch.re_old), batch.le, is_insertion)
    return batch if order is None else batch.take(order)


def by_lifetime(batch: Batch) -> Batch:
    """Return rows in the order of a history: by (LE, RE, payload)."""
    order = _order(batch.table, batch.re_new, batch.le)
    return batch if order is None else batch.take(order)


def _order(table: Table, *times: Column) -> Rows | None:
    """Return the order by the last of some columns, then the one before it, and so on, then by payload; None: as they are."""
    columns = list(table.columns.values())
    integers = list(itertools.takewhile(lambda column: column.dtype.kind == "i", columns))
    packed, n = _packed([*reversed(times), *integers])
    if (packed[1:] > packed[:-1]).all():
        return None
    order = np.argsort(packed)
    if n == len(times) + len(columns) or not (packed[order[1:]] == packed[order[:-1]]).any():
        return order
    return np.lexsort([*reversed(payload_keys(table)), *times])


def _packed(columns: Sequence[Column]) -> tuple[Column, int]:
    """Return one number that sorts rows as the first few of some columns of integers do, and how many these are."""
    packed, room = np.zeros(len(columns[0]), dtype=np.int64), 2**62
    before = packed
    for n, column in enumerate(columns if len(packed) else ()):
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if span > room:
            return packed, n
        steps = column.astype(np.int64) - low
        if not np.array_equal(steps, before):  # as with the REs of windows of one size
            packed, room = packed * span + steps, room // span
        before = steps
    return packed, len(columns)


def payload_keys(table: Table) -> list[Column]:
    """Return columns that sort payloads as `payload_order` does, the first decides.

    >>> [key.tolist() for key in payload_keys(Table.from_payloads([(2, "b"), (1, None), (3, "a")]))]
    [[2, 1, 3], [2, 0, 1]]
    """
    return [_ranked(column) for column in table.columns.values()]


def _ranked(column: Column) -> Column:
    """Return a column of numbers with the order of a column's values."""
    values = column.tolist() if column.dtype == object else []
    typed = column_of(values) if values else column
    if typed.dtype != object:
        return typed
    keys = values if set(map(type, values)) == {str} else list(map(payload_order, values))
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.fromiter(map(ranks.__getitem__, keys), dtype=np.int64, count=len(keys))
