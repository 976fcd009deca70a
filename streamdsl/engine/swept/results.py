"""Results that are out, by slot: what a window has sent, to be compared with what it should have sent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.cells import same_payloads
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, object_column
from streamdsl.temporal.time import Ticks


class Results:
    """The payload and the RE of each slot's result; `is_out` says which have one.

    >>> results = Results()
    >>> results.grow(2)
    >>> results.put(np.array([1]), np.array([9]), Table.from_payloads([5]))
    >>> results.is_out.tolist(), results.payloads(np.array([1])).payloads()
    ([False, True], [5])
    """

    def __init__(self) -> None:
        self.is_out: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self.re: Ticks = np.empty(0, dtype=np.int64)
        self._schema: Schema | None = None
        self._columns: dict[str, Column] = {}

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return self.is_out.nbytes + self.re.nbytes + sum(column.nbytes for column in self._columns.values())

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        self.is_out, self.re = lengthened(self.is_out, size), lengthened(self.re, size)
        self._columns = {name: lengthened(column, size) for name, column in self._columns.items()}

    def clear(self, slots: Rows) -> None:
        """Forget the results of slots."""
        self.is_out[slots] = False
        for column in self._columns.values():
            if column.dtype == object:
                column[slots] = None

    def payloads(self, slots: Rows) -> Table:
        """Return the results of slots that have one."""
        if self._schema is None:
            return Table.of_objects([])
        return Table(self._schema, {name: column[slots] for name, column in self._columns.items()}, len(slots))

    def put(self, slots: Rows, re: Ticks, payloads: Table) -> None:
        """Note the results that go out."""
        payloads = self._conform(payloads)
        for name, values in payloads.columns.items():
            column = self._columns[name]
            if column.dtype != values.dtype and column.dtype != object:
                column = self._columns[name] = column.astype(object)
            column[slots] = values
        self.is_out[slots] = True
        self.re[slots] = re

    def _conform(self, payloads: Table) -> Table:
        """Make payloads fit those that are out; of different schemas all become objects kept whole."""
        if self._schema is None or (payloads.schema != self._schema and not self.is_out.any()):
            self._schema = payloads.schema
            self._columns = {name: np.zeros(len(self.re), dtype=column.dtype) for name, column in payloads.columns.items()}
        if payloads.schema == self._schema:
            return payloads
        if self._schema != Schema.object():
            used = np.flatnonzero(self.is_out)
            whole = np.empty(len(self.re), dtype=object)
            whole[used] = object_column(self.payloads(used).payloads())
            self._schema, self._columns = Schema.object(), {"": whole}
        return Table.of_objects(payloads.payloads())

    def are(self, slots: Rows, payloads: Table) -> NDArray[np.bool_]:
        """Say which of these payloads are what the slots have sent."""
        same: NDArray[np.bool_] = self.is_out[slots]
        known = np.flatnonzero(same)
        if len(known):
            same[known] = same_payloads(self.payloads(slots[known]), payloads.take(known))
        return same


def lengthened(column: Column, size: int) -> Column:
    """Return a column with zeros after it, so many values in all."""
    longer = np.zeros(size, dtype=column.dtype)
    longer[: len(column)] = column
    return longer
