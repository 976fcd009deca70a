"""The output order of rows, in columns: by lifetime, and by payload only where lifetimes are equal."""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.sorting import order_by
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, EncodedSource, parts_of
from streamdsl.expr.nested import is_nested, rows_in, with_nulls
from streamdsl.expr.table import Column, Rows, Table, column_of, flatnonzero
from streamdsl.temporal import payload_order
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct

_MANY: Final = 256
"""So many values are ranked by Arrow, where it is there."""
_BY_VALUE: Final = (str, int, bool, Decimal)
_BY_REPR: Final = (date, datetime, time, timedelta, bytes, UUID)
"""The types of values whose order is that of their `repr`s."""


def ordered(batch: Batch) -> Batch:
    """Return changes in output order: retractions first, then insertions, each by (LE, RE, payload).

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
    ends = np.where(is_insertion, batch.re_new, batch.re_old)
    order = _order(batch.table, is_insertion, batch.le, _durations(batch.le, ends))
    return batch if order is None else batch.take(order)


def row_order(lifetimes: Sequence[tuple[bool, int, int]], payloads: Callable[[], Sequence[Any]]) -> list[int] | None:
    """Return the order of rows in which their lifetimes are in order; None: as they are. Only of ties payloads are compared.

    >>> row_order([(False, 1, 5), (True, 4, 9), (True, 4, 9)], lambda: ["x", "z", "y"])
    [0, 2, 1]
    """
    if all(map(operator.lt, lifetimes, lifetimes[1:])):
        return None
    seen: set[tuple[bool, int, int]] = set()
    ties = {each for each in lifetimes if each in seen or seen.add(each)}  # type: ignore[func-returns-value]
    if not ties:
        return sorted(range(len(lifetimes)), key=lifetimes.__getitem__)
    given = payloads()
    keys = [(*each, payload_order(given[row])) if each in ties else each for row, each in enumerate(lifetimes)]
    return sorted(range(len(lifetimes)), key=keys.__getitem__)


def by_lifetime(table: Table, le: Ticks, re: Ticks) -> Rows | None:
    """Return the order of a history: by (LE, RE, payload); None: as they are."""
    return _order(table, le, _durations(le, re))


def by_columns(table: Table, *columns: Ticks) -> Rows | None:
    """Return the stable order by some columns, the first decides, then by payload; None: as they are, none equal."""
    return _order(table, *columns)


def _order(table: Table, *columns: Column) -> Rows | None:
    """Return the order by some columns, the first decides, then by payload; None: as they are."""
    parts = list(_leaves(table))
    integers = list(itertools.takewhile(lambda column: column is not None, map(_integers, parts)))
    known = [*columns, *(column for column in integers if column is not None)]
    order = order_by(known)
    if order is None or len(integers) == len(parts):
        return order
    return _with_ties_by_payload(order, _tied([column[order] for column in known]), table)


def _integers(column: AnyColumn) -> Column | None:
    """Return integers with the order of a column's values: those that it has, or of codes the ranks; None of others."""
    if isinstance(column, DeferredColumn):
        return column.mapped(_ranks) if type(column.source) is EncodedSource else None
    return column if column.dtype.kind == "i" else None


def _ranks(values: AnyColumn) -> Column:
    ranked = values.source.ranks(values.rows) if isinstance(values, DeferredColumn) else None
    if ranked is None:
        ranked = _ranked(values.column if isinstance(values, DeferredColumn) else values)
    if ranked.dtype.kind == "i" and len(ranked) and int(ranked.max()) - int(ranked.min()) <= len(ranked):
        return ranked
    return np.unique(ranked, return_inverse=True)[1]


def _tied(columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Say of each row but the first whether it has the values of the one before it."""
    tied = np.ones(len(columns[0]) - 1, dtype=np.bool_)
    for column in columns:
        tied &= column[1:] == column[:-1]
    return tied


def _with_ties_by_payload(order: Rows, tied: NDArray[np.bool_], table: Table) -> Rows:
    """Return an order in which rows that are tied come by payload; no other payload is looked at."""
    places = flatnonzero(np.append(tied, False) | np.append(False, tied))
    if len(places):
        rows = order[places]
        among = np.cumsum(~np.append(False, tied))[places]
        order[places] = rows[np.lexsort([*reversed(payload_keys(table.take(rows))), among])]
    return order


def _durations(le: Ticks, re: Ticks) -> Ticks:
    """Return what orders rows of one LE as their RE does: durations, which are small, but where they are too long for int64."""
    durations: Ticks = re - le
    return re if (durations < 0).any() else durations


def payload_keys(table: Table) -> list[Column]:
    """Return columns that sort payloads as `payload_order` does, the first decides.

    >>> [key.tolist() for key in payload_keys(Table.from_payloads([(2, "b"), (1, None), (3, "a")]))]
    [[2, 1, 3], [2, 0, 1]]
    """
    return [_ranked(part.column if isinstance(part, DeferredColumn) else part) for part in _leaves(table)]


def _leaves(table: Table) -> Iterator[AnyColumn]:
    """Return the columns of payloads, those of payloads inside of them too: these decide one after the other."""
    for part in parts_of(table.columns).values():
        found = with_nulls(part)
        if is_nested(part):
            yield from _leaves(rows_in(part))
        elif found is not None:
            payloads, places = found
            yield (places >= 0).astype(np.int64)
            if len(payloads):  # those that are not there are alike
                yield from _leaves(rows_in(payloads[np.maximum(places, 0)]))
        else:
            yield part


def _ranked(column: Column) -> Column:
    """Return a column of numbers with the order of a column's values."""
    values = column.tolist() if column.dtype == object else []
    typed = column_of(values) if values else column
    if typed.dtype != object:
        return typed
    kinds = distinct(map(type, values))
    found = _arrow_ranks(values, kinds) if len(values) >= _MANY else None
    if found is not None:
        return found
    keys = values if kinds == {str} else list(map(payload_order, values))
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.fromiter(map(ranks.__getitem__, keys), dtype=np.int64, count=len(keys))


def _arrow_ranks(values: list[Any], kinds: set[type]) -> Column | None:
    """Return the ranks of many values of one type and None, where Arrow is there and has them in the same order; else None."""
    arrow, (kind, *others) = sys.modules.get("pyarrow"), kinds - {type(None)} or {type(None)}
    if arrow is None or others or kind not in (*_BY_VALUE, *_BY_REPR):
        return None
    if kind is Decimal:
        return None if None in values else _float_ranks(values)
    if kind in _BY_REPR:
        values = [None if value is None else repr(value) for value in values]
    try:
        array = arrow.array(values)
    except (arrow.ArrowException, ValueError, OverflowError):  # a lone surrogate, or an integer beyond int64
        return None
    compute = import_module("pyarrow.compute")
    order = compute.sort_indices(array)
    ordered = array.take(order)
    is_first = compute.not_equal(ordered[1:], ordered[:-1]).fill_null(True).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order.to_numpy()] = np.cumsum(np.append(True, is_first))
    if array.null_count:
        ranks[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return ranks


def _float_ranks(values: list[Any]) -> Column | None:
    """Return the ranks of numbers that are different floats too, which are in the same order; else None."""
    try:
        floats = np.array(list(map(float, values)))
    except (ValueError, OverflowError):  # a signalling NaN
        return None
    order = np.argsort(floats)
    ordered = floats[order]
    if not (np.isfinite(floats).all() and (ordered[1:] != ordered[:-1]).all()):
        return None
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
