"""Batches of changes, in columns: what flows between operators."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.ids import Ids, concat_ids
from streamdsl.expr.table import Rows, Table, every, flatnonzero, largest, object_column, payload_table
from streamdsl.temporal.time import CHRONON, MIN_TIME, Ticks

SLICE: Final = 2**18
"""The rows of a slice, for which memory is taken at once."""


@dataclass(slots=True, eq=False)
class Batch:
    """Changes of rows: each lifetime `[le, re_old)` becomes `[le, re_new)`. An end that equals `le` means that there is no row.

    So `re_old == le` is an insertion, and `re_new == le` a full retraction. `re_old == re_new` is a no-op change: it has no
    effect but that an event with this LE has arrived, which raises the high water. If a row id leaves and returns within a batch,
    the retraction comes before the insertion.

    `keys` are the group numbers of the rows inside a group-apply (`keys.py`), None outside. Columns are never changed in place.
    """

    ids: Ids
    le: Ticks
    re_old: Ticks
    re_new: Ticks
    table: Table
    keys: Ticks | None = None

    def __len__(self) -> int:
        return len(self.le)

    def take(self, rows: Rows | slice) -> Batch:
        """Return the rows at these indices, in this order; those of a slice are not copied."""
        return self._mapped(rows)

    def changed(self) -> Batch:
        """Return the batch without no-op changes."""
        if not len(self.le):
            return self
        changes = self.re_old != self.re_new
        return self if every(changes) else self.take(flatnonzero(changes))

    @property
    def are_points(self) -> bool:
        """Whether all rows are known to be insertions of points."""
        return False

    def slices(self) -> Iterator[Batch]:
        """Yield the rows in non-empty parts of at most `SLICE`, as views."""
        if len(self) <= SLICE:
            return iter([self] if len(self) else [])
        return (self._mapped(slice(start, start + SLICE)) for start in range(0, len(self), SLICE))

    def _mapped(self, rows: Rows | slice) -> Batch:
        keys = None if self.keys is None else self.keys[rows]
        le = self.le[rows]
        re_old = le if self.re_old is self.le else self.re_old[rows]
        return Batch(self.ids[rows], le, re_old, self.re_new[rows], self.table.take(rows), keys)

    def only(self, rows: Rows) -> Batch:
        """Return the rows at these indices, which are distinct and ascending."""
        return self if len(rows) == len(self) else self.take(rows)

    def with_ids(self, ids: Ids) -> Batch:
        """Return the rows with other ids."""
        return Batch(ids, self.le, self.re_old, self.re_new, self.table, self.keys)

    def with_table(self, table: Table, keys: Ticks | None) -> Batch:
        """Return the rows with other payloads and groups."""
        return Batch(self.ids, self.le, self.re_old, self.re_new, table, keys)

    def with_lifetimes(self, le: Ticks, re_old: Ticks, re_new: Ticks) -> Batch:
        """Return the rows with other lifetimes, without those that exist neither before nor after."""
        moved = Batch(self.ids, le, re_old, re_new, self.table, self.keys)
        present = (re_old > le) | (re_new > le)
        return moved if present.all() else moved.take(flatnonzero(present))

    @property
    def are_insertions(self) -> bool:
        """Whether each row is known to be an insertion. False says nothing."""
        return self.re_old is self.le

    @property
    def high_water(self) -> int:
        """The largest LE in the batch, MIN_TIME if it is empty."""
        return largest(self.le) if len(self.le) else MIN_TIME

    def group_keys(self) -> list[int | None]:
        """Return each row's group, None outside of a group-apply."""
        return [None] * len(self) if self.keys is None else self.keys.tolist()

    def joined(self) -> Sequence[Batch]:
        """Return the batches that it is made of, one after the other."""
        return (self,)

    @staticmethod
    def concat(batches: Iterable[Batch]) -> Batch:
        """Return the batches one after the other, as one."""
        parts = [part for batch in batches for part in batch.joined() if len(part)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return EMPTY
        keyed = parts[0].keys is not None
        return Batch(
            concat_ids([part.ids for part in parts]),
            np.concatenate([part.le for part in parts]),
            np.concatenate([part.re_old for part in parts]),
            np.concatenate([part.re_new for part in parts]),
            Table.concat([part.table for part in parts]),
            np.concatenate([part.keys for part in parts if part.keys is not None]) if keyed else None,
        )


class PointBatch(Batch):
    """Insertions of points in order of arrival, with consecutive numbers as ids. Ids and REs are made when they are read.

    The ids count from `first`. If `rows` is not None, only these of the rows are left.
    """

    __slots__ = ("_latest", "first", "rows")

    def __init__(self, first: int, le: Ticks, table: Table, keys: Ticks | None = None, rows: Rows | None = None) -> None:
        self.first = first
        self.rows = rows
        self.le = self.re_old = le
        self.table = table
        self.keys = keys
        self._latest: int | None = None

    def __getattr__(self, name: str) -> Ticks:
        if name == "ids":
            self.ids = np.arange(self.first, self.first + len(self.le)) if self.rows is None else self.rows + self.first
            return self.ids
        if name == "re_new":
            self.re_new = self.le + CHRONON
            return self.re_new
        raise AttributeError(name)

    @property
    def are_points(self) -> bool:
        return True

    @property
    def high_water(self) -> int:
        if self._latest is None:
            self._latest = super().high_water
        return self._latest

    def changed(self) -> Batch:
        return self

    def _mapped(self, rows: Rows | slice) -> Batch:
        keys = None if self.keys is None else self.keys[rows]
        le, table = self.le[rows], self.table.take(rows)
        if self.rows is not None:
            return PointBatch(self.first, le, table, keys, self.rows[rows])
        if isinstance(rows, slice):
            return PointBatch(self.first + rows.indices(len(self))[0], le, table, keys)
        return PointBatch(self.first, le, table, keys, rows)

    def with_table(self, table: Table, keys: Ticks | None) -> Batch:
        return PointBatch(self.first, self.le, table, keys, self.rows)


class JoinedBatches(Batch):
    """Batches one after the other. They are concatenated when they are read as one batch; `slices` yields them as they are."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Batch]) -> None:
        self.parts = parts

    def __getattr__(self, name: str) -> Any:
        if name not in Batch.__slots__:
            raise AttributeError(name)
        whole = Batch.concat(self.parts)
        for each in Batch.__slots__:
            setattr(self, each, getattr(whole, each))
        return getattr(self, name)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def high_water(self) -> int:
        return max(part.high_water for part in self.parts)

    def joined(self) -> Sequence[Batch]:
        return self.parts

    def slices(self) -> Iterator[Batch]:
        return (each for part in self.parts for each in part.slices())


def together(batches: Sequence[Batch]) -> Batch:
    """Return batches one after the other, as they are."""
    return batches[0] if len(batches) == 1 else JoinedBatches(batches) if batches else EMPTY


def _no_ticks() -> Ticks:
    return np.empty(0, dtype=np.int64)


EMPTY = Batch(object_column([]), _no_ticks(), _no_ticks(), _no_ticks(), Table.of_objects([]))

ChangeRow: TypeAlias = tuple[Hashable, int, int, int, Any]


@dataclass(slots=True)
class Changes:
    """A builder of batches, row by row. `batch` puts retractions before insertions."""

    rows: list[ChangeRow] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)

    def add(self, id: Hashable, le: int, re_old: int, re_new: int, payload: Any, key: Any = None) -> None:
        """Append a change; a no-op change is left out."""
        if re_old != re_new:
            self.rows.append((id, le, re_old, re_new, payload))
            self.keys.append(key)

    def batch(self, keyed: bool) -> Batch:
        """Return the changes as a batch. Payloads become columns if the first one has fields."""
        if not self.rows:
            return EMPTY
        order = sorted(range(len(self.rows)), key=lambda i: self.rows[i][2] == self.rows[i][1])
        rows = [self.rows[i] for i in order]
        ids, le, re_old, re_new, payloads = zip(*rows, strict=True)
        return Batch(
            object_column(ids),
            np.array(le, dtype=np.int64),
            np.array(re_old, dtype=np.int64),
            np.array(re_new, dtype=np.int64),
            payload_table(payloads),
            np.array([self.keys[i] for i in order], dtype=np.int64) if keyed else None,
        )
