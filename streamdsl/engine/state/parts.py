"""The parts of a plan, in order: state refers to them by their numbers, and a fingerprint says what each is."""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from streamdsl.engine.state.classes import name_of
from streamdsl.engine.state.declared import declared
from streamdsl.engine.state.mentioned import captured, classes_mentioned, named
from streamdsl.errors import QueryError
from streamdsl.plan.base import Node
from streamdsl.plan.labels import labels
from streamdsl.temporal.payload import PLAIN
from streamdsl.udm.bases import UDM

_CONTAINERS: Final = (tuple, list, dict, set, frozenset)
_UNCOUNTED: Final = ("written", "_extent", "lifetime_columns")
"""Fields that say where a query was written, what is below, and how frames are read: they count for nothing."""
_DEEP: Final = 6
"""So deep is looked into what functions have captured."""


class Parts:
    """The operators, expressions, modules and functions of a plan by number, each once, and the classes that it names.

    >>> import streamdsl as sd
    >>> parts = Parts(sd.source("trips").where(lambda e: e.fare > 5).plan())
    >>> [type(part).__name__ for part in parts.all]
    ['Where', 'Source', 'Binary', 'Field', 'Constant']
    """

    def __init__(self, plan: Node) -> None:
        self.all: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.classes: dict[type, None] = {}
        self._names = labels(plan)
        self._owners: list[str] = []
        self._walk(plan)

    def _walk(self, plan: Node) -> None:
        open_: list[tuple[Any, str]] = [(plan, "")]
        seen: set[int] = set()
        while open_:
            value, owner = open_.pop()
            if type(value) in PLAIN or isinstance(value, enum.Enum) or id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, type):
                self.classes[value] = None
                continue
            if not isinstance(value, _CONTAINERS):
                owner = self._names.get(id(value), owner)
                self._add(value, owner)
            open_ += [(part, owner) for _, part in reversed(list(_held(value)))]

    def _add(self, value: Any, owner: str) -> None:
        self.numbers[id(value)] = len(self.all)
        self.all.append(value)
        self._owners.append(owner)
        if isinstance(value, (UDM, FunctionType)):
            self.classes |= dict.fromkeys(classes_mentioned(type(value) if isinstance(value, UDM) else value))

    def declared(self, types: Iterable[type] = ()) -> list[type]:
        """Return the classes whose values are saved: the plan's, those that its functions name, `types`, and what these hold."""
        if not isinstance(types, Iterable):
            raise QueryError(f"types are classes in a list, not {types!r}", hint="types=[Trip]")
        functions = (part for part in self.all if isinstance(part, FunctionType))
        return declared([*self.classes, *self.all, *types, *itertools.chain.from_iterable(map(named, functions))])

    def described(self) -> list[tuple[str, str]]:
        """Return what each part is, with the operator that it is of: a plan that is described alike runs alike."""
        return [(owner, self._text(part)) for owner, part in zip(self._owners, self.all, strict=True)]

    def _text(self, part: Any) -> str:
        held = ", ".join(f"{name}={self._shown(value)}" for name, value in _held(part))
        if held or is_dataclass(part) or isinstance(part, UDM):
            return f"{name_of(type(part))}({held})"
        return self._function(part) if callable(part) else name_of(type(part))

    def _shown(self, value: Any, depth: int = 0) -> str:
        if id(value) in self.numbers:
            return f"#{self.numbers[id(value)]}"
        if isinstance(value, type):
            return name_of(value)
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self._shown(k, depth)}: {self._shown(v, depth)}' for k, v in value.items())}}}"
        if isinstance(value, _CONTAINERS):
            shown = [self._shown(item, depth) for item in value]
            return f"{type(value).__name__}({', '.join(sorted(shown) if isinstance(value, (set, frozenset)) else shown)})"
        if type(value) in PLAIN or isinstance(value, enum.Enum):
            return repr(value)
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{value.shape} {_hash(value.tolist())}"
        return self._function(value, depth) if callable(value) else name_of(type(value))

    def _function(self, function: Callable[..., Any], depth: int = 0) -> str:
        """Return a function's name and a hash of its code, its defaults, and what it has captured; not of globals."""
        if isinstance(function, partial):
            return f"partial({self._shown((function.func, function.args, function.keywords), depth + 1)})"
        name = getattr(function, "__name__", type(function).__name__)
        code = getattr(function, "__code__", None)
        if code is None or depth > _DEEP:
            return f"{getattr(function, '__module__', None)}:{name}"
        values = [*captured(function), getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)]
        held = [*_code(code), *(self._shown(value, depth + 1) for value in values)]
        return f"{name} {_hash(held)}"


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a part holds, by name."""
    if isinstance(value, Mapping):
        yield from ((str(name), each) for name, each in value.items())
    elif isinstance(value, _CONTAINERS):
        yield from ((str(place), each) for place, each in enumerate(value))
    elif is_dataclass(value):
        yield from ((each.name, getattr(value, each.name, None)) for each in fields(value) if each.name not in _UNCOUNTED)
    elif isinstance(value, UDM):
        yield from vars(value).items()


def _hash(value: list[Any]) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _code(code: CodeType) -> list[Any]:
    constants = [_code(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts]
    return [code.co_code.hex(), code.co_names, code.co_freevars, constants]


def _constant(value: Any) -> str:
    return f"frozenset({sorted(map(repr, value))})" if isinstance(value, frozenset) else repr(value)
