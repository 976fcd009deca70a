"""Columns that are held as they have come, or as codes: values are made of them only where somebody reads them.

Whoever asks a table for a column gets it in numpy, as ever. Who knows of held columns takes rows of one without a look at its
values, and asks for its *codes*: a small number for each row, equal only where values are the same, and the value of each number.
So each value is touched once, however many rows have it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from streamdsl.temporal.alike import packed, unique
from streamdsl.temporal.payload import plain
from streamdsl.temporal.time import Ticks

Column: TypeAlias = NDArray[Any]
"""One-dimensional: `int64`, `float64` or `bool` where every value is exactly that, else `object`."""
Rows: TypeAlias = NDArray[np.intp]

T = TypeVar("T")

MATERIALIZE_BELOW: Final = 64
"""Of so few rows the values are made at once."""
_WHOLE: Final = slice(None)
_TYPED: Final = frozenset({int, float, bool})
_NO_VALUES: Final[Column] = np.empty(0, dtype=object)
_SPARSE_READ: Final = 16
"""Where it is asked for one of so many values that wait, only that is made."""
_VALUES_PER_ROW: Final = 4
"""So many values of a dictionary are worth a look for each row."""


def column_of(values: Sequence[Any]) -> Column:
    """Return values as a column: typed where all are exactly `int` (in int64), `float` or `bool`, else `object`.

    >>> column_of([1, 2]).dtype, column_of([1, 2.0]).dtype, column_of([1, None]).dtype, column_of([2**64]).dtype
    (dtype('int64'), dtype('O'), dtype('O'), dtype('O'))
    """
    kinds = unique(map(type, values))
    column = packed(values, next(iter(kinds))) if len(kinds) == 1 else None
    if column is not None:
        return column
    if any(issubclass(kind, np.generic) for kind in kinds):
        return column_of([plain(value) for value in values])
    return object_column(values)


def object_column(values: Sequence[Any]) -> Column:
    """Return values as an `object` column, never looking into them."""
    return np.fromiter(values, dtype=object, count=len(values))


class Dictionary:
    """Different values, behind which more may come, and what is known of all of them.

    >>> dictionary = Dictionary()
    >>> dictionary.put(0, "b", 1)
    >>> dictionary.of_all(np.argsort).tolist(), dictionary.put(1, "a", 2), dictionary.of_all(np.argsort).tolist()
    ([0], None, [1, 0])
    """

    __slots__ = ("__weakref__", "_column", "_rows", "_waiting", "is_typed", "size")

    def __init__(self, values: Column = _NO_VALUES, is_typed: bool = False) -> None:
        self._column = values
        self._waiting: ColumnSource | None = None
        """The source of the values at the end, if nobody has read them."""
        self._rows: Rows | None = None
        """Which of its rows they are; None where they are all, in order."""
        self.size = len(values)
        self.is_typed = is_typed
        """Whether there may be integers, floats or bools among objects."""

    def __getitem__(self, codes: Rows | slice) -> Column:
        """Return the values of some codes."""
        if not isinstance(codes, slice) and _SPARSE_READ * len(codes) < self.size and (held := self._held) is not None:
            return held[codes].column
        values = self._whole()[: self.size][codes]
        return column_of(values.tolist()) if self.is_typed else values

    @property
    def _waiting_rows(self) -> Rows | slice:
        return _WHOLE if self._rows is None else self._rows

    def held(self, codes: Rows) -> AnyColumn:
        """Return the values of some codes, held where nobody has read any."""
        return self[codes] if (held := self._held) is None else held[codes]

    def one(self, code: int) -> Any:
        """Return the value of a code."""
        return self._whole()[code] if (held := self._held) is None else held[np.array([code])].column.item(0)

    @property
    def waits(self) -> bool:
        """Whether there are values, of which nobody has read any."""
        return self._held is not None

    @property
    def _held(self) -> DeferredColumn | None:
        """Its values, if nobody has read any of them."""
        return None if self._waiting is None or len(self._column) else DeferredColumn(self._waiting, self._waiting_rows)

    def put(self, places: Rows | int, values: Any, stop: int) -> None:
        """Put values at places of their own, all of which are before `stop`."""
        if stop > len(self._whole()):
            self._column = np.concatenate([self._column, np.full(max(16, stop), None, dtype=object)])
        self._column[places] = values
        if (places if isinstance(places, int) else places.min()) < self.size:
            _RESULTS.pop(self, None)
        self.size = max(self.size, stop)

    def follow(self, values: Column) -> None:
        """Put values of the type that all have behind them; none waits."""
        self._column = np.concatenate([self._column, values])
        self.size = len(self._column)

    def wait(self, values: ColumnSource, places: Rows) -> None:
        """Put the values of a source at places of their own, where they wait until somebody reads them.

        The last of these places are those behind the others; there are others only if nobody has read any value.

        >>> dictionary = Dictionary()
        >>> dictionary.wait(EncodedSource(np.array([1, 0]), object_column("ab")), np.array([0, 1]))
        >>> dictionary.wait(EncodedSource(np.array([0, 1]), object_column("cd")), np.array([1, 2]))
        >>> dictionary[:].tolist(), dictionary.size
        (['b', 'c', 'd'], 3)
        """
        if len(self._column) > self.size:
            self._column = self._column[: self.size]
        made, size = len(self._column), max(self.size, int(places[-1]) + 1)
        are_again = int(places.min()) < self.size
        if self._waiting is None:
            self._waiting = values
        else:
            if are_again or self._rows is not None:
                known = np.arange(self.size - made) if self._rows is None else self._rows
                self._rows = np.concatenate([known, np.zeros(size - self.size, dtype=np.intp)])
                self._rows[places - made] = self._waiting.size + np.arange(values.size)
            self._waiting = self._waiting.followed_by(values)
        self.size = size
        if are_again:
            _RESULTS.pop(self, None)

    def only(self, places: Rows) -> tuple[Dictionary, ColumnSource] | None:
        """Return one with the values at some places alone, and these; None where values have been read.

        At other places there are any values, which nobody may ask for.
        """
        if (held := self._held) is None:
            return None
        found, kept = Dictionary(), held.source.only(held[places].rows)
        found._waiting, found.size, found._rows = kept, self.size, np.zeros(self.size, dtype=np.intp)
        found._rows[places] = np.arange(len(places))
        return found, kept

    def make(self) -> None:
        """Make the values that wait."""
        if self._waiting is not None:
            values, self._waiting, self._rows = self._waiting.values(self._waiting_rows), None, None
            self.is_typed |= not _TYPED.isdisjoint(unique(map(type, values.tolist())))
            self._column = np.concatenate([self._column.astype(object, copy=False), values.astype(object, copy=False)])

    def __getstate__(self) -> Any:
        return None, {"_column": self._whole(), "_waiting": None, "_rows": None, "size": self.size, "is_typed": self.is_typed}

    def _whole(self) -> Column:
        """Return the values, made; there may be places behind them."""
        if len(self._column) < self.size:
            self.make()
        return self._column

    def _behind(self, start: int) -> AnyColumn:
        """Return all values from a code on, held where all of them wait."""
        made = len(self._column)
        return (
            self[start:]
            if start < made or self._waiting is None
            else DeferredColumn(self._waiting, self._waiting_rows)[start - made :]
        )

    def copy(self) -> Dictionary:
        """Return another with these values."""
        return Dictionary(self._whole()[: self.size].copy(), self.is_typed)

    def of_all(self, function: Callable[..., T], *args: Hashable, join: Callable[[T, T], T | None] | None = None) -> T:
        """Return a function of all values, which may be held: it is found once for as long as no more come.

        What it is of values one by one `join` puts together, and gives None where that is not what it is of all of them.
        """
        known = _RESULTS.setdefault(self, {})
        size, found = known.get((function, args), (0, None))
        if size < self.size:
            found = join(found, function(self._behind(size), *args)) if size and join is not None else None
            if found is None:
                found = function(self._behind(0), *args)
            known[function, args] = self.size, found
        return found  # type: ignore[no-any-return]


_RESULTS: Final[WeakKeyDictionary[Dictionary, dict[Any, tuple[int, Any]]]] = WeakKeyDictionary()
"""What is found of all values of dictionaries, which is no part of what they are."""


class CodeNumbers(NamedTuple):
    """Numbers of codes (-1: not known yet), as long as those who give them have this dictionary; so many are missing."""

    dictionary: Dictionary
    numbers: Column
    n_missing: int


class Codebook(NamedTuple):
    """Where the values of codes are in memory, as long as somebody holds them, and how many codes there are."""

    place: Hashable
    values: Any
    n_codes: int

    def is_same(self, other: Codebook) -> bool:
        """Say whether codes of both mean the same."""
        return (self.place, self.n_codes) == (other.place, other.n_codes)


class Fingerprints(NamedTuple):
    """Integers by which the values of codes are known again among others of their kind.

    Values that are the same have the same, and others do not; of texts others may, which are then compared.
    """

    kind: str
    are_null: Ticks
    """1 for each null, else 0."""
    integers: Ticks
    texts: Any


class ColumnSource(ABC):
    """What held columns are rows of."""

    size: int
    """How many rows there are."""

    @abstractmethod
    def values(self, rows: Rows | slice) -> Column:
        """Return the values of some rows."""

    @abstractmethod
    def codes(self) -> Rows:
        """Return a code for each row; different values have different codes."""

    @abstractmethod
    def coded(self, codes: Rows) -> Column:
        """Return the values of some codes."""

    def held(self, codes: Rows) -> AnyColumn:
        """Return the values of some codes, held where nobody has read them."""
        return self.coded(codes)

    @property
    @abstractmethod
    def n_codes(self) -> int:
        """What comes after the largest code."""

    def fingerprints(self, codes: Rows) -> Fingerprints | None:
        """Return the fingerprints of some codes, None if there are none: their values are then looked at, each time they come."""
        return None

    @property
    def codebook(self) -> Codebook | None:
        """What its codes mean, where sources that come later may have the same; else None."""
        return None

    def row_fingerprints(self, rows: Rows | slice) -> Fingerprints | None:
        """Return the fingerprints of some rows, None if there are none, or codes cost nothing."""
        return None

    def waiting(self, codes: Rows) -> ColumnSource | None:
        """Return the values of some codes as rows of a source, where no two codes have values that are one key; else None."""
        return None

    def followed_by(self, other: ColumnSource) -> ColumnSource:
        """Return the rows of both, one after the other."""
        values = [self.values(_WHOLE), other.values(_WHOLE)]
        column = np.concatenate(values if values[0].dtype == values[1].dtype else [each.astype(object) for each in values])
        return EncodedSource(np.arange(len(column)), column)

    def ranks(self, rows: Rows | slice) -> Column | None:
        """Return integers in the order of the payloads, equal for equal ones, where no value must be made for that; else None."""
        return None

    def quoted(self, rows: Rows | slice, before: str, behind: str) -> Any:
        """Return the `repr`s of texts, between others, as an Arrow array, where no value must be made for that; else None."""
        return None

    def only(self, rows: Rows | slice) -> ColumnSource:
        """Return some rows as a source of their own.

        >>> some = EncodedSource(np.array([0, 1, 0]), np.array([7, 5])).only(slice(1, 3))
        >>> some.values(slice(None)).tolist(), some.n_codes
        ([5, 7], 2)
        """
        return EncodedSource(*DeferredColumn(self, rows).known())

    numbers: CodeNumbers | None = None
    """What was known of the codes when last somebody asked for numbers."""

    @property
    def may_wait(self) -> bool:
        """Whether some of its rows, put behind those of others like it, can be kept without making their values."""
        return False


class UnencodedSource(ColumnSource):
    """A source that looks for no equal values: each row has its own code, so equal values may have different ones."""

    @property
    def n_codes(self) -> int:
        return self.size

    def codes(self) -> Rows:
        return np.arange(self.size)

    def coded(self, codes: Rows) -> Column:
        return self.values(codes)


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

    def known(self) -> tuple[Rows, Column]:
        """Return a number for each row, and the value of each number; each number is some row's."""
        codes, used = self._used()
        return codes, self.source.coded(used)

    def distinct(self) -> tuple[Rows, AnyColumn]:
        """Return what `known` does; values that nobody has read stay held."""
        codes, used = self._used()
        return codes, self.source.held(used)

    def _used(self) -> tuple[Rows, Rows]:
        """Return a number for each row, and the code of each number; each number is some row's."""
        codes = self.codes
        numbers = np.zeros(self.source.n_codes, dtype=np.intp)
        numbers[codes] = 1
        used = numbers.nonzero()[0]
        if len(used) < len(numbers):
            numbers[used] = np.arange(len(used))
            codes = numbers[codes]
        return codes, used

    @property
    def dictionary(self) -> Dictionary | None:
        """The dictionary of codes, where what is found of all its values is worth it for the rows."""
        source = self.source
        return (
            source.dictionary
            if isinstance(source, EncodedSource) and source.dictionary.size <= _VALUES_PER_ROW * len(self)
            else None
        )

    def mapped(self, function: Callable[[AnyColumn], Column]) -> Column:
        """Return a function of a column of values, which may be held, for all rows; it is told each value once."""
        if (dictionary := self.dictionary) is not None:
            return dictionary.of_all(function)[self.codes]
        codes, values = self.distinct()
        return function(values)[codes]


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

    def coded(self, codes: Rows) -> Column:
        return self.dictionary[codes]

    def held(self, codes: Rows) -> AnyColumn:
        return self.dictionary.held(codes)

    def fingerprints(self, codes: Rows) -> Fingerprints | None:
        values = self.coded(codes)
        if values.dtype.kind not in "if":
            return None
        return Fingerprints(values.dtype.name.rstrip("64"), np.zeros(len(codes), dtype=np.int64), values.view(np.int64), None)

    @property
    def n_codes(self) -> int:
        return self.dictionary.size


AnyColumn: TypeAlias = Column | DeferredColumn


class DeferredColumns(Mapping[str, Column]):
    """The columns of a table, of which some are held: what is read is made."""

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
    """Return the columns of a table as they are held."""
    return columns.parts if type(columns) is DeferredColumns else columns


def with_parts(parts: Mapping[str, AnyColumn]) -> Mapping[str, Column]:
    """Return the columns of a table, of which some may be held."""
    if any(type(part) is DeferredColumn for part in parts.values()):
        return DeferredColumns(parts)
    return parts  # type: ignore[return-value]
