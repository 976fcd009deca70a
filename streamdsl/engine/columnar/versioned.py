"""The emitted results of windows, and how often each has come back after a retraction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.results import Results
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows, Table, flatnonzero
from streamdsl.temporal.time import Ticks


class VersionedResults(Results):
    """The results of slots, each with its version: how often it has come back after a retraction.

    The version of a window that is gone is kept until no change can reach it, so that no version comes twice. A window is known
    by its place, which is its number or its start, and by its group.

    >>> results = VersionedResults()
    >>> results.grow(1)
    >>> window = np.array([0]), np.array([20]), np.array([3])
    >>> results.retracted(window[0]).tolist(), results.versions(window[0]).tolist()
    ([0], [1])
    >>> results.leave(*window)
    >>> results.enter(*window)
    >>> results.versions(window[0]).tolist()
    [1]
    """

    def __init__(self) -> None:
        super().__init__()
        self.re: Ticks = np.empty(0, dtype=np.int64)
        """The RE that each window had when its result was emitted; it may move."""
        self._versions: NDArray[np.int32] | None = None
        """None as long as no result has been retracted."""
        self._gone: dict[tuple[int, int], int] = {}
        """The versions of removed windows, by place and group."""

    def grow(self, size: int) -> None:
        super().grow(size)
        self.re = longer(self.re, size)
        if self._versions is not None:
            self._versions = longer(self._versions, size)

    def enter(self, slots: Rows, places: Ticks, groups: Ticks) -> None:
        """Assign slots to new windows, with the versions of their predecessors."""
        if self._versions is None:
            return
        self._versions[slots] = 0
        if self._gone:
            for slot, *window in zip(slots.tolist(), places.tolist(), groups.tolist(), strict=True):
                self._versions[slot] = self._gone.pop(tuple(window), 0)

    def enter_one(self, slot: int, place: int, group: int) -> None:
        """Do what `enter` does, for a single slot."""
        if self._versions is not None:
            self._versions[slot] = self._gone.pop((place, group), 0) if self._gone else 0

    def leave(self, slots: Rows, places: Ticks, groups: Ticks) -> None:
        """Remove windows that may come back."""
        if self._versions is None:
            return
        at = flatnonzero(self._versions[slots])
        windows = zip(places[at].tolist(), groups[at].tolist(), strict=True)
        self._gone.update(zip(windows, self._versions[slots[at]].tolist(), strict=True))

    def forget(self, first: int) -> None:
        """Forget removed windows that cannot come back: those before a place."""
        if self._gone:
            self._gone = {window: version for window, version in self._gone.items() if window[0] >= first}

    @property
    def n_gone(self) -> int:
        """The number of removed windows whose versions are kept."""
        return len(self._gone)

    @property
    def groups_of_gone(self) -> Rows:
        """Their distinct groups."""
        return np.unique(np.array([group for _, group in self._gone], dtype=np.intp))

    @property
    def last_gone(self) -> int | None:
        """The last of their places, None if there is none."""
        return max([place for place, _ in self._gone], default=None)

    def versions(self, slots: Rows) -> Ticks:
        """Return the versions of results that are emitted, or are about to be."""
        return np.zeros(len(slots), dtype=np.int64) if self._versions is None else self._versions[slots].astype(np.int64)

    def retracted(self, slots: Rows) -> Ticks:
        """Return the versions of results that are retracted. Their next results get the next versions."""
        versions = self.versions(slots)
        if len(slots):
            self._counted()[slots] += 1
        return versions

    def version(self, slot: int) -> int:
        """Return what `versions` does, for a single slot."""
        return 0 if self._versions is None else self._versions.item(slot)

    def retract(self, slot: int) -> int:
        """Return what `retracted` does, for a single slot."""
        versions = self._counted()
        version = versions.item(slot)
        versions[slot] = version + 1
        return version

    def _counted(self) -> NDArray[np.int32]:
        if self._versions is None:
            self._versions = np.zeros(len(self.is_emitted), dtype=np.int32)
        return self._versions

    def put_until(self, slots: Rows, re: Ticks, payloads: Table) -> None:
        """Record the emitted results, and the ends of their windows."""
        self.put(slots, payloads)
        self.re[slots] = re

    def swap_end(self, slot: int, re: int) -> int:
        """Record the end that a single window has now, and return the one that was emitted."""
        was: int = self.re.item(slot)
        self.re[slot] = re
        return was
