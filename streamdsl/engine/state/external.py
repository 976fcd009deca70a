"""What state refers to and is not part of: the plan, the operators, and what an operator was made with."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from streamdsl.engine.state.attributes import attributes_of, is_state
from streamdsl.engine.state.parts import Parts
from streamdsl.errors import CheckpointError
from streamdsl.expr.nodes import Whole
from streamdsl.udm.invoke import EXCLUDED

_CONFIGURATION: Final = ("streamdsl.plan.", "streamdsl.expr.", "streamdsl.windows.", "streamdsl.udm.")
_FEW: Final = 16
_ALIKE: Final[dict[str, Any]] = {type(value).__qualname__: value for value in (EXCLUDED, Whole())}
"""Values that anyone may make, and that are alike."""

Name = int | str | list[Any]
"""A part of the plan by its number, a running object by its name, or what is found from there attribute by attribute."""


def is_configuration(value: object) -> bool:
    """Say whether a value comes from the query and never changes: a fresh operator has an equal one.

    >>> from streamdsl.expr.nodes import Field
    >>> is_configuration(Field("fare")), is_configuration((Field("fare"), None)), is_configuration((1, 2))
    (True, True, False)
    """
    if type(value) in (tuple, list):
        items: Any = value
        held = [item for item in items[: _FEW + 1] if item is not None]
        return 0 < len(held) <= _FEW and all(map(is_configuration, held))
    cls: Any = type(value)
    if cls in (FunctionType, BuiltinFunctionType):
        return True
    return f"{cls.__module__}.".startswith(_CONFIGURATION) and not is_state(cls) and not isinstance(value, (tuple, type, Enum))


class ExternalReferences:
    """The names of what is not written, as seen from one object: `name` and `find`."""

    def __init__(self, parts: Parts, running: Mapping[str, Any], root: object = None) -> None:
        self._parts = parts
        self._running = running
        self._root = root
        self._names: dict[int, Name] = {id(part): number for number, part in enumerate(parts.all)}
        self._names |= {id(value): name for name, value in running.items()}
        self.types = {type(value) for value in (*parts.all, *running.values(), *_ALIKE.values())}
        self.shapes: dict[type, dict[str, set[type]]] = {}
        """Of which types the attributes of the engine's objects are, as far as a fresh object has such."""
        for path, value in _made_with(root, self.shapes):
            self._names.setdefault(id(value), path)
            self.types.add(type(value))

    def name(self, value: object) -> Name | None:
        """Return the name of a value, None if it is not one of these."""
        alike = _ALIKE.get(type(value).__qualname__)
        return type(value).__qualname__ if alike is not None and alike == value else self._names.get(id(value))

    def find(self, name: Name) -> Any:
        """Return the value that has a name."""
        if type(name) is int and 0 <= name < len(self._parts.all):
            return self._parts.all[name]
        if type(name) is str:
            return _ALIKE[name] if name in _ALIKE else self._running[name]
        found: Any = self._root
        for place, step in enumerate(name if type(name) is list else ()):
            found = _step(found, step, first=place == 0)
        if not is_configuration(found):
            raise CheckpointError(f"a fresh operator has nothing at {name!r:.80}", hint="another version of streamdsl wrote it")
        return found


def _made_with(root: object, shapes: dict[type, dict[str, set[type]]]) -> Iterator[tuple[list[Any], Any]]:
    """Yield what an object was made with, and what the state that it holds was, each with the way to it; fill `shapes`."""
    open_: deque[tuple[list[Any], Any]] = deque([([], root)])
    seen: set[int] = set()
    while open_:  # the shortest ways first, which are there in a fresh one too
        path, value = open_.popleft()
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        if type(value) in (tuple, list):
            items: Any = value
            open_ += [([*path, place], item) for place, item in enumerate(items[:_FEW])]
        elif is_configuration(value):
            yield path, value
        elif not path or is_state(value.__class__):
            held = attributes_of(value)
            open_ += [([*path, name], each) for name, each in held.items()]
            shape = shapes.setdefault(type(value), {})
            for name, each in held.items():
                shape.setdefault(name, set()).add(type(each))


def _step(value: Any, step: Any, first: bool) -> Any:
    """Return what an object holds at a step of such a way, None if it holds nothing there; no code of it runs."""
    if type(value) in (tuple, list):
        return value[step] if type(step) is int and 0 <= step < min(_FEW, len(value)) else None
    return attributes_of(value).get(step) if first or is_state(value.__class__) else None
