"""The classes that a module's code names: what it keeps is made of them, and they may be where only its code can find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, get_args

from streamdsl.engine.state.classes import is_at_its_name


def classes_mentioned(start: type | Callable[..., Any]) -> Iterator[type]:
    """Yield a class, and those that code names which cannot be found at their names, such as what has come to a worker by value.

    >>> class State: ...
    >>> def make() -> object:
    ...     return State()
    >>> [found.__name__ for found in classes_mentioned(make)]
    ['State']
    """
    seen: set[int] = set()
    open_: list[Any] = [start]
    while open_:
        value = open_.pop()
        if id(value) in seen or not isinstance(value, (type, FunctionType)):
            continue
        seen.add(id(value))
        if isinstance(value, type):
            if value is not start and is_at_its_name(value):
                continue
            yield value
            open_ += _parts(value)
        else:
            open_ += named(value)


def _parts(cls: type) -> Iterator[Any]:
    """Yield the functions of a class, its bases, and what these are parametrized with."""
    yield from cls.__mro__[1:]
    for base in getattr(cls, "__orig_bases__", ()):
        yield from get_args(base)
    for member in vars(cls).values():
        yield getattr(member, "__func__", getattr(member, "fget", getattr(member, "func", member)))


def named(function: FunctionType) -> Iterator[Any]:
    """Yield what a function's code reads of its module and of the functions around it."""
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
    yield from captured(function)


def captured(function: Any) -> Iterator[Any]:
    """Yield what a function has captured, as far as that is set."""
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # not set yet
            yield cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
