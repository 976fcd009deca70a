"""A store of payloads in columns: batches are put in, rows are read by slot, and freed slots are used again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Table, object_column


class SlotChange(NamedTuple):
    """A change of a row whose payload is in a slot, and its group."""

    id: Hashable
    le: int
    re_old: int
    re_new: int
    slot: int
    group: int | None


class PayloadStore:
    """A growing table with free slots.

    >>> store = PayloadStore()
    >>> slots = store.put(Table.from_payloads([1, 2]))
    >>> store.take([slots[1]]).payloads()
    [2]
    """

    def __init__(self) -> None:
        self._schema: Schema | None = None
        self._columns: dict[str, Column] = {}
        self._capacity = 0
        self._free: list[int] = []

    def put(self, table: Table) -> list[int]:
        """Store rows and return their slots. O(rows) amortized."""
        if table.size == 0:
            return []
        table = self._conform(table)
        while len(self._free) < table.size:
            self._grow()
        slots = self._free[: -table.size - 1 : -1]
        del self._free[-table.size :]
        where = np.array(slots, dtype=np.intp)
        for name, column in table.columns.items():
            self._write(name, where, column)
        return slots

    def take(self, slots: Sequence[int]) -> Table:
        """Return the rows in these slots."""
        where = np.array(slots, dtype=np.intp)
        if self._schema is None:
            return Table.of_objects([])
        return Table(self._schema, {name: column[where] for name, column in self._columns.items()}, len(where))

    def batch(self, changes: Iterable[SlotChange], keyed: bool) -> Batch:
        """Return changes as a batch, retractions before insertions, without no-op changes."""
        rows = sorted((row for row in changes if row.re_old != row.re_new), key=lambda row: row.re_old == row.le)
        if not rows:
            return EMPTY
        ids, le, re_old, re_new, slots, groups = zip(*rows, strict=True)
        return Batch(
            object_column(ids),
            np.array(le, dtype=np.int64),
            np.array(re_old, dtype=np.int64),
            np.array(re_new, dtype=np.int64),
            self.take(slots),
            np.array(groups, dtype=np.int64) if keyed else None,
        )

    def free(self, slots: Sequence[int]) -> None:
        """Free slots, and release the objects in them."""
        where = np.array(slots, dtype=np.intp)
        for column in self._columns.values():
            if column.dtype == object:
                column[where] = None
        self._free.extend(slots)

    def _conform(self, table: Table) -> Table:
        """Bring rows and stored ones to one schema. If schemas differ, all become whole objects."""
        if self._schema is None:
            self._schema = table.schema
            self._columns = {name: np.empty(0, dtype=column.dtype) for name, column in table.columns.items()}
        if table.schema == self._schema:
            return table
        if self._schema != Schema.object():
            used = sorted(set(range(self._capacity)) - set(self._free))
            objects = np.empty(self._capacity, dtype=object)
            objects[used] = object_column(self.take(used).payloads())
            self._schema, self._columns = Schema.object(), {"": objects}
        return Table.of_objects(table.payloads())

    def _write(self, name: str, where: Column, values: Column) -> None:
        column = self._columns[name]
        if column.dtype != values.dtype and column.dtype != object:
            column = self._columns[name] = column.astype(object)
        column[where] = values

    def _grow(self) -> None:
        added = max(64, self._capacity)
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate([column, np.zeros(added, dtype=column.dtype)])
        self._free.extend(range(self._capacity + added - 1, self._capacity - 1, -1))
        self._capacity += added
