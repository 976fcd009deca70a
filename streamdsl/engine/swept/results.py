"""Results that are out of windows whose ends move."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.columnar.results import Results
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows, Table
from streamdsl.temporal.time import Ticks


class EndingResults(Results):
    """The results of slots, each with the RE that has been sent."""

    def __init__(self) -> None:
        super().__init__()
        self.re: Ticks = np.empty(0, dtype=np.int64)

    def grow(self, size: int) -> None:
        super().grow(size)
        self.re = longer(self.re, size)

    def put_until(self, slots: Rows, re: Ticks, payloads: Table) -> None:
        """Note the results that go out, and their REs."""
        self.put(slots, payloads)
        self.re[slots] = re
