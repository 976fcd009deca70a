"""Round trips of modules and states through pickle."""

from __future__ import annotations

import io
import pickle
import sys
from importlib import import_module
from typing import Any

from streamdsl.testing.payload_types import FUNCTION_MODULES


class PickleStore:
    """Stores a module and its states, and loads them.

    A class or function is stored by its name. Where no process finds it by that name (it is in `__main__` or in a function, or a
    decorator has replaced it), only data is stored here; code is what pyspark's cloudpickle stores, as Spark would.

    >>> from streamdsl.udm.builtin import Count
    >>> PickleStore(Count()).again({"a": (1, 2)})
    {'a': (1, 2)}
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._code = module.function if isinstance(module, FUNCTION_MODULES) else type(module)

    def again(self, value: Any) -> Any:
        """Return a value after it was stored and loaded."""
        if is_named(self._code):
            return pickle.loads(pickle.dumps(value))
        return _loaded(value, self._code)

    def store_code(self) -> None:
        """Store the module's code if it has no importable name and pyspark is installed; loading it would replace the code."""
        if is_named(self._code):
            return
        try:
            cloudpickle = import_module("pyspark.cloudpickle")
        except ImportError:
            return
        cloudpickle.dumps(self._module)


def is_named(code: Any) -> bool:
    """Say whether another process finds a class or a function by its name.

    >>> class Local: ...
    >>> is_named(PickleStore), is_named(Local)
    (True, False)
    """
    if code.__module__ == "__main__":
        return False
    found: Any = sys.modules.get(code.__module__)
    for name in code.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is code


def _loaded(value: Any, function: Any) -> Any:
    """Return a value that was stored and loaded, but for classes without a name and one function, which stay as they are."""
    kept: list[Any] = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> int | None:
            if item is not function and (not isinstance(item, type) or is_named(item)):
                return None
            kept.append(item)
            return len(kept) - 1

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Any:
            return kept[number]

    stored = io.BytesIO()
    Pickler(stored).dump(value)
    stored.seek(0)
    return Unpickler(stored).load()
