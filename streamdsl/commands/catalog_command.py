"""`streamdsl catalog`: the UDMs that a module has, or those that have names in every program."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from streamdsl.commands.json_report import add_json_option, print_json
from streamdsl.errors import QueryError
from streamdsl.naming import imported, is_udm
from streamdsl.udm.function_modules import FunctionModule
from streamdsl.udm.listing import Catalog, Entry, entry_of

_USAGE: Final = "python -m streamdsl catalog package.module"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `catalog`."""
    parser.add_argument(
        "module",
        nargs="?",
        help="a module or a package, by its name or its path; without one: the built-in modules and those of distributions",
    )
    add_json_option(parser)


def print_catalog(options: argparse.Namespace) -> int:
    """Print the catalog of the repository, or of a module with the modules in it."""
    if options.module is None:
        from streamdsl.udm.repository import repository

        found = repository.catalog()
    else:
        found = catalog_of(_dotted(options.module))
    if options.json:
        return print_json({**asdict(each), "state": "absent" if each.error else "ok"} for each in found)
    print(found)
    return 0


def catalog_of(name: str) -> Catalog:
    """Return the UDMs that a module defines, and the modules in it.

    Raises `QueryError` if the module cannot be imported; one in it that cannot be is an entry with its error.

    >>> catalog_of("udm_examples.ewma")
    1 module
    <BLANKLINE>
    udm_examples.ewma
      Ewma(half_life: float)  uda  float -> float  time-sensitive, ignores-ends-beyond-window
          The average of a window's values with weights `2 ** (-age / half_life)`, an event's age being `W.RE - LE`.
    """
    return Catalog(_entries(imported(name, _USAGE), seen=set()))


def _entries(module: ModuleType, seen: set[int]) -> Iterator[Entry]:
    name = module.__name__
    for each, value in vars(module).items():
        if is_udm(value) and id(value) not in seen and _home(value) in (name, None):
            seen.add(id(value))
            yield entry_of(each, value, name, f"{name}:{each}")
    for found in iter_modules(getattr(module, "__path__", [])):
        if found.name != "__main__":
            inner = f"{name}.{found.name}"
            try:
                below = imported(inner, _USAGE)
            except QueryError as error:
                yield Entry(found.name, inner, inner, error=str(error))
            else:
                yield from _entries(below, seen)


def _home(udm: Any) -> str | None:
    """Return the module that defines a class or a function; an instance has none, it is wherever it has a name."""
    made_of = udm.function if isinstance(udm, FunctionModule) else udm
    return made_of.__module__ if isinstance(made_of, type) or made_of is not udm else None


def _dotted(text: str) -> str:
    """Return the name of a module, of its name or its path below the current folder.

    >>> _dotted("udm_examples/median.py"), _dotted("udm_examples/"), _dotted("udm_examples.median")
    ('udm_examples.median', 'udm_examples', 'udm_examples.median')
    """
    if "/" not in text and not text.endswith(".py") and text != ".":
        return text
    path, here = Path(text).resolve(), Path.cwd()
    if path == here or not path.is_relative_to(here):
        raise QueryError(f"{text!r} is no module or package in {here}", hint=f"{_USAGE}, or its path below the current folder")
    if not path.exists():
        raise QueryError(f"there is no {text!r} in {here}", hint=_USAGE)
    return ".".join(path.relative_to(here).with_suffix("").parts)
