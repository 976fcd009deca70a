"""The columnar window operator's way for few changes: number by number, in the state that its columns have."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.results import are_same
from streamdsl.engine.columnar.terms import ROWS
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.few import Change, Few
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.columnar import ColumnarWindowOperator
from streamdsl.expr.nodes import Choose, Constant, Expr, Make
from streamdsl.expr.scalars import Program, Project, Values
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import CHRONON
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.windows import Output

_NO_GROUPS: Final = itertools.repeat(None)
_MOST: Final = 16
"""A row in more windows is left to columns."""


Entry: TypeAlias = tuple[range, int, int, Values]
"""The windows that a row enters (then there is 1) or leaves (-1), its group, and the arguments of the aggregates that read it."""
Touched: TypeAlias = dict[int, tuple[int, int, int]]
"""The number of the window, the group and the number of rows of each cell that is changed."""
Result: TypeAlias = tuple[int, int, Values]
"""A cell, and the version and the payload of a result of it."""


class OneByOneWindowOperator(ColumnarWindowOperator):
    """Count, sum and avg over hopping and tumbling windows, also of rows that come one by one."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        super().__init__(label, node, gate)
        read = [self.aggregates[accumulator.number] for accumulator in self._reading]
        arguments = tuple(map(_argument, read))
        self._arguments = Program([Project(Make(Schema.tuple(len(arguments)), arguments))])
        self._are_chosen = [agg.where is not None for agg in read]
        self._shows_begun = not gate.final and not gate.by_end
        self._origin = WindowIds(label, None)
        self._at_end = node.output is Output.POINT_AT_END
        self._results_schema = Schema.record([f"a{accumulator.number}" for accumulator in self.accumulators])

    @functools.cached_property
    def _projected(self) -> Program:
        return Program([Project(self._projection, self.key_table)])

    def few(self, batch: Few, cti: int) -> Batch | None:
        if not self._shows_begun or self.ending or not self.ring.is_empty:
            return None
        watermark = max(self.watermark, batch.watermark, cti)
        last = self.numbers.last_begun(watermark)
        first = self._first if cti < self._closes else self.windows.first_ending_after(cti)
        entries = self._entries(batch, first, last)
        if entries is None:
            return None
        self.watermark, self._shown = watermark, last
        if self.ring.next <= last:
            self.ring.next = last + 1
        touched = self._enter_each(entries)
        out = self._differences(touched)
        return self._emit(np.array(sorted(touched))) if out is None else out

    def _entries(self, batch: Few, first: int, last: int) -> list[Entry] | None:
        """Return what rows do to windows, all of them between the first and the last; None where it is not so simple."""
        values = self._given(batch) if self._reading else [()] * len(batch.changes)
        if values is None:
            return None
        entries = []
        for place, (_, _, le, re_old, re_new) in enumerate(batch.changes):
            windows = self.numbers.entered(le, re_old, re_new)
            if windows is None or len(windows) > _MOST:
                return None
            if windows and (windows.start < first or windows.stop > last + 1):
                return None
            group = 0 if batch.groups is None else batch.groups[place]
            entries.append((windows, 1 if re_new > re_old else -1, group, values[place]))
        return entries

    def _given(self, batch: Few) -> list[Values] | None:
        """Return the arguments of aggregates in each row; None where they cannot be added in scalars."""
        given = self._arguments.of(batch.schema)
        if given is None:
            return None
        try:
            found = [row and row[0] for row in map(given, batch.values, _NO_GROUPS)]
        except Exception:
            return None
        return found if all(values is not None and self._take(values) for values in found) else None

    def _take(self, values: Values) -> bool:
        """Say whether the arguments of aggregates can be added in scalars."""
        return all(accumulator.takes(value) for accumulator, value in zip(self._reading, values, strict=True))

    def _enter_each(self, entries: Sequence[Entry]) -> Touched:
        """Change the windows, and return their cells."""
        touched: Touched = {}
        for windows, sign, group, values in entries:
            if windows and windows[-1] > self._latest:
                self._latest = windows[-1]
                self._period(self._latest)
            counted = self._floats_to_count(values) if self._reading else ()
            for number in windows:
                slot = self.cells.find_one(number, group)
                touched[slot] = number, group, self.cells.lanes.add_one(ROWS, slot, sign)
                if values:
                    self._add(slot, sign, values, counted)
        return touched

    def _floats_to_count(self, values: Values) -> Sequence[int]:
        """Return the aggregates to which a row adds a float that is counted in a lane of its own."""
        each = zip(self._reading, values, self._are_chosen, strict=True)
        floats = [(accumulator.number, chosen) for accumulator, value, chosen in each if accumulator.adds_float(value)]
        apart = self.cells.lanes.count_reals({number for number, chosen in floats if not chosen})
        return [number for number, chosen in floats if chosen or number in apart]

    def _add(self, slot: int, sign: int, values: Values, counted: Sequence[int]) -> None:
        lanes = self.cells.lanes
        for number in counted:
            lanes.add_one((number, "floats"), slot, sign)
        for accumulator, value in zip(self._reading, values, strict=True):
            accumulator.add_one(value, sign, lanes, slot)

    def _differences(self, touched: Touched) -> Batch | None:
        """Return what `_emit` does; None, and nothing is done, where columns have to tell the results."""
        cells, results = self.cells, self.cells.results
        slots = sorted(touched) if len(touched) > 1 else list(touched)
        alive = [slot for slot in slots if touched[slot][2]]
        values = self._results_of(alive, touched)
        schema = self._projected.schema
        if values is None or not results.takes(schema):
            return None
        self.udm_calls += len(self.aggregates) * len(alive)
        gone: list[Result] = []
        come: list[Result] = []
        for slot, now in zip(alive, values, strict=True):
            was = results.values(slot)
            if was is None:
                come.append((slot, cells.version(slot), now))
            elif are_same(was, now):
                continue
            else:
                version = cells.retract(slot)
                gone.append((slot, version, was))
                come.append((slot, version + 1, now))
            results.put_values(slot, now, was)
        if len(alive) < len(slots):
            gone += self._emptied([slot for slot in slots if slot not in alive])
        return self._few(gone, come, touched, schema) if gone or come else EMPTY

    def _emptied(self, dead: Sequence[int]) -> list[Result]:
        """Let go cells that have no rows left, and return their results that were out."""
        each = [(slot, self.cells.results.values(slot)) for slot in dead]
        gone = [(slot, self.cells.retract(slot), was) for slot, was in each if was is not None]
        self.cells.empty(np.array(dead))
        return gone

    def _results_of(self, slots: Sequence[int], touched: Touched) -> list[Values] | None:
        """Return the results that cells have now; None where columns have to tell."""
        lanes, found = self.cells.lanes, []
        projected = self._projected.of(self._results_schema)
        if projected is None:
            return None
        try:
            for slot in slots:
                _, group, rows = touched[slot]
                results = tuple([accumulator.result(lanes, slot, rows) for accumulator in self.accumulators])
                found.append(projected(results, group))
        except Exception:
            return None
        return None if None in found else [values for values, _ in found]

    def _few(self, gone: list[Result], come: list[Result], touched: Touched, schema: Schema) -> Batch:
        """Return the retractions of the results that are gone, then the insertions of those that have come."""
        if self._origin.keys is not self.key_table:
            self._origin = WindowIds(self.label, self.key_table)
        changes: list[Change] = []
        groups: list[int] = []
        ids: dict[int, tuple[Any, ...]] = {}
        for results, is_gone in ((gone, True), (come, False)):
            for slot, version, _ in results:
                number, group, _ = touched[slot]
                id = ids.get(slot)
                if id is None:
                    leaves = () if self.key_table is None else self.key_table.leaves_of(group)
                    id = ids[slot] = (self.windows.start(number), *leaves)
                start, end = id[0], id[0] + self.windows.size
                le, re = (end, end + CHRONON) if self._at_end else (start, end)
                changes.append((id, version, le, re, le) if is_gone else (id, version, le, le, re))
                groups.append(group)
        values = [values for _, _, values in gone + come]
        return Few(changes, values, schema, None if self.key_table is None else groups, self._origin)


def _argument(agg: BoundAgg) -> Expr:
    """Return what is added of a row: None of one that is not chosen."""
    return agg.given if agg.where is None else Choose(((agg.where, agg.given),), Constant(None))
