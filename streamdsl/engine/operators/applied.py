"""The composed window operator for time-insensitive operators: each window has any number of results, which keep their ids."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, payload_table
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.grid import GridWindowOperator
from streamdsl.engine.swept.timeline import Touched
from streamdsl.expr.held import AnyColumn
from streamdsl.expr.table import Column, object_column
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.payload import payload_key


class Out(NamedTuple):
    """A result that is out: its number in its window, and what its payload has in common with equal ones."""

    ordinal: int
    payload: Any
    key: Hashable


class Change(NamedTuple):
    """A result of a cell that comes or goes."""

    slot: int
    ordinal: int
    payload: Any


class ResultIds(WindowIds):
    """The ids of windows' results: `(operator, start, ordinal)`, in groups `(operator, key, start, ordinal)`."""

    __slots__ = ()

    def with_columns(self, *columns: AnyColumn) -> ResultIds:
        return ResultIds(self.label, self.keys, *columns)

    def is_like(self, other: object) -> bool:
        return isinstance(other, ResultIds) and super().is_like(other)

    def spelled(self) -> Iterator[Hashable]:
        *window, ordinals = self.columns
        ids = WindowIds(self.label, self.keys, *window).spelled()
        return ((*id[:-1], ordinal) for id, ordinal in zip(ids, ordinals.tolist(), strict=True))  # type: ignore[index]


class GridApplyOperator(GridWindowOperator):
    """Operators over the payloads of windows."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        super().__init__(label, node, gate)
        self.table.states.append(object_column([]))

    @property
    def shows_at_ends(self) -> bool:
        return False

    @property
    def _out(self) -> Column:
        """The results of each window that are out."""
        return self.table.states[-1]

    def _emit(self, touched: Touched) -> Batch:
        slots, _, dead = touched
        if not len(slots) and not len(dead):
            return EMPTY
        order = np.lexsort((self.table.le[slots], self.table.code[slots]))
        slots = self._computed = slots[order]
        self.udm_calls += len(slots)
        self.table.results.is_out[slots], self.table.results.re[slots] = True, self.table.re[slots]
        gone, come = self._difference(slots.tolist(), self._columns(slots)["a0"].tolist())
        gone += [Change(slot, ordinal, payload) for slot in dead.tolist() for ordinal, payload, _ in self._out[slot] or ()]
        return self._changes(gone, come)

    def _difference(self, slots: Sequence[int], results: Sequence[list[Any]]) -> tuple[list[Change], list[Change]]:
        """Note the results that cells have now, and return what goes and what comes."""
        gone: list[Change] = []
        come: list[Change] = []
        for slot, payloads in zip(slots, results, strict=True):
            left, now = paired(self._out[slot] or (), payloads)
            gone += [Change(slot, *each[:2]) for each in left]
            come += [Change(slot, *each[:2]) for each, is_new in now if is_new]
            self._out[slot] = [each for each, _ in now]
        return gone, come

    def _changes(self, gone: list[Change], come: list[Change]) -> Batch:
        if not gone and not come:
            return EMPTY
        slots, ordinals, payloads = zip(*gone, *come, strict=True)
        rows, table = np.array(slots, dtype=np.intp), payload_table(payloads)
        is_gone, le, re = np.arange(len(rows)) < len(gone), self.table.le[rows], self.table.re[rows]
        groups, versions = self.swept.codes.groups(self.table.code[rows]), np.zeros(len(rows), dtype=np.int64)
        out = self._batch(groups, le, np.where(is_gone, re, le), np.where(is_gone, le, re), table, versions)
        window = self._ids(le, groups)
        ids = ResultIds(self.label, self.key_table, *window.columns, np.array(ordinals))
        return Batch(ids, out.le, out.re_old, out.re_new, table, out.keys)


def paired(out: Sequence[Out], payloads: Sequence[Any]) -> tuple[list[Out], list[tuple[Out, bool]]]:
    """Return the results that are out and right no more, and the right ones, each with whether it is new.

    >>> left, now = paired([Out(0, "a", "a"), Out(1, "b", "b")], ["b", "c"])
    >>> [each.payload for each in left], [(each.ordinal, each.payload, is_new) for each, is_new in now]
    (['a'], [(1, 'b', False), (0, 'c', True)])
    """
    waiting: dict[Hashable, list[Out]] = {}
    for each in out:
        waiting.setdefault(each.key, []).append(each)
    keys = list(map(payload_key, payloads))
    kept = [known.pop() if (known := waiting.get(key)) else None for key in keys]
    used = {each.ordinal for each in kept if each is not None}
    free = (n for n in itertools.count() if n not in used)
    now = [
        (Out(next(free), payload, key), True) if each is None else (each, False)
        for each, payload, key in zip(kept, payloads, keys, strict=True)
    ]
    return [each for known in waiting.values() for each in known], now
