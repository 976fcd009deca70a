"""The classes that a query declares: its payloads, what its modules keep, and what these are annotated with."""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any

from streamdsl.udm.bases import UDM


def declared(start: Iterable[Any]) -> list[type]:
    """Return classes, and those that are reached from them, from modules and from functions by annotations.

    Of a dataclass, a named tuple or a `TypedDict` the fields are looked at, of a module its parameters (`UDA[In, Out]`), its
    methods and its `state_types`, of a function its parameters and its result.

    >>> Zone = typing.NamedTuple("Zone", [("name", str)])
    >>> Trip = typing.NamedTuple("Trip", [("zones", list[Zone] | None)])
    >>> [cls.__name__ for cls in declared([Trip]) if cls.__module__ == Trip.__module__]
    ['Trip', 'Zone']
    """
    found: dict[type, None] = {}
    seen: set[int] = set()
    open_ = list(start)
    while open_:
        value = open_.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type) and _is_data(value):
            found[value] = None
        open_ += _reached(value)
    return list(found)


def _is_data(cls: type) -> bool:
    return is_dataclass(cls) or issubclass(cls, Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))


def _reached(value: Any) -> Iterator[Any]:
    """Yield what a class, a module, a function or an annotation leads to."""
    yield from typing.get_args(value)
    if isinstance(value, typing.TypeVar):
        return
    if isinstance(value, UDM):
        yield type(value)
        yield from getattr(value, "state_types", ())
    elif isinstance(value, FunctionType):
        yield from _hints(value, value.__globals__)
    elif isinstance(value, type) and issubclass(value, UDM):
        for each in value.__mro__:
            yield from getattr(each, "__orig_bases__", ())
            yield from (member for member in vars(each).values() if isinstance(member, FunctionType))
    elif isinstance(value, type) and (_is_data(value) or typing.is_typeddict(value)):
        yield from value.__bases__
        yield from _hints(value, vars(sys.modules.get(value.__module__, typing)))


def _hints(value: Any, names: dict[str, Any]) -> Iterator[Any]:
    """Yield the annotations of something, but those that name what is not there when it runs."""
    own = {getattr(value, "__name__", ""): value} | _enclosed(value)
    try:
        yield from typing.get_type_hints(value, names, own).values()
        return
    except Exception:  # one of them names what is there for type checkers alone
        pass
    for hint in getattr(value, "__annotations__", {}).values():
        try:
            yield eval(hint, names, own) if isinstance(hint, str) else hint
        except Exception:
            continue


def _enclosed(value: Any) -> dict[str, Any]:
    """Return what a function has captured, by name."""
    code = getattr(value, "__code__", None)
    cells = zip(code.co_freevars, value.__closure__ or (), strict=False) if code else ()
    return {name: cell.cell_contents for name, cell in cells if _is_set(cell)}


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # empty
        return False
