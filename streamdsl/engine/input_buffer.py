"""Rows that wait: where only final results go out, rows can be left aside until a CTI comes that may close a window of theirs.

The rule: below a CTI that the open windows tell, whatever insertions come, nothing is sent and no output CTI rises. So they are
run together, in columns, when that CTI comes, when they are many, or when somebody looks at the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, Joined
from streamdsl.engine.coalesce import coalesced
from streamdsl.engine.lower import Graph
from streamdsl.engine.operator import Piece
from streamdsl.engine.row_batch import size_of
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal import MIN_TIME

if TYPE_CHECKING:
    from streamdsl.engine.operators.columnar import ColumnarWindowOperator
    from streamdsl.engine.operators.grid import GridWindowOperator

    FinalWindow: TypeAlias = ColumnarWindowOperator | GridWindowOperator

_MOST: Final = 4096
"""So many rows wait at most: with more, none would cost less."""
_MOST_POINTS: Final = 2**17
"""So many points wait at most: where all rows of a window run together, it is no window that has cells."""
_EACH: Final = 64
"""Points that are in no more windows than this make no more than a push may."""


class InputBuffer:
    """The insertions of the only source of a session that wait, and the CTI that they wait for."""

    def __init__(self, graph: Graph) -> None:
        self._windows = final_windows(graph)
        self._only = self._windows[0] if [stage.operator for stage in graph.frontiers[-1:]] == self._windows else None
        """The only window, where its results go out as they are."""
        self._most_points = _MOST_POINTS if all(each.grid.size <= _EACH * each.grid.hop for each in self._windows) else _MOST
        self._until = MIN_TIME
        self._batches: list[Batch] = []
        self._size = 0
        self._cti = self._run = MIN_TIME

    def take(self, pieces: Mapping[str, Piece]) -> bool:
        """Keep a piece for later, and return True; False where it has to run now, after those that wait."""
        if self._until == MIN_TIME:
            return False
        ((batch, cti),) = pieces.values()
        if cti >= self._until or not self._has_room(batch):
            return False
        self._cti = cti
        return True

    def close(self, pieces: Mapping[str, Piece]) -> Piece | None:
        """Take a piece whose CTI closes windows, and return what runs now: the rows that are in these, and the end of the last.

        The others wait on, as if the CTI had been that end when they came: from there to the CTI nothing happens. None where all
        rows have to run, some of which may be no points.
        """
        if self._until == MIN_TIME or self._only is None:
            return None
        ((batch, cti),) = pieces.values()
        if (until := self._only.quiet_until(cti)) <= cti:
            return None
        grid = self._only.grid
        end = grid.start(grid.first_ending_after(cti) - 1) + grid.size
        parts = [*self._batches, *([batch] if size_of(batch) else [])]
        if self._only.quiet_until(end) != until or not all(part.are_points for part in parts):
            return None
        split = [_before(part, end) for part in parts]
        self._batches = [later for _, later in split if len(later)]
        self._size = sum(map(len, self._batches))
        self._until, self._run, self._cti = until, end, cti
        now = [before for before, _ in split if len(before)]
        return Piece(_together(now), end)

    def _has_room(self, batch: Batch) -> bool:
        """Take insertions, unless there are too many of them."""
        size = size_of(batch)
        if not size:
            return True
        if not batch.are_insertions or self._size + size > (self._most_points if batch.are_points else _MOST):
            return False
        self._size += size
        self._batches.append(batch)
        return True

    def release(self) -> Piece | None:
        """Return the rows that wait, with the CTI that has come since; None if nothing has."""
        if self._cti == self._run and not self._batches:
            return None
        batches, self._batches, self._run = self._batches, [], self._cti
        self._size = 0
        return Piece(_together(coalesced(batches)), self._cti)

    def wait(self, cti: int) -> None:
        """Wait anew, now that everything has run and the source has come so far."""
        self._run = self._cti = cti
        self._until = min((window.quiet_until(cti) for window in self._windows), default=MIN_TIME)


def _before(batch: Batch, time: int) -> tuple[Batch, Batch]:
    """Return the rows that begin before a time, and the others."""
    is_before = batch.le < time
    n_before = int(np.count_nonzero(is_before))
    if n_before in (0, len(batch)):
        return (batch, EMPTY) if n_before else (EMPTY, batch)
    return batch.take(flatnonzero(is_before)), batch.take(flatnonzero(~is_before))


def _together(batches: list[Batch]) -> Batch:
    return batches[0] if len(batches) == 1 else Joined(batches) if batches else EMPTY


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
