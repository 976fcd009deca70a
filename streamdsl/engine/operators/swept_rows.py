"""The row driver of operators over windows in slots: few changes, without columns, in the same state."""

from __future__ import annotations

import functools
import itertools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.few import Few, Result, few_results
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.swept import SweptOperator
from streamdsl.engine.swept.given import Arguments, Given, given_exprs
from streamdsl.engine.swept.timeline import RowChange, Touched
from streamdsl.expr.nodes import Make
from streamdsl.expr.scalars import Program, Project, Values
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME
from streamdsl.windows import Output

_NO_GROUP: Final = itertools.repeat(0)

Touching = dict[int, bool]
"""The windows that are not as before, and whether their members are others."""


class RowSweptOperator(SweptOperator):
    """Windows in slots, whose rows may come one by one."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        super().__init__(label, node, gate)
        self.arguments = Arguments(self.aggregates)
        self._origin = WindowIds(label, None)
        self.takes_rows = gate.until == INFINITY
        """Whether rows may come one by one."""
        self._closed_by = MIN_TIME
        """The CTI for which it was found out last what windows are closed."""
        summed = [each.number for each in self.accumulators]
        others = [number for number in range(len(self.aggregates)) if number not in summed]
        self._computed_schema = Schema.record([f"a{number}" for number in (*others, *summed)])

    @functools.cached_property
    def _given(self) -> Program:
        exprs = given_exprs(self.aggregates)
        return Program([Project(Make(Schema.tuple(len(exprs)), exprs))])

    @functools.cached_property
    def _projected(self) -> Program:
        return Program([Project(self.node.projection, self.key_table)])

    def few(self, batch: Few, cti: int) -> Batch | None:
        if not self.takes_rows or self.ending:
            return None
        given = self._given_of(batch)
        if given is None:
            return None
        code_of, watermark = self.swept.codes.of_one, self._now_at(cti)
        rows, latest = list[RowChange](), MIN_TIME
        for (_, _, le, re_old, re_new), group in zip(batch.changes, batch.groups or _NO_GROUP, strict=False):
            rows.append((code_of(group), le, re_old, re_new))
            latest = max(latest, le)
        if not self.gate.final:
            watermark = max(watermark, latest)
        if not self._takes(rows, watermark):
            return None
        self.watermark = watermark
        if self._origin.keys is not self.key_table:
            self._origin = WindowIds(self.label, self.key_table)
        touched, gone = self._enter(batch, rows, given)
        out = self._differences(touched, gone) if self._is_told else None
        out = self._recomputed(touched, gone) if out is None else out
        if gone:
            self.swept.drop(np.array(gone))
        return out

    def _now_at(self, cti: int) -> int:
        """Return the time that windows wait for, at a CTI."""
        if self.gate.final and cti != self._closed_by:
            self._closed_by = cti
            self.watermark = max(self.watermark, self._closed(cti))
        return self.watermark if self.gate.final else max(self.watermark, cti)

    @property
    def _is_told(self) -> bool:
        """Whether the accumulators of windows are enough to compute their results."""
        return True

    @abstractmethod
    def _takes(self, rows: Sequence[RowChange], watermark: int) -> bool:
        """Say whether rows can be taken one by one."""

    @abstractmethod
    def _enter(self, batch: Few, rows: Sequence[RowChange], given: Sequence[Given]) -> tuple[Touching, list[int]]:
        """Take rows in, and raise the watermark; return which windows are not as before, and which are gone."""

    @abstractmethod
    def _values(self, slot: int) -> Values:
        """Return the aggregates of a window. Raises `ArithmeticError` where columns have to tell."""

    @abstractmethod
    def _hide_one(self, slot: int) -> None:
        """Remember a window that may not show yet."""

    def _given_of(self, batch: Few) -> list[Given] | None:
        """Return what aggregates are given of each row; None where columns have to say."""
        try:
            found = self._given.of(batch.schema)(batch.values, None)
        except Exception:
            return None
        values_of = () if found is None else found[0]
        given = [each for values in values_of if (each := self.arguments.given(values, self.accumulators)) is not None]
        return given if len(given) == len(batch.changes) else None

    def _differences(self, touched: Touching, gone: Sequence[int]) -> Batch | None:
        """Return what differs from the results that are out; None, and nothing is done, where columns have to tell."""
        projected, boundaries = self._projected.of(self._computed_schema), self.swept.boundaries
        results = boundaries.results
        times = boundaries.re if self.gate.by_end else boundaries.le
        hidden: list[int] = []
        shown: list[int] = []
        moved: list[int] = []
        back: list[int] = []
        values: list[Values] = []
        try:
            for slot, is_summed in touched.items():
                was_out, has_rows = results.is_out.item(slot), boundaries.rows.item(slot) > 0
                if times.item(slot) > self.watermark and not (was_out and boundaries.le.item(slot) < self.cti):
                    hidden += [slot] if has_rows else []
                    back += [slot] if was_out else []
                elif not has_rows:
                    back += [slot] if was_out else []
                elif was_out and not is_summed:
                    moved.append(slot)
                else:
                    shown.append(slot)
                    values.append(self._values(slot))
            passed = projected(values, list(map(self._group_of, shown)))
        except Exception:
            return None
        sends = shown or moved or back or gone
        if passed is None or (sends and not results.takes(self._projected.schema)):
            return None
        self.udm_calls += len(self.aggregates) * len(shown)
        for slot in hidden:
            self._hide_one(slot)
        back += filter(results.is_out.item, gone)
        changes = [*map(self._taken_back, back), *filter(None, map(self._moved, moved))]
        if back:
            results.clear(np.array(back))
        for slot, now in zip(shown, passed[0], strict=True):
            self._exchange(slot, now, changes)
        return few_results(changes, self._projected.schema, self.is_grouped, self._origin)

    def _exchange(self, slot: int, now: Values, changes: list[Result]) -> None:
        """Put a result in the place of the one that is out, and note what changes."""
        boundaries, results = self.swept.boundaries, self.swept.boundaries.results
        was = results.swap(slot, now)
        if was is now:
            if (moved := self._moved(slot)) is not None:
                changes.append(moved)
            return
        if was is not None:
            changes.append(self._changed_one(slot, results.retract(slot), results.re.item(slot), None, was))
        re = results.re[slot] = boundaries.re.item(slot)
        changes.append(self._changed_one(slot, results.version(slot), None, re, now))

    def _moved(self, slot: int) -> Result | None:
        """Return how the result of a window changes that may end elsewhere."""
        boundaries, results = self.swept.boundaries, self.swept.boundaries.results
        re_old, re = results.re.item(slot), boundaries.re.item(slot)
        values = None if re == re_old else results.values(slot)
        if values is None:
            return None
        results.re[slot] = re
        return self._changed_one(slot, results.version(slot), re_old, re, values)

    def _taken_back(self, slot: int) -> Result:
        """Return how the result of a window changes that is gone."""
        results = self.swept.boundaries.results
        values = results.values(slot)
        assert values is not None, "it is out"
        return self._changed_one(slot, results.retract(slot), results.re.item(slot), None, values)

    def _changed_one(self, slot: int, version: int, re_old: int | None, re: int | None, values: Values) -> Result:
        """Return how a result changes; None: it is not there."""
        boundaries, group = self.swept.boundaries, self._group_of(slot)
        start = le = boundaries.le.item(slot)
        id = (start,) if self.key_table is None else (start, *self.key_table.leaves_of(group))
        if self.node.output is Output.POINT_AT_END:
            le = boundaries.re.item(slot)
            re_old, re = (None if end is None else le + CHRONON for end in (re_old, re))
        return (id, version, le, le if re_old is None else re_old, le if re is None else re), values, group

    def _group_of(self, slot: int) -> int:
        return self.swept.codes.group(self.swept.boundaries.code.item(slot))

    def _recomputed(self, touched: Touching, gone: Sequence[int]) -> Batch:
        """Return what differs from the results that are out, in columns."""
        slots = np.fromiter(touched, dtype=np.intp, count=len(touched))
        summed = np.fromiter(touched.values(), dtype=np.bool_, count=len(touched))
        return self._emit(Touched(slots, summed, np.array(gone, dtype=np.intp)))
