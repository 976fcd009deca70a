"""The public column type of a module's results, from its annotations or from the rules of built-in aggregates."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Final

from streamdsl.errors import place_of
from streamdsl.spark.column_types import (
    FLOAT,
    INT,
    ColumnType,
    ForeignType,
    ListType,
    PickledType,
    ScalarType,
    as_nullable,
    hints_of,
    known_type,
    type_of_hint,
)
from streamdsl.udm import builtin
from streamdsl.udm.bases import UDM
from streamdsl.udm.signatures import element

_DIGITS_OF_A_SUM: Final = 10
"""How many digits more than its terms Spark gives a sum of decimals: enough for 10**10 rows."""


def result_type(module: UDM, argument: ColumnType | None = None) -> ColumnType:
    """Return the type of a module's results: pickled without a declared type where nothing tells.

    >>> result_type(builtin.Median()), result_type(builtin.Median(), ForeignType("decimal(9,2)")).ddl
    (ScalarType(kind='float', nullable=True), 'decimal(9,2)')
    """
    if not isinstance(module, builtin.AnyBuiltin):
        return _annotated(module) or PickledType(origin=_origin(module))
    if module.gives == "int":
        return INT
    value = known_type(argument)
    if value is None:
        is_float = module.gives == "float" and getattr(module, "method", "") != "inverted_cdf"
        return as_nullable(FLOAT) if is_float else PickledType(origin=getattr(argument, "origin", ""))
    return as_nullable(ListType(value) if module.gives == "list[V]" else _of_values(module, value), module.gives != "list[V]")


def _of_values(module: builtin.AnyBuiltin, value: ColumnType) -> ColumnType:
    """Return the type of a built-in aggregate's results, given that of its values."""
    truths, decimals = isinstance(value, ScalarType) and value.kind == "bool", value.ddl.startswith("decimal(")
    if isinstance(module, builtin.Sum):
        return INT if truths else _wider(value) if decimals else value
    if isinstance(module, builtin.Quantile):
        interpolated = module.method == "linear" and isinstance(value, ScalarType) and value.kind != "str"
        return value if not interpolated else FLOAT if not truths else PickledType(origin="a quantile of truths")
    if module.gives == "V":
        return value
    return PickledType(origin="a mean of decimals") if decimals and not isinstance(module, builtin.Variance) else FLOAT


def _wider(decimals: ColumnType) -> ForeignType:
    precision, scale = decimals.ddl[8:-1].split(",")
    return ForeignType(f"decimal({min(int(precision) + _DIGITS_OF_A_SUM, 38)},{scale})")


def _origin(module: UDM) -> str:
    code = getattr(getattr(module, "function", None), "__code__", None)
    place = "" if code is None else f" in {place_of(code.co_filename, code.co_firstlineno)}"
    return f"the module {module.label}{place}"


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
