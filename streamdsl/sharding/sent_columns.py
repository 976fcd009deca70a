"""Columns as they are sent to another process: without the rows that others of their source have, and each value once.

A column of objects in which few are different goes as a dictionary and codes. Rows that share an object share it afterwards too,
as with a pickle, but without a call in Python for each row. Other texts go as Arrow arrays. The receiver makes values when it
reads them.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, PointBatch
from streamdsl.engine.ids import DeferredIds
from streamdsl.engine.row_batch import RowBatch
from streamdsl.expr.deferred import MATERIALIZE_BELOW, AnyColumn, DeferredColumn, EncodedSource, parts_of, with_parts
from streamdsl.expr.encoding import integer_codes
from streamdsl.expr.nested import is_nested, nested, rows_in
from streamdsl.expr.table import Column, Table
from streamdsl.temporal.value_arrays import distinct

_ROWS_PER_VALUE: Final = 4
"""The rows per value of a column from which its dictionary is sent."""
_TEXTS: Final = frozenset({str, type(None)})


def alone(batch: Batch) -> Batch:
    """Return a batch that holds no more than its own rows, so that it can be sent."""
    if not len(batch):
        return EMPTY
    if type(batch) is RowBatch:
        batch = batch.columns
    table = _table_alone(batch.table)
    if type(batch) is PointBatch:
        return PointBatch(batch.first, batch.le, table, None, batch.rows)
    le = batch.le
    return Batch(_ids_alone(batch.ids), le, le if batch.re_old is le else batch.re_old, batch.re_new, table)


def _table_alone(table: Table) -> Table:
    parts = {name: _column_alone(part) for name, part in parts_of(table.columns).items()}
    return Table(table.schema, with_parts(parts), table.size)


def _column_alone(part: AnyColumn) -> AnyColumn:
    if not isinstance(part, DeferredColumn):
        return encoded_objects(part) or part
    if is_nested(part):
        return nested(_table_alone(rows_in(part)))
    if part.source.is_coded and part.source.n_codes * _ROWS_PER_VALUE <= len(part):
        return DeferredColumn(EncodedSource(*part.encoded()))  # who takes it need not look for equal values again
    return DeferredColumn(part.source.only(part.rows))


def _ids_alone(ids: Any) -> Any:
    if isinstance(ids, DeferredIds):
        return ids.with_columns(*map(_ids_alone, ids.columns))
    return _column_alone(ids) if isinstance(ids, DeferredColumn) else ids


def encoded_objects(column: Column) -> DeferredColumn | None:
    """Return objects as codes if few are there, texts else as Arrow's; None for other columns.

    >>> first, second = [7], [7]
    >>> found = encoded_objects(np.array([first, second] * 200 + [None], dtype=object)[:-1])
    >>> found.source.n_codes, encoded_objects(np.arange(400)) is None
    (2, True)
    """
    if column.dtype != object or len(column) < MATERIALIZE_BELOW:
        return None
    codes, addresses = integer_codes(np.asarray(_Addresses(column)))
    rows = np.empty(len(addresses), dtype=np.intp)
    rows[codes] = np.arange(len(codes))
    objects = column[rows]
    if len(objects) * _ROWS_PER_VALUE <= len(column):
        return DeferredColumn(EncodedSource(codes, objects))
    return _of_texts(column) if distinct(map(type, objects.tolist())) <= _TEXTS else None


class _Addresses:
    """The addresses of the objects of a column, which it keeps, as numpy takes them."""

    def __init__(self, objects: Column) -> None:
        self.objects = objects
        known = objects.__array_interface__
        self.__array_interface__ = {
            **{name: known[name] for name in ("data", "shape", "strides", "version")},
            "typestr": _ADDRESS,
        }


_ADDRESS: Final = np.dtype(np.int64).str


def _of_texts(column: Column) -> DeferredColumn | None:
    if "pyarrow" not in sys.modules:
        return None
    import pyarrow as pa

    from streamdsl.io.arrow_held import ArrowSource

    try:
        return DeferredColumn(ArrowSource(pa.chunked_array([pa.array(column, pa.string())])))
    except (UnicodeError, pa.ArrowException, TypeError):  # no Unicode, or too long for one array
        return None
