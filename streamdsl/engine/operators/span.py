"""Span-based operators: each change of an event becomes a change of its output, with no state (paper 001, II.D.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch, payload_table
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.errors import StreamDslError, TimeOverflow, UnitError
from streamdsl.expr import Inputs, RowError, project
from streamdsl.expr.nodes import Constant, Expr, Life, Opaque
from streamdsl.expr.schema import as_payload
from streamdsl.expr.table import Column, object_column
from streamdsl.plan.node import AlterLifetime, ClipInterval, Select, SelectMany, Shift, Where
from streamdsl.temporal import MIN_TIME, Unit, add_time, add_times, plain, to_duration, to_ticks
from streamdsl.temporal.time import Ticks

Conversion: TypeAlias = Callable[[object, Unit | None], int]


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
            return batch.take(np.flatnonzero(self.holds(self.predicate, inputs_of(batch), batch.ids)))
        old = np.where(self._holds(batch, batch.re_old), batch.re_old, batch.le)
        new = np.where(self._holds(batch, batch.re_new), batch.re_new, batch.le)
        return batch.with_lifetimes(batch.le, old, new)

    def output_cti(self, ctis: list[int]) -> int:
        return MIN_TIME if self.reads_re else ctis[0]

    def _holds(self, batch: Batch, re: Ticks) -> Any:
        return _where_present(self.holds, self.predicate, batch, re)


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
        echo = batch.take(np.flatnonzero(batch.re_old == batch.re_new))
        batch = batch.take(np.flatnonzero(batch.re_old != batch.re_new))
        gone = batch.with_lifetimes(batch.le, batch.re_old, batch.le)
        come = batch.with_lifetimes(batch.le, batch.le, batch.re_new)
        return Batch.concat([self._projected(part, np.maximum(part.re_old, part.re_new)) for part in (gone, come, echo)])

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
                raise self.user_error(RowError(row, error), batch.ids) from error


class AlterLifetimeOperator(Operator):
    """Gives each row the lifetime `[start, start + duration)`."""

    kind = "alter_lifetime (columnar)"

    def __init__(self, label: str, node: AlterLifetime) -> None:
        super().__init__(label)
        self.start = node.start
        self.duration = node.duration
        self.unit = node.unit
        self.moves_start = node.start is not None
        self.reads_re = reads_re(node.duration) or (node.start is not None and reads_re(node.start))

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        old_le, old_re = self._lifetimes(batch, batch.re_old)
        new_le, new_re = self._lifetimes(batch, batch.re_new) if self._changes(batch) else (old_le, old_re)
        moved = old_le != new_le
        if not moved.any():
            return batch.with_lifetimes(new_le, old_re, new_re)
        gone = batch.with_lifetimes(old_le, old_re, np.where(moved, old_le, new_re))
        come = batch.take(np.flatnonzero(moved))
        return Batch.concat([gone, come.with_lifetimes(new_le[moved], new_le[moved], new_re[moved])])

    @staticmethod
    def _changes(batch: Batch) -> bool:
        return bool((batch.re_old != batch.re_new).any())

    def _lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        """Return the new ends; a row that is not there, or whose duration is not positive, gets an empty lifetime."""
        start = batch.le if self.start is None else self._ticks(self.start, batch, re, to_ticks)
        duration = np.maximum(self._ticks(self.duration, batch, re, to_duration), 0)
        duration = np.where(re > batch.le, duration, 0)
        return start, add_times(start, duration)

    def _ticks(self, expr: Expr, batch: Batch, re: Ticks, convert: Conversion) -> Ticks:
        if isinstance(expr, Constant):
            return np.full(len(batch), convert(expr.value, self.unit), dtype=np.int64)

        def evaluate(expr: Expr, inputs: Inputs, ids: Column) -> Ticks:
            column = self.evaluate(expr, inputs, ids)
            return column if column.dtype == np.int64 else self._converted(column, ids, convert)

        return _where_present(evaluate, expr, batch, re)

    def _converted(self, column: Column, ids: Column, convert: Conversion) -> Ticks:
        """Return values as int ticks; an error for what is no time names operator and event."""
        ticks = np.zeros(len(column), dtype=np.int64)
        for row, value in enumerate(column.tolist()):
            try:
                ticks[row] = convert(value, self.unit)
            except (UnitError, TimeOverflow) as error:
                raise type(error)(f"operator {self.label}, event {plain(ids[row])!r}: {error}") from None
        return ticks

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


def _where_present(evaluate: Callable[[Expr, Inputs, Column], NDArray[Any]], expr: Expr, batch: Batch, re: Ticks) -> NDArray[Any]:
    """Return an expression over the rows that are there with these ends, and 0 or False for the others."""
    rows = np.flatnonzero(re > batch.le)
    here = batch.take(rows)
    values = evaluate(expr, Inputs((here.table,), len(here), le=here.le, re=re[rows]), here.ids)
    result = np.zeros(len(batch), dtype=values.dtype)
    result[rows] = values
    return result
