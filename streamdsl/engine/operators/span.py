"""Span-based operators: each change of an event becomes a change of its output, with no state (paper 001, II.D.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, payload_table
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr import Inputs, RowError, project, truth
from streamdsl.expr.nodes import Constant, Expr, Life, Opaque
from streamdsl.expr.schema import as_payload
from streamdsl.expr.table import Column, object_column
from streamdsl.plan.node import AlterLifetime, ClipInterval, Select, SelectMany, Shift, Where
from streamdsl.temporal import MIN_TIME, add_time, add_times, to_ticks
from streamdsl.temporal.time import Ticks


class WhereOperator(Operator):
    """Keeps the rows for which the predicate is true."""

    kind = "where (columnar)"

    def __init__(self, label: str, node: Where) -> None:
        super().__init__(label)
        self.predicate = node.predicate
        self.reads_re = reads_re(node.predicate)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        if not self.reads_re:
            return batch.take(np.flatnonzero(truth(self.evaluate(self.predicate, inputs_of(batch), batch.ids))))
        old = np.where(self._holds(batch, batch.re_old), batch.re_old, batch.le)
        new = np.where(self._holds(batch, batch.re_new), batch.re_new, batch.le)
        return batch.with_lifetimes(batch.le, old, new)

    def output_cti(self, ctis: list[int]) -> int:
        return MIN_TIME if self.reads_re else ctis[0]

    def _holds(self, batch: Batch, re: Ticks) -> Any:
        return _where_present(self, self.predicate, batch, re, lambda column: truth(column), False)


class SelectOperator(Operator):
    """Replaces each row's payload."""

    kind = "select (columnar)"

    def __init__(self, label: str, node: Select) -> None:
        super().__init__(label)
        self.projection = node.projection
        self.reads_re = reads_re(node.projection)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        if not self.reads_re:
            return self._projected(batch, batch.re_new)
        gone = batch.with_lifetimes(batch.le, batch.re_old, batch.le)
        come = batch.with_lifetimes(batch.le, batch.le, batch.re_new)
        return Batch.concat([self._projected(gone, gone.re_old), self._projected(come, come.re_new)])

    def output_cti(self, ctis: list[int]) -> int:
        return MIN_TIME if self.reads_re else ctis[0]

    def _projected(self, batch: Batch, re: Ticks) -> Batch:
        if not len(batch):
            return EMPTY
        try:
            table = project(self.projection, Inputs((batch.table,), len(batch), le=batch.le, re=re))
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause
        return Batch(batch.ids, batch.le, batch.re_old, batch.re_new, table, batch.keys)


class SelectManyOperator(Operator):
    """Makes one row per item that the expression gives for a row."""

    kind = "select_many (per row)"

    def __init__(self, label: str, node: SelectMany) -> None:
        super().__init__(label)
        self.items = node.items

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        lists = self.evaluate(self.items, inputs_of(batch), batch.ids).tolist()
        found = list(self._numbered(lists, batch))
        rows = np.array([row for row, _, _ in found], dtype=np.intp)
        spread = batch.take(rows)
        ids = object_column([(id, n) for id, (_, n, _) in zip(spread.ids.tolist(), found, strict=True)])
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
                raise UserCodeError(error, operator=self.label, event=batch.ids[row]) from error


class AlterLifetimeOperator(Operator):
    """Gives each row the lifetime `[start, start + duration)`."""

    kind = "alter_lifetime (columnar)"

    def __init__(self, label: str, node: AlterLifetime) -> None:
        super().__init__(label)
        self.start = node.start
        self.duration = node.duration
        self.moves_start = node.start is not None
        self.reads_re = reads_re(node.duration) or (node.start is not None and reads_re(node.start))

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        old_le, old_re = self._lifetimes(batch, batch.re_old)
        new_le, new_re = self._lifetimes(batch, batch.re_new) if self._changes(batch) else (old_le, old_re)
        if self.start is None or (old_le == new_le).all():
            return batch.with_lifetimes(new_le, old_re, new_re)
        return Batch.concat([batch.with_lifetimes(old_le, old_re, old_le), batch.with_lifetimes(new_le, new_le, new_re)])

    @staticmethod
    def _changes(batch: Batch) -> bool:
        return bool((batch.re_old != batch.re_new).any())

    def _lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        """Return the new ends; a row that is not there, or whose duration is not positive, gets an empty lifetime."""
        start = batch.le if self.start is None else self._times(self.start, batch, re)
        duration = np.maximum(self._times(self.duration, batch, re), 0)
        duration = np.where(re > batch.le, duration, 0)
        return start, add_times(start, duration)

    def _times(self, expr: Expr, batch: Batch, re: Ticks) -> Ticks:
        if isinstance(expr, Constant):
            return np.full(len(batch), expr.value, dtype=np.int64)
        return _where_present(self, expr, batch, re, as_ticks, 0)

    def output_cti(self, ctis: list[int]) -> int:
        return MIN_TIME if self.moves_start or self.reads_re else ctis[0]


class ShiftOperator(Operator):
    """Moves both ends by a duration."""

    kind = "shift (columnar)"

    def __init__(self, label: str, node: Shift) -> None:
        super().__init__(label)
        self.duration = node.duration

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        ends = (batch.le, batch.re_old, batch.re_new)
        return batch.with_lifetimes(*(add_times(end, self.duration) for end in ends))

    def output_cti(self, ctis: list[int]) -> int:
        return ctis[0] if ctis[0] == MIN_TIME else add_time(ctis[0], self.duration)


class ClipIntervalOperator(Operator):
    """Intersects each lifetime with a fixed period."""

    kind = "clip_interval (columnar)"

    def __init__(self, label: str, node: ClipInterval) -> None:
        super().__init__(label)
        self.lo, self.hi = node.lo, node.hi

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        le = np.maximum(batch.le, self.lo)
        old = np.maximum(le, np.minimum(batch.re_old, self.hi))
        new = np.maximum(le, np.minimum(batch.re_new, self.hi))
        return batch.with_lifetimes(le, old, new)


def reads_re(expr: Expr) -> bool:
    """Say whether an expression may read the row's RE."""
    return any(part == Life("re") or (isinstance(part, Opaque) and part.life) for part in expr.walk())


def as_ticks(column: Column) -> Ticks:
    """Return a column of times as int64 ticks; anything but whole numbers is refused."""
    values = column if column.dtype == np.int64 else [to_ticks(value) for value in column.tolist()]
    ticks: Ticks = np.asarray(values, dtype=np.int64)
    return ticks


def _where_present(operator: Operator, expr: Expr, batch: Batch, re: Ticks, convert: Any, absent: Any) -> Any:
    """Return an expression over the rows that are there with these ends, and `absent` for the others."""
    rows = np.flatnonzero(re > batch.le)
    here = batch.take(rows)
    values = convert(operator.evaluate(expr, Inputs((here.table,), len(here), le=here.le, re=re[rows]), here.ids))
    result = np.full(len(batch), absent, dtype=values.dtype)
    result[rows] = values
    return result
