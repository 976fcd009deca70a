"""Operators that change lifetimes: each change of a row becomes a change of its output, without state (paper 001, II.D.1)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import UNKNOWN, Frontier, before, moved, of_same_ends
from streamdsl.engine.ids import Ids
from streamdsl.engine.operator import Operator
from streamdsl.engine.operators.span import where_present
from streamdsl.errors import TimeOverflow, UnitError
from streamdsl.expr import Inputs
from streamdsl.expr.nodes import Constant, Expr, reads_re
from streamdsl.expr.table import Column, flatnonzero
from streamdsl.plan.node import AlterLifetime, ClipDuration, ClipInterval, Extend, Quantize, Shift, ToPointsAtEnd
from streamdsl.temporal import CHRONON, INFINITY, MIN_TIME, Unit, add_time, add_times, plain, to_duration, to_ticks
from streamdsl.temporal.time import Ticks

Conversion: TypeAlias = Callable[[object, Unit | None], int]


class LifetimeOperator(Operator):
    """Subclasses map lifetimes. A change that moves LE is a full retraction and an insertion."""

    @abstractmethod
    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        """Return the new ends of rows with these ends; a lifetime that is empty afterwards is dropped."""

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        if batch.are_insertions or (batch.re_old == batch.le).all():
            new_le, new_re = self._present(batch, batch.re_new)
            return batch.with_lifetimes(new_le, new_le, new_re)
        old_le, old_re = self._present(batch, batch.re_old)
        changes = bool((batch.re_old != batch.re_new).any())
        new_le, new_re = self._present(batch, batch.re_new) if changes else (old_le, old_re)
        moved = old_le != new_le
        if not moved.any():
            return batch.with_lifetimes(new_le, old_re, new_re)
        gone = batch.with_lifetimes(old_le, old_re, np.where(moved, old_le, new_re))
        come = batch.take(flatnonzero(moved))
        return Batch.concat([gone, come.with_lifetimes(new_le[moved], new_le[moved], new_re[moved])])

    def _present(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        """Return the new ends, empty for rows that are not there."""
        start, end = self.lifetimes(batch, re)
        latest = np.maximum(start, end)
        if batch.are_points:
            return start, latest
        is_there = re > batch.le
        return start, latest if is_there.all() else np.where(is_there, latest, start)


class AlterLifetimeOperator(LifetimeOperator):
    """Gives each row the lifetime `[start, start + duration)`."""

    kind = "alter_lifetime (columnar)"

    def __init__(self, label: str, node: AlterLifetime) -> None:
        super().__init__(label)
        self.start = node.start
        self.duration = node.duration
        self.unit = node.unit
        self.moves_start = node.start is not None
        self.reads_re = reads_re(node.duration) or (node.start is not None and reads_re(node.start))

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        start = batch.le if self.start is None else self._ticks(self.start, batch, re, to_ticks)
        if isinstance(self.duration, Constant):
            return start, add_times(start, max(to_duration(self.duration.value, self.unit), 0))
        duration = np.maximum(self._ticks(self.duration, batch, re, to_duration), 0)
        return start, add_times(start, np.where(re > batch.le, duration, 0))

    def _ticks(self, expr: Expr, batch: Batch, re: Ticks, convert: Conversion) -> Ticks:
        if isinstance(expr, Constant):
            return np.full(len(batch), convert(expr.value, self.unit), dtype=np.int64)

        def evaluate(expr: Expr, inputs: Inputs, batch: Batch) -> Ticks:
            column = self.evaluate(expr, inputs, batch)
            return column if column.dtype == np.int64 else self._converted(column, batch.ids, convert)

        return where_present(evaluate, expr, batch, re)

    def _converted(self, column: Column, ids: Ids, convert: Conversion) -> Ticks:
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

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        """The LE fixes the RE, and no change reaches a row that begins before the CTI."""
        ((cti, _),) = inputs
        if self.moves_start or self.reads_re:
            return UNKNOWN
        if isinstance(self.duration, Constant):
            return moved(before(cti), max(to_duration(self.duration.value, self.unit), 0))
        return cti


class ShiftOperator(LifetimeOperator):
    """Moves both ends by a duration."""

    kind = "shift (columnar)"

    def __init__(self, label: str, node: Shift) -> None:
        super().__init__(label)
        self.duration = node.duration

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        return add_times(batch.le, self.duration), add_times(re, self.duration)

    def output_cti(self, ctis: list[int]) -> int:
        return ctis[0] if ctis[0] == MIN_TIME else add_time(ctis[0], self.duration)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return moved(inputs[0].final, self.duration)


class ClipIntervalOperator(LifetimeOperator):
    """Intersects each lifetime with a fixed period."""

    kind = "clip_interval (columnar)"

    def __init__(self, label: str, node: ClipInterval) -> None:
        super().__init__(label)
        self.lo, self.hi = node.lo, node.hi

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        return np.maximum(batch.le, self.lo), np.minimum(re, self.hi)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        """A row that is cut where the period ends may still be ended there or earlier, until the CTI is there."""
        ((cti, final),) = inputs
        return INFINITY if cti >= self.hi else min(final, self.hi - CHRONON)


class ExtendOperator(LifetimeOperator):
    """Moves RE by a duration."""

    kind = "extend (columnar)"

    def __init__(self, label: str, node: Extend) -> None:
        super().__init__(label)
        self.duration = node.duration

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        return batch.le, add_times(re, np.where(re > batch.le, self.duration, 0))

    def output_cti(self, ctis: list[int]) -> int:
        """A longer row may still be ended where it ends in the input; a shorter one, that much earlier."""
        return ctis[0] if ctis[0] == MIN_TIME else add_time(ctis[0], min(self.duration, 0))

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return moved(inputs[0].final, self.duration)


class ClipDurationOperator(LifetimeOperator):
    """Ends each row a duration after its LE at the latest."""

    kind = "clip_duration (columnar)"

    def __init__(self, label: str, node: ClipDuration) -> None:
        super().__init__(label)
        self.duration = max(node.duration, 0)

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        with np.errstate(over="ignore"):
            end = batch.le + np.int64(self.duration)
        return batch.le, np.where(end < batch.le, re, np.minimum(re, end))

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_same_ends(inputs[0], self.cti)


class ToPointsAtEndOperator(LifetimeOperator):
    """Makes a point of each end."""

    kind = "to_points_at_end (columnar)"

    def __init__(self, label: str, node: ToPointsAtEnd) -> None:
        super().__init__(label)

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        ends = (re > batch.le) & (re < INFINITY)
        start = np.where(ends, re, batch.le)
        return start, add_times(start, np.where(ends, CHRONON, 0))

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return moved(inputs[0].final, CHRONON)


class QuantizeOperator(LifetimeOperator):
    """Moves both ends outwards to a grid."""

    kind = "quantize (columnar)"

    def __init__(self, label: str, node: Quantize) -> None:
        super().__init__(label)
        self.size, self.period, self.offset = node.size, node.period, node.offset % node.period

    def lifetimes(self, batch: Batch, re: Ticks) -> tuple[Ticks, Ticks]:
        start = add_times(batch.le, -self._beyond(batch.le, self.offset))
        least = np.maximum(re, add_times(start, self.size))
        last = (self.offset + self.size) % self.period
        up = (self.period - self._beyond(least, last)) % self.period
        return start, add_times(least, np.where(re > batch.le, up, 0))

    def _beyond(self, times: Ticks, phase: int) -> Ticks:
        """Return how far each time is beyond the latest of the grid; no step leaves int64."""
        return (times % self.period - phase) % self.period

    def output_cti(self, ctis: list[int]) -> int:
        if ctis[0] in (MIN_TIME, INFINITY):
            return ctis[0]
        return max(MIN_TIME, ctis[0] - (ctis[0] - self.offset) % self.period)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return inputs[0].final
