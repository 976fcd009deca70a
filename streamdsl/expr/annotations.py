"""The types that annotations declare for the fields of payloads, so that a wrong field is found when the query is written."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass  # noqa: F401 - the examples declare classes
from typing import Any, Final

_DYNAMIC: Final = ("__getattr__", "__getattribute__")


def declared_type(cls: Any, name: str) -> Any:
    """Return the type that a class declares for a field, without None; None where it declares nothing that can be read.

    >>> @dataclass
    ... class Trip:
    ...     fare: float | None
    >>> declared_type(Trip, "fare"), declared_type(Trip, "zone")
    (<class 'float'>, None)
    """
    return _hints(cls).get(name) if isinstance(cls, type) else None


def declared_attributes(hint: Any) -> tuple[str, ...] | None:
    """Return the fields that the values of a declared type have as attributes; None if it is no dataclass or named tuple.

    >>> @dataclass
    ... class Trip:
    ...     fare: float
    >>> declared_attributes(Trip), declared_attributes(int)
    (('fare',), None)
    """
    if not isinstance(hint, type) or any(
        name in vars(base) for base in hint.__mro__[:-1] if base is not tuple for name in _DYNAMIC
    ):
        return None
    if is_dataclass(hint):
        return tuple(f.name for f in fields(hint))
    return tuple(hint._fields) if issubclass(hint, tuple) and hasattr(hint, "_fields") else None


def declared_items(hint: Any) -> tuple[str, ...] | None:
    """Return the keys of a typed dictionary; None for other types."""
    return tuple(typing.get_type_hints(hint)) if typing.is_typeddict(hint) else None


def is_always(cls: Any, name: str, kind: type) -> bool:
    """Say whether a class declares a field to be of a type, and never None.

    >>> @dataclass
    ... class Trip:
    ...     paid: bool
    ...     shared: bool | None
    >>> is_always(Trip, "paid", bool), is_always(Trip, "shared", bool)
    (True, False)
    """
    return isinstance(cls, type) and _written_hints(cls).get(name) is kind


@functools.lru_cache(maxsize=256)
def _hints(cls: type) -> Mapping[str, Any]:
    return {name: _without_none(hint) for name, hint in _written_hints(cls).items()}


@functools.lru_cache(maxsize=256)
def _written_hints(cls: type) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # an annotation may name anything
        return {}


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    return options[0] if len(options) == 1 else None
