"""Conversion of frame values to plain Python values, or to typed columns where that is lossless."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column, column_of, object_column
from streamdsl.temporal.payload import PLAIN, fields_of, is_dataclass, is_nan, payload_order, plain
from streamdsl.temporal.value_arrays import distinct


def number_column(values: NDArray[Any]) -> Column:
    """Return numbers or booleans of any width as `int64`, `float64` or `bool`; unsigned ones beyond int64 stay exact ints.

    >>> number_column(np.array([2**63], dtype=np.uint64)).tolist()
    [9223372036854775808]
    """
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "b":
        return values
    if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
        return object_column(values.tolist())
    return values.astype(np.int64, copy=False)


def unnested(value: Any, leaf: Callable[[Any], Any] = plain) -> Any:
    """Return a value with nested records, tuples and dataclasses as dicts, sets as ordered lists, and `leaf` applied to the rest.

    >>> unnested((1, {"b", "a"}))
    {'_0': 1, '_1': ['a', 'b']}
    """
    if isinstance(value, Enum):
        return leaf(value)
    if isinstance(value, (Mapping, tuple)) or is_dataclass(value):
        return {name: unnested(item, leaf) for name, item in fields_of(value)}
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=payload_order)
    if isinstance(value, (list, np.ndarray)):
        return [unnested(item, leaf) for item in value]
    return leaf(value)


def value_column(values: Sequence[Any]) -> Column:
    """Return Python values as a column; numpy and pandas scalars become Python values where that is exact.

    A missing value of any library becomes None, and so does a NaN among text, which older pandas uses for missing text.

    >>> value_column(["a", float("nan")]).tolist(), value_column([np.float32(0.5)]).tolist()
    (['a', None], [0.5])
    """
    kinds = distinct(map(type, values))
    if kinds <= {str, type(None)}:
        return object_column(values)
    if not kinds <= PLAIN:
        values = list(map(plain, values))
    if str in kinds and float in kinds:
        values = [None if is_nan(value) else value for value in values]
    return column_of(values)
