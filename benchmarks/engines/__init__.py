"""What today's engines answer: an engine is a module here with `ENGINES`, a list of `Engine`, and is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from benchmarks.engines.engine import Engine


@cache
def engines() -> dict[str, Engine]:
    """Return the engines of all modules here, by name."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return {engine.name: engine for module in modules for engine in getattr(module, "ENGINES", [])}
