"""Which payloads a module takes, read from its base class, else from the annotations of its methods."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, Final, ForwardRef, TypeVar, get_args, get_origin, get_type_hints

from streamdsl.udm.bases import AnyModule, In, IntervalEvent
from streamdsl.udm.function_modules import FunctionUDA, FunctionUDO, TimeSensitiveFunctionUDA, TimeSensitiveFunctionUDO
from streamdsl.udm.signatures import types_of_class
from streamdsl.udm.stream_operator import AnyUDSO

FUNCTION_MODULES: Final = (FunctionUDA, FunctionUDO, TimeSensitiveFunctionUDA, TimeSensitiveFunctionUDO)
"""The classes of modules that are functions."""
_TAKE_ONE: Final = ("add_event_to_state", "process")
"""The methods whose second parameter takes a payload; the first one of `compute_result` takes many."""


def payload_type(module: AnyModule | AnyUDSO) -> Any:
    """Return the type of the payloads that a module takes, `Any` where nothing says it.

    >>> from streamdsl.udm.bases import UDA
    >>> class Spread(UDA[float, float]):
    ...     def compute_result(self, payloads):
    ...         return max(payloads) - min(payloads)
    >>> payload_type(Spread())
    <class 'float'>
    """
    if isinstance(module, FUNCTION_MODULES):
        return _payload(_item(_annotated(module.function, 0)))
    found = _resolved(types_of_class(type(module))[0], type(module))
    if _says_something(found):
        return found
    annotated = [_annotated(getattr(type(module), name, None), 2) for name in _TAKE_ONE]
    annotated.append(_item(_annotated(getattr(type(module), "compute_result", None), 1)))
    said = next((hint for hint in map(_payload, annotated) if _says_something(hint)), found)
    return Any if said is In else said


def _says_something(found: Any) -> bool:
    return found is not Any and not isinstance(found, TypeVar)


def _resolved(argument: Any, module: type) -> Any:
    """Return the type of a forward reference, in the Python module of a class or of one of its bases."""
    name = argument.__forward_arg__ if isinstance(argument, ForwardRef) else argument
    if not isinstance(name, str):
        return argument
    names = ChainMap(*(dict(vars(sys.modules[cls.__module__])) for cls in module.__mro__))
    try:
        return eval(name, {}, names)
    except Exception:  # a name that is local to a function, or for type checkers only
        return Any


def _annotated(function: Callable[..., Any] | None, place: int) -> Any:
    """Return the annotation of the parameter at a place, `Any` if there is none."""
    names = list(getattr(getattr(function, "__code__", None), "co_varnames", ()))[place : place + 1]
    return _hints(function).get(names[0], Any) if names else Any


def _hints(function: Any) -> Mapping[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # names that only a type checker knows
        return {}


def _payload(hint: Any) -> Any:
    """Return the payload's type in `IntervalEvent[T]` or `T`."""
    return (get_args(hint) or (Any,))[0] if (get_origin(hint) or hint) is IntervalEvent else hint


def _item(hint: Any) -> Any:
    """Return the type of the items of a collection."""
    arguments = get_args(hint)
    return arguments[0] if len(arguments) == 1 else Any
