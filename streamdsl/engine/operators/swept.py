"""Operators over windows in slots that are kept in order of their starts, partition by partition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.few import Few
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.driver import NO_GROUP, Due, Window, WindowDriver
from streamdsl.engine.swept.given import Given
from streamdsl.engine.swept.group_codes import GroupCodes
from streamdsl.engine.swept.timeline import RowChange
from streamdsl.expr.table import Rows
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks


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


class Entered(NamedTuple):
    """What single rows change."""

    touched: dict[int, bool]
    """The slots of windows that are not as before, and whether their members are others."""
    gone: list[int]
    """Those of windows that are not there any more."""


class SweptOperator(WindowDriver):
    """Windows in slots, those of a partition by their starts."""

    swept: Swept

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        # Where only final results are wanted, windows wait for their ends by the clock of the CTI, not of the watermark.
        super().__init__(label, node, replace(gate, by_end=gate.by_end or gate.final))
        self.takes_rows = gate.until == INFINITY
        self._last_end = min(gate.until, INFINITY - CHRONON) if self._is_at_end else gate.until
        """Of windows that end later there are no results: there is no point at the end of time."""
        self._closed_by = MIN_TIME
        """The CTI for which it was found out last what windows are closed."""

    def _windows(self, slots: Rows) -> tuple[Ticks, Ticks, Ticks]:
        boundaries = self.swept.boundaries
        return self.swept.codes.groups(boundaries.code[slots]), boundaries.le[slots], boundaries.re[slots]

    def _let_go(self, slots: Rows) -> None:
        self.swept.drop(slots)

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
        return self.swept.codes.of(batch.keys)

    def _are_shown(self, slots: Rows, was_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which windows may show their results. One that is out stays where to take it back would break the CTI."""
        boundaries = self.swept.boundaries
        le, re, has_rows = boundaries.le[slots], boundaries.re[slots], boundaries.rows[slots] > 0
        is_open = ((re if self.gate.by_end else le) <= self.watermark) & (re <= self._last_end)
        shown: NDArray[np.bool_] = has_rows & (is_open | (was_out & self._must_stay(le)))
        self._hide(slots[has_rows & ~shown])
        return shown

    def _must_stay(self, le: Any) -> Any:
        """Say whether a result that is out stays, of windows that begin then: to take it back would break the CTI."""
        return (le < self.cti) & (not self._is_at_end)

    @abstractmethod
    def _hide(self, slots: Rows) -> None:
        """Remember windows that wait for their ends."""

    # Row by row

    def _enter(self, batch: Few, given: Sequence[Given], cti: int) -> Due | None:
        code_of, watermark, latest = self.swept.codes.of_one, self._now_at(cti), MIN_TIME
        rows: list[RowChange] = []
        for (_, _, le, re_old, re_new), group in zip(batch.changes, batch.groups or NO_GROUP, strict=False):
            rows.append((code_of(group), le, re_old, re_new))
            latest = max(latest, le)
        if not self.gate.final:
            watermark = max(watermark, latest)
        if not self._takes(rows, watermark):
            return None
        self.watermark = watermark
        return self._due_of(self._take_rows(batch, rows, given))

    def _now_at(self, cti: int) -> int:
        """Return the time that windows wait for, at a CTI."""
        if self.gate.final and cti != self._closed_by:
            self._closed_by = cti
            self.watermark = max(self.watermark, self._closed(cti))
        return self.watermark if self.gate.final else max(self.watermark, cti)

    @abstractmethod
    def _takes(self, rows: Sequence[RowChange], watermark: int) -> bool:
        """Say whether rows can be taken one by one."""

    @abstractmethod
    def _take_rows(self, batch: Few, rows: Sequence[RowChange], given: Sequence[Given]) -> Entered:
        """Take rows in at the watermark, and return what changes."""

    def _due_of(self, entered: Entered) -> Due:
        """Return what is to be done about the windows that have changed."""
        boundaries = self.swept.boundaries
        results, counts, starts, ends = boundaries.results, boundaries.rows, boundaries.le, boundaries.re
        times = ends if self.gate.by_end else starts
        due = Due([], [], [], [], entered.gone)
        for slot, is_summed in entered.touched.items():
            was_out, has_rows = results.is_out.item(slot), counts.item(slot) > 0
            if not (was_out or has_rows):
                continue
            window = self._window(slot)
            if not has_rows:
                due.back.append(window)
            elif (times.item(slot) <= self.watermark and window[2] <= self._last_end) or (was_out and self._must_stay(window[1])):
                (due.moved if was_out and not is_summed else due.computed).append(window)
            else:
                due.hidden.append(slot)
                if was_out:
                    due.back.append(window)
        due.back.extend(map(self._window, filter(results.is_out.item, entered.gone)))
        return due

    def _window(self, slot: int) -> Window:
        boundaries = self.swept.boundaries
        group = self.swept.codes.group(boundaries.code.item(slot))
        return slot, boundaries.le.item(slot), boundaries.re.item(slot), group

    # Time

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
