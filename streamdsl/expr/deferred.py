"""Deferred columns: rows of a source (an Arrow array, a dictionary with codes) that become values only when they are read.

Reading a column of a table materializes it as a numpy array. Code that knows deferred columns selects their rows without reading
a value, and works on their *codes*: a small integer for each row, equal only where the values are the same, and one value for
each code. [DuckDB: dictionary vector; Arrow: dictionary encoding] So a value is processed once, however many rows have it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from streamdsl.temporal.payload import plain
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct, typed_array

Column: TypeAlias = NDArray[Any]
"""One-dimensional: `int64`, `float64` or `bool` where every value is exactly that, else `object`."""
Rows: TypeAlias = NDArray[np.intp]

T = TypeVar("T")

MATERIALIZE_BELOW: Final = 64
"""Columns with fewer rows are materialized at once."""
_WHOLE: Final = slice(None)
_TYPED: Final = frozenset({int, float, bool})
_NO_VALUES: Final[Column] = np.empty(0, dtype=object)
_SPARSE_READ: Final = 16
"""A read of at most one in so many deferred values materializes those values alone."""
_VALUES_PER_ROW: Final = 4
"""Results over a whole dictionary are cached where it has at most so many values for each row."""


def column_of(values: Sequence[Any]) -> Column:
    """Return values as a column: typed where all are exactly `int` (in int64), `float` or `bool`, else `object`.

    >>> column_of([1, 2]).dtype, column_of([1, 2.0]).dtype, column_of([1, None]).dtype, column_of([2**64]).dtype
    (dtype('int64'), dtype('O'), dtype('O'), dtype('O'))
    """
    kinds = distinct(map(type, values))
    column = typed_array(values, next(iter(kinds))) if len(kinds) == 1 else None
    if column is not None:
        return column
    if any(issubclass(kind, np.generic) for kind in kinds):
        return column_of([plain(value) for value in values])
    return object_column(values)


def object_column(values: Sequence[Any]) -> Column:
    """Return values as an `object` column, never looking into them."""
    return np.fromiter(values, dtype=object, count=len(values))


class Dictionary:
    """The values of codes: distinct, appended to as new ones arrive, with cached results of functions over all of them.

    The values at the end may be deferred: rows `_rows` of `_deferred_source`. Values before them are in `_column`.

    >>> dictionary = Dictionary()
    >>> dictionary.put(0, "b", 1)
    >>> dictionary.cached(np.argsort).tolist(), dictionary.put(1, "a", 2), dictionary.cached(np.argsort).tolist()
    ([0], None, [1, 0])
    """

    __slots__ = ("__weakref__", "_column", "_deferred_source", "_rows", "is_typed", "size")

    def __init__(self, values: Column = _NO_VALUES, is_typed: bool = False) -> None:
        self._column = values
        self._deferred_source: ColumnSource | None = None
        """The source of the values at the end that have not been read."""
        self._rows: Rows | None = None
        """Which of its rows they are; None for all of them, in order."""
        self.size = len(values)
        self.is_typed = is_typed
        """Whether there may be integers, floats or bools among objects."""

    def __getitem__(self, codes: Rows | slice) -> Column:
        """Return the values of some codes."""
        if not isinstance(codes, slice) and _SPARSE_READ * len(codes) < self.size and (held := self._deferred_column) is not None:
            return held[codes].column
        values = self._materialized()[: self.size][codes]
        return column_of(values.tolist()) if self.is_typed else values

    @property
    def _deferred_rows(self) -> Rows | slice:
        return _WHOLE if self._rows is None else self._rows

    def deferred(self, codes: Rows) -> AnyColumn:
        """Return the values of some codes, deferred if no value has been read."""
        return self[codes] if (held := self._deferred_column) is None else held[codes]

    def one(self, code: int) -> Any:
        """Return the value of a code."""
        return self._materialized()[code] if (held := self._deferred_column) is None else held[np.array([code])].column.item(0)

    @property
    def is_deferred(self) -> bool:
        """Whether there are values, and none of them has been read."""
        return self._deferred_column is not None

    @property
    def _deferred_column(self) -> DeferredColumn | None:
        """All values, if none of them has been read."""
        return (
            None
            if self._deferred_source is None or len(self._column)
            else DeferredColumn(self._deferred_source, self._deferred_rows)
        )

    def put(self, places: Rows | int, values: Any, stop: int) -> None:
        """Store values at unused codes, all of which are below `stop`. O(values) amortized."""
        if stop > len(self._materialized()):
            self._column = np.concatenate([self._column, np.full(max(16, stop), None, dtype=object)])
        self._column[places] = values
        if (places if isinstance(places, int) else places.min()) < self.size:
            _RESULTS.pop(self, None)
        self.size = max(self.size, stop)

    def append(self, values: Column) -> None:
        """Append values of the dictionary's type; no value is deferred."""
        self._column = np.concatenate([self._column, values])
        self.size = len(self._column)

    def defer(self, values: ColumnSource, places: Rows) -> None:
        """Store the values of a source at unused codes, without reading them.

        The last of the codes are the next free ones. Earlier codes may be reused only if no value has been read.

        >>> dictionary = Dictionary()
        >>> dictionary.defer(EncodedSource(np.array([1, 0]), object_column("ab")), np.array([0, 1]))
        >>> dictionary.defer(EncodedSource(np.array([0, 1]), object_column("cd")), np.array([1, 2]))
        >>> dictionary[:].tolist(), dictionary.size
        (['b', 'c', 'd'], 3)
        """
        if len(self._column) > self.size:
            self._column = self._column[: self.size]
        made, size = len(self._column), max(self.size, int(places[-1]) + 1)
        are_again = int(places.min()) < self.size
        if self._deferred_source is None:
            self._deferred_source = values
        else:
            if are_again or self._rows is not None:
                known = np.arange(self.size - made) if self._rows is None else self._rows
                self._rows = np.concatenate([known, np.zeros(size - self.size, dtype=np.intp)])
                self._rows[places - made] = self._deferred_source.size + np.arange(values.size)
            self._deferred_source = self._deferred_source.followed_by(values)
        self.size = size
        if are_again:
            _RESULTS.pop(self, None)

    def only(self, places: Rows) -> tuple[Dictionary, ColumnSource] | None:
        """Return a dictionary that keeps the values of some codes alone, and their source; None if values have been read.

        The values of other codes are undefined in it, and must not be read.
        """
        if (held := self._deferred_column) is None:
            return None
        found, kept = Dictionary(), held.source.only(held[places].rows)
        found._deferred_source, found.size, found._rows = kept, self.size, np.zeros(self.size, dtype=np.intp)
        found._rows[places] = np.arange(len(places))
        return found, kept

    def materialize(self) -> None:
        """Materialize the deferred values."""
        if self._deferred_source is not None:
            values, self._deferred_source, self._rows = self._deferred_source.values(self._deferred_rows), None, None
            self.is_typed |= not _TYPED.isdisjoint(distinct(map(type, values.tolist())))
            self._column = np.concatenate([self._column.astype(object, copy=False), values.astype(object, copy=False)])

    def __getstate__(self) -> Any:
        return None, {
            "_column": self._materialized(),
            "_deferred_source": None,
            "_rows": None,
            "size": self.size,
            "is_typed": self.is_typed,
        }

    def _materialized(self) -> Column:
        """Return the column of all values, materialized; it may have spare capacity."""
        if len(self._column) < self.size:
            self.materialize()
        return self._column

    def _from(self, start: int) -> AnyColumn:
        """Return all values from a code on, deferred if all of them are."""
        made = len(self._column)
        return (
            self[start:]
            if start < made or self._deferred_source is None
            else DeferredColumn(self._deferred_source, self._deferred_rows)[start - made :]
        )

    def copy(self) -> Dictionary:
        """Return a dictionary with the same values."""
        return Dictionary(self._materialized()[: self.size].copy(), self.is_typed)

    def cached(self, function: Callable[..., T], *args: Hashable, join: Callable[[T, T], T | None] | None = None) -> T:
        """Return `function(all values, *args)`, where the values may be deferred. The result is cached until values are appended.

        With `join`, only appended values are processed, and `join(cached, new)` is the result; where it gives None, all of them
        are.
        """
        known = _RESULTS.setdefault(self, {})
        size, found = known.get((function, args), (0, None))
        if size < self.size:
            found = join(found, function(self._from(size), *args)) if size and join is not None else None
            if found is None:
                found = function(self._from(0), *args)
            known[function, args] = self.size, found
        return found  # type: ignore[no-any-return]


_RESULTS: Final[WeakKeyDictionary[Dictionary, dict[Any, tuple[int, Any]]]] = WeakKeyDictionary()
"""Cached results over dictionaries, apart from these, so that they are neither saved nor compared."""


class CodeNumbers(NamedTuple):
    """The numbers that a consumer has given to codes (-1: none yet), valid while its dictionary is `dictionary`."""

    dictionary: Dictionary
    numbers: Column
    n_missing: int


class Codebook(NamedTuple):
    """The identity of a dictionary in memory: its address, what keeps it alive, and how many codes it has."""

    place: Hashable
    values: Any
    n_codes: int

    def is_same(self, other: Codebook) -> bool:
        """Say whether the codes of both have the same values."""
        return (self.place, self.n_codes) == (other.place, other.n_codes)


class Fingerprints(NamedTuple):
    """Integers that identify values among others of their kind, so that values seen before are recognized without being made.

    Equal values have equal fingerprints, others have different ones; only those of texts may collide, so texts are compared too.
    """

    kind: str
    are_null: Ticks
    """1 for each null, else 0."""
    integers: Ticks
    texts: Any


class ColumnSource(ABC):
    """What the rows of deferred columns are read from: values by row, or by code. Different values have different codes."""

    size: int
    """How many rows there are."""

    @abstractmethod
    def values(self, rows: Rows | slice) -> Column:
        """Return the values of some rows."""

    @abstractmethod
    def codes(self) -> Rows:
        """Return a code for each row; different values have different codes."""

    @abstractmethod
    def decoded(self, codes: Rows) -> Column:
        """Return the values of some codes."""

    def deferred(self, codes: Rows) -> AnyColumn:
        """Return the values of some codes, deferred if they have not been read."""
        return self.decoded(codes)

    @property
    @abstractmethod
    def n_codes(self) -> int:
        """The largest code plus one."""

    def fingerprints(self, codes: Rows) -> Fingerprints | None:
        """Return the fingerprints of some codes; None if there are none, and values must be compared."""
        return None

    @property
    def codebook(self) -> Codebook | None:
        """The identity of the dictionary, if later sources may share it; else None."""
        return None

    def row_fingerprints(self) -> Fingerprints | None:
        """Return the fingerprints of all rows; None if there are none, or if codes are there already."""
        return None

    def deferred_values(self, codes: Rows) -> ColumnSource | None:
        """Return the values of some codes as rows of a source, if no two codes have equal keys; else None."""
        return None

    def followed_by(self, *others: ColumnSource) -> ColumnSource:
        """Return the rows of this source and of others, one after the other."""
        values = [each.values(_WHOLE) for each in (self, *others)]
        is_typed = len({each.dtype for each in values}) == 1
        column = np.concatenate(values if is_typed else [each.astype(object) for each in values])
        return EncodedSource(np.arange(len(column)), column)

    def ranks(self, rows: Rows | slice) -> Column | None:
        """Return integers in the order of the payloads, equal for equal ones; None if values would have to be made for that."""
        return None

    def quoted(self, rows: Rows | slice, before: str, behind: str) -> Any:
        """Return the `repr`s of texts, each between a prefix and a suffix, as an Arrow array; None if that needs the values."""
        return None

    def only(self, rows: Rows | slice) -> ColumnSource:
        """Return some rows as a source of their own, which keeps nothing else alive.

        >>> some = EncodedSource(np.array([0, 1, 0]), np.array([7, 5])).only(slice(1, 3))
        >>> some.values(slice(None)).tolist(), some.n_codes
        ([5, 7], 2)
        """
        return EncodedSource(*DeferredColumn(self, rows).encoded())

    def passed(self, rows: Rows | slice) -> Any:
        """Return rows as the Arrow array of texts that they are; None where there is none, or all are null."""
        return None

    numbers: CodeNumbers | None = None
    """What the last consumer that numbered the codes has stored here."""

    @property
    def is_coded(self) -> bool:
        """Whether the codes are there, and need not be found."""
        return False

    @property
    def may_wait(self) -> bool:
        """Whether `followed_by` keeps values deferred."""
        return False


class UnencodedSource(ColumnSource):
    """A source without a dictionary: each row has its own code, so equal values may have different codes."""

    @property
    def n_codes(self) -> int:
        return self.size

    def codes(self) -> Rows:
        return np.arange(self.size)

    def decoded(self, codes: Rows) -> Column:
        return self.values(codes)


def dense_codes(numbers: Rows, size: int) -> tuple[Rows, Rows]:
    """Return a dense code for each number below `size`, in their order, and the number of each code.

    >>> [column.tolist() for column in dense_codes(np.array([7, 5, 7]), 9)]
    [[1, 0, 1], [5, 7]]
    """
    codes = np.zeros(size, dtype=np.intp)
    codes[numbers] = 1
    used = codes.nonzero()[0]
    if len(used) == size:
        return numbers, used
    codes[used] = np.arange(len(used))
    return codes[numbers], used


class DeferredColumn:
    """Some rows of a source, as a column.

    >>> held = DeferredColumn(EncodedSource(np.array([0, 1, 0]), np.array([7, 5])))
    >>> held[1:].tolist(), held[np.array([2])].tolist(), len(held)
    ([5, 7], [7], 3)
    """

    __slots__ = ("_column", "_rows", "source")

    def __init__(self, source: ColumnSource, rows: Rows | slice = _WHOLE) -> None:
        self.source = source
        self._rows = rows
        self._column: Column | None = None

    def __len__(self) -> int:
        return len(range(self.source.size)[self._rows]) if isinstance(self._rows, slice) else len(self._rows)

    def __getitem__(self, rows: Rows | slice) -> DeferredColumn:
        if isinstance(self._rows, slice):
            here = range(self.source.size)[self._rows]
            taken = _as_slice(here[rows]) if isinstance(rows, slice) else rows if not here.start else rows + here.start
        else:
            taken = self._rows[rows]
        return DeferredColumn(self.source, taken)

    @property
    def rows(self) -> Rows | slice:
        """Which rows of the source they are."""
        return self._rows

    @property
    def column(self) -> Column:
        """The values."""
        if self._column is None:
            self._column = self.source.values(self._rows)
        return self._column

    @property
    def dtype(self) -> Any:
        """The type of the values' column."""
        return self.column.dtype

    def tolist(self) -> list[Any]:
        """Return the values."""
        values: list[Any] = self.column.tolist()
        return values

    @property
    def codes(self) -> Rows:
        """A code for each row."""
        return self.source.codes()[self._rows]

    def encoded(self) -> tuple[Rows, Column]:
        """Return a dense code for each row, and the value of each code; each code is some row's."""
        codes, used = self._dense_codes()
        return codes, self.source.decoded(used)

    def distinct(self) -> tuple[Rows, AnyColumn]:
        """Return what `encoded` does; values that have not been read stay deferred."""
        codes, used = self._dense_codes()
        return codes, self.source.deferred(used)

    def _dense_codes(self) -> tuple[Rows, Rows]:
        """Return a dense code for each row, and the source's code of each; each dense code is some row's."""
        return dense_codes(self.codes, self.source.n_codes)

    @property
    def dictionary(self) -> Dictionary | None:
        """The dictionary of the codes, unless it has too many values for so few rows."""
        source = self.source
        return (
            source.dictionary
            if isinstance(source, EncodedSource) and source.dictionary.size <= _VALUES_PER_ROW * len(self)
            else None
        )

    def mapped(self, function: Callable[..., Column], *args: Hashable) -> Column:
        """Return a function of a column of values, which may be deferred, for all rows; it processes each value once."""
        if (dictionary := self.dictionary) is not None:
            return dictionary.cached(function, *args)[self.codes]
        codes, values = self.distinct()
        return function(values, *args)[codes]


class EncodedSource(ColumnSource):
    """Codes, and the value of each in a dictionary."""

    def __init__(self, codes: Rows, values: Column | Dictionary) -> None:
        self.size = len(codes)
        self._codes = codes
        self.dictionary = values if isinstance(values, Dictionary) else Dictionary(values)

    def values(self, rows: Rows | slice) -> Column:
        return self.dictionary[self._codes[rows]]

    def codes(self) -> Rows:
        return self._codes

    @property
    def is_coded(self) -> bool:
        return True

    def decoded(self, codes: Rows) -> Column:
        return self.dictionary[codes]

    def deferred(self, codes: Rows) -> AnyColumn:
        return self.dictionary.deferred(codes)

    def fingerprints(self, codes: Rows) -> Fingerprints | None:
        values = self.decoded(codes)
        if values.dtype.kind not in "if":
            return None
        return Fingerprints(values.dtype.name.rstrip("64"), np.zeros(len(codes), dtype=np.int64), values.view(np.int64), None)

    @property
    def n_codes(self) -> int:
        return self.dictionary.size


AnyColumn: TypeAlias = Column | DeferredColumn


class DeferredColumns(Mapping[str, Column]):
    """The columns of a table, some of them deferred; reading one materializes it. `parts` has them as they are."""

    __slots__ = ("parts",)

    def __init__(self, parts: Mapping[str, AnyColumn]) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> Column:
        part = self.parts[name]
        return part.column if type(part) is DeferredColumn else part  # type: ignore[return-value]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def _as_slice(rows: range) -> slice:
    return slice(rows.start, rows.stop) if rows.step == 1 else slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)


def parts_of(columns: Mapping[str, Column]) -> Mapping[str, AnyColumn]:
    """Return the columns of a table, deferred ones as they are."""
    return columns.parts if type(columns) is DeferredColumns else columns


def with_parts(parts: Mapping[str, AnyColumn]) -> Mapping[str, Column]:
    """Return columns, some of which may be deferred, as the columns of a table."""
    if any(type(part) is DeferredColumn for part in parts.values()):
        return DeferredColumns(parts)
    return parts  # type: ignore[return-value]
