"""Group numbers: an integer for each group, equal where keys are.

They are made in columns, and spelled out only at a group-apply's exit.

A key has parts: its values and, in a nested group, the surrounding group. Small integers that lie close together are their own
numbers; any other value is remembered under a number, until no operator holds a row or a window of such a group. The numbers of
two parts are put side by side in one integer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from streamdsl.engine.index.pair_index import PairIndex
from streamdsl.engine.known_values import KnownValues
from streamdsl.engine.pairs import are_among, counted_runs
from streamdsl.expr import kernel
from streamdsl.expr.deferred import AnyColumn, CodeNumbers, ColumnSource, DeferredColumn, Dictionary, EncodedSource, with_parts
from streamdsl.expr.encoding import NumericSource, dictionary_encode, integer_codes
from streamdsl.expr.nodes import Constant, Expr, Field, Make, Whole
from streamdsl.expr.schema import Schema, Shape, as_payload
from streamdsl.expr.table import Column, Rows, Table, column_of, flatnonzero, largest, least, object_column
from streamdsl.temporal.payload import AS_THEY_ARE, PLAIN, payload_key
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct

BITS: Final = 62
"""The bits of a group number; numbers are not negative."""
_HALF: Final = BITS // 2
_SELF: Final = frozenset({int, bool, str, type(None)})
"""The types of values that are their own `payload_key`, and most of all keys."""
_PLAIN: Final = PLAIN | AS_THEY_ARE
_TYPED: Final = frozenset({int, float, bool})
_NUMBERS: Final = frozenset({int, bool, float, Decimal, Fraction})
_MANY: Final = 64
"""With this many values, all are inspected first."""

_SPREAD: Final = 1_024
"""With this many integers, their range is inspected first."""
_SPARSE: Final = 64
"""Integers are sparse if there is one in so many: then each row may be inspected to learn that numbers lie close together."""
_LARGE: Final = 2**16
"""With this many keys, it is faster to sort by the ranks of values, even of integers."""


_KNOWN: Final[WeakKeyDictionary[Dictionary, KnownValues]] = WeakKeyDictionary()
"""What is known of values, as long as those that are shown have their places: all of it can be found again."""
_WIDE: Final[WeakKeyDictionary[PairIndex, tuple[Dictionary, int]]] = WeakKeyDictionary()
"""Integers that are looked up, by their slots, and how many slots were free then; none has been let go since."""


class _Numbers(dict[Hashable, int]):
    """Number by `payload_key`; an unknown key gets one."""

    def __init__(self, values: PartNumbers) -> None:
        super().__init__()
        self.part = values

    def __missing__(self, key: Hashable) -> int:
        return self.part.number(key, key)


class PartNumbers:
    """The numbers of one part of a key: integers in `[0, own)` are their own, other values are remembered from `limit` on.

    Other integers, found in whole columns, have the numbers from `wide` on; all have where the first ones lie far apart.

    >>> part = PartNumbers(BITS)
    >>> part.of(np.array([7, 3])).tolist(), part.values(part.of(column_of(["a", None]))).tolist()
    ([7, 3], ['a', None])
    """

    def __init__(self, bits: int) -> None:
        self.limit: int = 2 ** (bits - 1)
        self.wide: int = self.limit + self.limit // 2
        self._are_own = False
        """Whether the first values were integers: these are then not remembered together with others."""
        self._own = self.limit
        self._numbers = _Numbers(self)
        self._shown = Dictionary()
        self._is_plain = True
        self._free: list[int] = []
        self._wide = PairIndex()

    def __len__(self) -> int:
        return self._n_values + len(self._wide)

    @property
    def _n_values(self) -> int:
        """The number of values that are remembered."""
        return self._shown.size - len(self._free)

    def before_saved(self) -> None:
        """Make the values that wait, and remember their numbers by `payload_key`; till then they are known by fingerprints."""
        if (first := len(self._numbers)) < self._n_values:
            is_there = np.ones(self._shown.size, dtype=np.bool_)
            is_there[:first] = False
            if self._free:  # then none of the values has been made
                is_there[self._free] = False
                self._shown.put(np.array(self._free), None, self._shown.size)
            places = flatnonzero(is_there)
            values = self._shown[places].tolist()
            keys = _plain_keys(values, distinct(map(type, values)))
            self._numbers.update(zip(keys, (self.limit + places).tolist(), strict=True))

    def of(self, column: AnyColumn) -> Ticks:
        """Return each value's number, equal where `payload_key`s are."""
        if isinstance(column, DeferredColumn):
            return self._of_held(column)
        if column.dtype.kind == "b" and len(column) >= _MANY:
            return self._of_bools(column)
        is_many = len(column) >= kernel.COMPILE_FROM
        if is_many and (column.dtype.kind == "f" or (column.dtype.kind == "i" and not self._are_own and len(self))):
            return self._of_held(DeferredColumn(dictionary_encode(column)))
        return self._of_each(column)

    def _of_bools(self, column: Column) -> Ticks:
        """Return the numbers of bools, the first of which comes first."""
        first, numbers = column.item(0), np.empty(2, dtype=np.int64)
        numbers[int(first)] = self._numbers[first]
        if not column.all() if first else column.any():
            numbers[int(not first)] = self._numbers[not first]
        return numbers[column.view(np.int8)]

    def _of_each(self, column: Column, n_rows: int = 0) -> Ticks:
        """Return the numbers of values, each of which is looked at; `n_rows` have them, if each is there once."""
        if column.dtype.kind == "i" and (self._are_own or not len(self)):
            if not self._are_own and max(n_rows, len(column)) >= _SPREAD:
                self._own = self.limit if _are_close(column) else 0
            self._are_own = True
            return self._of_integers(column)
        values = column.tolist()
        kinds = distinct(map(type, values))
        if len(values) >= _MANY and kinds <= _PLAIN:
            if not self._are_own or kinds.isdisjoint(_NUMBERS):
                return self._remembered(_plain_keys(values, kinds), values, kinds)
            if kinds <= AS_THEY_ARE and int in kinds:
                return self._of_mixed(column, values)
        if kinds <= AS_THEY_ARE:
            return np.fromiter(map(self._numbers.__getitem__, values), dtype=np.int64, count=len(values))
        return np.fromiter(map(self.number, map(payload_key, values), values), dtype=np.int64, count=len(values))

    def _of_held(self, column: DeferredColumn) -> Ticks:
        """Return the numbers of held values, each of which is looked at once; of those that no row has none is remembered."""
        source = column.source
        if self._are_own and isinstance(source, NumericSource) and not source.has_codes and column.dtype.kind == "i":
            return self._of_integers(column.column)  # looking up each row is cheaper than dictionary encoding first
        codes = column.codes
        if source.numbers is None or source.numbers.dictionary is not self._shown:
            before = _KNOWN.get(self._shown)
            source.numbers = None if before is None else before.recall(source)
            source.numbers = source.numbers or CodeNumbers(
                self._shown, np.full(source.n_codes, -1, dtype=np.int64), source.n_codes
            )
        known = source.numbers
        numbers = known.numbers[codes]
        if known.n_missing and len(unknown := flatnonzero(numbers < 0)):
            new = _in_order(codes[unknown], source.n_codes)
            known.numbers[new] = self._of_codes(source, new)
            source.numbers = CodeNumbers(self._shown, known.numbers, known.n_missing - len(new))
            if len(new) >= _MANY or self._shown in _KNOWN:
                _KNOWN.setdefault(self._shown, KnownValues()).note(source, source.numbers)
            numbers[unknown] = known.numbers[codes[unknown]]
        return numbers

    def _of_codes(self, source: ColumnSource, codes: Rows) -> Ticks:
        """Return the numbers of the values of codes: those that are not known by their fingerprints are looked at."""
        if len(codes) < _MANY and self._shown not in _KNOWN:
            return self._of_each(source.decoded(codes), source.size)
        wait = None if self._are_own or (self._free and self._numbers) else self._waiting
        look = partial(self._of_each, n_rows=source.size)
        return _KNOWN.setdefault(self._shown, KnownValues()).find(source, codes, look, wait, self._n_values)

    def _waiting(self, values: ColumnSource) -> Ticks:
        """Return the numbers of new values, which are not made until they are read."""
        behind = np.arange(self._shown.size, self._shown.size + values.size)
        # The place of a value that has been read is not reused: values not made yet are behind it.
        places = self._places(values.size) if self._shown.is_deferred else behind
        self._shown.defer(values, places)
        return self.limit + places

    def _places(self, count: int) -> Rows:
        """Return so many places of new values, those behind the others last."""
        n_again = max(len(self._free) - count, 0)
        again, self._free = self._free[n_again:], self._free[:n_again]
        return np.append(np.array(again, dtype=np.intp), np.arange(self._shown.size, self._shown.size + count - len(again)))

    def _of_mixed(self, column: Column, values: list[Any]) -> Ticks:
        """Return the numbers of values some of which are integers, that are their own numbers."""
        are_integers = np.fromiter((type(value) is int for value in values), dtype=np.bool_, count=len(values))
        rest = flatnonzero(~are_integers)
        numbers = np.empty(len(values), dtype=np.int64)
        numbers[rest] = list(map(self._numbers.__getitem__, column[rest].tolist()))
        try:
            numbers[are_integers] = self._of_integers(column[are_integers].astype(np.int64))
        except OverflowError:
            numbers[are_integers] = list(map(self._numbers.__getitem__, column[are_integers].tolist()))
        return numbers

    def _remembered(self, keys: list[Any], values: list[Any], kinds: set[type]) -> Ticks:
        """Return the numbers of many values, given their `payload_key`s: all of them are remembered."""
        self.before_saved()
        if None in map(self._numbers.get, keys):
            new = [key for key in dict.fromkeys(keys) if key not in self._numbers]
            firsts = None if keys is values else dict(zip(reversed(keys), reversed(values), strict=True))
            places = self._places(len(new))
            stop = max(self._shown.size, int(places[-1]) + 1)
            self._shown.put(places, object_column(new if firsts is None else list(map(firsts.__getitem__, new))), stop)
            self._numbers.update(zip(new, (self.limit + places).tolist(), strict=True))
            self._shown.is_typed |= not kinds.isdisjoint(_TYPED)
        return np.fromiter(map(self._numbers.__getitem__, keys), dtype=np.int64, count=len(keys))

    def of_one(self, value: Any) -> int:
        """Return the number of a single value: what `of` gives for a column of it."""
        kind = type(value)
        if kind is int and self._are_own and 0 <= value < self._own:
            number: int = value
            return number
        if kind is int and -(2**63) <= value < 2**63 and (self._are_own or not len(self)):
            self._are_own = True
            return value if 0 <= value < self._own else int(self._of_wide(np.array([value]))[0])
        return self._numbers[value] if kind in _SELF else self.number(payload_key(value), value)

    def _of_integers(self, column: Ticks) -> Ticks:
        if (
            not len(column) or largest(column.view(np.uint64)) < self._own
        ):  # unsigned, a negative number is larger than all others
            return column
        if not self._own:
            return self._of_wide(column)
        beyond = flatnonzero((column < 0) | (column >= self._own))
        numbers = column.copy()
        numbers[beyond] = self._of_wide(column[beyond])
        return numbers

    def _of_wide(self, integers: Ticks) -> Ticks:
        if len(integers) < kernel.COMPILE_FROM:
            return self._found(integers)
        slots = self._wide.seek(np.zeros(len(integers), dtype=np.int64), integers)
        if len(unknown := flatnonzero(slots < 0)):
            codes, known = integer_codes(integers[unknown])
            slots[unknown] = self._found(known)[codes] - self.wide
        return self.wide + slots

    def _found(self, integers: Ticks) -> Ticks:
        return self.wide + self._wide.find(np.zeros(len(integers), dtype=np.int64), integers)

    def number(self, key: Hashable, value: Any) -> int:
        """Return the number of one value. Once integers are their own numbers, so are their equals, as `True` and `1.0`."""
        known: int | None = self._numbers.get(key)
        if known is None and len(self._numbers) < self._n_values:
            self.before_saved()
            known = self._numbers.get(key)
        if known is not None:
            return known
        own = _whole(key) if self._are_own else None
        if own is None or not -(2**63) <= own < 2**63:
            return self._remember(key, as_payload(value))
        return own if 0 <= own < self._own else int(self._of_wide(np.array([own]))[0])

    def _remember(self, key: Hashable, shown: Any) -> int:
        place = self._free.pop() if self._free else self._shown.size
        self._shown.put(place, shown, max(place + 1, self._shown.size))
        self._shown.is_typed |= type(shown) in _TYPED
        self._is_plain &= type(shown) in _PLAIN
        number = self._numbers[key] = self.limit + place
        return number

    def values(self, numbers: Ticks) -> Column:
        """Return the values that have these numbers."""
        if not len(numbers) or largest(numbers) < self.limit:
            return numbers
        if least(numbers) >= self.limit and largest(numbers) < self.wide:
            return self._shown[numbers - self.limit]
        is_wide = numbers >= self.wide
        known = flatnonzero((numbers >= self.limit) & ~is_wide)
        integers = numbers.copy()
        integers[is_wide] = self._wide.group[numbers[is_wide] - self.wide]
        if not len(known):
            return integers
        shown = integers.astype(object)
        shown[known] = self._shown[numbers[known] - self.limit]
        return column_of(shown.tolist())

    def held(self, numbers: Ticks) -> AnyColumn:
        """Return what `values` does, held where they are plain values that are remembered, or integers that are looked up."""
        first = least(numbers)
        if first >= self.wide and self._wide.stop <= len(numbers):
            return DeferredColumn(EncodedSource(numbers - self.wide, self._wide_integers()))
        if first < self.limit or largest(numbers) >= self.wide or not self._is_plain:
            return self.values(numbers)
        return DeferredColumn(EncodedSource(numbers - self.limit, self._shown))

    def _wide_integers(self) -> Dictionary:
        """Return the integers that are looked up, each at its slot: what is found of them is found once."""
        found, n_free = _WIDE.get(self._wide, (None, 0))
        if found is None or self._wide.n_free < n_free:  # a free slot may have been reused for another integer
            found = Dictionary(np.empty(0, dtype=np.int64))
        if found.size < self._wide.stop:
            found.append(self._wide.group[np.arange(found.size, self._wide.stop)])
        _WIDE[self._wide] = found, self._wide.n_free
        return found

    def value(self, number: int) -> Any:
        """Return the value that has a number."""
        if number < self.limit:
            return number
        return self._wide.group.item(number - self.wide) if number >= self.wide else self._shown.one(number - self.limit)

    def keep(self, numbers: Ticks) -> None:
        """Forget the values of all other numbers."""
        numbers = np.sort(numbers)
        wide = self._wide.slots()
        wide = wide[flatnonzero(~are_among(self.wide + wide, numbers))]
        places = np.arange(self._shown.size)
        are_kept = are_among(self.limit + places, numbers)
        n_kept = int(np.count_nonzero(are_kept))
        if not len(wide) and n_kept == self._n_values:
            return
        self._wide.release(wide)
        if len(wide):
            _WIDE.pop(self._wide, None)
        if not n_kept:
            self._numbers.clear()
            self._shown, self._free = Dictionary(), []
            return
        if not self._numbers and (found := self._shown.only(kept := flatnonzero(are_kept))) is not None:
            (self._shown, values), self._free = found, flatnonzero(~are_kept).tolist()
            _KNOWN[self._shown] = KnownValues.of(values, self.limit + kept)
            return
        self._shown = self._shown.copy()  # cached facts about held values are no longer valid
        if n_kept < self._n_values:
            self.before_saved()
            known = np.fromiter(self._numbers.values(), dtype=np.int64, count=len(self._numbers))
            gone = flatnonzero(~are_among(known, numbers))
            keys, places = list(self._numbers), known[gone] - self.limit
            for row in gone.tolist():
                del self._numbers[keys[row]]
            self._shown.put(places, None, self._shown.size)
            self._free.extend(places.tolist())


def _spelled(column: AnyColumn) -> list[Hashable]:
    """Return the `payload_key` of each value."""
    if isinstance(column, DeferredColumn):
        return [*column.mapped(_payload_keys).tolist()]
    values: list[Any] = column.tolist()
    return values if column.dtype.kind in "bi" else list(map(payload_key, values))


def _payload_keys(values: AnyColumn) -> Column:
    return object_column(_spelled(_made(values)))


def _is_plain(column: Column) -> bool:
    return column.dtype != object or distinct(map(type, column.tolist())) <= _PLAIN


def _made(column: AnyColumn) -> Column:
    return column.column if isinstance(column, DeferredColumn) else column


def _plain_keys(values: list[Any], kinds: set[type]) -> list[Any]:
    """Return the `payload_key`s of plain values."""
    if Decimal in kinds and any(type(value) is Decimal and value.is_nan() for value in values):
        return list(map(payload_key, values))
    return [value if value == value else payload_key(value) for value in values] if float in kinds else values


def _are_close(integers: Ticks) -> bool:
    """Say whether a good part of the integers from the least to the largest are there."""
    return int(largest(integers)) - int(least(integers)) < _SPARSE * len(integers)


def _in_order(codes: Rows, size: int) -> Rows:
    """Return the different ones of some codes in order of first appearance.

    >>> _in_order(np.array([3, 1, 3]), 4).tolist()
    [3, 1]
    """
    first = np.full(size, -1, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    found = flatnonzero(first >= 0)
    return found[np.argsort(first[found])]


def _whole(key: Hashable) -> int | None:
    """Return the integer that a key equals, None if there is none."""
    if not isinstance(key, (int, float, Decimal, Fraction)):
        return None
    try:
        return int(key) if int(key) == key else None
    except (OverflowError, ValueError):  # infinite
        return None


def parts_of(key: Expr) -> tuple[Expr, ...]:
    """Return the expressions that a key is made of: each part has numbers of its own."""
    return (key.values or (Constant(None),)) if isinstance(key, Make) else (key,)


def payload_parts(key: Expr, schema: Schema | None) -> Expr:
    """Return a key; one that is the whole payload is made of its fields, where all payloads have the same ones.

    Each field is then coded by itself, in columns.

    >>> parts_of(payload_parts(Whole(), Schema.tuple(2))) == (Field("_0"), Field("_1"))
    True
    >>> payload_parts(Whole(), None) == payload_parts(Whole(), Schema.scalar()) == Whole()
    True
    """
    if key != Whole() or schema is None or schema.shape not in (Shape.RECORD, Shape.TUPLE) or not schema.names:
        return key
    return Make(schema, tuple(map(Field, schema.names)))


class KeyTable:
    """The groups of a group-apply: their numbers, and the key of each.

    `around` is the table of the surrounding groups, if there are any.
    """

    least = 1_000
    """This many values may be remembered before it is checked which are still needed."""

    def __init__(self, key: Expr, around: KeyTable | None = None) -> None:
        self.schema = key.schema if isinstance(key, Make) else None
        self.exprs = parts_of(key)
        self.around = around
        n = len(self.exprs) + (around is not None)
        # Parts are combined from the left: the first two, then the result and the third, and so on.
        self._lasts = [PartNumbers(_HALF) for _ in range(n - 1)]
        self._firsts = [PartNumbers(_HALF) for _ in range(n - 1)]
        self._only = PartNumbers(BITS)
        self._due = self.least
        self._just_shown: list[Ticks] = []
        """Groups whose keys were shown in this step: often those of closed windows, most of which return."""

    def numbers(self, columns: Sequence[AnyColumn], around: Ticks | None) -> Ticks:
        """Return the group of each row, given the values of `exprs` and the group around it."""
        parts: list[AnyColumn] = [*([] if around is None else [around]), *columns]
        if len(parts) == 1:
            return self._only.of(parts[0])
        number: AnyColumn = parts[0]
        for first, last, column in zip(self._firsts, self._lasts, parts[1:], strict=True):
            number = first.of(number) << _HALF | last.of(column)
        return number  # type: ignore[return-value]

    def number(self, values: Sequence[Any], around: int | None) -> int:
        """Return the group of a single row: what `numbers` gives for columns of it."""
        if not self._firsts:
            return self._only.of_one(values[0])
        parts = values if around is None else (around, *values)
        number = parts[0]
        for first, last, value in zip(self._firsts, self._lasts, parts[1:], strict=True):
            number = first.of_one(number) << _HALF | last.of_one(value)
        return int(number)

    def parts(self, number: int) -> list[Any]:
        """Return the values of a group's key; of a nested group the first is the number of the group around it."""
        if not self._firsts:
            return [self._only.value(number)]
        found: list[Any] = []
        for first, last in zip(reversed(self._firsts), reversed(self._lasts), strict=True):
            found.append(last.value(number & (2**_HALF - 1)))
            number = first.value(number >> _HALF)
        return [*found, number][::-1]

    @property
    def is_nested(self) -> bool:
        """Whether there are groups around these."""
        return self.around is not None

    def outer_of(self, number: int) -> int:
        """Return the group around a group of a nested table."""
        outer: int = self.parts(number)[0]
        return outer

    def key(self, number: int) -> tuple[Any, ...]:
        """Return the parts of a key as users see them, without the groups around it."""
        return tuple(self.parts(number)[self.around is not None :]) if self._firsts else (self._only.value(number),)

    def _parts(self, numbers: Ticks, show: Callable[[PartNumbers, Ticks], AnyColumn] = PartNumbers.values) -> list[AnyColumn]:
        if not self._firsts:
            return [show(self._only, numbers)]
        found: list[AnyColumn] = []
        part: AnyColumn = numbers
        for first, last in zip(reversed(self._firsts), reversed(self._lasts), strict=True):
            column = _made(part)
            found.append(show(last, column & (2**_HALF - 1)))
            part = show(first, column >> _HALF)
        return [*found, part][::-1]

    def outer(self, numbers: Ticks) -> Ticks | None:
        """Return the groups around these, None if there are none."""
        return None if self.around is None else _made(self._parts(numbers)[0])

    def shown(self, numbers: Ticks, leaves: list[AnyColumn] | None = None) -> Table:
        """Return the keys as users see them; `leaves` are what `leaves` gives, where that is known."""
        columns = self._own(self._held_parts(numbers)) if leaves is None else leaves[len(leaves) - len(self.exprs) :]
        if self.schema is not None:
            return Table(self.schema, with_parts(dict(zip(self.schema.names, columns, strict=False))), len(numbers))
        if type(columns[0]) is DeferredColumn or columns[0].dtype != object:
            return Table(Schema.scalar(), with_parts({"value": columns[0]}), len(numbers))
        return Table.of_objects(columns[0].tolist())

    def _own(self, parts: list[AnyColumn]) -> list[AnyColumn]:
        return parts if self.around is None else parts[1:]

    def _held_parts(self, numbers: Ticks) -> list[AnyColumn]:
        """Return what `_parts` does; where rows are many, plain values are held, each once for each group."""
        if len(numbers) < _MANY or (not self._firsts and largest(numbers) < self._only.limit):
            return self._parts(numbers)
        parts = self._parts(numbers, PartNumbers.held)
        if all(isinstance(part, DeferredColumn) or (part.dtype != object and len(numbers) < _LARGE) for part in parts):
            return parts
        codes, known = integer_codes(numbers)
        each = [
            part if isinstance(part, DeferredColumn) else _made(shown)
            for part, shown in zip(parts, self._parts(known), strict=True)
        ]
        return [
            part
            if isinstance(part, DeferredColumn)
            else DeferredColumn(EncodedSource(codes, part))
            if _is_plain(part)
            else part[codes]
            for part in each
        ]

    def leaves(self, numbers: Ticks) -> list[AnyColumn]:
        """Return all parts of keys, those of the groups around them first: `spell` makes paths of them."""
        if len(numbers) >= _MANY:
            self._just_shown.append(numbers)
        parts = self._held_parts(numbers)
        outer = [] if self.around is None else self.around.leaves(_made(parts[0]))
        return [*outer, *self._own(parts)]

    def leaves_of(self, number: int) -> tuple[Any, ...]:
        """Return what `leaves` gives, for one group."""
        if self.around is None:
            return self.key(number) if self._firsts else (self._only.value(number),)
        outer, *own = self.parts(number)
        return (*self.around.leaves_of(outer), *own)

    def spell_one(self, leaves: Sequence[Any]) -> Hashable:
        """Return what `spell` gives, for one group."""
        if self.around is None and self.schema is None:
            return payload_key(leaves[-1])
        first = len(leaves) - len(self.exprs)
        mine = tuple(map(payload_key, leaves[first:]))
        own: Hashable = mine[0] if self.schema is None else mine
        return own if self.around is None else (self.around.spell_one(leaves[:first]), own)

    def spell(self, leaves: Sequence[AnyColumn]) -> list[Hashable]:
        """Return the paths of groups: key by key, hashable, the outermost first."""
        mine = leaves[len(leaves) - len(self.exprs) :]
        columns = list(map(_spelled, mine))
        own: list[Hashable] = columns[0] if self.schema is None else list(zip(*columns, strict=True))
        return own if self.around is None else list(zip(self.around.spell(leaves[: -len(columns)]), own, strict=True))

    def path(self, number: int) -> Hashable:
        """Return the path of one group."""
        return self.spell(self.leaves(np.array([number])))[0]

    @property
    def is_due(self) -> bool:
        """Whether so many values are remembered that it should be checked which are needed."""
        return self.remembered > self._due

    def keep(self, numbers: Ticks) -> None:
        """Forget what only other groups need that were not shown in this step."""
        held, _ = counted_runs(np.sort(np.concatenate([numbers, *self._just_shown])))
        self._only.keep(held)
        for first, last in zip(reversed(self._firsts), reversed(self._lasts), strict=True):
            last.keep(held & (2**_HALF - 1))
            first.keep(held >> _HALF)
            held = first.values(held >> _HALF)
        self._due = max(self.least, 2 * self.remembered)

    def end_step(self) -> None:
        """End a step."""
        self._just_shown.clear()

    @property
    def remembered(self) -> int:
        """The number of values that are remembered."""
        return sum(map(len, [*self._firsts, *self._lasts])) if self._firsts else len(self._only)
