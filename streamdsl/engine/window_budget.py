"""How many windows a push may make: a wrong RE, or a leap in time, must not fill the memory with them.

An operator charges the windows that it is about to make to its budget (`WindowBudget.take`), which raises before they are made.
Where a push could exceed the budget (`Arrivals`), the session first copies its state (`Backup`), so that the push can be undone.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.row_batch import RowBatch
from streamdsl.errors import QueryError, UnboundedOutputError
from streamdsl.expr.table import least

MOST: Final = 1_000_000
"""The most windows that a push makes, unless `engine_options["most_windows"]` says otherwise."""
PER_ROW: Final = 64
"""The windows that are always allowed for each row of a push."""


FEW: Final = 10_000
"""A number of windows that is always allowed."""


class WindowBudget:
    """The windows that an operator may still make in this step.

    >>> budget = WindowBudget("window_aggregate_1", "tumbling(1) windows", 1000)
    >>> budget.open(rows=2)
    >>> budget.take(900)
    >>> budget.take(200)
    Traceback (most recent call last):
        ...
    streamdsl.errors.UnboundedOutputError: window_aggregate_1 would make more than 1000 tumbling(1) windows of 2 rows at once
    Hint: is an RE or a CTI wrong, so that a row lasts for long, or time leaps? clip_duration(d) cuts rows;
      open(engine_options={"most_windows": n}) allows more
    """

    def __init__(self, label: str, what: str, most: int) -> None:
        self.label = label
        self.what = what
        self.most = most
        self.rows = 0
        self.left = most

    def open(self, rows: int) -> None:
        """Begin a step with so many changed rows."""
        self.rows = rows
        self.left = max(self.most, PER_ROW * rows)

    def take(self, windows: int) -> None:
        """Charge windows to the budget. Raises `UnboundedOutputError` if it is exceeded."""
        self.left -= windows
        if self.left < 0:
            most = max(self.most, PER_ROW * self.rows)
            raise UnboundedOutputError(
                f"{self.label} would make more than {most} {self.what} of {self.rows} rows at once",
                hint="is an RE or a CTI wrong, so that a row lasts for long, or time leaps? clip_duration(d) cuts rows;\n"
                '  open(engine_options={"most_windows": n}) allows more',
            )


@dataclass
class Arrivals:
    """The input of an operator in one push: the number of rows, their first LE, and the time up to which windows begin."""

    rows: int
    start: int
    end: int
    batches: Sequence[Batch] | None = None
    """The rows; None if they are not known, and may last to the end."""

    @classmethod
    def of(cls, batches: Iterable[Batch], cti: int) -> Arrivals:
        """Return the arrivals of batches and a CTI.

        >>> Arrivals.of([], 7)
        Arrivals(rows=0, start=7, end=7, batches=[])
        """
        held = [batch for batch in batches if len(batch)]
        starts = [min(le for _, _, le, _, _ in each.changes) if type(each) is RowBatch else least(each.le) for each in held]
        return cls(sum(map(len, held)), min([cti, *starts]), max([cti, *(each.high_water for each in held)]), held)

    @functools.cached_property
    def lasting(self) -> float:
        """The total duration of all rows, up to the time until which windows begin."""
        if self.batches is None:
            return math.inf
        return sum(
            len(each) if each.are_points else self._lasting(each.columns if type(each) is RowBatch else each)
            for each in self.batches
        )

    def _lasting(self, batch: Batch) -> float:
        ends = np.minimum(np.maximum(batch.re_old, batch.re_new), self.end)
        return float(np.maximum(ends - batch.le, 0).sum(dtype=np.float64))

    def beyond(self, opened: int | None, size: int, hop: int, groups: int, held: int) -> float:
        """Return an upper bound of the windows of a grid that are made:

        the arrivals are in `groups` groups, and `held` rows are there.

        `opened` is the time up to which windows have begun, None if there are none.
        """
        new = 0 if opened is None else held * (max(0, self.end - opened) // hop + 1)
        each = max(0, self.end - self.start) // hop + size // hop + 2
        entered = each * min(self.rows, groups)
        if new + entered <= FEW:
            return new + entered
        return new + min(entered, self.lasting / hop + self.rows * (size // hop + 2))


def most_windows(options: Mapping[str, Any]) -> int:
    """Return the most windows that a push may make. Raises `QueryError`."""
    found = options.get("most_windows", MOST)
    if type(found) is not int or found < 1:
        raise QueryError(f'engine_options["most_windows"] is a number of windows, 1 or more, not {found!r}')
    return found


class Backup:
    """A copy of what objects hold, so that it can be restored. Objects in `fixed` are shared, as they do not change."""

    def __init__(self, objects: Iterable[Any], fixed: Iterable[Any], owner: Any, own: Mapping[str, Any]) -> None:
        self._objects = list(objects)
        memo = {id(each): each for each in (*fixed, *self._objects)}
        self._held = [copy.deepcopy(dict(vars(each)), memo) for each in self._objects]
        self._owner, self._own = owner, copy.deepcopy(dict(own), memo)

    def back(self) -> None:
        """Restore what the objects and their owner held."""
        for name, value in self._own.items():
            setattr(self._owner, name, value)
        for each, held in zip(self._objects, self._held, strict=True):
            vars(each).clear()
            vars(each).update(held)
