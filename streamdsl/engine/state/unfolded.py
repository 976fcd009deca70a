"""How large values are when each is looked at as often as it is held: what it costs to compare them, or to find their hashes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Final

from sortedcontainers import SortedList, SortedSet

from streamdsl.engine.state.attributes import slots_of
from streamdsl.errors import CheckpointError
from streamdsl.temporal.payload import Record

_MOST: Final = 2**40


def unfolded(values: Iterable[Any]) -> int:
    """Return the number of values that are seen on all ways through some values.

    Sixty pairs, each of which holds the one before it twice, are no large data, but nobody lives to see the hash of the last.
    Raises `CheckpointError` for what is so large, or holds itself.

    >>> inner = (1, 2)
    >>> unfolded([(inner, inner)])
    7
    """
    known: dict[int, int] = {}
    return sum(_size(value, known) for value in values)


def _size(value: Any, known: dict[int, int]) -> int:
    cls: Any = type(value)
    parts_of = _parts_of(cls)
    if parts_of is None:
        return 1
    found = known.get(id(value))
    if found is None:
        known[id(value)] = _MOST  # if it is met again on the way
        found = known[id(value)] = 1 + sum([_size(part, known) for part in parts_of(value)])
    if found > _MOST:
        raise CheckpointError("values that are keys, or in an order, hold one another too often")
    return found


@lru_cache(maxsize=1024)
def _parts_of(cls: Any) -> Callable[[Any], Iterable[Any]] | None:
    """Return what gives the parts that are looked at where a value of a class is compared.

    None for a class whose values are plain, or are only compared with themselves.
    """
    if issubclass(cls, (tuple, list, deque, set, frozenset, SortedList, SortedSet)):
        return iter
    if issubclass(cls, (dict, Record)):
        return _items
    if not is_dataclass(cls) or (cls.__eq__ is object.__eq__ and not hasattr(cls, "__lt__")):
        return None
    return _attributes


def _items(value: Any) -> Iterable[Any]:
    return [*value.keys(), *value.values()]


def _attributes(value: Any) -> Iterable[Any]:
    cls: Any = type(value)
    slots = [object.__getattribute__(value, name) for name in slots_of(cls) if _is_set(value, name)]
    return [*slots, *getattr(value, "__dict__", {}).values()]


def _is_set(value: Any, name: str) -> bool:
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True
