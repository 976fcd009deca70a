"""Lookup of queries and UDMs by `module:name`, for the command line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from inspect import isabstract
from reprlib import Repr
from traceback import extract_tb
from types import ModuleType
from typing import Any, Final, NamedTuple

from streamdsl.errors import QueryError
from streamdsl.stream import Stream
from streamdsl.udm.listing import kind_of


def named_query(target: str, command: str) -> Stream[Any]:
    """Return the query `module:name`; raises `QueryError`, which lists the queries of the module, if there is none.

    >>> named_query("streamdsl.demo:trips", "check")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: streamdsl.demo has no 'trips'; it has no queries at its top level
    Hint: python -m streamdsl check streamdsl.demo:query
    """
    found: Stream[Any] = _named(target, command, _QUERY)
    return found


def named_udm(target: str, command: str) -> Any:
    """Return the UDM `module:name`, a class or an instance; raises `QueryError`, which lists those that there are, if it is none.

    >>> named_udm("udm_examples.ewma:EWMA", "check-udm")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: udm_examples.ewma has no 'EWMA'; its UDMs are: Ewma
    Hint: python -m streamdsl check-udm udm_examples.ewma:Ewma
    """
    return _named(target, command, _UDM)


def is_udm(value: object) -> bool:
    """Say whether a value is a UDM that can be used: a class that is not abstract, or an instance."""
    return bool(kind_of(value)) and not isabstract(value)


class _Sought(NamedTuple):
    """What an address names: what it is called, and how it is told from the rest of a module."""

    one: str
    several: str
    placeholder: str
    is_one: Callable[[Any], bool]


_QUERY: Final = _Sought("query", "queries", "query", lambda value: isinstance(value, Stream))
_UDM: Final = _Sought("UDM", "UDMs", "Class", lambda value: is_udm(value) and kind_of(value) != "udf")


def _named(target: str, command: str, sought: _Sought) -> Any:
    module_name, _, name = target.partition(":")
    usage = f"python -m streamdsl {command} "
    if not module_name:
        raise QueryError(f"{target!r} names no {sought.one}", hint=f"{usage}package.module:{sought.placeholder}")
    module = imported(module_name, f"{usage}package.module:{sought.placeholder}")
    known = [each for each, value in vars(module).items() if sought.is_one(value)]
    value = vars(module).get(name, module)
    if sought.is_one(value):
        return value
    is_other = f"{name!r} of {module_name} is no {sought.one} but {_shown(value)}"
    wrong = f"{module_name} has no {name!r}" if value is module else is_other
    listed = f"its {sought.several} are: {', '.join(known)}" if known else f"it has no {sought.several} at its top level"
    what = wrong if name else f"{target!r} does not say which {sought.one}"
    raise QueryError(f"{what}; {listed}", hint=f"{usage}{module_name}:{next(iter(known), sought.placeholder)}")


def imported(name: str, usage: str) -> ModuleType:
    """Return a module of the current folder or of `sys.path`; raises `QueryError` for what its import raises."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # importing a module runs arbitrary code
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise QueryError(
                f"there is no module {error.name!r}", hint=f"name it as an import does, without .py: {usage}"
            ) from None
        place = "".join(f" at {each.filename}:{each.lineno}" for each in extract_tb(error.__traceback__)[-1:])
        raise QueryError(
            f"the module {name!r} cannot be imported: {type(error).__name__}{place}: {error}",
            hint=f"see that `python -c 'import {name}'` works; code that runs the module as a script belongs below "
            'if __name__ == "__main__"',
        ) from error


def _shown(value: Any) -> str:
    """Return a shortened `repr` of a value."""
    return _short.repr(value)


_short = Repr()
_short.maxother = 200
