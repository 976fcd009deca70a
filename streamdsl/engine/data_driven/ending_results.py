"""The emitted results of windows whose ends move."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.columnar.versioned import VersionedResults
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks


class EndingResults(VersionedResults):
    """Emitted results by slot, each with the RE that it was emitted with.


    >>> results = EndingResults()
    >>> results.grow(1)
    >>> results.put_ends(np.array([0]), np.array([20]))
    >>> results.swap_end(0, 25), results.re.tolist()
    (20, [25])
    """

    def __init__(self) -> None:
        super().__init__()
        self.re: Ticks = np.empty(0, dtype=np.int64)

    def grow(self, size: int) -> None:
        super().grow(size)
        self.re = longer(self.re, size)

    def emitted_ends(self, slots: Rows, re: Ticks) -> Ticks:
        return self.re[slots]

    def put_ends(self, slots: Rows, re: Ticks) -> None:
        self.re[slots] = re

    def swap_end(self, slot: int, re: int) -> int:
        was = self.re.item(slot)
        self.re[slot] = re
        return was
