"""What annotations and the rules of built-ins tell of a module's results: the type of a column at the public edge."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

from streamdsl.spark.types import FLOAT, INT, Items, Pickled, Type, as_nullable, hints_of, type_of_hint
from streamdsl.udm import builtin
from streamdsl.udm.bases import UDM, IntervalEvent

_FLOATS = (builtin.Avg, builtin.Quantile, builtin.Variance, builtin.TimeWeightedAvg)
_PICKING = (builtin.Sum, builtin.Min, builtin.Max, builtin.First, builtin.Last)


def result_type(module: UDM, argument: Type | None = None) -> Type | None:
    """Return the declared type of a module's results, or None.

    >>> result_type(builtin.Median())
    Scalar(kind='float', nullable=True)
    """
    if isinstance(module, (builtin.Count, builtin.CountDistinct)):
        return INT
    if isinstance(module, builtin.Quantile) and module.method == "inverted_cdf":
        return _known(argument)
    if isinstance(module, _FLOATS):
        return as_nullable(FLOAT)
    if isinstance(module, _PICKING):
        return _known(argument)
    if isinstance(module, builtin.Collect):
        item = _known(argument)
        return None if item is None else Items(item, False)
    return _annotated(module)


def _known(argument: Type | None) -> Type | None:
    return None if argument is None or isinstance(argument, Pickled) else as_nullable(argument)


def _annotated(module: UDM) -> Type | None:
    for hint in _hints(module):
        found = type_of_hint(_item(hint) if module.returns_many else hint)
        if found is not None:
            return as_nullable(found)
    return None


def _hints(module: UDM) -> Iterator[Any]:
    """Yield what may declare the results: the function's annotation, the method's, the last argument of the base class."""
    yield hints_of(getattr(module, "function", None)).get("return", Any)
    yield hints_of(getattr(type(module), "compute_result", None)).get("return", Any)
    for cls in type(module).__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            arguments = typing.get_args(base)
            origin = typing.get_origin(base)
            if arguments and isinstance(origin, type) and issubclass(origin, UDM):
                yield types.GenericAlias(list, (arguments[-1],)) if module.returns_many else arguments[-1]


def _item(hint: Any) -> Any:
    """Return what an iterable's annotation says of its items; of events what it says of their payloads."""
    arguments = typing.get_args(hint)
    item = arguments[0] if arguments else Any
    if typing.get_origin(item) is IntervalEvent:
        inner = typing.get_args(item)
        return inner[0] if inner else Any
    return item
