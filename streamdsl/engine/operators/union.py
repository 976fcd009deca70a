"""Union: the rows of all inputs. Ids become `(input, id)`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operator import Operator
from streamdsl.engine.row_batch import PAIRS, RowBatch
from streamdsl.plan.node import Union


class UnionOperator(Operator):
    """All rows of all inputs; ids become `(input, id)`."""

    kind = "union (columnar)"

    def __init__(self, label: str, node: Union) -> None:
        super().__init__(label)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return min([each.final for each in inputs])

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        return Batch.concat(
            batch.with_ids(PairIds(np.full(len(batch), n), batch.ids)) for n, batch in enumerate(batches) if len(batch)
        )

    def change_rows_of(self, place: int, batch: RowBatch) -> Batch:
        changed = zip(batch.row_ids(), batch.changes, strict=True)
        changes = [((place, id), 0, le, re_old, re_new) for id, (_, _, le, re_old, re_new) in changed]
        return RowBatch(changes, batch.values, batch.schema, batch.groups, PAIRS)
