"""Window operators that keep the windows of each partition in order of their starts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.data_driven.group_codes import GroupCodes
from streamdsl.engine.data_driven.row_arguments import RowArguments
from streamdsl.engine.data_driven.timeline import RowChange
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.operators.driver import NO_GROUP, Window, WindowActions, WindowDriver
from streamdsl.engine.row_batch import RowBatch
from streamdsl.expr.table import Rows
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks


class TouchedWindows(NamedTuple):
    """The windows that single rows have changed."""

    touched: dict[int, bool]
    """The slot of each changed window, and whether its members have changed (else only its end)."""
    gone: list[int]
    """The slots of windows that no longer exist."""


class DataDrivenOperator(WindowDriver):
    """A window operator whose windows depend on the rows, or are made when rows need them: it decides which show, and when."""

    table: Any
    """The columns of the windows of all groups: partition, start, end, number of rows, and emitted results, by slot."""
    codes: GroupCodes
    """The codes of the groups."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, emit_policy: EmitPolicy) -> None:
        # For final results a window must be closed, which the CTI decides, not the high water.
        super().__init__(label, node, replace(emit_policy, by_end=emit_policy.by_end or emit_policy.final))
        self.takes_rows = emit_policy.until == INFINITY
        self._last_end = min(emit_policy.until, INFINITY - CHRONON) if self._is_at_end else emit_policy.until
        """The last end of a window that has a result. A point at the end of a window that ends at INFINITY cannot exist."""
        self._closed_by = MIN_TIME
        """The CTI for which closed windows were last looked up."""

    def _windows(self, slots: Rows) -> tuple[Ticks, Ticks, Ticks]:
        table = self.table
        return self.codes.groups(table.code[slots]), table.le[slots], table.re[slots]

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.high_water = INFINITY if self.ending else max(self.high_water, self._now(batch, ctis[0]))
        return self._take(batch.changed())

    def _now(self, batch: Batch, cti: int) -> int:
        """Return the time that a window must reach to show: the high water, with `final` that until which windows are closed."""
        return self._closed(cti) if self.emit_policy.final else max(batch.high_water, cti)

    @abstractmethod
    def _closed(self, cti: int) -> int:
        """Return the time until which windows are closed."""

    @abstractmethod
    def _take(self, batch: Batch) -> Batch:
        """Apply changed rows and the new high water, and return the changes of the results."""

    def _codes(self, batch: Batch) -> Rows:
        """Return the code of each row's group."""
        if batch.keys is None:
            return np.repeat(self.codes.of(np.zeros(1, dtype=np.int64)), len(batch))
        return self.codes.of(batch.keys)

    def _are_shown(self, slots: Rows, was_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which windows may show. An emitted result stays if its retraction would violate the output CTI."""
        le, re, has_rows = self.table.le[slots], self.table.re[slots], self.table.rows[slots] > 0
        is_open = ((re if self.emit_policy.by_end else le) <= self.high_water) & (re <= self._last_end)
        shown: NDArray[np.bool_] = has_rows & (is_open | (was_out & self._must_stay(le)))
        self._hide(slots[has_rows & ~shown])
        return shown

    def _must_stay(self, le: Any) -> Any:
        """Say whether an emitted result of a window with this start must stay, as its retraction would violate the output CTI."""
        return (le < self.cti) & (not self._is_at_end)

    @abstractmethod
    def _hide(self, slots: Rows) -> None:
        """Remember windows that show later."""

    # Row by row

    def _enter(self, batch: RowBatch, arguments: Sequence[RowArguments], cti: int) -> WindowActions | None:
        code_of, high_water, latest = self.codes.of_one, self._now_at(cti), MIN_TIME
        rows: list[RowChange] = []
        for (_, _, le, re_old, re_new), group in zip(batch.changes, batch.groups or NO_GROUP, strict=False):
            rows.append((code_of(group), le, re_old, re_new))
            latest = max(latest, le)
        if not self.emit_policy.final:
            high_water = max(high_water, latest)
        if not self._takes(rows, high_water):
            return None
        self.high_water = high_water
        return self._actions_of(self._take_rows(batch, rows, arguments))

    def _now_at(self, cti: int) -> int:
        """Return the time that a window must reach to show, after a CTI."""
        if self.emit_policy.final and cti != self._closed_by:
            self._closed_by = cti
            self.high_water = max(self.high_water, self._closed(cti))
        return self.high_water if self.emit_policy.final else max(self.high_water, cti)

    @abstractmethod
    def _takes(self, rows: Sequence[RowChange], high_water: int) -> bool:
        """Say whether rows can be added one by one."""

    @abstractmethod
    def _take_rows(self, batch: RowBatch, rows: Sequence[RowChange], arguments: Sequence[RowArguments]) -> TouchedWindows:
        """Add rows one by one, and return the windows that have changed."""

    def _actions_of(self, entered: TouchedWindows) -> WindowActions:
        """Return what to do about the windows that have changed."""
        results, counts, starts, ends = self.table.results, self.table.rows, self.table.le, self.table.re
        times = ends if self.emit_policy.by_end else starts
        actions = WindowActions([], [], [], [], entered.gone)
        for slot, is_summed in entered.touched.items():
            was_out, has_rows = results.is_emitted.item(slot), counts.item(slot) > 0
            if not (was_out or has_rows):
                continue
            window = self._window(slot)
            if not has_rows:
                actions.retracted.append(window)
            elif (times.item(slot) <= self.high_water and window[2] <= self._last_end) or (
                was_out and self._must_stay(window[1])
            ):
                (actions.moved if was_out and not is_summed else actions.computed).append(window)
            else:
                actions.hidden.append(slot)
                if was_out:
                    actions.retracted.append(window)
        actions.retracted.extend(map(self._window, filter(results.is_emitted.item, entered.gone)))
        return actions

    def _window(self, slot: int) -> Window:
        table = self.table
        return slot, table.le.item(slot), table.re.item(slot), self.codes.group(table.code.item(slot))

    # Time

    def held_groups(self) -> Iterator[int]:
        return iter(self.codes)

    def forget(self, cti: int) -> None:
        if cti > MIN_TIME and not self.ending:
            self._forget(cti)

    @abstractmethod
    def _forget(self, cti: int) -> None:
        """Drop the rows and windows that no change from a CTI on can need."""

    def state(self) -> dict[str, int]:
        cti = min(self.input_ctis, default=MIN_TIME)
        return {"windows": int((self._sizes(cti) > 0).sum()), "events": self._n_events(cti)}

    @abstractmethod
    def _sizes(self, cti: int) -> Ticks:
        """Return the number of rows of each window that is open at a CTI."""

    @abstractmethod
    def _n_events(self, cti: int) -> int:
        """Return the number of rows that are held."""
