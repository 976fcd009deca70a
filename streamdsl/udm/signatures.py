"""Signatures of modules as text, from type arguments of their classes or annotations of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from typing_extensions import get_original_bases

from streamdsl.expr.expression_functions import Udf
from streamdsl.udm.bases import UDM, AnyUDA, AnyUDO, IntervalEvent
from streamdsl.udm.function_modules import FunctionModule
from streamdsl.udm.stream_operator import UDSO


def signature(module: object) -> str:
    """Return a module's type of members and type of results, or the types of a function of expressions.

    >>> from streamdsl.udm.bases import UDA
    >>> class Longest(UDA[str, int]): ...
    >>> signature(Longest)
    'str -> int'
    """
    if isinstance(module, Udf):
        return _of_udf(module)
    if isinstance(module, FunctionModule):
        takes, gives = _of_function(module.function, returns_many=isinstance(module, AnyUDO))
    else:
        takes, gives = types_of_class(module if isinstance(module, type) else type(module))
    return f"{type_name(takes)} -> {type_name(gives)}"


def parameters(module: object) -> str:
    """Return the parameters of a class of modules with types and defaults; "" for an instance.

    >>> from streamdsl.udm.builtin import Count, Quantile
    >>> parameters(Quantile), parameters(Count), parameters(Count())
    ("q: float, method: Literal['linear', 'inverted_cdf'] = 'linear'", '', '')
    """
    if not isinstance(module, type):
        return ""
    return ", ".join(map(_parameter, inspect.signature(module).parameters.values()))


def type_name(hint: object) -> str:
    """Return a type as it is written in programs, without the names of Python modules.

    >>> type_name(dict[str, int | None]), type_name(Literal["a"]), type_name(IntervalEvent[float])
    ('dict[str, int | None]', "Literal['a']", 'IntervalEvent[float]')
    """
    if isinstance(hint, str):
        return hint
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    if isinstance(hint, list):
        return f"[{', '.join(map(type_name, hint))}]"
    if hint is NoneType or hint is ...:
        return "None" if hint is NoneType else "..."
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is np.ndarray and get_args(arguments[-1]):  # the expansion of `NDArray` in numpy before 2.5
        return f"NDArray[{type_name(*get_args(arguments[-1]))}]"
    if origin in (Union, UnionType):
        return " | ".join(map(type_name, arguments))
    shown = [repr(value) if origin is Literal else type_name(value) for value in arguments]
    name = str(getattr(origin or hint, "__name__", repr(hint)))
    return f"{name}[{', '.join(shown)}]" if shown else name


def types_of_class(cls: type) -> tuple[object, object]:
    """Return the types of members and of results that a class of modules gives its base as type arguments.

    >>> from streamdsl.udm.bases import UDA
    >>> class Longest(UDA[str, int]): ...
    >>> types_of_class(Longest)
    (<class 'str'>, <class 'int'>)
    """
    return _passed_on(cls, getattr(cls, "__parameters__", ())) or (Any, Any)


def _passed_on(cls: type, given: tuple[Any, ...]) -> tuple[object, object] | None:
    """Return the input and output types that a class with these type arguments passes to `AnyUDA`, `AnyUDO` or `UDSO`."""
    if cls in (AnyUDA, AnyUDO, UDSO):
        return given[0], given[-1]
    known = dict(zip(getattr(cls, "__parameters__", ()), given, strict=True))
    for base in get_original_bases(cls):
        origin = get_origin(base) or base
        if isinstance(origin, type) and issubclass(origin, UDM):
            arguments = get_args(base) or (Any,) * len(getattr(origin, "__parameters__", ()))
            found = _passed_on(origin, tuple(_filled(argument, known) for argument in arguments))
            if found:
                return found
    return None


def _filled(hint: Any, known: dict[TypeVar, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return known.get(hint, hint)
    open_parameters = getattr(hint, "__parameters__", ())
    is_class = isinstance(hint, type) and get_origin(hint) is None
    return hint if is_class or not open_parameters else hint[tuple(known.get(p, p) for p in open_parameters)]


def _of_function(function: Callable[..., Any], returns_many: bool) -> tuple[object, object]:
    hints = _hints(function)
    found = _signature(function)
    names = list(found.parameters) if found else []
    takes = element(hints.get(names[0], Any)) if names else Any
    gives = hints.get("return", Any)
    return takes, element(gives) if returns_many else gives


def element(hint: Any) -> object:
    """Return the payload type in the type of a collection: P for `Sequence[IntervalEvent[P]]`."""
    origin, arguments = get_origin(hint), get_args(hint)
    is_collection = isinstance(origin, type) and issubclass(origin, Iterable) and origin.__module__ != "numpy"
    inside = arguments[0] if is_collection and arguments else hint
    return get_args(inside)[0] if get_origin(inside) is IntervalEvent else inside


def _of_udf(function: Udf[..., Any]) -> str:
    hints = _hints(inspect.unwrap(function))
    found = _signature(function)
    takes = ", ".join(type_name(hints.get(name, Any)) for name in found.parameters) if found else "..."
    return f"({takes}) -> {type_name(hints.get('return', Any))}"


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except ValueError:  # a builtin without a signature
        return None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations, unevaluated if they contain an unknown name."""
    try:
        return get_type_hints(function)
    except Exception:
        return dict(getattr(function, "__annotations__", {}))


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    kind = "" if parameter.annotation is parameter.empty else f": {type_name(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{kind}"
    return f"{parameter.name}{kind}{' = ' if kind else '='}{parameter.default!r}"
