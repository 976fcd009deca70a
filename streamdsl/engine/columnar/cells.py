"""Cells: the open windows of every group that have rows, with their sums and with the results that are out."""

from __future__ import annotations

from streamdsl.engine.columnar.results import Results
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.expr.table import Rows


class Cells(SlotTable):
    """Slots of open windows, and their results."""

    def __init__(self) -> None:
        self.results = Results()
        super().__init__()

    def grow(self, size: int) -> None:
        self.results.grow(size)
        super().grow(size)

    def release(self, slots: Rows) -> None:
        super().release(slots)
        self.results.clear(slots)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.results.nbytes
