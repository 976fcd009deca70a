"""What operators over windows in slots share: of their results what differs from those that are out goes on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, result_columns
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.operator import Gate, Operator, inputs_of
from streamdsl.engine.swept.group_codes import GroupCodes
from streamdsl.engine.swept.timeline import Touched
from streamdsl.expr import Inputs, RowError, project
from streamdsl.expr.coding import integer_codes
from streamdsl.expr.nodes import Key
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, flatnonzero
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks


class Swept(Protocol):
    """The windows of all groups."""

    @property
    def boundaries(self) -> Any:
        """The windows, in slots."""

    @property
    def codes(self) -> GroupCodes:
        """The codes of the groups."""

    def drop(self, gone: Rows) -> None:
        """Let windows go."""

    def forget(self, cti: int) -> None:
        """Drop what no change from a CTI on can need."""


class SweptOperator(Operator):
    """Windows in slots, those of a partition by their starts."""

    kind = "window (columnar)"
    takes_gate = True
    swept: Swept

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        super().__init__(label)
        self.node = node
        # Where only final results are wanted, windows wait for their ends by the clock of the CTI, not of the watermark.
        self.gate = replace(gate, by_end=gate.by_end or gate.final)
        self.aggregates = node.aggregates
        kinds = [(i, ACCUMULATORS.get(type(agg.function))) for i, agg in enumerate(self.aggregates)]  # type: ignore[arg-type]
        self.accumulators = [kind(i) for i, kind in kinds if kind is not None]
        self.watermark = MIN_TIME
        self._projection = node.projection
        self._reads_key = any(isinstance(part, Key) for part in self._projection.walk())

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.watermark = INFINITY if self.ending else max(self.watermark, self._now(batch, ctis[0]))
        return self._take(batch.changed())

    def _now(self, batch: Batch, cti: int) -> int:
        """Return the time that windows wait for: the watermark, or the end of the windows that are closed."""
        return self._closed(cti) if self.gate.final else max(batch.watermark, cti)

    @abstractmethod
    def _closed(self, cti: int) -> int:
        """Return the time until which windows are closed."""

    @abstractmethod
    def _take(self, batch: Batch) -> Batch:
        """Take changed rows, and the watermark, and return what changes of the results."""

    def _codes(self, batch: Batch) -> Rows:
        """Return a small number for the group of each row."""
        if batch.keys is None:
            return np.repeat(self.swept.codes.of(np.zeros(1, dtype=np.int64)), len(batch))
        codes, groups = integer_codes(batch.keys)
        return self.swept.codes.of(groups)[codes]

    def _terms(self, batch: Batch) -> Terms:
        terms = Terms(len(batch), [Part(ROWS, None, None, 1)])
        inputs = inputs_of(batch)
        for accumulator, agg in zip(self.accumulators, self.aggregates, strict=True):
            column, chosen = self.argument(agg.given, agg.where, batch, inputs)
            accumulator.add_terms(column, chosen, terms)
        return terms

    def _emit(self, touched: Touched) -> Batch:
        """Return the difference between the results of the touched windows and those that are out."""
        if not len(touched.slots) and not len(touched.gone):
            return EMPTY
        slots, results = touched.slots, self.swept.boundaries.results
        gone = touched.gone[results.is_out[touched.gone]]
        was_out = results.is_out[slots]
        shown = self._are_shown(slots, was_out)
        if not was_out.any():
            new = slots if shown.all() else slots[shown]
            return self._send(gone, new[:0], new, self._results(new))
        computed = flatnonzero(shown & (touched.summed | ~was_out))
        payloads = self._results(slots[computed])
        differs = flatnonzero(~results.are(slots[computed], payloads))
        is_new = np.zeros(len(slots), dtype=np.bool_)
        is_new[computed[differs]] = True
        moved = slots[was_out & shown & ~is_new & (results.re[slots] != self.swept.boundaries.re[slots])]
        gone = np.concatenate([gone, slots[was_out & (is_new | ~shown)]])
        return self._send(gone, moved, slots[computed[differs]], payloads.take(differs))

    def _are_shown(self, slots: Rows, was_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which windows may show their results. One that is out stays where to take it back would break the CTI."""
        boundaries = self.swept.boundaries
        le, re, has_rows = boundaries.le[slots], boundaries.re[slots], boundaries.rows[slots] > 0
        is_open = ((re if self.gate.by_end else le) <= self.watermark) & (re <= self.gate.until)
        shown: NDArray[np.bool_] = has_rows & (is_open | (was_out & (le < self.cti)))
        self._hide(slots[has_rows & ~shown])
        return shown

    @abstractmethod
    def _hide(self, slots: Rows) -> None:
        """Remember windows that wait for their ends."""

    def _results(self, slots: Rows) -> Table:
        """Return the payloads that windows have now."""
        boundaries = self.swept.boundaries
        groups = self.swept.codes.groups(boundaries.code[slots])
        lanes = boundaries.lanes.take(slots)
        return self._payloads(
            boundaries.le[slots], boundaries.re[slots], groups, lambda: result_columns(self.accumulators, lanes)
        )

    def _payloads(self, le: Ticks, re: Ticks, groups: Ticks, compute: Callable[[], dict[str, Column]]) -> Table:
        """Return the results of windows. Raises `UserCodeError` naming the window."""
        self.udm_calls += len(self.aggregates) * len(le)
        keys = self.key_table.shown(groups) if self.key_table is not None and self._reads_key else None
        try:
            columns = compute()
            table = Table(Schema.record(list(columns)), columns, len(le))
            return project(self._projection, Inputs((table,), len(le), keys=keys))
        except RowError as error:
            window = Lifetime(int(le[error.row]), int(re[error.row]))
            raise self.user_error(error, window=window) from error.cause

    def _send(self, gone: Rows, moved: Rows, new: Rows, payloads: Table) -> Batch:
        """Return the retractions of some results, other ends of some, and new ones, and note what then is out."""
        boundaries, results = self.swept.boundaries, self.swept.boundaries.results
        slots = np.concatenate([gone, moved, new])
        if not len(slots):
            return EMPTY
        old = slots[: len(gone) + len(moved)]
        re_old = np.concatenate([results.re[old], boundaries.le[new]])
        re_new = np.concatenate([boundaries.le[gone], boundaries.re[moved], boundaries.re[new]])
        table = Table.concat([results.payloads(old), payloads])
        versions = np.concatenate([results.retracted(gone), results.versions[slots[len(gone) :]]])
        results.clear(gone)
        results.re[moved] = boundaries.re[moved]
        results.put_until(new, boundaries.re[new], payloads)
        return self._batch(self.swept.codes.groups(boundaries.code[slots]), boundaries.le[slots], re_old, re_new, table, versions)

    def _batch(self, groups: Ticks, le: Ticks, re_old: Ticks, re_new: Ticks, table: Table, versions: Ticks) -> Batch:
        return Batch(
            VersionedIds(self._ids(le, groups), versions), le, re_old, re_new, table, groups if self.is_grouped else None
        )

    def _ids(self, le: Ticks, groups: Ticks) -> WindowIds:
        return WindowIds(self.label, self.key_table, le, *(self.key_table.leaves(groups) if self.key_table is not None else []))

    def held_groups(self) -> Iterator[int]:
        return iter(self.swept.codes)

    def forget(self, cti: int) -> None:
        if cti > MIN_TIME and not self.ending:
            self.swept.forget(cti)

    def state(self) -> dict[str, int]:
        cti = min(self.input_ctis, default=MIN_TIME)
        return {"windows": int((self._sizes(cti) > 0).sum()), "events": self._n_events(cti)}

    @abstractmethod
    def _sizes(self, cti: int) -> Ticks:
        """Return the number of rows in each window that a CTI has not closed."""

    @abstractmethod
    def _n_events(self, cti: int) -> int:
        """Return the number of rows that are remembered."""
