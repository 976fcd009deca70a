"""Runtime type checks of a dataclass's fields against its annotations, for plans that are read from text."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin


def misfits(cls: type, values: Mapping[str, Any]) -> str:
    """Return a text of all fields that are missing, unknown, or of another type, "" if none; only compared fields count.

    >>> from streamdsl.plan.node import Distinct, Calendar, Source
    >>> misfits(Distinct, {"input": Source("trips")}), misfits(Calendar, {"input": 5, "start": 1, "ned": 5})
    ('', "there is no 'end'; it has no field 'ned'; 5 is no input")
    """
    known: Any = {each.name: each for each in fields(cls) if each.compare}
    hints = _hints(cls)
    missing = [name for name, each in known.items() if name not in values and each.default is MISSING]
    return "; ".join(
        [f"there is no {name!r}" for name in missing]
        + [f"it has no field {name!r}" for name in values if name not in known]
        + [f"{value!r} is no {name}" for name, value in values.items() if name in known and not fits(value, hints[name])]
    )


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    # `typing.get_type_hints` resolves names in the class first, where `Schema.tuple` hides the builtin.
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= inspect.get_annotations(base, globals=vars(sys.modules[base.__module__]), locals={}, eval_str=True)
    return found


def fits(value: Any, hint: Any) -> bool:
    """Say whether a value fits an annotation. Type arguments of callables and of classes other than `tuple` are not checked.

    >>> fits((1, 2), tuple[int, ...]), fits("x", int | None), fits("a", typing.Literal["a", "b"])
    (True, False, True)
    """
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return True
    if hint is None:
        return value is None
    if origin in (typing.Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if origin is tuple:
        return type(value) is tuple and _items_fit(value, parts)
    if origin is Callable or hint is Callable:
        return callable(value)
    if hint is int:
        return type(value) is int
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else callable(value)


def _items_fit(items: tuple[Any, ...], parts: tuple[Any, ...]) -> bool:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return all(fits(item, parts[0]) for item in items)
    return len(items) == len(parts) and all(map(fits, items, parts))
