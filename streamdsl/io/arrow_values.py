"""Payload values as Arrow arrays without loss: values that Arrow would silently convert are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain
from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.errors import SchemaError
from streamdsl.expr.arrow_buffers import are_null, as_arrow, text_array
from streamdsl.expr.deferred import AnyColumn, Column, DeferredColumn, Dictionary, Rows, parts_of
from streamdsl.expr.lists import items_of, list_source
from streamdsl.expr.nested import is_nested, rows_in, with_nulls
from streamdsl.expr.table import Table
from streamdsl.io.arrow_fingerprints import bits
from streamdsl.io.arrow_held import ArrowSource
from streamdsl.io.arrow_types import common_type, declared_type
from streamdsl.io.values import unnested
from streamdsl.temporal.pandas_frames import Values
from streamdsl.temporal.payload import PLAIN, plain
from streamdsl.temporal.value_arrays import distinct

_MOST_ITEMS: Final = 2**31 - 1
"""The number of items that the 32-bit offsets of a list array can address."""
_INT64: Final = range(-(2**63), 2**63)
_AS_THEY_ARE: Final = frozenset({str, bytes, float, bool, Decimal, date, timedelta})
"""Types that Arrow converts exactly, if all values are of one type."""
_TENS: Final = tuple(10**n for n in range(1, 19))
_FAMILIES: Final[dict[type, type]] = {float: int, Decimal: int}


def arrow_array(name: str, values: Values | DeferredColumn, hint: Any = None) -> Any:
    """Return the values of a field as an Arrow array, of the declared type if they fit it without loss.

    Nested records become structs, sets become ordered lists, integers beyond int64 decimals, enum members their names (their
    values in an enum of texts or numbers). Raises `SchemaError` for values without a common Arrow type.

    >>> arrow_array("v", [1, None], float).type, arrow_array("v", [None], int).type, arrow_array("v", [2.5], int).type
    (DataType(double), DataType(int64), DataType(double))
    """
    if isinstance(values, DeferredColumn):
        texts = values.source.passed(values.rows)
        if texts is not None and (hint is None or declared_type(hint) == texts.type):
            return texts
        if list_source(values) is not None:
            array = _array_of_lists(values)
            return arrow_array(name, values.column, hint) if array is None else _hinted(array, hint)
        if is_nested(values) or with_nulls(values) is not None:
            array = _array_of_nested(values)
            return arrow_array(name, values.column, hint) if array is None else _hinted(array, hint)
        found = None if values.dictionary is None else _taken(values.dictionary, values.codes)
        if found is not None:
            return _hinted(found, hint)
        codes, known = values.distinct()
        return arrow_array(name, known, hint).take(as_arrow(codes))
    if isinstance(values, np.ndarray) and values.dtype != object:
        array = as_arrow(values)
    else:
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        kinds = distinct(map(type, listed)) - {NoneType}
        items = distinct(map(type, _items(listed))) - {NoneType} if kinds == {list} else set()
        if kinds and not (items or kinds) <= PLAIN:
            listed = [unnested(value, _leaf) for value in listed]
        try:
            is_plain = kinds <= _AS_THEY_ARE or (len(items) == 1 and items <= {int, *_AS_THEY_ARE})
            if len(kinds) > 1 or not is_plain:
                _check_alike(listed)
                listed, given = _exact(listed), listed
                kinds = kinds if listed is given else {Decimal}
            array = _array_of(listed, kinds)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f"Arrow has no type for the values of the field {name!r}: {error}",
                hint="to_pandas keeps any value; or select what Arrow can hold",
            ) from None
    return _hinted(array, hint)


def _hinted(array: Any, hint: Any) -> Any:
    return array if hint is None else _as_declared(array, declared_type(hint))


def _array_of_lists(lists: DeferredColumn) -> Any:
    """Return lists of numbers as a list array; None if there are no items, so their type is unknown, or too many."""
    items, sizes = items_of(lists)
    if isinstance(items, DeferredColumn) or not len(items) or len(items) > _MOST_ITEMS:
        return None
    stops = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=stops[1:])
    return pa.ListArray.from_arrays(as_arrow(stops), as_arrow(items))


def _array_of_nested(part: AnyColumn) -> Any:
    """Return nested payloads, some of which may be None, as an array of structs; None where `_array_of_structs` returns it."""
    payloads, places = with_nulls(part) or (part, None)
    array = _array_of_structs(rows_in(payloads))
    return array if array is None or places is None else array.take(pa.array(places, mask=places < 0))


def _array_of_structs(rows: Table) -> Any:
    """Return payloads as an array of structs if they hold only numbers and texts; else None."""
    if not rows.size or not rows.columns:
        return None
    arrays = []
    for part in parts_of(rows.columns).values():
        array = _array_of_nested(part) if is_nested(part) or with_nulls(part) is not None else _array_of_plain(part)
        if array is None:
            return None
        arrays.append(array)
    return pa.StructArray.from_arrays(arrays, list(rows.columns))


def _array_of_plain(part: AnyColumn) -> Any:
    column = part.column if isinstance(part, DeferredColumn) else part
    if column.dtype != object:
        return as_arrow(column)
    listed = column.tolist()
    return text_array(listed) if str in (kinds := distinct(map(type, listed))) and kinds <= {str, NoneType} else None


def _array_of(values: list[Any], kinds: set[type]) -> Any:
    """Return values of these types, and None, as an array of the type that Arrow infers."""
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {str}:
        return text_array(values)
    if kinds == {int} or kinds == {float}:
        nulls = np.array([value is None for value in values])
        known = [0 if value is None else value for value in values]
        return as_arrow(np.array(known, dtype=np.int64 if int in kinds else np.float64), nulls if nulls.any() else None)
    return pa.array(values)


def _items(values: Iterable[Any]) -> Iterator[Any]:
    return chain.from_iterable(value for value in values if value is not None)


def _taken(dictionary: Dictionary, codes: Rows) -> Any:
    """Return the values of codes as the array that they would become alone; None if other dictionary values change its type."""
    whole = dictionary.cached(_array_of_all, join=_joined)
    found = None if whole is None else whole.take(as_arrow(codes))
    if found is None or found.null_count == len(found):
        return None
    if pa.types.is_decimal(found.type):
        before, behind = dictionary.cached(_digits, join=_side_by_side)[:, codes].max(axis=1).tolist()
        found = found.cast(pa.decimal128(max(1, before + behind), behind))
    return found


def _joined(one: Any, other: Any) -> Any:
    return None if one is None or other is None or one.type != other.type else pa.concat_arrays([one, other])


def _side_by_side(one: Column, other: Column) -> Column:
    return np.concatenate([one, other], axis=1)


def _array_of_all(values: AnyColumn) -> Any:
    """Return values as an Arrow array; None if a subset of them could become an array of another type."""
    if isinstance(values, DeferredColumn):
        if isinstance(values.source, ArrowSource):
            return values.source.array_of(values.rows)
        values = values.column
    kinds = distinct(map(type, values.tolist())) - {NoneType}
    try:
        array = arrow_array("", values) if len(kinds) == 1 else None
    except SchemaError:
        return None
    if array is None or pa.types.is_decimal256(array.type) or (pa.types.is_decimal(array.type) and kinds != {Decimal}):
        return None
    zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
    return None if zoned and len({value.tzinfo for value in values.tolist() if value is not None}) > 1 else array


def _digits(decimals: AnyColumn) -> Rows:
    """Return the digits of each decimal before and after the point; the Arrow type has the maximum of both."""
    found = np.zeros((2, len(decimals)), dtype=np.int64)
    if isinstance(decimals, DeferredColumn) and isinstance(decimals.source, ArrowSource):
        array = decimals.source.array_of(decimals.rows)
        integers, is_there = bits(array), ~are_null(array)
        assert integers is not None, "only decimals that fit wait"
        digits = 1 + sum(((integers >= ten) | (integers <= -ten) for ten in _TENS), np.zeros(len(integers), dtype=np.int64))
        found[:] = np.maximum(digits - array.type.scale, 0) * is_there, array.type.scale * is_there
        return found
    for place, decimal in enumerate(decimals.tolist()):
        if decimal is not None:
            _, digits, exponent = decimal.as_tuple()
            behind = max(-exponent, 0)
            found[:, place] = max(len(digits) + exponent, 0), behind
    return found


def _as_declared(array: Any, kind: Any) -> Any:
    if array.type == kind or common_type(array.type, kind) != kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    try:
        return array.cast(kind)
    except pa.ArrowException:
        return array


def _leaf(value: Any) -> Any:
    if not isinstance(value, Enum):
        return plain(value)
    return value.value if isinstance(value, (int, float, str)) else value.name


def _exact(values: list[Any]) -> list[Any]:
    """Return values, with all integers as decimals if one of them is beyond int64."""
    if all(value in _INT64 for value in values if type(value) is int):
        return values
    return [Decimal(value) if type(value) is int else value for value in values]


def _check_alike(values: Iterable[Any]) -> None:
    """Raise `TypeError` for mixed values that Arrow would convert silently: text to bytes, times to dates, a lost zone."""
    values = list(values)
    families = {_FAMILIES.get(kind, kind) for kind in distinct(map(type, values)) if kind is not type(None)}
    if len(families) > 1:
        raise TypeError(f"they are of several types: {', '.join(sorted(kind.__name__ for kind in families))}")
    if not families & {datetime, time, list, dict}:
        return
    values = [value for value in values if value is not None]
    if families & {datetime, time} and len({value.tzinfo is None for value in values}) > 1:
        raise TypeError("some have a zone and some have none")
    if families == {time} and values[0].tzinfo is not None:
        raise TypeError("a time of day with a zone")
    if families == {list}:
        _check_alike(chain.from_iterable(values))
    if families == {dict}:
        for name in {name for value in values for name in value}:
            _check_alike(value.get(name) for value in values)
