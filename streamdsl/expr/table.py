"""Payloads as columns: what expressions are evaluated over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import SchemaError
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, DeferredColumns, EncodedSource, parts_of, with_parts
from streamdsl.expr.deferred import Column as Column
from streamdsl.expr.deferred import Rows as Rows
from streamdsl.expr.deferred import column_of as column_of
from streamdsl.expr.deferred import object_column as object_column
from streamdsl.expr.lists import concat_lists, list_source
from streamdsl.expr.nested import concat_nested, concat_nullable, is_nested, with_nulls
from streamdsl.expr.schema import Schema, Shape, is_positional, row_view
from streamdsl.temporal.payload import PLAIN, Record, plain, plains, records
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct

_SMALL: Final = 16
"""Columns with fewer values are processed in Python, which costs less than calling numpy."""


_MAPPINGS: Final = frozenset({dict, Record})


def plain_column_of(values: Sequence[Any]) -> Column:
    """Return `plain` of values as a column."""
    column = column_of(values)
    return column if column.dtype != object or PLAIN.issuperset(map(type, values)) else column_of(list(map(plain, values)))


def _getters(schema: Schema, payloads: Sequence[Any], kinds: set[type]) -> dict[str, Callable[[Any], Any]] | None:
    """Return a getter for each field if all payloads are of the schema's type and have exactly its fields, else None."""
    if schema.shape is Shape.RECORD:
        names = dict.fromkeys(schema.names).keys()
        items = [payload.__items__ if type(payload) is Record else payload for payload in payloads] if kinds <= _MAPPINGS else []
        is_alike = kinds <= _MAPPINGS and all(names == each.keys() for each in items)
        return {name: itemgetter(name) for name in schema.names} if is_alike else None
    if schema.shape is Shape.TUPLE:
        is_alike = kinds == {tuple} and distinct(map(len, payloads)) == {len(schema.names)}
    else:
        is_alike = kinds == {schema.cls} and issubclass(schema.cls or object, tuple)
    if is_alike:
        return {name: itemgetter(place) for place, name in enumerate(schema.names)}
    return {name: attrgetter(name) for name in schema.names} if kinds == {schema.cls} else None


def flatnonzero(holds: NDArray[Any]) -> Rows:
    """Return the rows where a column is true, as `np.flatnonzero` does, without its overhead, which counts for few rows.

    >>> flatnonzero(np.array([False, True])).tolist()
    [1]
    """
    return holds.nonzero()[0]


def every(holds: NDArray[Any]) -> bool:
    """Return whether a column is true in every row."""
    return all(holds.tolist()) if len(holds) < _SMALL else bool(holds.all())


def least(column: Ticks) -> int:
    """Return the smallest of some integers, of which there is one at least."""
    return min(column.tolist()) if len(column) < _SMALL else int(column.min())


def largest(column: Ticks) -> int:
    """Return the largest of some integers, of which there is one at least."""
    return max(column.tolist()) if len(column) < _SMALL else int(column.max())


def concat_columns(columns: Sequence[Column]) -> Column:
    """Return columns one after the other; of different types they become `object`, so that no value changes.

    >>> concat_columns([np.array([1]), np.array([0.5])]).tolist()
    [1, 0.5]
    """
    if len({column.dtype for column in columns}) == 1:
        return np.concatenate(columns)
    return np.concatenate([column.astype(object) for column in columns]) if columns else object_column([])


def concat_parts(parts: Sequence[AnyColumn]) -> AnyColumn:
    """Return columns one after the other; they stay deferred if all are coded, may wait, or are lists or nested payloads."""
    if len(parts) and all(map(is_nested, parts)):
        return concat_nested(parts)
    if any(is_nested(part) or with_nulls(part) for part in parts) and (joined := concat_nullable(parts)) is not None:
        return joined
    held = [part for part in parts if isinstance(part, DeferredColumn)]
    dictionaries = [part.source.dictionary for part in held if isinstance(part.source, EncodedSource)]
    if dictionaries and all(part.source.is_coded for part in held) and len(held) == len(parts):
        if len(dictionaries) == len(parts) and len(set(map(id, dictionaries))) == 1:
            return DeferredColumn(EncodedSource(np.concatenate([part.codes for part in held]), dictionaries[0]))
        return _concat_coded([part.encoded() for part in held])
    lists = [part for part in parts if isinstance(part, DeferredColumn) and list_source(part) is not None]
    if len(lists) == len(parts) > 0 and (found := concat_lists(lists)) is not None:
        return found
    waiting = [part.source.only(part.rows) for part in parts if isinstance(part, DeferredColumn) and part.source.may_wait]
    if len(waiting) == len(parts) > 1:
        return DeferredColumn(waiting[0].followed_by(*waiting[1:]))
    return concat_columns([part.column if isinstance(part, DeferredColumn) else part for part in parts])


def _concat_coded(parts: Sequence[tuple[Rows, Column]]) -> DeferredColumn:
    firsts = np.cumsum([0, *(len(values) for _, values in parts)]).tolist()
    codes = np.concatenate([codes + first for (codes, _), first in zip(parts, firsts, strict=False)])
    return DeferredColumn(EncodedSource(codes, concat_columns([values for _, values in parts])))


@dataclass(slots=True)
class Table:
    """The payloads of a batch: a schema and its columns, all of length `size`; some may be deferred, and are made when read.

    >>> table = Table.from_payloads([{"k": "a", "v": 1}, {"k": "b", "v": 2}])
    >>> table.columns["v"].tolist(), table.payloads()[1]
    ([1, 2], Record(k='b', v=2))
    """

    schema: Schema
    columns: Mapping[str, Column]
    size: int

    @classmethod
    def from_payloads(
        cls, payloads: Sequence[Any], schema: Schema | None = None, plainly: bool = False, kinds: set[type] | None = None
    ) -> Table:
        """Return payloads, made plain if so asked, as columns; without a schema it is that of the first. Raises `SchemaError`.

        `kinds` are the types of the payloads, where they are known.
        """
        if schema is None:
            schema = Schema.of_payload(payloads[0]) if payloads else Schema.object()
        read = plain_column_of if plainly else column_of
        if schema.shape is Shape.SCALAR:
            return cls(schema, {"value": read(payloads)}, len(payloads))
        payloads = plains(payloads) if plainly and schema.shape is Shape.OBJECT else payloads
        if schema.shape is Shape.OBJECT:
            return cls(schema, {"": object_column(payloads)}, len(payloads))
        getters = _getters(schema, payloads, distinct(map(type, payloads)) if kinds is None else kinds)
        if getters is None:
            rows = list(map(schema.values, plains(payloads) if plainly else payloads))
            fields = {name: [row[place] for row in rows] for place, name in enumerate(schema.names)}
        else:
            fields = {name: list(map(getter, payloads)) for name, getter in getters.items()}
        return cls(schema, {name: read(values) for name, values in fields.items()}, len(payloads))

    @classmethod
    def of_objects(cls, payloads: Sequence[Any]) -> Table:
        """Return payloads kept whole."""
        return cls(Schema.object(), {"": object_column(payloads)}, len(payloads))

    def payloads(self) -> list[Any]:
        """Return the payloads as plain Python values."""
        columns: list[list[Any]] = [self.columns[name].tolist() for name in self.schema.columns]
        if len(columns) == 1 and self.schema.shape in (Shape.SCALAR, Shape.OBJECT):
            return columns[0]
        if not columns:
            return [self.schema.build(()) for _ in range(self.size)]
        cls = self.schema.cls
        if self.schema.shape is Shape.CLASS and cls is not None and is_positional(cls):
            return list(map(cls, *columns))
        if self.schema.shape is Shape.RECORD:
            return list(records(self.schema.names, columns))
        return list(map(self.schema.build, zip(*columns, strict=True)))

    def rows(self) -> list[Any]:
        """Return what a lambda sees of each payload."""
        payloads = self.payloads()
        return payloads if self.schema.shape in (Shape.CLASS, Shape.RECORD) else list(map(row_view, payloads))

    def take(self, rows: Rows | slice) -> Table:
        """Return these rows, in this order; those of a slice are not copied."""
        size = len(range(self.size)[rows]) if isinstance(rows, slice) else len(rows)
        columns = self.columns
        if type(columns) is DeferredColumns:
            return Table(self.schema, DeferredColumns({name: part[rows] for name, part in columns.parts.items()}), size)
        return Table(self.schema, {name: column[rows] for name, column in columns.items()}, size)

    @staticmethod
    def concat(tables: Iterable[Table]) -> Table:
        """Return tables one after the other; of different schemas they become objects kept whole."""
        parts = [table for table in tables if table.size] or [Table.of_objects([])]
        if len(parts) == 1:
            return parts[0]
        schema = parts[0].schema
        if [part.schema for part in parts].count(schema) < len(parts):
            return Table.of_objects([payload for part in parts for payload in part.payloads()])
        held = [parts_of(part.columns) for part in parts]
        columns = with_parts({name: concat_parts([each[name] for each in held]) for name in schema.columns})
        return Table(schema, columns, sum([part.size for part in parts]))


def payload_table(payloads: Sequence[Any]) -> Table:
    """Return result payloads as columns if all are of one type and have the same fields, or are scalars, else kept whole.

    >>> payload_table([1, (2, 3)]).payloads()
    [1, (2, 3)]
    """
    kinds = distinct(map(type, payloads))
    if len(kinds) > 1 and any(Schema.of_type(kind) != Schema.scalar() for kind in kinds):
        return Table.of_objects(payloads)
    try:
        return Table.from_payloads(payloads)
    except SchemaError:
        return Table.of_objects(payloads)
