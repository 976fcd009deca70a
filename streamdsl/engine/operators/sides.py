"""The two sides of a join-like operator: the rows that can still meet a partner, by key and by time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import name
from streamdsl.engine.index import EventIndex, EventRow
from streamdsl.engine.operator import MatchKey, Operator
from streamdsl.engine.store import PayloadStore
from streamdsl.errors import UserCodeError
from streamdsl.expr import Inputs, RowError, truth
from streamdsl.expr.nodes import Expr
from streamdsl.expr.table import Column, flatnonzero
from streamdsl.plan.node import Matching


class SideChange(NamedTuple):
    """One changed row of a side: how it is kept, its key, and its ends before and after."""

    row: EventRow
    key: MatchKey
    re_old: int
    re_new: int


class Side:
    """The rows of one input: an `EventIndex` per key, payloads in columns; `payload` of a row is its slot.

    A row is let go when its RE is before the CTIs of both inputs: only then can neither it nor a partner change.
    """

    def __init__(self, operator: Operator, key: Expr | None) -> None:
        self._operator = operator
        self._key = key
        self._by_key: dict[MatchKey, EventIndex] = {}
        self._deaths: list[tuple[int, int, MatchKey, EventRow]] = []
        self._tickets = itertools.count()
        self._freed: list[int] = []
        self.store = PayloadStore()
        self.n_events = 0

    def changes(self, batch: Batch) -> Iterator[SideChange]:
        """Yield the batch's changes, each after the side has taken it; a row that leaves keeps its slot until `release`."""
        batch = batch.changed()
        inserted = flatnonzero(batch.re_old == batch.le)
        slots = iter(self.store.put(batch.table.take(inserted)))
        columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist())
        for id, le, re_old, re_new, key in zip(*columns, self._operator.keys(self._key, batch), strict=True):
            index = self._by_key.setdefault(key, EventIndex())
            if re_old > le:
                row = index.remove(id, le)
                self.n_events -= 1
            else:
                row = EventRow(id, le, re_new, next(slots), None)
            row.re = re_new
            if re_new > le:
                index.add(row)
                self.n_events += 1
                heapq.heappush(self._deaths, (re_new, next(self._tickets), key, row))
            else:
                self._freed.append(row.payload)
                if not len(index):
                    del self._by_key[key]
            yield SideChange(row, key, re_old, re_new)

    def overlapping(self, key: MatchKey, lo: int, hi: int) -> list[EventRow]:
        """Return the rows with this key that live some time in `[lo, hi)`."""
        index = self._by_key.get(key)
        return index.overlapping(lo, hi) if index is not None else []

    def groups(self) -> Iterator[int | None]:
        """Yield the groups that rows are in."""
        return (group for group, _ in self._by_key)

    def release(self) -> None:
        """Let go of the payloads of rows that have left."""
        self.store.free(self._freed)
        self._freed = []

    def forget(self, cti: int) -> None:
        """Drop the rows with RE < `cti`."""
        while self._deaths and self._deaths[0][0] < cti:
            re, _, key, row = heapq.heappop(self._deaths)
            index = self._by_key.get(key)
            if index is None or row.re != re or index.get(row.id, row.le) is not row:
                continue
            index.remove(row.id, row.le)
            self.n_events -= 1
            self._freed.append(row.payload)
            if not len(index):
                del self._by_key[key]
        self.release()


class TwoSidedOperator(Operator):
    """What operators over two inputs share: both sides, and the residual predicate."""

    def __init__(self, label: str, matching: Matching) -> None:
        super().__init__(label)
        self.where = matching.where
        self.reads_starts = False
        self.left = Side(self, matching.left_key)
        self.right = Side(self, matching.right_key)

    def matches(self, lefts: Sequence[EventRow], rights: Sequence[EventRow]) -> Column:
        """Say of each pair whether the residual predicate holds."""
        if self.where is None or not lefts:
            return np.ones(len(lefts), dtype=np.bool_)
        try:
            return truth(self.where, self.pairs(lefts, rights))
        except RowError as error:
            pair = (lefts[error.row].id, rights[error.row].id)
            raise UserCodeError(error.cause, operator=self.label, event=name(pair), payloads=error.payloads) from error.cause

    def pairs(self, lefts: Sequence[EventRow], rights: Sequence[EventRow]) -> Inputs:
        """Return pairs of rows as what expressions are evaluated over."""
        tables = (
            self.left.store.take([row.payload for row in lefts]),
            self.right.store.take([row.payload for row in rights]),
        )
        starts = (
            tuple(np.array([row.le for row in rows], dtype=np.int64) for rows in (lefts, rights)) if self.reads_starts else ()
        )
        return Inputs(tables, len(lefts), starts=starts)

    def forget(self, cti: int) -> None:
        self.left.forget(cti)
        self.right.forget(cti)

    def held_groups(self) -> Iterable[int | None]:
        return chain(self.left.groups(), self.right.groups())

    def state(self) -> dict[str, int]:
        events = self.left.n_events + self.right.n_events
        return {"windows": 0, "events": events}
