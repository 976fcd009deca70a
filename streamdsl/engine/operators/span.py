"""Span-based operators: each change of a row becomes a change of its output, without state (paper 001, II.D.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operator import Operator, RowOperator, inputs_of
from streamdsl.errors import StreamDslError
from streamdsl.expr.evaluate import Inputs, RowError, project
from streamdsl.expr.nodes import Expr, reads_re
from streamdsl.expr.row_program import FilterStep, ProjectStep
from streamdsl.expr.schema import as_payload
from streamdsl.expr.table import Table, flatnonzero, payload_table
from streamdsl.plan.node import Select, SelectMany, Where
from streamdsl.temporal import MIN_TIME
from streamdsl.temporal.time import Ticks


class WhereOperator(RowOperator):
    """Keeps the rows for which the predicate is true."""

    kind = "where (columnar)"

    def __init__(self, label: str, node: Where) -> None:
        super().__init__(label)
        self.predicate = node.predicate
        self.reads_re = reads_re(node.predicate)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not self.reads_re:
            return batch.take(flatnonzero(self.holds(self.predicate, inputs_of(batch), batch)))
        old = np.where(self._holds(batch, batch.re_old), batch.re_old, batch.le)
        new = np.where(self._holds(batch, batch.re_new), batch.re_new, batch.le)
        return batch.with_lifetimes(batch.le, old, new)

    @property
    def row_step(self) -> FilterStep:
        return FilterStep(self.predicate)

    def output_cti(self, ctis: list[int]) -> int:
        return MIN_TIME if self.reads_re else ctis[0]

    @property
    def passes_ctis(self) -> bool:
        return not self.reads_re

    def _holds(self, batch: Batch, re: Ticks) -> Any:
        return where_present(self.holds, self.predicate, batch, re)


class SelectOperator(RowOperator):
    """Replaces each row's payload."""

    kind = "select (columnar)"

    def __init__(self, label: str, node: Select) -> None:
        super().__init__(label)
        self.projection = node.projection
        self.reads_re = reads_re(node.projection)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not self.reads_re:
            return batch.with_table(self._payloads(batch, inputs_of(batch)), batch.keys)
        unchanged = batch.take(flatnonzero(batch.re_old == batch.re_new))
        batch = batch.changed()
        gone = batch.with_lifetimes(batch.le, batch.re_old, batch.le)
        come = batch.with_lifetimes(batch.le, batch.le, batch.re_new)
        return Batch.concat([self._projected(part, np.maximum(part.re_old, part.re_new)) for part in (gone, come, unchanged)])

    @property
    def row_step(self) -> ProjectStep:
        return ProjectStep(self.projection)

    def output_cti(self, ctis: list[int]) -> int:
        return MIN_TIME if self.reads_re else ctis[0]

    @property
    def passes_ctis(self) -> bool:
        return not self.reads_re

    def _projected(self, batch: Batch, re: Ticks) -> Batch:
        inputs = Inputs((batch.table,), batch.table.size, batch.le, re)
        return batch.with_table(self._payloads(batch, inputs), batch.keys) if len(batch) else EMPTY

    def _payloads(self, batch: Batch, inputs: Inputs) -> Table:
        with self.reported(batch):
            return project(self.projection, inputs)


class SelectManyOperator(Operator):
    """Makes one row per item that the expression gives for a row."""

    kind = "select_many (per row)"

    def __init__(self, label: str, node: SelectMany) -> None:
        super().__init__(label)
        self.items = node.items

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return inputs[0].final

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        lists = self.evaluate(self.items, inputs_of(batch), batch).tolist()
        found = list(self._numbered(lists, batch))
        rows = np.array([row for row, _, _ in found], dtype=np.intp)
        spread = batch.take(rows)
        ids = PairIds(spread.ids, np.array([n for _, n, _ in found], dtype=np.int64))
        payloads = payload_table([as_payload(item) for _, _, item in found])
        return Batch(ids, spread.le, spread.re_old, spread.re_new, payloads, spread.keys)

    def _numbered(self, lists: list[Any], batch: Batch) -> Iterator[tuple[int, int, Any]]:
        for row, items in enumerate(lists):
            try:
                for n, item in enumerate(items):
                    yield row, n, item
            except StreamDslError:
                raise
            except Exception as error:
                raise self.user_error(RowError(row, error), batch.ids) from error


def where_present(evaluate: Callable[[Expr, Inputs, Batch], NDArray[Any]], expr: Expr, batch: Batch, re: Ticks) -> NDArray[Any]:
    """Return an expression over the rows that are there with these ends, and 0 or False for the others."""
    rows = flatnonzero(re > batch.le)
    here = batch.take(rows)
    values = evaluate(expr, Inputs((here.table,), len(here), le=here.le, re=re[rows]), here)
    result = np.zeros(len(batch), dtype=values.dtype)
    result[rows] = values
    return result
