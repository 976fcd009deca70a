"""The engine's own classes, whose objects are written attribute by attribute, and those of users that are nothing but fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, lru_cache
from types import MemberDescriptorType
from typing import Any, Final

from streamdsl.engine.operator import Operator
from streamdsl.expr.deferred import Dictionary
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.temporal import Cti, Insert, Retract
from streamdsl.temporal.event_reader import EventReader
from streamdsl.temporal.event_table import EventTable
from streamdsl.temporal.progress_policy import ProgressGenerator
from streamdsl.temporal.rejected import Rejections
from streamdsl.udm.bases import IntervalEvent

_BESIDE_THE_ENGINE: Final = (
    Schema,
    Table,
    Dictionary,
    Insert,
    Retract,
    Cti,
    EventTable,
    Rejections,
    ProgressGenerator,
    EventReader,
    IntervalEvent,
)


@cache
def is_state(cls: Any) -> bool:
    """Say whether objects of a class are state of the engine."""
    if cls in _BESIDE_THE_ENGINE:
        return True
    return str(cls.__module__).startswith("streamdsl.engine.") and not issubclass(cls, Operator)


@lru_cache(maxsize=1024)
def is_fields(cls: Any) -> bool:
    """Say whether objects of a class of users are nothing but fields: those of a dataclass that runs no code when it is let go.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    >>> is_fields(Point), is_fields(dict)
    (True, False)
    """
    own = {"__del__", "__reduce__", "__reduce_ex__", "__setstate__"} & {name for each in cls.__mro__[:-1] for name in vars(each)}
    return dataclasses.is_dataclass(cls) and cls.__new__ is object.__new__ and own <= {"__setstate__"}


@lru_cache(maxsize=1024)
def slots_of(cls: Any) -> tuple[str, ...]:
    """Return the names of a class's slots, those of its bases first."""
    found: list[str] = []
    for each in reversed(cls.__mro__):
        slots = vars(each).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return tuple(name for name in dict.fromkeys(found) if name not in ("__dict__", "__weakref__"))


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes that an object has, in slots and besides.

    >>> from streamdsl.temporal import Cti
    >>> attributes_of(Cti(5))
    {'time': 5}
    """
    cls: Any = type(value)
    found = {name: getattr(value, name) for name in slots_of(cls) if hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


@lru_cache(maxsize=4096)
def setter(cls: Any, name: str) -> Callable[[Any, Any], None]:
    """Return a function that sets an attribute of an object of a class, frozen or not."""
    for each in cls.__mro__:
        if isinstance(found := vars(each).get(name), MemberDescriptorType):
            put: Callable[[Any, Any], None] = found.__set__
            return put
    return lambda value, held: value.__dict__.__setitem__(name, held)
