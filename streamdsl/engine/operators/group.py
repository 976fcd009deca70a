"""Group-apply: rows get the key of their group on the way in, and lose it on the way out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.expr import Inputs, RowError, evaluate, key_values, project
from streamdsl.expr.schema import as_payload
from streamdsl.expr.table import object_column
from streamdsl.plan.node import GroupApply


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
        inputs = inputs_of(batch)
        try:
            hashed: list[Any] = key_values(self.key, inputs)
            shown = [as_payload(value) for value in evaluate(self.key, inputs).tolist()]
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause
        keys = map(self.table.intern, hashed, shown, batch.group_keys())
        return replace(batch, keys=object_column(list(keys)))


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
        shown = object_column([group.shown for group in groups])
        try:
            table = project(self.projection, Inputs((batch.table,), len(batch), keys=shown))
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause
        parents = [group.parent for group in groups]
        keys = object_column(parents) if parents[0] is not None else None
        return replace(batch, table=table, keys=keys)
