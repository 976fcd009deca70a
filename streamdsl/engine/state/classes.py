"""Classes by their names: only those that are there already are found again, and nothing is imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import NoneType
from typing import Any

from streamdsl.errors import CheckpointError


def name_of(cls: Any) -> str:
    """Return the name that stands for a class.

    >>> from fractions import Fraction
    >>> name_of(Fraction)
    'fractions:Fraction'
    """
    return f"{cls.__module__}:{cls.__qualname__}"


class Classes:
    """The classes that a checkpoint may name: those of the query (`known`), and those that their modules have under their name.

    >>> class Local: ...
    >>> Classes([Local]).found(name_of(Local)) is Local
    True
    """

    def __init__(self, known: Iterable[type] = ()) -> None:
        self._known = {name_of(cls): cls for cls in known}

    def name(self, cls: type) -> str:
        """Return a class's name; raises `CheckpointError` where that would not lead back to it."""
        name = name_of(cls)
        if self._look_up(name) is not cls:
            raise CheckpointError(
                f"it holds the class {name}, which cannot be found again by its name",
                hint="define it at the top of a module, or declare it in the query (sd.source(name, payload=...))",
            )
        return name

    def found(self, name: str) -> Any:
        """Return the class that has a name; raises `CheckpointError` where it is not there."""
        cls = self._look_up(name)
        if cls is None:
            raise CheckpointError(
                f"the checkpoint holds values of {name}, which is not there",
                hint="nothing is imported: import its module before restore, or declare the class in the query",
            )
        return cls

    def _look_up(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        return _at(name)


def is_at_its_name(cls: type) -> bool:
    """Say whether a class is what its module has under its name.

    >>> is_at_its_name(int), is_at_its_name(type("Made", (), {}))
    (True, False)
    """
    return _at(name_of(cls)) is cls


def _at(name: str) -> Any:
    if name == "builtins:NoneType":
        return NoneType
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and name_of(found) == name else None
