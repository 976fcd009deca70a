"""Arrow types: the type that an annotation declares, and the common type that holds the values of two without loss."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any, Final

import pyarrow as pa

_UNITS: Final = ("s", "ms", "us", "ns")
_DECLARED: Final[Mapping[Any, Any]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
}


def declared_type(hint: Any) -> Any:
    """Return the Arrow type that an annotation declares; null if the annotation leaves it open, as `datetime` does the zone.

    >>> from datetime import datetime
    >>> declared_type(int | None), declared_type(list[str]), declared_type(datetime)
    (DataType(int64), ListType(list<item: string>), DataType(null))
    """
    if isinstance(hint, type) and hint in _DECLARED:
        return _DECLARED[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        options = {declared_type(option) for option in arguments if option is not type(None)}
        return options.pop() if len(options) == 1 else pa.null()
    if origin in (list, set, frozenset, Sequence) and len(arguments) == 1:
        return pa.list_(declared_type(arguments[0]))
    return pa.null()


def common_type(one: Any, other: Any) -> Any:
    """Return the Arrow type that holds the values of both types, None if there is none; null is compatible with every type.

    Integers with floats become floats, integers with decimals become decimals; the cast fails for a value that does not fit.

    >>> common_type(pa.null(), pa.int64()), common_type(pa.int64(), pa.float64()), common_type(pa.int64(), pa.bool_())
    (DataType(int64), DataType(double), None)
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for test, common in _COMMON:
        if test(one) and test(other):
            return common(one, other)
    return None


def common_schema(one: Any, other: Any) -> tuple[Any, list[str]]:
    """Return the schema with the columns of both, those of the first one first, and the names of columns without a common type.

    >>> common_schema(pa.schema({"n": pa.null()}), pa.schema({"v": pa.int64(), "n": pa.string()}))[0].types
    [DataType(string), DataType(int64)]
    """
    found = {field.name: field.type for field in one}
    odd = []
    for field in other:
        common = common_type(found.get(field.name, pa.null()), field.type)
        found[field.name] = field.type if common is None else common
        if common is None:
            odd.append(field.name)
    return pa.schema(found.items()), odd


def settled_type(kind: Any) -> Any:
    """Return the canonical Arrow type for the values of a type: the widest, in UTC, with the plain layout.

    >>> settled_type(pa.int16()), settled_type(pa.dictionary(pa.int8(), pa.large_string()))
    (DataType(int64), DataType(string))
    """
    test = pa.types
    for is_such, settled in _SETTLED:
        if is_such(kind):
            return settled
    if test.is_dictionary(kind):
        return settled_type(kind.value_type)
    if test.is_timestamp(kind):
        return pa.timestamp("ms" if kind.unit == "s" else kind.unit, kind.tz and "UTC")  # Parquet has no unit of seconds
    if test.is_list(kind) or test.is_large_list(kind) or test.is_fixed_size_list(kind):
        return pa.list_(settled_type(kind.value_type))
    if test.is_map(kind):
        return pa.map_(settled_type(kind.key_type), settled_type(kind.item_type))
    if test.is_struct(kind):
        return pa.struct([(field.name, settled_type(field.type)) for field in kind])
    return kind


def _decimals(one: Any, other: Any) -> Any:
    digits = [(20, 0) if pa.types.is_integer(kind) else (kind.precision - kind.scale, kind.scale) for kind in (one, other)]
    scale = max(scale for _, scale in digits)
    precision = max(whole for whole, _ in digits) + scale
    if precision > 76:
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _timestamps(one: Any, other: Any) -> Any:
    return None if one.tz != other.tz else pa.timestamp(max(one.unit, other.unit, key=_UNITS.index), one.tz)


def _lists(one: Any, other: Any) -> Any:
    item = common_type(one.value_type, other.value_type)
    return None if item is None else pa.list_(item)


def _structs(one: Any, other: Any) -> Any:
    schema, odd = common_schema(pa.schema(one.fields), pa.schema(other.fields))
    return None if odd else pa.struct(list(schema))


def _number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _exact(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


_COMMON: Final[Sequence[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]]]] = (
    (pa.types.is_integer, lambda one, other: pa.int64()),
    (_number, lambda one, other: pa.float64()),
    (_exact, _decimals),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_duration, lambda one, other: max(one, other, key=lambda kind: _UNITS.index(kind.unit))),
    (pa.types.is_list, _lists),
    (pa.types.is_struct, _structs),
)
_SETTLED: Final[Sequence[tuple[Callable[[Any], bool], Any]]] = (
    (lambda kind: kind == pa.uint64(), pa.decimal128(20, 0)),
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind), pa.string()),
    (lambda kind: pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind), pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
)
