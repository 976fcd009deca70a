"""The input buffer of a session that emits final results only: insertions wait until a CTI may close one of their windows.

The open windows give a CTI below which no insertions can cause an emission or raise the output CTI. Until that CTI the rows are
only collected. They run together, in columns, when it arrives, when they are many, or before anything reads the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, together
from streamdsl.engine.coalesce import coalesced
from streamdsl.engine.lower import Graph
from streamdsl.engine.operator import Piece
from streamdsl.engine.row_batch import size_of
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal import MIN_TIME

if TYPE_CHECKING:
    from streamdsl.engine.operators.columnar_windows import ColumnarWindowOperator
    from streamdsl.engine.operators.grid_windows import GridWindowOperator

    FinalWindow: TypeAlias = ColumnarWindowOperator | GridWindowOperator

_MOST: Final = 4096
"""The most rows that wait; a larger batch would not be cheaper."""
_MOST_POINTS: Final = 2**17
"""The most points that wait. Points of one window are summed up without making columns of windows."""
_EACH: Final = 64
"""Points that are in at most this many windows make no more windows than a push may."""


class InputBuffer:
    """The waiting insertions of the only source of a session, and the CTI that they wait for."""

    def __init__(self, graph: Graph) -> None:
        self._windows = final_windows(graph)
        self._only = self._windows[0] if [stage.operator for stage in graph.frontiers[-1:]] == self._windows else None
        """The window operator, if it is the only one and its results are the output."""
        self._most_points = _MOST_POINTS if all(each.grid.most_per_point <= _EACH for each in self._windows) else _MOST
        self._until = MIN_TIME
        self._batches: list[Batch] = []
        self._size = 0
        self._cti = self._run = MIN_TIME

    def take(self, pieces: Mapping[str, Piece]) -> bool:
        """Collect a piece, and return True; False if it must run now, after the rows that wait."""
        if self._until == MIN_TIME:
            return False
        ((batch, cti),) = pieces.values()
        if cti >= self._until or not self._has_room(batch):
            return False
        self._cti = cti
        return True

    def close(self, pieces: Mapping[str, Piece]) -> Piece | None:
        """Take a piece whose CTI closes windows, and return the rows of these windows, with the end of the last one as the CTI.

        The other rows wait on, as if that end had been the CTI before them: between it and the piece's CTI nothing is emitted.
        None, with no effect, if all rows must run, as some may not be points.
        """
        if self._until == MIN_TIME or self._only is None:
            return None
        ((batch, cti),) = pieces.values()
        if (until := self._only.quiet_until(cti)) <= cti:
            return None
        grid = self._only.grid
        end = grid.end(grid.first_ending_after(cti) - 1)
        parts = [*self._batches, *([batch] if size_of(batch) else [])]
        if self._only.quiet_until(end) != until or not all(part.are_points for part in parts):
            return None
        split = [_before(part, end) for part in parts]
        self._batches = [later for _, later in split if len(later)]
        self._size = sum(map(len, self._batches))
        self._until, self._run, self._cti = until, end, cti
        now = [before for before, _ in split if len(before)]
        return Piece(together(now), end)

    def _has_room(self, batch: Batch) -> bool:
        """Collect insertions; False, with no effect, if there are too many of them."""
        size = size_of(batch)
        if not size:
            return True
        if not batch.are_insertions or self._size + size > (self._most_points if batch.are_points else _MOST):
            return False
        self._size += size
        self._batches.append(batch)
        return True

    def release(self) -> Piece | None:
        """Return the rows that wait, with the latest CTI; None if nothing has arrived."""
        if self._cti == self._run and not self._batches:
            return None
        batches, self._batches, self._run = self._batches, [], self._cti
        self._size = 0
        return Piece(together(coalesced(batches)), self._cti)

    def wait(self, cti: int) -> None:
        """Start to wait, after everything has run up to a CTI."""
        self._run = self._cti = cti
        self._until = min((window.quiet_until(cti) for window in self._windows), default=MIN_TIME)


def _before(batch: Batch, time: int) -> tuple[Batch, Batch]:
    """Return the rows that begin before a time, and the others."""
    is_before = batch.le < time
    n_before = int(np.count_nonzero(is_before))
    if n_before in (0, len(batch)):
        return (batch, EMPTY) if n_before else (EMPTY, batch)
    return batch.take(flatnonzero(is_before)), batch.take(flatnonzero(~is_before))


def final_windows(graph: Graph) -> list[FinalWindow]:
    """Return windows of final results that see the CTIs of the only source, one at least on each way to the output; else none."""
    found: dict[int, FinalWindow] = {}
    sees_source: set[int] = set()
    is_behind: set[int] = set()
    for number, (operator, inputs) in enumerate((stage.operator, stage.inputs) for stage in graph.stages):
        if operator is None or (operator.passes_ctis and sees_source.issuperset(inputs)):
            sees_source.add(number)
        if operator is not None and is_behind.issuperset(inputs):
            is_behind.add(number)
        elif operator is not None and operator.emits_at_window_end and sees_source.issuperset(inputs):
            found[number] = cast("FinalWindow", operator)
            is_behind.add(number)
    is_all = len(graph.sources) == 1 and is_behind.issuperset(graph.outputs)
    return list(found.values()) if is_all else []
