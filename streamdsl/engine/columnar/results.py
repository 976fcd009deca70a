"""The emitted results of windows, by slot, to be compared with the computed ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.list_slots import ListSlots
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.deferred import DeferredColumns, parts_of
from streamdsl.expr.lists import equal_lists, list_source
from streamdsl.expr.row_program import Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, flatnonzero, object_column
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import INFINITY, MIN_TIME


class Results:
    """The emitted result of each slot; `is_emitted` says which have one. Payloads are kept in columns of one schema.

    >>> results = Results()
    >>> results.grow(2)
    >>> results.put(np.array([1]), Table.from_payloads([5]))
    >>> results.is_emitted.tolist(), results.payloads(np.array([1])).payloads()
    ([False, True], [5])
    """

    def __init__(self) -> None:
        self.is_emitted: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._schema: Schema | None = None
        self._columns: dict[str, Column] = {}
        self._lists: dict[str, ListSlots] = {}
        """The columns that hold lists as such; they are not among the others."""

    @property
    def schema(self) -> Schema | None:
        """The schema of the payloads, None before the first."""
        return self._schema

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        self.is_emitted = longer(self.is_emitted, size)
        self._columns = {name: longer(column, size) for name, column in self._columns.items()}
        for lists in self._lists.values():
            lists.grow(size)

    def clear(self, slots: Rows) -> None:
        """Forget the results of slots."""
        self.is_emitted[slots] = False
        for column in self._columns.values():
            if column.dtype == object:
                column[slots] = None
        for lists in self._lists.values():
            lists.clear(slots)

    def payloads(self, slots: Rows) -> Table:
        """Return the results of slots, all of which have one."""
        if self._schema is None:
            return Table.of_objects([])
        columns = {name: column[slots] for name, column in self._columns.items()}
        if not self._lists:
            return Table(self._schema, columns, len(slots))
        held = {name: lists.take(slots) for name, lists in self._lists.items()}
        return Table(self._schema, DeferredColumns({**columns, **held}), len(slots))

    def put(self, slots: Rows, payloads: Table) -> None:
        """Record the emitted results of slots."""
        payloads = payloads if payloads.schema is self._schema else self._conform(payloads)
        for name, part in parts_of(payloads.columns).items():
            if (lists := self._lists.get(name)) is not None:
                if (source := list_source(part)) is not None and lists.are_like(source):
                    lists.put(slots, part)  # type: ignore[arg-type]
                    continue
                self._make(name)
            values, column = payloads.columns[name], self._columns[name]
            if column.dtype != values.dtype and column.dtype != object:
                column = self._columns[name] = column.astype(object)
            column[slots] = values
        self.is_emitted[slots] = True

    def takes(self, schema: Schema) -> bool:
        """Say whether results of this schema are kept as they are, so that single ones can be read and swapped."""
        for name in list(self._lists):
            self._make(name)
        if schema is not self._schema and schema == self._schema:
            self._schema = schema
        return schema is self._schema

    def values(self, slot: int) -> Values | None:
        """Return the result of a single slot, None if there is none."""
        return tuple([column.item(slot) for column in self._columns.values()]) if self.is_emitted.item(slot) else None

    def swap(self, slot: int, now: Values) -> Values | None:
        """Replace the result of a single slot, and return the previous one, None if there was none.

        The schema is one that it `takes`.

        If both are equal, nothing changes, and `now` itself is returned.

        >>> results = Results()
        >>> results.grow(1)
        >>> results.put(np.array([0]), Table.from_payloads([5]))
        >>> results.swap(0, (2.5,)), results.values(0)
        ((5,), (2.5,))
        """
        columns = self._columns
        before = tuple([column.item(slot) for column in columns.values()])
        if self.is_emitted.item(slot):
            was = before
            if are_same(was, now):
                return now
        else:
            was = None
            self.is_emitted[slot] = True
        for name, value, old in zip(columns, now, before, strict=True):
            column, kind = columns[name], type(old)
            if type(value) is not kind or (kind is int and not MIN_TIME <= value <= INFINITY):
                column = columns[name] = column.astype(object, copy=False)
            column[slot] = value
        return was

    def _make(self, name: str) -> None:
        """Make the Python lists of a column that holds lists as such."""
        self._columns[name] = self._lists.pop(name).take(slice(None)).column

    def _conform(self, payloads: Table) -> Table:
        """Bring payloads and results to one schema. If schemas differ, both become whole objects."""
        if self._schema is None or (payloads.schema != self._schema and not self.is_emitted.any()):
            self._schema, size = payloads.schema, len(self.is_emitted)
            found = {name: list_source(part) for name, part in parts_of(payloads.columns).items()}
            self._lists = {name: ListSlots(size, lists) for name, lists in found.items() if lists is not None}
            others = [name for name, lists in found.items() if lists is None]
            self._columns = {name: np.zeros(size, dtype=payloads.columns[name].dtype) for name in others}
        if payloads.schema == self._schema:
            return payloads
        if self._schema != Schema.object():
            used = flatnonzero(self.is_emitted)
            whole = np.empty(len(self.is_emitted), dtype=object)
            whole[used] = object_column(self.payloads(used).payloads())
            self._schema, self._columns, self._lists = Schema.object(), {"": whole}, {}
        return Table.of_objects(payloads.payloads())

    def are(self, slots: Rows, payloads: Table) -> NDArray[np.bool_]:
        """Say which payloads equal the results of their slots."""
        same: NDArray[np.bool_] = self.is_emitted[slots]
        if same.all():
            return same_payloads(self.payloads(slots), payloads)
        known = flatnonzero(same)
        if len(known):
            same[known] = same_payloads(self.payloads(slots[known]), payloads.take(known))
        return same


def same_payloads(left: Table, right: Table) -> NDArray[np.bool_]:
    """Say row by row whether two payloads are equal: NaN equals NaN, `1 == 1.0`.

    >>> same_payloads(Table.from_payloads([1, 2]), Table.from_payloads([1, 2.5])).tolist()
    [True, False]
    """
    if left.schema != right.schema:
        return same_values(object_column(left.payloads()), object_column(right.payloads()))
    same = np.ones(left.size, dtype=np.bool_)
    lefts, rights = parts_of(left.columns), parts_of(right.columns)
    for name in left.schema.columns:
        one, other, found = lefts[name], rights[name], None
        if list_source(one) is not None and list_source(other) is not None:
            found = equal_lists(one, other)  # type: ignore[arg-type]
        same &= same_values(left.columns[name], right.columns[name]) if found is None else found
    return same


def same_values(left: Column, right: Column) -> NDArray[np.bool_]:
    """Say position by position whether two values are equal."""
    if left.dtype == right.dtype and left.dtype != object:
        equal: NDArray[np.bool_] = left == right
        return equal | ((left != left) & (right != right)) if left.dtype.kind == "f" else equal
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.fromiter((_same(a, b) for a, b in pairs), dtype=np.bool_, count=len(left))


def are_same(left: Values, right: Values) -> bool:
    """Say whether two payloads of plain values and of one schema are equal, as `same_payloads` does."""
    return left == right or all(one == other or (one != one and other != other) for one, other in zip(left, right, strict=True))


def _same(a: object, b: object) -> bool:
    if type(a) is type(b) and isinstance(a, (int, str)):
        return a == b
    if isinstance(a, list) and isinstance(b, list) and len(a) != len(b):
        return False
    return payload_key(a) == payload_key(b)
