"""The states of windows, and the rows that a piece of input brings into them or takes from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.buffer import Members
from streamdsl.engine.buffered.runs import spread
from streamdsl.engine.columnar.cells import Cells
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.pairs import distinct_pairs
from streamdsl.expr.table import Column, Rows, flatnonzero, object_column


class StateCells(Cells):
    """Cells with columns of objects, as the states of a module; None where there is none yet."""

    def __init__(self, n_columns: int) -> None:
        self.columns: list[Column] = [object_column([]) for _ in range(n_columns)]
        super().__init__()

    def grow(self, size: int) -> None:
        self.columns = [_longer(column, size) for column in self.columns]
        super().grow(size)

    def release(self, slots: Rows) -> None:
        super().release(slots)
        for column in self.columns:
            column[slots] = None


def _longer(column: Column, size: int) -> Column:
    return np.concatenate([column, np.full(size - len(column), None, dtype=object)])


class CellDeltas:
    """The changed rows of a batch, by their places in the buffer, and which cells each of them enters or leaves."""

    def __init__(self, places: Rows, enters: NDArray[np.bool_]) -> None:
        self._places = places
        self._enters = enters
        self._n_numbered = 0
        self._parts: list[tuple[Rows, Rows]] = []
        self._shown: list[Rows] = []

    def number(self, size: int) -> Rows:
        """Return the numbers of the next rows."""
        self._n_numbered += size
        return np.arange(self._n_numbered - size, self._n_numbered)

    def show(self, slots: Rows) -> None:
        """Note cells of windows that open now: rows may have waited for them."""
        self._shown.append(slots)

    def are_shown(self, slots: Rows) -> NDArray[np.bool_]:
        """Say which cells are of windows that open now."""
        return np.isin(slots, np.concatenate([slots[:0], *self._shown]))

    def enter(self, part: Pending, cells: Cells) -> None:
        """Note the cells of changed rows, which all have one."""
        assert part.rows is not None
        at, numbers = spread(part.lo, part.hi)
        pairs = distinct_pairs(part.groups[at], numbers)
        self._parts.append((cells.find(pairs.second, pairs.first)[pairs.index], part.rows[at]))

    def of(self, slots: Rows, entering: bool) -> Members:
        """Return the rows that enter some cells, or leave them, in order of arrival."""
        nothing = np.empty(0, dtype=np.intp)
        cells = np.concatenate([nothing, *(cells for cells, _ in self._parts)])
        rows = np.concatenate([nothing, *(rows for _, rows in self._parts)])
        wanted = flatnonzero(self._enters[rows] == entering)
        packed = np.sort(cells[wanted] * (len(wanted) + 1) + np.arange(len(wanted)))
        of_cells, order = np.divmod(packed, len(wanted) + 1)
        places = self._places[rows[wanted[order]]]
        return Members(places, np.searchsorted(of_cells, slots), np.searchsorted(of_cells, slots, "right"))
