"""What there is to know of each operator for tests and generated pages: an entry in a module here, found by itself.

A new operator is a file `test_<name>.py` with `OPERATORS = [Operator(...)]`, and below it tests of what is so of this operator
alone; one with `KINDS = [Kind(...)]` is of a new kind of windows. `make operator NAME=<name>` and `make window NAME=<name>` run
what the entry leads to.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from typing import Any

from streamdsl.stream import Stream
from tests.operators.entry import Kind, Operator


@cache
def entries() -> dict[str, Operator]:
    """Return the entries of all modules here by name, in the order in which the facade has the methods."""
    found = _listed("OPERATORS")
    return {entry.name: entry for entry in sorted(found, key=lambda entry: written(entry.name))}


@cache
def kinds() -> dict[str, Kind]:
    """Return the kinds of windows of all modules here by name: first those of `kinds_of_windows.py`."""
    return {entry.name: entry for entry in _listed("KINDS")}


def _listed(name: str) -> list[Any]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return [entry for module in modules for entry in getattr(module, name, [])]


def written(method: str) -> int:
    """Return the line of streamdsl/stream.py where a method of the facade begins."""
    line: int = inspect.unwrap(inspect.getattr_static(Stream, method)).__code__.co_firstlineno
    return line
