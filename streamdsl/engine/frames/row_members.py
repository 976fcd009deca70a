"""The members of a single window, for modules that are called on the row path."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.buffered.row_table import RowTable
from streamdsl.engine.buffered.runs import Order
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import Frame
from streamdsl.engine.frames.window_table import WindowTable
from streamdsl.expr.table import Rows
from streamdsl.temporal.payload import payload_order


class RowMembers:
    """Places of rows, by window and by the orders that modules need."""

    def __init__(self, frame: Frame, arrangement: Arrangement) -> None:
        self._frame = frame
        self._arrangement = arrangement

    @property
    def table(self) -> WindowTable:
        """The windows."""
        return self._frame.table

    @property
    def rows(self) -> RowTable:
        """The rows that members are places of."""
        return self._arrangement.rows

    def of(self, slot: int, order: Order) -> Rows:
        """Return the members of a window. Raises `ArithmeticError` if columns must compute it."""
        table = self.table
        if not self._frame.by_period:
            raise ArithmeticError("the frame finds members in its own way")
        places = self._arrangement.among(table.code.item(slot), table.le.item(slot), table.re.item(slot))
        keys = self._keys(places, order)
        return places[sorted(range(len(places)), key=keys.__getitem__)]

    def _keys(self, places: Rows, order: Order) -> list[tuple[object, ...]]:
        """Return the sort keys of rows: LE, then those of `order` if that is not enough."""
        rows = self.rows
        le, re = rows.le[places].tolist(), rows.re[places].tolist()
        keys: list[tuple[object, ...]] = list(zip(le, re, strict=True)) if order is Order.END else [(time,) for time in le]
        if rows.payloads is None or len(set(keys)) == len(keys):
            return keys
        payloads = map(payload_order, rows.payloads.take(np.asarray(places)).payloads())
        if order is Order.END:
            return [(*key, payload) for key, payload in zip(keys, payloads, strict=True)]
        return list(zip(le, payloads, re, strict=True))
