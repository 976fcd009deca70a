"""A physical stream as it comes: its CHT, its CTI and its watermark so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from streamdsl.temporal import CHT, CHTRow, Cti, Event, EventTable, Insert

Slot: TypeAlias = tuple[Hashable, int]
"""An id, and which of the events with it is meant: an id may come again."""


class Fold:
    """What a stream means so far. An event that is malformed or breaks an earlier CTI raises."""

    def __init__(self) -> None:
        self.table = EventTable()
        self.rows: dict[Slot, CHTRow[Any]] = {}
        self._generation: Counter[Hashable] = Counter()
        self._cht: CHT[Any] | None = None

    @property
    def cti(self) -> int:
        return self.table.cti

    @property
    def high_water(self) -> int:
        return self.table.high_water

    def take(self, events: Iterable[Event[Any]]) -> None:
        for event in events:
            if isinstance(event, Cti):
                self.table.advance(event.time)
            else:
                self._change(event)

    def _change(self, event: Any) -> None:
        admitted = self.table.admit(event)
        assert admitted is not None
        self._cht = None
        if isinstance(admitted, Insert):
            self._generation[admitted.id] += 1
            self.rows[self._slot(admitted.id)] = CHTRow(admitted.le, admitted.re, admitted.payload)
        else:
            self.rows[self._slot(admitted.id)] = self.rows[self._slot(admitted.id)]._replace(re=admitted.re_new)

    def _slot(self, id: Hashable) -> Slot:
        return id, self._generation[id]

    def row(self, id: Hashable) -> CHTRow[Any]:
        """Return the row of an event as it is now."""
        return self.rows[self._slot(id)]

    def cht(self) -> CHT[Any]:
        if self._cht is None:
            self._cht = CHT(self.rows.values())
        return self._cht
