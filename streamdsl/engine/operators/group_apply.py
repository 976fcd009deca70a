"""Group-apply: rows get the number of their group as they enter, and lose it as they leave."""

from __future__ import annotations

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import Ids, VersionedIds
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.operator import RowOperator
from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.evaluate import Inputs, project
from streamdsl.expr.row_program import GroupStep, UngroupStep
from streamdsl.plan.node import GroupApply


class GroupEnterOperator(RowOperator):
    """Gives each row the number of its group, by which every operator of the body partitions its state."""

    kind = "group by key"

    def __init__(self, label: str, node: GroupApply, inside: KeyTable) -> None:
        super().__init__(label)
        self.key = node.key
        self.inside = inside

    @property
    def passes_ctis(self) -> bool:
        return True

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        return batch.with_table(batch.table, self.inside.numbers(self.key_parts(self.key, batch), batch.keys))

    @property
    def row_step(self) -> GroupStep:
        return GroupStep(self.inside.exprs, self.inside)


class GroupExitOperator(RowOperator):
    """Combines key and result. The rows then belong to the surrounding group, if there is one."""

    kind = "group result"

    def __init__(self, label: str, node: GroupApply, inside: KeyTable) -> None:
        super().__init__(label)
        self.projection = node.projection
        self.inside = inside

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        assert batch.keys is not None
        keys = self.inside.shown(batch.keys, self._leaves(batch.ids))
        with self.reported(batch):
            table = project(self.projection, Inputs((batch.table,), batch.table.size, keys=keys))
        return batch.with_table(table, self.inside.outer(batch.keys))

    def _leaves(self, ids: Ids) -> list[AnyColumn] | None:
        """Return the parts of the rows' keys, where their ids have them."""
        ids = ids.columns[0] if type(ids) is VersionedIds else ids
        return ids.parts[1] if isinstance(ids, WindowIds) and ids.keys is self.inside else None

    @property
    def row_step(self) -> UngroupStep:
        return UngroupStep(self.projection, self.inside)
