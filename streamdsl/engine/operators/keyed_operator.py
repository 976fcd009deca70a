"""The base of operators that find rows by key and time, in sorted runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import ClassVar, Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.keys import KeyTable, parts_of
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.engine.sorted import SortedSide, SortKeyEncoding, StoredRows
from streamdsl.expr.nodes import Expr, Make, Whole
from streamdsl.expr.table import Column

_WHOLE: Final = Whole()


class KeyedOperator(Operator):
    """One or two sets of rows, of inputs or of an input and the output, with common numbers for their keys."""

    rows_class: ClassVar[type[StoredRows]] = StoredRows
    n_sides: ClassVar[int] = 2

    def __init__(self, label: str, key: Expr = _WHOLE) -> None:
        super().__init__(label)
        self.key = key
        """What keys are made of: that of one side, if those of all have as many parts; else each is one value."""
        self._exprs = parts_of(key)
        """Where a fresh operator has what the table of keys refers to, which is made when it is asked for."""
        self.numbers: KeyTable | None = None
        encoding = SortKeyEncoding()
        self.sides = [SortedSide(encoding, self.rows_class()) for _ in range(self.n_sides)]

    def numbers_of(self, key: Expr | None, batch: Batch) -> Column:
        """Return the numbers of the rows' keys."""
        if key is None:
            return np.zeros(len(batch), dtype=np.int64) if batch.keys is None else batch.keys
        is_whole = isinstance(key, Make) and not isinstance(self.key, Make)
        parts = [self.evaluate(key, inputs_of(batch), batch)] if is_whole else self.key_parts(key, batch)
        return self.key_numbers.numbers(parts, batch.keys)

    @property
    def key_numbers(self) -> KeyTable:
        """The numbers of keys."""
        if self.numbers is None:
            self.numbers = KeyTable(self.key, self.key_table)
        return self.numbers

    def end_step(self) -> None:
        """End a step."""
        for side in self.sides:
            side.end_step()
        if self.numbers is not None:
            self.numbers.end_step()

    def flush_deferred(self) -> None:
        for side in self.sides:
            side.rows.put_in_columns()

    def forget(self, cti: int) -> None:
        for side in self.sides:
            side.forget(cti)
        self.forget_numbers()

    def forget_numbers(self) -> None:
        """Drop the numbers of keys that no row has, now and then."""
        if self.numbers is not None and self.numbers.is_due:
            self.numbers.keep(np.concatenate([side.rows.numbers.values for side in self.sides]))

    def held_groups(self) -> Iterable[int | None]:
        return chain.from_iterable(side.groups() for side in self.sides)
