"""Row ids that are spelled out only where someone reads them: of windows' results, say, at the edge of a session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from streamdsl.engine.pairs import distinct_pairs
from streamdsl.engine.sorting import as_one
from streamdsl.engine.versions import row_versions
from streamdsl.expr.table import Column, concat_columns, flatnonzero, object_column
from streamdsl.temporal.time import Ticks


class DeferredIds(ABC):
    """Ids as the columns that they are made of. They are used as a column of ids is: by row, by rows, and as a list."""

    __slots__ = ("columns",)
    dtype = np.dtype(object)

    def __init__(self, *columns: Any) -> None:
        self.columns = columns

    @abstractmethod
    def spelled(self) -> Iterable[Hashable]:
        """Return the ids."""

    @abstractmethod
    def with_columns(self, *columns: Any) -> DeferredIds:
        """Return ids of the same kind, of other rows."""

    def is_like(self, other: object) -> bool:
        """Say whether ids are of the same kind, so that they can stand in the same columns."""
        return type(other) is type(self)

    def tolist(self) -> list[Any]:
        """Return the ids."""
        return list(self.spelled())

    @property
    def nbytes(self) -> int:
        """The memory of the columns."""
        return sum(column.nbytes for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            return self.with_columns(*(column[rows : rows + 1] for column in self.columns)).tolist()[0]
        return self.with_columns(*(column[rows] for column in self.columns))


Ids: TypeAlias = Column | DeferredIds


class PairIds(DeferredIds):
    """Pairs of ids, of a left and a right row.

    >>> PairIds(np.array([1, 2]), object_column(["a", "b"])).tolist()
    [(1, 'a'), (2, 'b')]
    """

    __slots__ = ()

    def spelled(self) -> Iterable[Hashable]:
        return zip(*(column.tolist() for column in self.columns), strict=True)

    def with_columns(self, *columns: Any) -> PairIds:
        return PairIds(*columns)


class VersionedIds(DeferredIds):
    """Ids of rows, each with a number that counts how often the row has come back: none of these ids ever comes back itself.

    >>> VersionedIds(object_column(["a", "b"]), np.array([0, 2])).tolist()
    ['a', RowVersion(id='b', version=2)]
    """

    __slots__ = ()

    def spelled(self) -> Iterable[Hashable]:
        rows, versions = self.columns
        ids: list[Hashable] = rows.tolist()
        again = flatnonzero(versions)
        places = again.tolist()
        for place, id in zip(places, row_versions([ids[place] for place in places], versions[again].tolist()), strict=True):
            ids[place] = id
        return ids

    def with_columns(self, *columns: Any) -> VersionedIds:
        return VersionedIds(*columns)


def id_codes(ids: Ids) -> Ticks:
    """Return a number for each id, equal where ids are.

    >>> id_codes(object_column(["a", "b", "a"])).tolist(), id_codes(PairIds(np.array([7, 7]), np.array([3, 3]))).tolist()
    ([0, 1, 0], [0, 0])
    """
    columns = ids.columns if isinstance(ids, DeferredIds) else (ids,)
    if isinstance(ids, (PairIds, VersionedIds)):
        columns = tuple(map(id_codes, columns))
    if all(isinstance(column, np.ndarray) and column.dtype.kind == "i" for column in columns):
        codes = as_one(columns)
        return reduce(lambda codes, column: distinct_pairs(codes, column).index, columns) if codes is None else codes
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(id, len(numbers)) for id in ids.tolist()), dtype=np.int64, count=len(ids))


def concat_ids(parts: Sequence[Ids]) -> Ids:
    """Return ids one after the other; they stay deferred where all are of one kind."""
    first = parts[0]
    if isinstance(first, DeferredIds) and all(first.is_like(part) for part in parts):
        columns = zip(*(part.columns for part in parts if isinstance(part, DeferredIds)), strict=True)
        return first.with_columns(*map(concat_ids, columns))
    return concat_columns([object_column(part.tolist()) if isinstance(part, DeferredIds) else part for part in parts])
