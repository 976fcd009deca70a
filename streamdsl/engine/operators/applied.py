"""The composed window operator for operators: each window has any number of results, which keep their ids.

Here are the time-insensitive ones, whose results last as long as their windows: no result need be looked into where only its end
moves, which takes two thirds of the time that pairing results by their lifetimes does (`stamped`).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, payload_table
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.framed import FramedWindowOperator
from streamdsl.engine.operators.grid import GridWindowOperator
from streamdsl.engine.swept.timeline import Touched
from streamdsl.expr.held import AnyColumn
from streamdsl.expr.table import Column, Rows, object_column
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.payload import payload_key


class Out(NamedTuple):
    """A result that is out: its number in its window, and its payload."""

    ordinal: int
    payload: Any


class Change(NamedTuple):
    """A result of a window that comes, goes or ends elsewhere."""

    slot: int
    ordinal: int
    payload: Any
    re_old: int
    re_new: int


class ResultIds(WindowIds):
    """The ids of windows' results: `(operator, start, ordinal)`, in groups `(operator, key, start, ordinal)`."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[AnyColumn, list[AnyColumn], AnyColumn | None]:
        starts, *leaves, ordinals = self.columns
        return starts, leaves, ordinals

    def with_columns(self, *columns: AnyColumn) -> ResultIds:
        return ResultIds(self.label, self.keys, *columns)

    def is_like(self, other: object) -> bool:
        return isinstance(other, ResultIds) and super().is_like(other)

    def spelled(self) -> Iterator[Hashable]:
        *window, ordinals = self.columns
        ids = WindowIds(self.label, self.keys, *window).spelled()
        return ((*id[:-1], ordinal) for id, ordinal in zip(ids, ordinals.tolist(), strict=True))  # type: ignore[index]


class ApplyOperator(FramedWindowOperator):
    """Windows with any number of results each; subclasses say how those that are out and the right ones differ."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        super().__init__(label, node, gate)
        self.takes_rows = False
        self.table.states.append(object_column([]))

    @property
    def _out(self) -> Column:
        """The results of each window that are out."""
        return self.table.states[-1]

    def _emit(self, touched: Touched) -> Batch:
        if not len(touched.slots) and not len(touched.gone):
            return EMPTY
        slots, table, results = touched.slots, self.table, self.table.results
        was_out = results.is_out[slots]
        shown = self._are_shown(slots, was_out)
        dead = np.concatenate([touched.gone[results.is_out[touched.gone]], slots[was_out & ~shown]])
        moved = slots[was_out & shown & ~touched.summed & (results.re[slots] != table.re[slots])]
        computed = slots[shown & (touched.summed | ~was_out)]
        computed = self._computed = computed[np.lexsort((table.le[computed], table.code[computed]))]
        self.udm_calls += len(computed)
        out = self._exchanged(dead, moved, computed, self._columns(computed)["a0"].tolist())
        results.is_out[computed], results.re[computed] = True, table.re[computed]
        results.re[moved] = table.re[moved]
        results.is_out[dead], self._out[dead] = False, None
        return out

    @abstractmethod
    def _exchanged(self, dead: Rows, moved: Rows, computed: Rows, results: Sequence[list[Any]]) -> Batch:
        """Return what changes, and note in `_out` what then is out.

        Dead windows have no results any more, moved ones have those that they had but end elsewhere,
        and `results` are those of the computed ones.
        """


class FramedApplyOperator(ApplyOperator):
    """Operators over the payloads of windows whose ends depend on the rows."""

    def _exchanged(self, dead: Rows, moved: Rows, computed: Rows, results: Sequence[list[Any]]) -> Batch:
        gone, come = self._difference(computed, results)
        gone += [Change(slot, n, payload, re, le) for slot, le, re, _ in self._ends(dead) for n, payload in self._out[slot]]
        come += [Change(slot, n, payload, was, re) for slot, _, was, re in self._ends(moved) for n, payload in self._out[slot]]
        return self._changes(gone + come)

    def _ends(self, slots: Rows) -> Iterator[tuple[int, int, int, int]]:
        """Return windows, where they begin, and where their results that are out end and should."""
        table = self.table
        columns = (slots, table.le[slots], table.results.re[slots], table.re[slots])
        return zip(*(column.tolist() for column in columns), strict=True)

    def _difference(self, slots: Rows, results: Sequence[list[Any]]) -> tuple[list[Change], list[Change]]:
        """Note the results that windows have now, and return what goes, and what comes or ends elsewhere."""
        gone: list[Change] = []
        come: list[Change] = []
        for (slot, le, was, re), payloads in zip(self._ends(slots), results, strict=True):
            left, now = paired(self._out[slot] or (), payloads)
            gone += [Change(slot, n, payload, was, le) for n, payload in left]
            come += [Change(slot, n, payload, le if is_new else was, re) for (n, payload), is_new in now if is_new or was != re]
            self._out[slot] = [each for each, _ in now]
        return gone, come

    def _changes(self, changes: list[Change]) -> Batch:
        if not changes:
            return EMPTY
        slots, ordinals, payloads, re_old, re_new = zip(*changes, strict=True)
        rows, table = np.array(slots, dtype=np.intp), payload_table(payloads)
        le, groups = self.table.le[rows], self.swept.codes.groups(self.table.code[rows])
        out = self._batch(groups, le, np.array(re_old), np.array(re_new), table, np.zeros(len(rows), dtype=np.int64))
        ids = ResultIds(self.label, self.key_table, *self._ids(le, groups).columns, np.array(ordinals))
        return Batch(ids, out.le, out.re_old, out.re_new, table, out.keys)


class GridApplyOperator(FramedApplyOperator, GridWindowOperator):
    """Operators over the payloads of hopping and tumbling windows."""

    @property
    def shows_at_ends(self) -> bool:
        return False


def paired(out: Sequence[Out], payloads: Sequence[Any]) -> tuple[list[Out], list[tuple[Out, bool]]]:
    """Return the results that are out and right no more, and the right ones, each with whether it is new.

    >>> left, now = paired([Out(0, "a"), Out(1, "b")], ["b", "c"])
    >>> [each.payload for each in left], [(*each, is_new) for each, is_new in now]
    (['a'], [(1, 'b', False), (0, 'c', True)])
    """
    if not out:
        return [], [(Out(*each), True) for each in enumerate(payloads)]
    waiting: dict[Hashable, list[Out]] = {}
    for each in reversed(out):
        waiting.setdefault(payload_key(each.payload), []).append(each)
    kept = [known.pop() if (known := waiting.get(payload_key(payload))) else None for payload in payloads]
    used = {each.ordinal for each in kept if each is not None}
    free = (n for n in itertools.count() if n not in used)
    now = [
        (Out(next(free), payload), True) if each is None else (each, False) for each, payload in zip(kept, payloads, strict=True)
    ]
    return [each for known in waiting.values() for each in known], now
