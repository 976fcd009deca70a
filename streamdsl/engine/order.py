"""The order in which rows go out, found in columns: by lifetime, and only where lifetimes are equal by payload."""

from __future__ import annotations

import math

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.sorting import in_order
from streamdsl.expr.table import Column, Rows, Table, column_of
from streamdsl.temporal import INFINITY, payload_order
from streamdsl.temporal.time import Ticks


def ordered(batch: Batch) -> Batch:
    """Return changes in the order in which they go out: retractions first, then insertions, each by (LE, RE, payload).

    >>> from streamdsl.engine.batch import Changes
    >>> changes = Changes()
    >>> for change in [("a", 4, 4, 9, "x"), ("b", 1, 1, 5, "y"), ("c", 4, 9, 4, "z"), ("d", 4, 4, 9, "w")]:
    ...     changes.add(*change)
    >>> ordered(changes.batch(keyed=False)).ids.tolist()
    ['c', 'b', 'd', 'a']
    """
    is_insertion = batch.re_old == batch.le
    return batch.take(_order(batch.table, np.where(is_insertion, batch.re_new, batch.re_old), batch.le, is_insertion))


def by_lifetime(batch: Batch) -> Batch:
    """Return rows in the order of a history: by (LE, RE, payload)."""
    if (batch.le[1:] > batch.le[:-1]).all():
        return batch
    return batch.take(_order(batch.table, batch.re_new, batch.le))


def _order(table: Table, ends: Ticks, *others: Column) -> Rows:
    """Return the order by the last of some columns, the one before it, and so on, then by `ends`, then by payload."""
    order = _time_order(ends, *others)
    tied = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for column in (ends, *others):
        tied &= column[order[1:]] == column[order[:-1]]
    if not tied.any():
        return order
    is_tied = np.concatenate([tied, [False]])
    is_tied[1:] |= tied
    at = np.flatnonzero(is_tied)
    ties = np.concatenate([[0], np.cumsum(~tied)])[at]
    order[at] = order[at][np.lexsort([*reversed(payload_keys(table.take(order[at]))), ties])]
    return order


def _time_order(ends: Ticks, le: Ticks, *others: Column) -> Rows:
    """Return the order by times; ends are counted from LE where they are near, so that all columns fit into one number."""
    if not len(le) or int(ends.max()) == INFINITY or int(le.min()) < -(2**62):
        return np.lexsort((ends, le, *others))
    columns = [column.astype(np.int64, copy=False) for column in reversed((ends - le, le, *others))]
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    if math.prod(spans) >= 2**62:
        return np.lexsort((ends, le, *others))
    number = np.zeros(len(le), dtype=np.int64)
    for column, low, span in zip(columns, lows, spans, strict=True):
        number *= span
        number += column - low
    return in_order(number)[0]


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
