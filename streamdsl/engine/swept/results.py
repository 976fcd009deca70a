"""Results that are out of windows whose ends move, and how often each has come back."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.columnar.results import Results
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows, Table, flatnonzero
from streamdsl.temporal.time import Ticks


class EndingResults(Results):
    """The results of slots, each with the RE that has been sent, and its version: how often it has come back after a retraction.

    The version of a window that is gone is kept until no change can reach its start, so that no version comes twice.

    >>> results = EndingResults()
    >>> results.grow(1)
    >>> slot, code, le = np.array([0]), np.array([3]), np.array([20])
    >>> results.retracted(slot).tolist(), results.versions[slot].tolist()
    ([0], [1])
    >>> results.leave(slot, code, le)
    >>> results.enter(slot, code, le)
    >>> results.versions[slot].tolist()
    [1]
    """

    def __init__(self) -> None:
        super().__init__()
        self.re: Ticks = np.empty(0, dtype=np.int64)
        self.versions: Ticks = np.empty(0, dtype=np.int64)
        self._gone: dict[tuple[int, int], int] = {}
        """Versions of windows that are gone, by the code of the partition and the start."""

    def grow(self, size: int) -> None:
        super().grow(size)
        self.re = longer(self.re, size)
        self.versions = longer(self.versions, size)

    def enter(self, slots: Rows, codes: Rows, le: Ticks) -> None:
        """Let slots be those of new windows."""
        self.versions[slots] = 0
        if self._gone:
            for slot, *window in zip(slots.tolist(), codes.tolist(), le.tolist(), strict=True):
                self.versions[slot] = self._gone.pop(tuple(window), 0)

    def leave(self, slots: Rows, codes: Rows, le: Ticks) -> None:
        """Let windows be gone, which may come back."""
        at = flatnonzero(self.versions[slots])
        windows = zip(codes[at].tolist(), le[at].tolist(), strict=True)
        self._gone.update(zip(windows, self.versions[slots[at]].tolist(), strict=True))

    def enter_one(self, slot: int, code: int, le: int) -> None:
        """Do as `enter`, for a single slot."""
        self.versions[slot] = self._gone.pop((code, le), 0) if self._gone else 0

    def version(self, slot: int) -> int:
        """Return the version of a single slot's result."""
        return self.versions.item(slot)

    def retract(self, slot: int) -> int:
        """Return what `retracted` does, for a single slot."""
        version = self.versions.item(slot)
        self.versions[slot] = version + 1
        return version

    def retracted(self, slots: Rows) -> Ticks:
        """Return the versions of results that go; the next ones will follow them."""
        versions = self.versions[slots]
        self.versions[slots] += 1
        return versions

    def forget(self, cti: int) -> None:
        """Forget the windows that cannot come back: those that start before a CTI."""
        self._gone = {window: version for window, version in self._gone.items() if window[1] >= cti}

    @property
    def n_gone(self) -> int:
        """How many windows are gone of which the version is kept."""
        return len(self._gone)

    @property
    def codes_of_gone(self) -> Rows:
        """The codes of their partitions."""
        return np.unique(np.array([code for code, _ in self._gone], dtype=np.intp))

    def put_until(self, slots: Rows, re: Ticks, payloads: Table) -> None:
        """Note the results that go out, and their REs."""
        self.put(slots, payloads)
        self.re[slots] = re
