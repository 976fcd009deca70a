"""What operators over two inputs share: both sides in sorted runs, the numbers of keys, and the residual predicate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import ClassVar

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import name
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.engine.sorted import Layout, SortedSide, StoredRows
from streamdsl.errors import UserCodeError
from streamdsl.expr import Inputs, RowError, truth
from streamdsl.expr.nodes import Expr, Whole
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.plan.node import Matching


class MatchingOperator(Operator):
    """Takes the changes of both inputs, says of pairs of slots whether they match, and lets go of what CTIs have passed."""

    rows_class: ClassVar[type[StoredRows]] = StoredRows

    def __init__(self, label: str, matching: Matching) -> None:
        super().__init__(label)
        self.where = matching.where
        self.numbers: KeyTable | None = None
        layout = Layout()
        self.left, self.right = self.sides = (SortedSide(layout, self.rows_class()), SortedSide(layout, self.rows_class()))
        self._keys = (matching.left_key, matching.right_key)

    def take(self, batches: Sequence[Batch]) -> None:
        """Take the changes of a step."""
        for side, batch, key in zip(self.sides, batches, self._keys, strict=True):
            if len(batch):
                side.take(batch, partial(self._numbers, key))

    def settle(self) -> None:
        """End a step."""
        for side in self.sides:
            side.settle()

    def _numbers(self, key: Expr | None, batch: Batch) -> Column:
        """Return the numbers of the rows' keys."""
        if key is None:
            return np.zeros(len(batch), dtype=np.int64) if batch.keys is None else batch.keys
        if self.numbers is None:
            self.numbers = KeyTable(Whole(), self.key_table)
        return self.numbers.numbers([self.evaluate(key, inputs_of(batch), batch)], batch.keys)

    def matching(self, lefts: Rows, rights: Rows) -> Rows:
        """Return for which of these pairs of slots the residual predicate holds."""
        if self.where is None or not len(lefts):
            return np.arange(len(lefts))
        try:
            return flatnonzero(truth(self.where, self.inputs(lefts, rights)))
        except RowError as error:
            raise self.pair_error(error, lefts, rights) from error.cause

    def inputs(self, lefts: Rows, rights: Rows, starts: bool = False) -> Inputs:
        """Return pairs of rows as what expressions are evaluated over, with their LEs if those are read."""
        rows = ((self.left.rows, lefts), (self.right.rows, rights))
        tables = tuple(side.table(slots) for side, slots in rows)
        return Inputs(tables, len(lefts), starts=tuple(side.le.take(slots) for side, slots in rows) if starts else ())

    def pair_error(self, error: RowError, lefts: Rows, rights: Rows | None) -> UserCodeError:
        """Return what a user sees of an error in a pair, or in a left row without a right one."""
        right = None if rights is None else self.right.rows.ids(rights[[error.row]])[0]
        event = (self.left.rows.ids(lefts[[error.row]])[0], right)
        return UserCodeError(error.cause, operator=self.label, event=name(event), payloads=error.payloads)

    def forget(self, cti: int) -> None:
        for side in self.sides:
            side.forget(cti)
        self.forget_numbers()

    def forget_numbers(self) -> None:
        """Let go of the numbers of keys that no row has, now and then."""
        if self.numbers is not None and self.numbers.is_due:
            self.numbers.keep(np.concatenate([side.rows.numbers.values for side in self.sides]))

    def held_groups(self) -> Iterable[int | None]:
        return chain.from_iterable(side.groups() for side in self.sides)

    def state(self) -> dict[str, int]:
        left, right = self.sides
        return {"windows": 0, "events": left.n_events + right.n_events}
