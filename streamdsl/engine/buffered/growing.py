"""Columns and tables that grow at their end, at a cost that does not depend on what is there already."""

from __future__ import annotations

import numpy as np

from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, object_column


class GrowingColumn:
    """A column; of several types it becomes `object`, so that no value changes.

    >>> column = GrowingColumn()
    >>> column.append(np.array([1, 2]))
    >>> column.append(np.array([0.5]))
    >>> column.values.tolist()
    [1, 2, 0.5]
    """

    __slots__ = ("_column", "size")

    def __init__(self) -> None:
        self._column: Column = np.empty(0, dtype=np.int64)
        self.size = 0

    @property
    def values(self) -> Column:
        """The values so far."""
        return self._column[: self.size]

    def append(self, values: Column) -> None:
        """Put values at the end. O(those) amortised."""
        size = self.size + len(values)
        if self._column.dtype != values.dtype:
            kind = object if self.size else values.dtype
            self._column = self._column.astype(kind, copy=False)
        if size > len(self._column):
            longer = np.empty(max(2 * len(self._column), size, 16), dtype=self._column.dtype)
            longer[: self.size] = self.values
            self._column = longer
        self._column[self.size : size] = values
        self.size = size

    def keep(self, rows: Rows) -> None:
        """Keep only these rows, in this order."""
        self._column = self.values[rows]
        self.size = len(rows)


class GrowingTable:
    """Payloads; of different schemas they become objects kept whole."""

    __slots__ = ("columns", "schema", "size")

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self.columns: dict[str, GrowingColumn] = {}
        self.size = 0

    def append(self, table: Table) -> None:
        """Put payloads at the end."""
        if self.schema is None or not self.size:
            self._begin(table.schema)
        if table.schema != self.schema:
            self._keep_whole()
            table = Table.of_objects(table.payloads())
        for name, column in self.columns.items():
            column.append(table.columns[name])
        self.size += table.size

    def take(self, rows: Rows) -> Table:
        """Return the payloads of some rows."""
        if self.schema is None:
            return Table.of_objects([])
        return Table(self.schema, {name: column.values[rows] for name, column in self.columns.items()}, len(rows))

    def keep(self, rows: Rows) -> None:
        """Keep only these rows, in this order."""
        for column in self.columns.values():
            column.keep(rows)
        self.size = len(rows)

    def _begin(self, schema: Schema) -> None:
        self.schema = schema
        self.columns = {name: GrowingColumn() for name in schema.columns}

    def _keep_whole(self) -> None:
        if self.schema == Schema.object():
            return
        whole = object_column(self.take(np.arange(self.size)).payloads())
        self._begin(Schema.object())
        self.columns[""].append(whole)
