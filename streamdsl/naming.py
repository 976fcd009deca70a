"""Lookup of queries by `module:name`, for the command line."""

from __future__ import annotations

import importlib
import sys
from reprlib import Repr
from traceback import extract_tb
from types import ModuleType
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.stream import Stream


def named_query(target: str, command: str) -> Stream[Any]:
    """Return the query `module:name`; raises `QueryError`, which lists the queries of the module, if there is none.

    >>> named_query("streamdsl.demo:trips", "check")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: streamdsl.demo has no 'trips'; it has no queries at its top level
    Hint: python -m streamdsl check streamdsl.demo:query
    """
    module_name, _, name = target.partition(":")
    usage = f"python -m streamdsl {command} "
    if not module_name:
        raise QueryError(f"{target!r} names no query", hint=f"{usage}package.module:query")
    module = _module(module_name, usage)
    queries = [each for each, value in vars(module).items() if isinstance(value, Stream)]
    value = vars(module).get(name, module)
    if isinstance(value, Stream):
        return value
    wrong = f"{module_name} has no {name!r}" if value is module else f"{name!r} of {module_name} is no query but {_shown(value)}"
    listed = f"its queries are: {', '.join(queries)}" if queries else "it has no queries at its top level"
    what = wrong if name else f"{target!r} does not say which query"
    raise QueryError(f"{what}; {listed}", hint=f"{usage}{module_name}:{next(iter(queries), 'query')}")


def _module(name: str, usage: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # importing a module runs arbitrary code
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise QueryError(
                f"there is no module {error.name!r}", hint=f"name it as an import does, without .py: {usage}package.module:query"
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
