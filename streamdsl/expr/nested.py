"""Deferred columns of nested payloads: each payload is a row of a table, and becomes a Python object when it is read whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamdsl.expr.deferred import AnyColumn, Column, DeferredColumn, Rows, UnencodedSource, object_column, parts_of
from streamdsl.expr.schema import Schema, Shape
from streamdsl.temporal.payload import is_taken

if TYPE_CHECKING:
    from streamdsl.expr.table import Table

_ALL = slice(None)
_WITH_FIELDS = (Shape.RECORD, Shape.TUPLE, Shape.CLASS)


class NestedSource(UnencodedSource):
    """The rows of a table, each as one value: a record, a tuple, or an instance of a plain class. [Arrow: struct array]

    >>> from streamdsl.expr.table import Table
    >>> held = nested(Table.from_payloads([(1, "a"), (2, "b")]))
    >>> held[1:].tolist(), field_of_nested(held, "_1").tolist(), rows_in(held[1:]).payloads()
    ([(2, 'b')], ['a', 'b'], [(2, 'b')])
    """

    def __init__(self, table: Table) -> None:
        self.size = table.size
        self.table = table

    def values(self, rows: Rows | slice) -> Column:
        return object_column(self.table.take(rows).payloads())


class NullableSource(UnencodedSource):
    """Nested payloads or None: `places` has for each row the index of its payload, -1 for None.

    >>> from streamdsl.expr.table import Table
    >>> pairs = nested(Table.from_payloads([(1, "a"), (2, "b")]))
    >>> DeferredColumn(NullableSource(pairs, np.array([1, -1]))).tolist()
    [(2, 'b'), None]
    """

    def __init__(self, payloads: AnyColumn, places: Rows) -> None:
        self.size = len(places)
        self.payloads = payloads
        self.places = places

    def values(self, rows: Rows | slice) -> Column:
        places = self.places[rows]
        found = object_column([None] * len(places))
        there = (places >= 0).nonzero()[0]
        found[there] = object_column(self.payloads[places[there]].tolist())
        return found


def nested(table: Table) -> AnyColumn:
    """Return the rows of a table as one column, whose values are the payloads."""
    if table.schema.shape in _WITH_FIELDS:
        return DeferredColumn(NestedSource(table))
    (part,) = parts_of(table.columns).values()
    return part


def is_nested(column: AnyColumn) -> bool:
    """Say whether a column's values are rows of a table."""
    return type(column) is DeferredColumn and type(column.source) is NestedSource


def with_nulls(column: AnyColumn) -> tuple[AnyColumn, Rows] | None:
    """Return the payloads of a column that are not None, and for each row which of them it is, -1 for None.

    Return None of a column that is not nested, or holds no None.
    """
    if type(column) is not DeferredColumn or type(column.source) is not NullableSource:
        return None
    places = column.source.places[column.rows]
    are_there = places >= 0
    return column.source.payloads[places[are_there]], np.where(are_there, np.cumsum(are_there) - 1, -1)


def rows_in(column: AnyColumn) -> Table:
    """Return the values of a nested column as rows of their table."""
    table, rows = _table_of(column)
    return table if isinstance(rows, slice) and rows == _ALL else table.take(rows)


def field_of_nested(column: AnyColumn, name: str) -> AnyColumn:
    """Return one field of a nested column, for all rows, as a column."""
    table, rows = _table_of(column)
    part = parts_of(table.columns)[name]
    return part if isinstance(rows, slice) and rows == _ALL else part[rows]


def schema_of(column: AnyColumn) -> Schema:
    """Return the schema of the values of a nested column."""
    return _table_of(column)[0].schema


def _table_of(column: AnyColumn) -> tuple[Table, Rows | slice]:
    """Return the table of a nested column, and which of its rows the values are."""
    assert isinstance(column, DeferredColumn), "it is nested"
    assert isinstance(column.source, NestedSource), "it is nested"
    return column.source.table, column.rows


def concat_nested(columns: Sequence[AnyColumn]) -> AnyColumn:
    """Return nested columns one after the other; of payloads with different schemas they are objects."""
    from streamdsl.expr.table import Table

    return nested(Table.concat(map(rows_in, columns)))


def concat_nullable(columns: Sequence[AnyColumn]) -> AnyColumn | None:
    """Return columns of payloads and None one after the other; None where there is something else among them."""
    payloads: list[AnyColumn] = []
    places: list[Rows] = []
    size = 0
    for column in columns:
        known, at = with_nulls(column) or _split_nulls(column)
        if len(known):
            payloads.append(known)
        places.append(np.where(at >= 0, at + size, -1))
        size += len(known)
    if not payloads or not all(map(is_nested, payloads)):
        return None
    found = concat_nested(payloads)
    if not is_nested(found):
        return None
    at = np.concatenate(places)
    return DeferredColumn(NullableSource(found, at)) if size < len(at) else found


def _split_nulls(column: AnyColumn) -> tuple[AnyColumn, Rows]:
    """Return what `with_nulls` does, for a column of objects; payloads of one type with equal fields become nested ones."""
    from streamdsl.expr.table import payload_table

    if is_nested(column) or column.dtype != object:
        return column, np.arange(len(column))
    values = column.tolist()
    there = [value for value in values if value is not None]
    at = np.full(len(values), -1)
    at[[value is not None for value in values]] = np.arange(len(there))
    return (nested(payload_table(there)) if there else column[:0]), at


def attribute_name(schema: Schema, name: str) -> str | None:
    """Return the field that `value.name` is of values of a schema, None if it is none, or not for all of them."""
    is_field = name in schema.names and (schema.shape is Shape.CLASS or (schema.shape is Shape.RECORD and not is_taken(name)))
    return name if is_field else None


def item_name(schema: Schema, item: object) -> str | None:
    """Return the field that `value[item]` is of values of a schema, None if it is none.

    >>> item_name(Schema.tuple(2), -1), item_name(Schema.tuple(2), True), item_name(Schema.record(["a"]), "a")
    ('_1', None, 'a')
    """
    names = schema.names
    if schema.shape is Shape.RECORD:
        return item if type(item) is str and item in names else None
    is_sequence = schema.shape is Shape.TUPLE or issubclass(schema.cls or object, tuple)
    return names[item] if type(item) is int and is_sequence and -len(names) <= item < len(names) else None
