"""The public column type of a module's results, from its annotations or from the rules of built-in aggregates."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

from streamdsl.spark.column_types import FLOAT, INT, ColumnType, ListType, PickledType, as_nullable, hints_of, type_of_hint
from streamdsl.udm import builtin
from streamdsl.udm.bases import UDM
from streamdsl.udm.signatures import element


def result_type(module: UDM, argument: ColumnType | None = None) -> ColumnType | None:
    """Return the declared type of a module's results, or None.

    >>> result_type(builtin.Median())
    ScalarType(kind='float', nullable=True)
    """
    if not isinstance(module, builtin.AnyBuiltin):
        return _annotated(module)
    value = None if argument is None or isinstance(argument, PickledType) else as_nullable(argument)
    if module.gives == "V" or (isinstance(module, builtin.Quantile) and module.method == "inverted_cdf"):
        return value
    if module.gives == "list[V]":
        return None if value is None else ListType(value, False)
    return INT if module.gives == "int" else as_nullable(FLOAT)


def _annotated(module: UDM) -> ColumnType | None:
    for hint in _hints(module):
        found = type_of_hint(element(hint) if module.returns_many else hint)
        if found is not None:
            return as_nullable(found)
    return None


def _hints(module: UDM) -> Iterator[Any]:
    """Yield the hints that may declare the results: of the function, of the method, and the last argument of the base class."""
    yield hints_of(getattr(module, "function", None)).get("return", Any)
    yield hints_of(getattr(type(module), "compute_result", None)).get("return", Any)
    for cls in type(module).__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            arguments = typing.get_args(base)
            origin = typing.get_origin(base)
            if arguments and isinstance(origin, type) and issubclass(origin, UDM):
                yield types.GenericAlias(list, (arguments[-1],)) if module.returns_many else arguments[-1]
