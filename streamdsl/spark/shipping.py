"""Pickling of code and values for Spark's Python workers: modules that are not installed go by value."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, TypeGuard

from pyspark import cloudpickle

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.udm.bases import UDM

_INSTALLED: Final = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})
"""The names of folders of installed packages, also of user and parent environments."""
_REGISTERING: Final = threading.RLock()
_PACKAGE: Final = __name__.partition(".")[0]
_BUILTIN: Final = frozenset({int, float, bool, str, bytes})


def ship(value: Any, what: str) -> bytes:
    """Return a pickled value; raises `UnsupportedOnSpark` for one that cannot be pickled."""
    try:
        with by_value():
            return bytes(cloudpickle.dumps(value, protocol=5))
    except Exception as error:
        raise UnsupportedOnSpark(
            f"{_named(value, what)} cannot be sent to Spark's workers: {type(error).__name__}: {error}",
            hint="locks, generators, sessions and frames cannot be pickled; make them inside the function",
        ) from error


def _named(value: Any, what: str) -> str:
    """Return the name of a value that cannot be pickled, with those of its modules that cause it."""
    blamed = dict.fromkeys(module.label for module in modules_of(value) if not _travels(module))
    return f"{what} ({', '.join(blamed)})" if blamed else what


def modules_of(value: Any) -> Iterator[UDM]:
    """Yield the UDMs inside a plan or a stage, each once, by searching dataclass fields and tuples."""
    open_, seen = [value], set[int]()
    while open_:
        found = open_.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, UDM):
            yield found
        elif isinstance(found, tuple):
            open_ += found
        elif dataclasses.is_dataclass(found) and not isinstance(found, type):
            open_ += [getattr(found, field.name) for field in dataclasses.fields(found)]


def _travels(module: UDM) -> bool:
    try:
        with by_value():
            cloudpickle.dumps(module, protocol=5)
    except Exception:
        return False
    return True


def dump_values(values: Sequence[Any]) -> list[bytes | None]:
    """Return each value pickled, None as None; an instance of a class that is not installed includes its class."""
    with nullcontext() if in_worker() else by_value():
        return [None if value is None else _dump(value) for value in values]


def load_values(blobs: Sequence[bytes | None]) -> list[Any]:
    """Return the values that `dump_values` has pickled."""
    return [None if blob is None else pickle.loads(blob) for blob in blobs]


def in_worker() -> bool:
    """Say whether this process is one of Spark's Python workers."""
    return "pyspark.worker" in sys.modules


def _dump(value: Any) -> bytes:
    if type(value) in _BUILTIN:
        return pickle.dumps(value, protocol=5)
    if in_worker():
        try:
            return pickle.dumps(value, protocol=5)
        except Exception:  # a class that came by value is not importable here, and goes back by value
            pass
    return bytes(cloudpickle.dumps(value, protocol=5))


@contextmanager
def by_value() -> Iterator[None]:
    """Have cloudpickle pickle modules by value that are not installed; its registry is global, so one thread at a time does."""
    with _REGISTERING, _registered():
        yield


@contextmanager
def _registered() -> Iterator[None]:
    known = cloudpickle.list_registry_pickle_by_value()
    loaded = {module.__name__: module for module in list(sys.modules.values()) if _is_local(module)}
    added = [module for name, module in loaded.items() if name not in known]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _is_local(module: Any) -> TypeGuard[types.ModuleType]:
    name, file = getattr(module, "__name__", None), getattr(module, "__file__", None)
    if not isinstance(name, str) or not isinstance(file, str) or sys.modules.get(name) is not module:
        return False
    if name == "__main__" or name.partition(".")[0] in (_PACKAGE, "pyspark"):
        return False
    return not _is_installed(file)


@functools.cache
def _is_installed(file: str) -> bool:
    path = Path(file)
    return not _PACKAGES.isdisjoint(path.parts) or any(path.is_relative_to(place) for place in _INSTALLED)
