"""Values stored with pickle and loaded again."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from typing import Any

from streamdsl.testing.payload_types import FUNCTION_MODULES


def is_named(module: Any) -> bool:
    """Say whether another process finds a module's class, or function, by its name.

    It does not find what `__main__` or a function holds, nor a function that a decorator has replaced.

    >>> from streamdsl.udm.builtin import Count
    >>> class Local(Count): ...
    >>> is_named(Count()), is_named(Local())
    (True, False)
    """
    code = module.function if isinstance(module, FUNCTION_MODULES) else type(module)
    if code.__module__ == "__main__":
        return False
    found: Any = sys.modules.get(code.__module__)
    for name in code.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is code


def pickler_for(module: Any) -> Any:
    """Return what stores a module: `pickle` if it is found by name, else pyspark's cloudpickle, which stores its code too.

    None where that is needed and pyspark is not installed.

    >>> from streamdsl.udm.builtin import Count
    >>> pickler_for(Count()).__name__
    'pickle'
    """
    if is_named(module):
        return pickle
    try:
        return import_module("pyspark.cloudpickle")
    except ImportError:
        return None


def again(value: Any, pickler: Any = pickle) -> Any:
    """Return what loading gives of a value that was stored.

    >>> again({"a": (1, 2)})
    {'a': (1, 2)}
    """
    return pickle.loads(pickler.dumps(value))
