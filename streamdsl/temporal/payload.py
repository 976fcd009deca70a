"""Payloads: their fields, equality, and order (for listings and ties), and records."""

from __future__ import annotations

import dataclasses
import operator
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, NoReturn, TypeVar
from uuid import UUID

import numpy as np

from streamdsl.errors import SchemaError
from streamdsl.temporal.identifiers import exact, literal
from streamdsl.temporal.value_arrays import distinct

F = TypeVar("F", bound=Callable[..., Any])
_NAN: Final = ("NaN",)
PLAIN: Final = frozenset({int, float, bool, str, bytes, type(None), datetime, date, time, timedelta, Decimal, Fraction})
"""The types of plain values that contain no other values."""
AS_THEY_ARE: Final = frozenset({int, bool, str, bytes, type(None), datetime, date, time, timedelta, UUID})
"""The types of values that are their own `payload_key`."""
_PANDAS_UNITS: Final = frozenset({"W", "D", "h", "m", "s", "ms", "us", "ns"})


class MethodTaken(TypeError):  # noqa: N818 - a mistake in a query, found at run time
    """A method of records is used as if it were the field of its name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is a method of records")
        self.hint = f"write e[{name!r}] for the field"


class RecordMethod:
    """A bound method of a record that can only be called: any use as a value raises, as the field of its name may be meant.

    >>> Record(items=3).items == 3
    Traceback (most recent call last):
        ...
    streamdsl.temporal.payload.MethodTaken: items is a method of records
    """

    __slots__ = ("_function", "_record")

    def __init__(self, function: Callable[..., Any], record: Record) -> None:
        self._function = function
        self._record = record

    def __call__(self, *args: Any) -> Any:
        return self._function(self._record, *args)

    def refuse(self, *_: object) -> NoReturn:
        """Raise `MethodTaken`, whose hint shows how to read the field."""
        raise MethodTaken(self._function.__name__)

    def __repr__(self) -> str:
        return f"<method {self._function.__name__} of a Record>"


_ASKED: Final = "eq ne lt le gt ge hash bool len iter contains getitem str format int float index abs neg pos invert"
_COMPUTED: Final = "add sub mul truediv floordiv mod pow and or xor"
for _name in (*_ASKED.split(), *_COMPUTED.split(), *(f"r{each}" for each in _COMPUTED.split())):
    setattr(RecordMethod, f"__{_name}__", RecordMethod.refuse)


def is_taken(name: str) -> bool:
    """Say whether `record.name` is not the field of that name.

    >>> is_taken("items"), is_taken("__doc__"), is_taken("fare")
    (True, True, False)
    """
    return name.startswith("__") or hasattr(Record, name)


class _Method:
    """The descriptor of a method of records: on an instance it returns a `RecordMethod`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, record: Record | None, cls: object = None) -> Any:
        return self._function if record is None else RecordMethod(self._function, record)


def _method(function: F) -> F:
    return _Method(function)  # type: ignore[return-value]


class Record(Mapping[str, Any]):
    """A read-only mapping with attribute access, equal to a `dict` with the same items.

    `r["name"]` reads a field of any name; `r.name` does unless the name is that of a mapping's method, such as `items`, or begins
    with two underscores. `dict(r)` is a `dict` of all fields in their order, whatever their names.

    >>> r = Record(n=3, mean=0.5)
    >>> r.n, r["mean"], r == {"n": 3, "mean": 0.5}
    (3, 0.5, True)
    >>> dict(Record(keys="a", items=2)), Record(items=2)["items"]
    ({'keys': 'a', 'items': 2}, 2)
    """

    __slots__ = ("__items__",)
    __items__: dict[str, Any]

    def __init__(self, /, *args: Any, **fields: Any) -> None:
        object.__setattr__(self, "__items__", dict(*args, **fields))

    def __getitem__(self, name: str) -> Any:
        return self.__items__[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.__items__[name]
        except KeyError:
            known = ", ".join(self.__items__)
            raise AttributeError(f"there is no field {name!r}; the fields are: {known}", name=name, obj=self) from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Record is read-only, {name!r} cannot be set")

    def __iter__(self) -> Iterator[str]:
        return iter(self.__items__)

    def __len__(self) -> int:
        return len(self.__items__)

    # Methods that `Mapping` provides, faster.
    @_method
    def keys(self) -> KeysView[str]:
        return self.__items__.keys()

    @_method
    def values(self) -> ValuesView[Any]:
        return self.__items__.values()

    @_method
    def items(self) -> ItemsView[str, Any]:
        return self.__items__.items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record):
            return self.__items__ == other.__items__
        return self.__items__ == other if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(payload_key(self))

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{k}={v!r}' for k, v in self.__items__.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Record, (self.__items__,))

    @_method
    def get(self, name: str, default: Any = None, /) -> Any:
        return self.__items__.get(name, default)

    @_method
    def _asdict(self) -> dict[str, Any]:
        return dict(self.__items__)


def records(names: Sequence[str], columns: Iterable[Iterable[Any]]) -> list[Record]:
    """Return a list of records from columns.

    >>> records(["a", "b"], [[1, 2], "xy"])
    [Record(a=1, b='x'), Record(a=2, b='y')]
    """
    items = list(map(_display(tuple(names)), *columns)) if names else [{} for _ in zip(*columns, strict=True)]
    found = list(map(object.__new__, repeat(Record, len(items))))
    deque(map(_set_items, found, items), maxlen=0)
    return found


def records_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Record]:
    """Return a list of records from rows; faster than `records` for few rows.

    >>> records_of(["a", "b"], [(1, "x")])
    [Record(a=1, b='x')]
    """
    return list(map(_maker(names if type(names) is tuple else tuple(names)), rows))


_set_items: Final = Record.__dict__["__items__"].__set__


@lru_cache(maxsize=1024)
def _display(names: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    """Return a function that makes a `dict` of values for these names; a generated dict display is the fastest way."""
    places = [f"v{place}" for place in range(len(names))]
    shown = ", ".join(f"{literal(name)}: {place}" for name, place in zip(names, places, strict=True))
    made: Callable[..., dict[str, Any]] = eval(f"lambda {', '.join(places)}: {{{shown}}}")
    return made


@lru_cache(maxsize=1024)
def _maker(names: tuple[str, ...]) -> Callable[[Any], Record]:
    """Return a generated function that makes a record from a row."""
    shown = ", ".join(f"{literal(name)}: row[{place}]" for place, name in enumerate(names))
    lines = ["def made(row):", "record = new(Record)", f"put(record, {{{shown}}})", "return record"]
    known: dict[str, Any] = {"new": object.__new__, "Record": Record, "put": _set_items}
    exec("\n ".join(lines), known)
    made: Callable[[Any], Record] = known["made"]
    return made


def is_namedtuple(value: object) -> bool:
    """Say whether a value is an instance of a named tuple class."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_dataclass(value: object) -> bool:
    """Say whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def fields_of(payload: object) -> list[tuple[str, Any]]:
    """Return the fields of a payload with their values; a scalar has one field, `value`.

    >>> fields_of({"a": 1}), fields_of((5, "x")), fields_of(7)
    ([('a', 1)], [('_0', 5), ('_1', 'x')], [('value', 7)])
    """
    if type(payload) is Record:
        return list(payload.__items__.items())
    if isinstance(payload, Mapping):
        return list(payload.items())
    if is_dataclass(payload):
        return [(f.name, getattr(payload, f.name)) for f in dataclasses.fields(payload)]  # type: ignore[arg-type]
    if isinstance(payload, tuple):
        names = getattr(payload, "_fields", None) or [f"_{i}" for i in range(len(payload))]
        return list(zip(names, payload, strict=True))
    return [("value", payload)]


def show(payload: object) -> str:
    """Return a payload as people read it: its fields, or the `repr` of a scalar.

    >>> show({"k": "a", "n": 2}), show("a")
    ("k='a' n=2", "'a'")
    """
    fields = fields_of(payload)
    if [name for name, _ in fields] == ["value"]:
        return repr(payload)
    return " ".join(f"{name}={value!r}" for name, value in fields)


def is_nan(value: object) -> bool:
    """Say whether a value is a NaN, as a float or a decimal."""
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and value != value


def is_null(value: object) -> bool:
    """Say whether a value is the missing value of any library: None, NaN, NaT, NA, or an Arrow null.

    >>> is_null(np.datetime64("NaT")), is_null(float("nan")), is_null(0)
    (True, True, False)
    """
    found = plain(value)
    return found is None or is_nan(found) or getattr(found, "is_valid", True) is False


def _too_deep(value: object) -> SchemaError:
    return SchemaError(
        f"a payload holds a {type(value).__name__} inside others, deeper than Python can look",
        hint="flatten the payload, or keep deeply nested values as text",
    )


def payload_key(value: object) -> Hashable:
    """Return a hashable key that is equal for equal payloads; NaN equals NaN, `1 == 1.0`.

    >>> payload_key({"a": 1.0, "b": None}) == payload_key(Record(b=None, a=1))
    True
    """
    if value is None or isinstance(value, (str, int)):
        return value
    try:
        return _composite_key(value)
    except RecursionError:
        raise _too_deep(value) from None


def _composite_key(value: Any) -> Hashable:
    if isinstance(value, (float, Decimal)):
        return _NAN if is_nan(value) else value
    if type(value) is Record:
        value = value.__items__
    if isinstance(value, Mapping):
        return ("record", frozenset((name, payload_key(item)) for name, item in value.items()))
    if is_dataclass(value):
        return (type(value), *[payload_key(item) for _, item in fields_of(value)])
    if isinstance(value, tuple):
        return ("tuple", *[payload_key(item) for item in value])
    if isinstance(value, list):
        return ("list", *[payload_key(item) for item in value])
    if isinstance(value, (set, frozenset)):
        return ("set", frozenset(payload_key(item) for item in value))
    if isinstance(value, np.ndarray):
        return ("array", *[payload_key(item) for item in value.tolist()])
    try:
        hash(value)
    except TypeError:
        return (type(value).__name__, repr(value))
    found: Hashable = value
    return found


def payload_order(value: object) -> tuple[Any, ...]:
    """Return a sort key: field by field; None, then numbers (NaN last), then text, then the rest by type name and repr.

    >>> sorted(["b", None, float("nan"), 2, "a"], key=payload_order)
    [None, 2, nan, 'a', 'b']
    """
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (2, value)
    if isinstance(value, (int, float, Decimal, Fraction)):
        return (1, 1, 0) if is_nan(value) else (1, 0, value)
    try:
        if type(value) is Record:
            return (3, *map(payload_order, value.__items__.values()))
        if isinstance(value, (tuple, Mapping)) or is_dataclass(value):
            return (3, *[payload_order(item) for _, item in fields_of(value)])
    except RecursionError:
        raise _too_deep(value) from None
    return (4, type(value).__name__, repr(value))


_NAMED: Final = (dict, Record)
"""The mapping types, whose field names are data and may be of a subclass of `str`."""


def plain(value: Any) -> Any:
    """Return a value with all numpy and pandas scalars in it, at any depth, converted to Python; a missing one is None.

    A value without any is returned itself. A time that Python cannot hold exactly stays a pandas object, and arrays stay.

    >>> plain((np.int64(3), [np.float32(0.5)])), plain(np.datetime64("1970-01-01T00:00:00.000000001"))
    ((3, [0.5]), Timestamp('1970-01-01 00:00:00.000000001'))
    """
    kind: type = type(value)
    if kind in PLAIN:
        return value
    form = _form(kind)
    if form is not None:
        if kind in _NAMED and not PLAIN.issuperset(map(type, value)):
            value = kind(_with_exact_names(value))
        return value if PLAIN.issuperset(map(type, form.parts(value))) else _mapped(plain, value, form)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _of_numpy_time(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (datetime, timedelta)):
        return _plain_time(value)
    return None if kind.__name__ == "NAType" else value


def plains(values: Sequence[Any]) -> Sequence[Any]:
    """Return `plain` of each value; the sequence itself if all values are of one type, and contain only plain values.

    >>> plains([(1, "a"), (2, "b")]), plains([np.int64(3)])
    ([(1, 'a'), (2, 'b')], [3])
    """
    kinds = distinct(map(type, values))
    if kinds <= PLAIN:
        return values
    form = _form(kinds.pop()) if len(kinds) == 1 else None
    if form is not None and type(values[0]) in _NAMED and not PLAIN.issuperset(map(type, chain.from_iterable(values))):
        form = None
    if form is not None and PLAIN.issuperset(map(type, chain.from_iterable(map(form.parts, values)))):
        return values
    return list(map(plain, values))


def _of_numpy_time(value: np.datetime64 | np.timedelta64) -> Any:
    found = value.item()
    if not isinstance(found, int):
        return found
    if np.datetime_data(value.dtype)[0] not in _PANDAS_UNITS:
        return value
    import pandas as pd

    return _plain_time(pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value))


def _plain_time(value: Any) -> Any:
    if value != value:  # NaT
        return None
    convert = getattr(value, "to_pydatetime", None) or getattr(value, "to_pytimedelta", None)
    if convert is None or any(getattr(value, name, 0) for name in ("nanosecond", "nanoseconds")):
        return value
    try:
        return convert()
    except (ValueError, OverflowError):  # beyond Python's years
        return value


class _Form(NamedTuple):
    """How a composite value is taken apart and rebuilt."""

    parts: Callable[[Any], Collection[Any]]
    build: Callable[[Any, Iterable[Any]], Any]


def map_parts(f: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with `f` applied to its parts: items, values of a mapping, or fields; the value itself if none changes.

    Lists, tuples, sets, `dict`s, records, named tuples and dataclasses have parts; a dataclass is rebuilt without running its
    constructor.

    >>> map_parts(str, [1, (2, 3)]), map_parts(abs, Record(v=-1))
    (['1', '(2, 3)'], Record(v=1))
    """
    kind: type = type(value)
    form = _form(kind)
    return value if form is None else _mapped(f, value, form)


def _mapped(f: Callable[[Any], Any], value: Any, form: _Form) -> Any:
    parts = form.parts(value)
    try:
        mapped = list(map(f, parts))
    except RecursionError:
        raise _too_deep(value) from None
    return value if all(map(operator.is_, parts, mapped)) else form.build(value, mapped)


@lru_cache(maxsize=1024)
def _form(cls: Any) -> _Form | None:
    if cls in (list, tuple, set, frozenset):
        return _Form(tuple, lambda value, parts: cls(parts))
    if cls is dict:
        return _Form(dict.values, lambda value, parts: dict(zip(value, parts, strict=True)))
    if cls is Record:
        return _Form(lambda value: value.__items__.values(), lambda value, parts: Record(zip(value, parts, strict=True)))
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _Form(tuple, lambda value, parts: cls._make(parts))
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
        return _Form(partial(_fields, names, operator.attrgetter(*names, "__class__")), partial(_with_fields, names))
    return None


def _with_exact_names(value: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a mapping whose names of subclasses of `str`, such as enum members, are plain `str`."""
    return {exact(name) if isinstance(name, str) else name: part for name, part in value.items()}


def _fields(names: Sequence[str], getter: Callable[[Any], tuple[Any, ...]], value: Any) -> Sequence[Any]:
    try:
        return getter(value)[:-1]
    except AttributeError:  # a field that was never set
        return [getattr(value, name, None) for name in names]


def _with_fields(names: Sequence[str], value: Any, parts: Iterable[Any]) -> Any:
    copy = object.__new__(type(value))
    for name, part in {**getattr(value, "__dict__", {}), **dict(zip(names, parts, strict=True))}.items():
        object.__setattr__(copy, name, part)
    return copy
