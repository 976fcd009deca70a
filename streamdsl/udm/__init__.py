"""User-defined modules: the base classes, plain functions as modules, and the built-in aggregates (paper 001, section IV).

The package is also the repository of modules by name: `sd.udm("median", lambda e: e.x)`, `sd.udm.register`, `sd.udm.get`,
`sd.udm.catalog`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from streamdsl.udm.bases import (
    UDA,
    UDO,
    Agg,
    IncrementalUDA,
    IncrementalUDO,
    IntervalEvent,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
    WindowDescriptor,
)
from streamdsl.udm.function_modules import uda, udo
from streamdsl.udm.listing import Catalog
from streamdsl.udm.repository import repository as _repository
from streamdsl.udm.stream_operator import UDSO

register = _repository.register
get = _repository.get
catalog = _repository.catalog


class _CallablePackage(ModuleType):
    """The class of this package: calling the package calls the repository. It is pickled by its name."""

    def __call__(self, name: str, f: Any = None, /, *, where: Any = None, **parameters: Any) -> Agg[Any, Any]:
        return _repository(name, f, where=where, **parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _CallablePackage

__all__ = [
    "UDA",
    "UDO",
    "UDSO",
    "Agg",
    "Catalog",
    "IncrementalUDA",
    "IncrementalUDO",
    "IntervalEvent",
    "TimeSensitiveIncrementalUDA",
    "TimeSensitiveIncrementalUDO",
    "TimeSensitiveUDA",
    "TimeSensitiveUDO",
    "WindowDescriptor",
    "catalog",
    "get",
    "register",
    "uda",
    "udo",
]
