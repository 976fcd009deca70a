"""The base of operators over two inputs: both sides, and the residual predicate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import name
from streamdsl.engine.keys import parts_of
from streamdsl.engine.operators.keyed_operator import KeyedOperator
from streamdsl.engine.row_batch import RowBatch
from streamdsl.errors import UserCodeError
from streamdsl.expr.evaluate import Inputs, RowError, truth
from streamdsl.expr.nodes import Constant, Make
from streamdsl.expr.row_program import GroupStep, ProgramResult, RowProgram, Values
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.plan.node import Matching
from streamdsl.temporal.payload import PLAIN

MOST: Final = 64
"""The row path handles up to this many pairs."""


class MatchingOperator(KeyedOperator):
    """Applies the changes of both inputs, and evaluates which pairs of slots match. In a self-join one input is both sides."""

    def __init__(self, label: str, matching: Matching) -> None:
        super().__init__(label)
        self.where = matching.where
        self.left, self.right = self.sides[0], self.sides[-1]
        self._keys = left, right = matching.left_key, matching.right_key
        if isinstance(left, Make) and isinstance(right, Make) and left.schema == right.schema:
            self.key = left

    def take(self, batches: Sequence[Batch]) -> None:
        """Apply the changes of a step."""
        for side, batch, key in zip(self.sides, batches, self._keys, strict=True):
            if len(batch):
                side.take(batch, partial(self.numbers_of, key))

    def key_numbers_of_rows(self, place: int, batch: RowBatch) -> Sequence[int] | None:
        """Return the numbers of the keys of a side's rows; None if the columnar path must run."""
        key, groups = self._keys[place], batch.groups
        if key is None:
            return [0] * len(batch.changes) if groups is None else groups
        if isinstance(key, Make) and not isinstance(self.key, Make):
            return None
        function = self._key_programs[place].function_for(batch.schema)
        try:
            found = function(batch.values, groups)
        except Exception:
            return None
        return None if found is None else found[1]

    def row_values(
        self, program: RowProgram, pairs: Sequence[Values], groups: Sequence[Any], alone: bool = False
    ) -> ProgramResult | None:
        """Apply a program to pairs of rows, or to left rows alone; None if the columnar path must run."""
        left = self.left.rows.schema
        if left is None or not PLAIN.issuperset([type(value) for values in pairs for value in values]):
            return None
        function = program.function_for(left, None if alone else self.right.rows.schema)
        try:
            return None if program.is_refused else function(pairs, groups)
        except Exception:
            return None

    @cached_property
    def _key_programs(self) -> Sequence[RowProgram]:
        """The row program of each side that computes the numbers of keys."""
        keys = [(Constant(None),) if key is None else parts_of(key) for key in self._keys]
        return tuple([RowProgram([GroupStep(parts, self.key_numbers)]) for parts in keys])

    def matching(self, lefts: Rows, rights: Rows) -> Rows:
        """Return the pairs of slots for which the residual predicate holds."""
        if self.where is None or not len(lefts):
            return np.arange(len(lefts))
        try:
            return flatnonzero(truth(self.where, self.inputs(lefts, rights)))
        except RowError as error:
            raise self.pair_error(error, lefts, rights) from error.cause

    def inputs(self, lefts: Rows, rights: Rows, starts: bool = False) -> Inputs:
        """Return pairs of rows as the inputs of expressions, with their LEs if those are read."""
        rows = ((self.left.rows, lefts), (self.right.rows, rights))
        tables = tuple(side.table(slots) for side, slots in rows)
        return Inputs(tables, len(lefts), starts=tuple(side.le.take(slots) for side, slots in rows) if starts else ())

    def pair_error(self, error: RowError, lefts: Rows, rights: Rows | None) -> UserCodeError:
        """Return what a user sees of an error in a pair, or in a left row without a right one."""
        right = None if rights is None else self.right.rows.ids(rights[[error.row]])[0]
        event = (self.left.rows.ids(lefts[[error.row]])[0], right)
        return UserCodeError(error.cause, operator=self.label, event=name(event), payloads=error.payloads)

    def state(self) -> dict[str, int]:
        left, right = self.sides
        return {"windows": 0, "events": left.n_events + right.n_events}
