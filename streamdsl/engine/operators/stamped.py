"""The composed window operator for operators that see lifetimes: their results have lifetimes of their own."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, payload_table
from streamdsl.engine.operators.applied import ApplyOperator, ResultIds
from streamdsl.engine.operators.grid import GridWindowOperator
from streamdsl.expr.table import Rows
from streamdsl.temporal.change import pair
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import payload_key
from streamdsl.udm.invoke import Stamped, stamp


class Result(NamedTuple):
    """A result of a window, which is out once it has a number in it; equal payloads have equal keys."""

    le: int
    re: int
    payload: Any
    key: Hashable
    ordinal: int = -1


class Change(NamedTuple):
    """A result of a window that comes, goes or ends elsewhere."""

    slot: int
    ordinal: int
    payload: Any
    le: int
    re_old: int
    re_new: int


class StampedApplyOperator(ApplyOperator):
    """Operators that see lifetimes, and those whose results are points at the ends of windows that may move."""

    def _exchanged(self, dead: Rows, moved: Rows, computed: Rows, results: Sequence[list[Any]]) -> Batch:
        now: dict[int, list[Result]] = {slot: [] for slot in dead.tolist()} | {slot: self._moved(slot) for slot in moved.tolist()}
        now |= {slot: self._stamped(slot, given) for slot, given in zip(computed.tolist(), results, strict=True)}
        gone: list[Change] = []
        come: list[Change] = []
        for slot, rows in now.items():
            self._pair(slot, rows, gone, come)
        return self._changes(gone + come)

    def _moved(self, slot: int) -> list[Result]:
        """Return the results of a window that has the members that it had, but another end."""
        return [Result(*self._stamp(slot), each.payload, each.key) for each in self._out[slot]]

    def _stamped(self, slot: int, given: Sequence[Any]) -> list[Result]:
        """Return what a module has given for a window, with lifetimes."""
        if not self.node.time_sensitive:
            le, re = self._stamp(slot)
            given = [Stamped(le, re, payload) for payload in given]
        return [Result(row.le, row.re, row.payload, payload_key(row.payload)) for row in given]

    def _stamp(self, slot: int) -> Lifetime:
        return stamp(Lifetime(self.table.le.item(slot), self.table.re.item(slot)), self.node.output)

    def _pair(self, slot: int, rows: list[Result], gone: list[Change], come: list[Change]) -> None:
        """Let results of a window be out instead of those that are: the ones that only end elsewhere keep their numbers."""
        pairs = pair(self._out[slot] or (), rows)
        used = {before.ordinal for before, after in pairs if before is not None and after is not None}
        free = (number for number in itertools.count() if number not in used)
        out: list[Result] = []
        for before, after in pairs:
            if after is None:
                assert before is not None
                gone.append(Change(slot, before.ordinal, before.payload, before.le, before.re, before.le))
            elif before is None:
                out.append(after._replace(ordinal=next(free)))
                come.append(Change(slot, out[-1].ordinal, after.payload, after.le, after.le, after.re))
            else:
                out.append(before._replace(re=after.re))
                if before.re != after.re:
                    come.append(Change(slot, before.ordinal, before.payload, before.le, before.re, after.re))
        self._out[slot] = out or None

    def _changes(self, changes: list[Change]) -> Batch:
        if not changes:
            return EMPTY
        slots, ordinals, payloads, le, re_old, re_new = zip(*changes, strict=True)
        rows = np.array(slots, dtype=np.intp)
        groups = self.swept.codes.groups(self.table.code[rows])
        ids = ResultIds(self.label, self.key_table, *self._ids(self.table.le[rows], groups).columns, np.array(ordinals))
        starts, before, after = (np.array(column, dtype=np.int64) for column in (le, re_old, re_new))
        return Batch(ids, starts, before, after, payload_table(payloads), groups if self.is_grouped else None)


class GridStampedApplyOperator(StampedApplyOperator, GridWindowOperator):
    """The same over hopping and tumbling windows."""

    @property
    def shows_at_ends(self) -> bool:
        return False
