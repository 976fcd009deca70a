"""Batches of changes: what flows between operators (columns in, columns out)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.ids import Ids, concat_ids
from streamdsl.expr.table import Rows, Table, every, flatnonzero, largest, object_column, payload_table
from streamdsl.temporal.time import CHRONON, MIN_TIME, Ticks

SLICE: Final = 2**15
"""Rows that are taken at once where rows pass one by one: more fall out of the cache."""


@dataclass(slots=True, eq=False)
class Batch:
    """Changes of rows: `[le, re_old)` becomes `[le, re_new)`; an end equal to `le` means that the row is not there.

    So `re_old == le` is an insertion and `re_new == le` a full retraction. A row with `re_old == re_new` is an echo: nothing
    changes, but an event with this LE has come, which raises the watermark. A row id may leave and come back in one batch; its
    retraction then stands before its insertion. `keys` are the numbers of the rows' groups inside a group-apply (`keys.py`).
    """

    ids: Ids
    le: Ticks
    re_old: Ticks
    re_new: Ticks
    table: Table
    keys: Ticks | None = None

    def __len__(self) -> int:
        return len(self.le)

    def take(self, rows: Rows) -> Batch:
        """Return these rows, in this order."""
        return self._mapped(rows)

    def changed(self) -> Batch:
        """Return the rows that change, without echoes."""
        if not len(self.le):
            return self
        changes = self.re_old != self.re_new
        return self if every(changes) else self.take(flatnonzero(changes))

    @property
    def are_points(self) -> bool:
        """Whether all rows are known to come, and to be points."""
        return False

    @property
    def is_large(self) -> bool:
        """Whether it is more than one slice."""
        return len(self.le) > SLICE

    def slices(self) -> Iterator[Batch]:
        """Return the rows in parts of at most `SLICE`, which are not copied; none is empty."""
        if not self.is_large:
            return iter([self] if len(self) else [])
        return (self._mapped(slice(start, start + SLICE)) for start in range(0, len(self), SLICE))

    def _mapped(self, rows: Rows | slice) -> Batch:
        keys = None if self.keys is None else self.keys[rows]
        le = self.le[rows]
        re_old = le if self.re_old is self.le else self.re_old[rows]
        return Batch(self.ids[rows], le, re_old, self.re_new[rows], self.table.take(rows), keys)

    def only(self, rows: Rows) -> Batch:
        """Return these rows, of which no two are equal, in their order."""
        return self if len(rows) == len(self) else self.take(rows)

    def with_ids(self, ids: Ids) -> Batch:
        """Return the rows with other ids."""
        return Batch(ids, self.le, self.re_old, self.re_new, self.table, self.keys)

    def with_table(self, table: Table, keys: Ticks | None) -> Batch:
        """Return the rows with other payloads, in these groups."""
        return Batch(self.ids, self.le, self.re_old, self.re_new, table, keys)

    def with_lifetimes(self, le: Ticks, re_old: Ticks, re_new: Ticks) -> Batch:
        """Return the rows with other lifetimes, without those that are there neither before nor after."""
        moved = Batch(self.ids, le, re_old, re_new, self.table, self.keys)
        present = (re_old > le) | (re_new > le)
        return moved if present.all() else moved.take(flatnonzero(present))

    @property
    def are_insertions(self) -> bool:
        """Whether it is certain that each row is an insertion."""
        return self.re_old is self.le

    @property
    def high_water(self) -> int:
        """The largest LE in the batch."""
        return largest(self.le) if len(self.le) else MIN_TIME

    def group_keys(self) -> list[int | None]:
        """Return each row's group, None outside of a group-apply."""
        return [None] * len(self) if self.keys is None else self.keys.tolist()

    @staticmethod
    def concat(batches: Iterable[Batch]) -> Batch:
        """Return batches one after the other."""
        parts = [batch for batch in batches if len(batch)]
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


class Points(Batch):
    """Insertions of points in order of arrival, whose ids are numbers: ids and REs are made where someone reads them.

    `rows` are which of the rows from `first` on these are; None: all.
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
            return Points(self.first, le, table, keys, self.rows[rows])
        if isinstance(rows, slice):
            return Points(self.first + rows.indices(len(self))[0], le, table, keys)
        return Points(self.first, le, table, keys, rows)

    def with_table(self, table: Table, keys: Ticks | None) -> Batch:
        return Points(self.first, self.le, table, keys, self.rows)


class Joined(Batch):
    """Batches one after the other: they are put together where somebody reads them as one, and pass as slices as they are."""

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
    def is_large(self) -> bool:
        return True

    @property
    def high_water(self) -> int:
        return max(part.high_water for part in self.parts)

    def slices(self) -> Iterator[Batch]:
        return (each for part in self.parts for each in part.slices())


class Sliced(Batch):
    """A batch whose slices are made when they are asked for, once; only operators that `takes_slices` meet one."""

    __slots__ = ("_made", "_size")

    def __init__(self, size: int, made: Iterator[Batch]) -> None:
        self._size = size
        self._made = made

    def __len__(self) -> int:
        return self._size

    def slices(self) -> Iterator[Batch]:
        self._size = 0
        for part in self._made:
            self._size += len(part)
            yield part


def _no_ticks() -> Ticks:
    return np.empty(0, dtype=np.int64)


EMPTY = Batch(object_column([]), _no_ticks(), _no_ticks(), _no_ticks(), Table.of_objects([]))

ChangeRow: TypeAlias = tuple[Hashable, int, int, int, Any]


@dataclass(slots=True)
class Changes:
    """A batch under construction, row by row: retractions are put before insertions when it is built."""

    rows: list[ChangeRow] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)

    def add(self, id: Hashable, le: int, re_old: int, re_new: int, payload: Any, key: Any = None) -> None:
        """Append one change; one that changes nothing is left out."""
        if re_old != re_new:
            self.rows.append((id, le, re_old, re_new, payload))
            self.keys.append(key)

    def batch(self, keyed: bool) -> Batch:
        """Return the changes as a batch of payloads kept whole or, if their first has fields, of its columns."""
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
