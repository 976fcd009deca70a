"""Group-apply: rows get the key of their group on the way in, and lose it on the way out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.keys import GroupKey, KeyTable, factorise, first_rows, group_codes
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.expr import Inputs, RowError, evaluate, project
from streamdsl.expr.nodes import Expr, Make
from streamdsl.expr.schema import as_payload
from streamdsl.expr.table import Rows, column_of, object_column
from streamdsl.plan.node import GroupApply
from streamdsl.temporal.payload import payload_key


class GroupEnterOperator(Operator):
    """Gives each row the key of its group; every operator of the body keeps its state by that key."""

    kind = "group by key"

    def __init__(self, label: str, node: GroupApply) -> None:
        super().__init__(label)
        self.key = node.key
        self.table = KeyTable()

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        codes = self._codes(batch)
        groups = object_column(self._groups(batch.take(first_rows(codes))))
        return replace(batch, keys=groups[codes], codes=codes)

    def _groups(self, examples: Batch) -> list[GroupKey]:
        """Return the group of each row."""
        column = self.evaluate(self.key, inputs_of(examples), examples.ids)
        values: list[Any] = column.tolist()
        is_plain = column.dtype.kind in "bi"
        hashed = values if is_plain else list(map(payload_key, values))
        shown = values if is_plain else list(map(as_payload, values))
        return list(map(self.table.intern, hashed, shown, examples.group_keys()))

    def _codes(self, batch: Batch) -> Rows:
        """Return a small number for every row, equal where the groups are; each of them is some row's."""
        inputs = inputs_of(batch)
        try:
            columns = [evaluate(part, inputs) for part in _parts(self.key)]
        except RowError:
            return self._refuse(batch, inputs)
        codes = factorise(columns[0]) if columns else np.zeros(len(batch), dtype=np.intp)
        others = [factorise(column) for column in columns[1:]]
        if batch.keys is not None:
            others.append(group_codes(batch.keys, batch.codes, len(batch))[0])
        for other in others:
            codes = factorise(codes * (int(other.max()) + 1) + other)
        return codes

    def _refuse(self, batch: Batch, inputs: Inputs) -> NoReturn:
        """Raise the error of the first row whose key fails, whichever part of it."""
        try:
            evaluate(self.key, inputs)
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause
        raise AssertionError("a key fails where one of its parts does")


def _parts(key: Expr) -> tuple[Expr, ...]:
    """Return expressions whose values are equal exactly where the key's are."""
    return key.values if isinstance(key, Make) else (key,)


class GroupExitOperator(Operator):
    """Puts key and result together; the rows are then in the group around this one, if there is one."""

    kind = "group result"

    def __init__(self, label: str, node: GroupApply) -> None:
        super().__init__(label)
        self.projection = node.projection

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        groups = batch.group_keys()
        is_nested = groups[0].parent is not None
        shown = column_of([group.shown for group in groups])
        try:
            table = project(self.projection, Inputs((batch.table,), len(batch), keys=shown))
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause
        keys = object_column([group.parent for group in groups]) if is_nested else None
        return replace(batch, table=table, keys=keys, codes=None)
