"""Which user functions are accepted, and which results of a predicate count as true or false: the same rule for every engine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from os.path import basename
from typing import Any, Final

from streamdsl.errors import QueryError

_RETURN_ONE: Final = "return the value; to give several rows for one write select_many"


class NotBooleanError(TypeError):
    """A predicate returned a value that is neither true nor false."""

    def __init__(self, value: object) -> None:
        found = "None" if value is None else f"a {type(value).__name__}"
        super().__init__(f"a predicate returned {found}, which is neither true nor false")
        self.hint = (
            "a function returns its answer; if a field may be None: sd.functions.coalesce(e.flag, False), or sd.is_none(e.flag)"
            if value is None
            else "bool(...) of it if it is meant; is a call (), or an await, missing?"
        )


def holds(value: Any) -> bool:
    """Return `bool(value)` of a predicate's result; raises `NotBooleanError` for None, and for objects that are always true.

    Numbers, texts and collections count as in Python: 0 and empty ones are false. Functions, coroutines, generators, dates and
    other objects without `__bool__` and `__len__` are refused.

    >>> holds(2), holds(""), holds(0.5)
    (True, False, True)
    >>> holds(None)
    Traceback (most recent call last):
        ...
    streamdsl.expr.predicates.NotBooleanError: a predicate returned None, which is neither true nor false
    """
    if value is True or value is False:
        return value
    kind = type(value)
    if value is None or not (hasattr(kind, "__bool__") or hasattr(kind, "__len__")):
        if inspect.iscoroutine(value):
            value.close()
        raise NotBooleanError(value)
    return bool(value)


def check_function(function: Callable[..., Any], what: str, yields: bool = False, instead: str = _RETURN_ONE) -> None:
    """Raise `QueryError` for a function whose call returns no value: an async one, or a generator function unless `yields`.

    >>> async def is_long(e): return e.km > 5
    >>> check_function(is_long, "a row")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: is_long is an async function, which gives a coroutine for a row and no value
      at is_long in <doctest streamdsl.expr.predicates.check_function[0]>, line 1
    Hint: write it as a plain function: queries do not await
    """
    plain: Any = function
    while isinstance(plain, partial):
        plain = plain.func
    kinds = (plain, type(plain).__call__)
    name = getattr(plain, "__qualname__", type(plain).__qualname__).rpartition(">.")[2]
    if any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in kinds):
        raise QueryError(
            f"{name} is an async function, which gives a coroutine for {what} and no value{_location(plain)}",
            hint="write it as a plain function: queries do not await",
        )
    if not yields and any(inspect.isgeneratorfunction(each) for each in kinds):
        raise QueryError(
            f"{name} is a generator function, which gives a generator for {what} and no value{_location(plain)}",
            hint=instead,
        )


def _location(function: Any) -> str:
    """Return the line of an error message that says where a function is defined."""
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return "" if code is None else f"\n  at {code.co_qualname} in {basename(code.co_filename)}, line {code.co_firstlineno}"
