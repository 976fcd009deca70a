"""The columnar window operator's way for few changes: number by number, in the state that its columns have."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.lanes import LaneParts
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.few import Change, Few, Result, few_results
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.columnar import ColumnarWindowOperator
from streamdsl.expr.nodes import Choose, Constant, Expr, Make
from streamdsl.expr.scalars import Program, Project, Values
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import WindowAggregate
from streamdsl.temporal.time import CHRONON, INFINITY
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.windows import Output

_NO_GROUP: Final = itertools.repeat(0)
_NO_PARTS: Final[Iterable[LaneParts]] = itertools.repeat([])
_MOST: Final = 32
"""Rows that are in more windows, all taken together, are left to columns."""


Entry: TypeAlias = tuple[range, int, int, LaneParts]
"""The windows that a row enters (then there is 1) or leaves (-1), its group, and what it adds to the lanes of a window."""
Touched: TypeAlias = dict[int, tuple[int, int, int]]
"""The number of the window, the group and the number of rows of each cell that is changed."""


class OneByOneWindowOperator(ColumnarWindowOperator):
    """Count, sum and avg over hopping and tumbling windows, also of rows that come one by one."""

    def __init__(self, label: str, node: WindowAggregate, gate: Gate) -> None:
        super().__init__(label, node, gate)
        read = [self.aggregates[accumulator.number] for accumulator in self._reading]
        arguments = tuple(map(_argument, read))
        self._arguments = Program([Project(Make(Schema.tuple(len(arguments)), arguments))])
        self._choosing = {
            accumulator.number for accumulator in self._reading if self.aggregates[accumulator.number].where is not None
        }
        self._shows_begun = not gate.final and not gate.by_end
        self._origin = WindowIds(label, None)
        self._overlaps = self.windows.size > self.windows.hop
        self._at_end = node.output is Output.POINT_AT_END
        self._results_schema = Schema.record([f"a{accumulator.number}" for accumulator in self.accumulators])

    @functools.cached_property
    def _projected(self) -> Program:
        return Program([Project(self._projection, self.key_table)])

    def few(self, batch: Few, cti: int) -> Batch | None:
        if not self._shows_begun or self.ending:
            return None
        if self._origin.keys is not self.key_table:
            self._origin = WindowIds(self.label, self.key_table)
        alone = None if self._overlaps or len(batch.changes) > 1 or not self.ring.is_empty else self._alone_in_last(batch, cti)
        if alone is not None:
            return alone
        parts: Iterable[LaneParts] | None = self._parts(batch) if self._reading else _NO_PARTS
        if parts is None:
            return None
        entries: list[Entry] = []
        cells = 0
        watermark = cti if cti > self.watermark else self.watermark
        for (_, _, le, re_old, re_new), group, part in zip(batch.changes, batch.groups or _NO_GROUP, parts, strict=False):
            windows = self.numbers.entered(le, re_old, re_new)
            if windows is None or (cells := cells + len(windows)) > _MOST:
                return None
            if le > watermark:
                watermark = le
            entries.append((windows, 1 if re_new > re_old else -1, group, part))
        last = self.numbers.last_begun(watermark)
        first = self._first if cti < self._closes else self.windows.first_ending_after(cti)
        if any(windows and windows.start < first for windows, _, _, _ in entries) or not self.ring.opens_nothing(last):
            return None
        self.watermark, self._shown = watermark, last
        touched = self._enter_each(entries)
        out = self._differences(touched)
        return self._emit(np.array(sorted(touched))) if out is None else out

    def _alone_in_last(self, batch: Few, cti: int) -> Batch | None:
        """Return what an insertion into the last window that has begun does, and into no other; None: it is another."""
        ((_, _, le, re_old, re),) = batch.changes
        number, windows, watermark = self._shown, self.windows, self.watermark
        start = windows.offset + number * windows.hop
        end = start + windows.size
        if re_old != le or not start <= le < re <= end < INFINITY or cti >= end or watermark >= end or number > self._latest:
            return None
        part: LaneParts = []
        if self._reading:
            parts = self._parts(batch)
            if parts is None:
                return None
            (part,) = parts
            self._count_reals(part)
        latest = le if le > cti else cti
        if latest > watermark:
            self.watermark = latest
        group = 0 if batch.groups is None else batch.groups[0]
        cells, lanes = self.cells, self.cells.lanes
        slot = cells.find_one(number, group)
        rows = lanes.add_row(part, slot, 1)
        now = self._result_of(slot, group, rows)
        if now is None:
            return self._emit(np.array([slot]))
        was = cells.results.swap(slot, now)
        if was is now:
            return EMPTY
        keys = self.key_table
        id = (start,) if keys is None else (start, *keys.leaves_of(group))
        if self._at_end:
            start, end = end, end + CHRONON
        if was is None:
            come: Change = (id, cells.version(slot), start, start, end)
            return Few((come,), (now,), self._projected.schema, None if keys is None else (group,), self._origin)
        version = cells.retract(slot)
        changes = (id, version, start, end, start), (id, version + 1, start, start, end)
        return Few(changes, (was, now), self._projected.schema, None if keys is None else (group, group), self._origin)

    def _result_of(self, slot: int, group: int, rows: int) -> Values | None:
        """Return the result that a cell has now; None where columns have to tell."""
        lanes, projected = self.cells.lanes, self._projected
        function = projected.of(self._results_schema)
        try:
            values = tuple([each.result(lanes, slot, rows) for each in self.accumulators])
            passed = function((values,), (group,))
        except Exception:
            return None
        if passed is None or not self.cells.results.takes(projected.schema):
            return None
        self.udm_calls += len(values)
        return passed[0][0]

    def _parts(self, batch: Few) -> Sequence[LaneParts] | None:
        """Return what each row adds to the lanes of a window besides itself; None where columns have to say."""
        given = self._arguments.of(batch.schema)
        try:
            found = given(batch.values, None)
        except Exception:
            return None
        if found is None:
            return None
        parts = []
        for values in found[0]:
            part: LaneParts = []
            for accumulator, value in zip(self._reading, values, strict=True):
                each = accumulator.parts_of(value)
                if each is None:
                    return None
                part += each
            parts.append(part)
        return parts

    def _enter_each(self, entries: Sequence[Entry]) -> Touched:
        """Change the windows, and return their cells."""
        touched: Touched = {}
        lanes, find = self.cells.lanes, self.cells.find_one
        for windows, sign, group, parts in entries:
            reaches = min(windows.stop - 1, self._shown)
            if windows and reaches > self._latest:
                self._latest = reaches
                self._period(reaches)
            if self._reading:
                self._count_reals(parts)
            if windows.stop > self._shown + 1:
                self.ring.add_one(
                    range(max(windows.start, self._shown + 1), windows.stop), group, parts, sign, self._reals_of(parts)
                )
                windows = range(windows.start, min(windows.stop, self._shown + 1))
            for number in windows:
                slot = find(number, group)
                touched[slot] = number, group, lanes.add_row(parts, slot, sign)
        return touched

    def _count_reals(self, parts: LaneParts) -> None:
        self.cells.lanes.count_reals(self._reals_of(parts))

    def _reals_of(self, parts: LaneParts) -> set[int]:
        return {key[0] for key, _ in parts if key[1] == "floats"} - self._choosing

    def _differences(self, touched: Touched) -> Batch | None:
        """Return what `_emit` does; None, and nothing is done, where columns have to tell the results."""
        cells, lanes, accumulators = self.cells, self.cells.lanes, self.accumulators
        projected = self._projected.of(self._results_schema)
        if not cells.results.takes(self._projected.schema):
            return None
        alive: list[int] = []
        dead: list[int] = []
        found: list[Values] = []
        groups: list[int] = []
        try:
            for slot in touched if len(touched) == 1 else sorted(touched):
                _, group, rows = touched[slot]
                if rows:
                    alive.append(slot)
                    groups.append(group)
                    found.append(tuple([each.result(lanes, slot, rows) for each in accumulators]))
                else:
                    dead.append(slot)
            passed = projected(found, groups)
        except Exception:
            return None
        if passed is None:
            return None
        self.udm_calls += len(accumulators) * len(alive)
        gone: list[Result] = []
        come: list[Result] = []
        for slot, now in zip(alive, passed[0], strict=True):
            was = cells.results.swap(slot, now)
            if was is now:
                continue
            id, le, re, group = self._row_of(touched[slot])
            if was is None:
                version = cells.version(slot)
            else:
                version = cells.retract(slot)
                gone.append(((id, version, le, re, le), was, group))
                version += 1
            come.append(((id, version, le, le, re), now, group))
        if dead:
            gone += self._emptied(dead, touched)
        return few_results(gone + come, self._projected.schema, self.is_grouped, self._origin)

    def _emptied(self, dead: Sequence[int], touched: Touched) -> list[Result]:
        """Let go cells that have no rows left, and return their results that were out."""
        gone: list[Result] = []
        for slot in dead:
            was = self.cells.results.values(slot)
            if was is not None:
                id, le, re, group = self._row_of(touched[slot])
                gone.append(((id, self.cells.retract(slot), le, re, le), was, group))
        self.cells.empty(np.array(dead))
        return gone

    def _row_of(self, cell: tuple[int, int, int]) -> tuple[tuple[Any, ...], int, int, int]:
        """Return the id of a cell's result, its lifetime and its group."""
        number, group, _ = cell
        start = self.windows.offset + number * self.windows.hop
        id = (start,) if self.key_table is None else (start, *self.key_table.leaves_of(group))
        end = start + self.windows.size
        return (id, end, end + CHRONON, group) if self._at_end else (id, start, end, group)


def _argument(agg: BoundAgg) -> Expr:
    """Return what is added of a row: None of one that is not chosen."""
    return agg.given if agg.where is None else Choose(((agg.where, agg.given),), Constant(None))
