"""The check that methods of modules are plain functions, as they are called for rows and windows and must return values."""

from __future__ import annotations

from functools import lru_cache
from types import FunctionType
from typing import Any, Final

from streamdsl.expr.predicates import check_function
from streamdsl.udm import bases, stream_operator
from streamdsl.udm.bases import UDM, AnyUDO

_KINDS: Final = (bases.__name__, stream_operator.__name__)


@lru_cache(maxsize=256)
def check_methods(kind: type[UDM]) -> None:
    """Raise `QueryError` for a class of modules with an async method, or a generator; only operators may yield their results.

    >>> class Late(bases.UDA):
    ...     async def compute_result(self, payloads): return len(payloads)
    >>> check_methods(Late)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: Late.compute_result is an async function, which gives a coroutine for a window and no value
      at Late.compute_result in <doctest streamdsl.udm.methods.check_methods[0]>, line 2
    Hint: write it as a plain function: queries do not await
    """
    what = "a row" if issubclass(kind, stream_operator.UDSO) else "a window"
    for name in _called(kind):
        method: Any = getattr(kind, name)
        many = name == "compute_result" and issubclass(kind, AnyUDO)
        check_function(method, what, many, "a module returns what it makes; only compute_result of an operator may yield")


def _called(kind: type[UDM]) -> list[str]:
    """Return the names of the methods that the base classes of a module define."""
    own = (vars(base).items() for base in kind.__mro__ if base.__module__ in _KINDS)
    return sorted({name for items in own for name, value in items if isinstance(value, FunctionType)})
