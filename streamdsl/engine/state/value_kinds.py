"""Which kind of value each type is: what is plain, what has an identity, and what can only be pickled."""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from enum import Enum
from typing import Final

import numpy as np
from sortedcontainers import SortedDict, SortedList, SortedSet

from streamdsl.engine.state.attributes import is_fields, is_state
from streamdsl.engine.state.classes import Classes
from streamdsl.engine.state.composites import COMPOSITES, write_named
from streamdsl.engine.state.objects import Arrays, Attributes, Counts, Deques, Dicts, Items, Objects, Pickled, Sets
from streamdsl.engine.state.plain_values import WRITERS, Write, write_class, write_dtype, write_enum, write_scalar
from streamdsl.errors import CheckpointError

_DICTS: Final = (dict, Counter, OrderedDict, defaultdict, SortedDict)
_ITEMS: Final[dict[type, Objects]] = {
    list: Items("list", list, list.extend),
    set: Sets(),
    deque: Deques(),
    SortedSet: Items("sorted set", SortedSet, SortedSet.update, phase=2),
    SortedList: Items("sorted list", SortedList, SortedList.update, phase=2),
    np.ndarray: Arrays(),
    itertools.count: Counts(),
}
_BY_KEY: Final = {kind.key: kind for kind in _ITEMS.values()}
_VALUES: Final[tuple[tuple[type, Write], ...]] = (
    (Enum, write_enum),
    (type, write_class),
    (np.generic, write_scalar),
    (np.dtype, write_dtype),
)


def kind_of(cls: type, classes: Classes) -> Write | Objects:
    """Return how values of a type are written: a function for those without an identity, a kind of objects for others."""
    write = WRITERS.get(cls) or COMPOSITES.get(cls)
    if write is not None:
        return write
    if cls in _ITEMS:
        return _ITEMS[cls]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return write_named
    found = next((write for base, write in _VALUES if issubclass(cls, base)), None)
    if found is not None:
        return found
    if cls in _DICTS or (issubclass(cls, dict) and is_state(cls)):
        return Dicts(cls, classes)
    if is_state(cls) or is_fields(cls):
        return Attributes(cls, classes)
    return Pickled(cls)


def objects_of(key: str, classes: Classes) -> Objects:
    """Return the kind of objects that has a key in a checkpoint."""
    if key in _BY_KEY:
        return _BY_KEY[key]
    word, _, name = key.partition(" ")
    if word == "pickled":
        return Pickled(name)
    cls = classes.found(name)
    if word == "dict" and (cls in _DICTS or (issubclass(cls, dict) and is_state(cls))):
        return Dicts(cls, classes)
    if word == "object" and not issubclass(cls, dict) and (is_state(cls) or is_fields(cls)):
        return Attributes(cls, classes)
    raise CheckpointError(f"the checkpoint holds a {name}, whose objects are not restored")
