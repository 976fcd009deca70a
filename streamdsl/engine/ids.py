"""Row ids that are spelled out only where someone reads them: of windows' results, say, at the edge of a session.

Inside the engine an id is never used twice. A sender may use one again once a CTI has passed its event's RE; then the LE of the
new event is later than the old one's, so that the id and the LE together tell every use of it apart: an `Incarnation`. What it is
called in the output, where only rows that can still change must differ, is `names` and `versions.py`.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from streamdsl.engine.codes import factorise
from streamdsl.engine.pairs import distinct_pairs
from streamdsl.engine.sorting import as_one
from streamdsl.engine.versions import RowVersion, row_versions
from streamdsl.expr.deferred import DeferredColumn
from streamdsl.expr.table import Column, column_of, concat_columns, concat_parts, flatnonzero, object_column
from streamdsl.temporal.alike import unique
from streamdsl.temporal.time import Ticks


class DeferredIds(ABC):
    """Ids as the columns of their parts, used like a column of ids."""

    __slots__ = ("columns",)
    dtype = np.dtype(object)

    def __init__(self, *columns: Any) -> None:
        self.columns = columns

    @abstractmethod
    def spelled(self) -> Iterable[Hashable]:
        """Return the ids."""

    @abstractmethod
    def with_columns(self, *columns: Any) -> DeferredIds:
        """Return ids of the same kind with other columns."""

    def is_like(self, other: object) -> bool:
        """Say whether ids are of the same kind, so that their columns can be concatenated."""
        return type(other) is type(self)

    def tolist(self) -> list[Any]:
        """Return the ids."""
        return list(self.spelled())

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            return self.with_columns(*(column[rows : rows + 1] for column in self.columns)).tolist()[0]
        return self.with_columns(*(column[rows] for column in self.columns))


Ids: TypeAlias = Column | DeferredIds


_OWN: Final = frozenset({int, type(None)})
"""The types of ids that are not a sender's: numbers of rows, and None for a missing row."""


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

    @staticmethod
    def is_made_as(id: Any) -> bool:
        """Say whether an id is a pair of this kind."""
        return type(id) is tuple and len(id) == 2

    @staticmethod
    def made(parts: tuple[Any, Any]) -> Any:
        """Return the id of two parts."""
        return parts

    def spelled_one(self, id: Any) -> Any:
        """Return a single id that is spelled out already."""
        return id

    def from_rows(self, ids: Sequence[Any], versions: Sequence[int]) -> Ids:
        """Return spelled out ids as columns."""
        return of_spelled(ids)


class Incarnation(NamedTuple):
    """One use of an id: the id, and the LE of its event; it is shown as the id."""

    id: Hashable
    le: int

    def __repr__(self) -> str:
        return repr(self.id)


incarnation_of: Final[Callable[[Any], Incarnation]] = partial(tuple.__new__, Incarnation)
"""One use of an id, given both of its parts, made at half the cost."""


class Incarnations(PairIds):
    """The ids of a sender's events, with the LE that tells uses of one id apart.

    >>> ids = Incarnations(object_column(["a", "a"]), np.array([0, 7]))
    >>> ids.tolist(), len(set(ids.tolist())), names(ids).tolist()
    (['a', 'a'], 2, ['a', 'a'])
    """

    __slots__ = ()

    def spelled(self) -> Iterable[Hashable]:
        return map(incarnation_of, super().spelled())

    def with_columns(self, *columns: Any) -> Incarnations:
        return Incarnations(*columns)

    @staticmethod
    def is_made_as(id: Any) -> bool:
        return type(id) is Incarnation

    @staticmethod
    def made(parts: tuple[Any, Any]) -> Any:
        return incarnation_of(parts)


def of_spelled(ids: Sequence[Any]) -> Ids:
    """Return ids that are spelled out as the columns that they may be made of."""
    kind: type[PairIds] | None = next((kind for kind in (Incarnations, PairIds) if all(map(kind.is_made_as, ids))), None)
    if kind is None:
        return column_of(ids)
    first, second = zip(*ids, strict=True)
    if kind is Incarnations:
        return Incarnations(object_column(first), np.array(second, dtype=np.int64))
    return PairIds(of_spelled(first), of_spelled(second))


class VersionedIds(DeferredIds):
    """Ids of rows, each with a version that counts how often the row has come back, so that no id is used twice.

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
    columns = tuple(_held_codes(column) if isinstance(column, DeferredColumn) else column for column in columns)
    if all(isinstance(column, np.ndarray) and column.dtype.kind == "i" for column in columns):
        codes = as_one(columns)
        return reduce(lambda codes, column: distinct_pairs(codes, column).index, columns) if codes is None else codes
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(id, len(numbers)) for id in ids.tolist()), dtype=np.int64, count=len(ids))


def _held_codes(column: DeferredColumn) -> Column:
    """Return integers that are equal where the `payload_key`s of values are."""
    codes, values = column.encoded()
    if values.dtype.kind == "i":
        return values[codes]
    return factorise(values)[codes]


def recurs(ids: Ids) -> bool:
    """Say whether ids may be a sender's, so that two rows may have one name. True if it is not known."""
    if isinstance(ids, Incarnations):
        return True
    if isinstance(ids, (PairIds, VersionedIds)):
        return any(map(recurs, ids.columns))
    return isinstance(ids, np.ndarray) and ids.dtype == object and not unique(map(type, ids.tolist())) <= _OWN


def names(ids: Ids) -> Ids:
    """Return the output names of rows, if no other row has these: the ids, without the LEs that tell uses of an id apart."""
    if not recurs(ids):
        return ids
    if isinstance(ids, Incarnations):
        return ids.columns[0]  # type: ignore[no-any-return]
    if isinstance(ids, DeferredIds):
        return ids.with_columns(*map(names, ids.columns))
    return object_column(list(map(name, ids.tolist())))


def name(id: Hashable) -> Any:
    """Return what one row is called, as `names` does; the same object if its id is no sender's.

    >>> name((0, Incarnation("a", 7))), name(("window_aggregate_1", 5, 0))
    ((0, 'a'), ('window_aggregate_1', 5, 0))
    """
    kind = type(id)
    if kind is Incarnation:
        return id.id  # type: ignore[attr-defined]
    if kind is tuple:
        given: tuple[Any, ...] = id  # type: ignore[assignment]
        parts = tuple([part.id if type(part) is Incarnation else name(part) for part in given])
        return id if all(map(operator.is_, parts, given)) else parts
    if type(id) is RowVersion:
        inner = name(id.id)
        return id if inner is id.id else RowVersion(inner, id.version)
    return id


def concat_ids(parts: Sequence[Ids]) -> Ids:
    """Return ids one after the other; they stay deferred where all are of one kind."""
    first = parts[0]
    if isinstance(first, DeferredIds) and all(first.is_like(part) for part in parts):
        columns = zip(*(part.columns for part in parts if isinstance(part, DeferredIds)), strict=True)
        return first.with_columns(*map(concat_ids, columns))
    if any(isinstance(part, DeferredColumn) for part in parts):
        return concat_parts(parts)  # type: ignore[arg-type, return-value]
    return concat_columns([object_column(part.tolist()) if isinstance(part, DeferredIds) else part for part in parts])
