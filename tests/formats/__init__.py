"""What tests know of each file format: an entry in a module here, found by itself.

A new format is a file `test_<name>.py` with `FILES = [FileFormat(...)]`, and below it tests of what is so of this format alone.
`make files NAME=<name>` runs what the entry leads to: `test_formats.py` here, the formats in jobs, and the door laws.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from tests.formats.entry import FileFormat


@cache
def entries() -> dict[str, FileFormat]:
    """Return the entries of all modules here by name: first those of `known.py`."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return {entry.name: entry for module in modules for entry in getattr(module, "FILES", [])}
