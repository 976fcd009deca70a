"""State on its way back: what `writer` has written, over the attributes of a fresh object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamdsl.engine.state.buffers import parsed
from streamdsl.engine.state.classes import Classes
from streamdsl.engine.state.composites import COLUMNS
from streamdsl.engine.state.kinds import objects_of
from streamdsl.engine.state.objects import PHASES, Objects
from streamdsl.engine.state.outside import Outside


class Reader:
    """Reads one section; `trust` says whether pickled values are loaded."""

    def __init__(self, data: bytes | memoryview, outside: Outside, classes: Classes, trust: bool) -> None:
        self._text, self.arrays = parsed(data)
        self.outside = outside
        self.classes = classes
        self.trust = trust
        self.objects: dict[str, list[Any]] = {}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the section holds."""
        made: list[tuple[Objects, list[Any], Any]] = []
        for key, size, content in self._text["chunks"]:
            kind = objects_of(key, self.classes)
            shells = kind.make(size, content, self)
            made.append((kind, shells, content))
            self.objects.setdefault(key, []).extend(shells)
        # A value that is looked up by its hash, or has a place in an order, must be whole by then.
        for phase in range(PHASES):
            for kind, shells, content in made:
                if kind.phase == phase:
                    kind.fill(shells, content, self)
        return {name: next(self.column(found)) for name, found in self._text["root"].items()}

    def column(self, found: list[Any]) -> Iterator[Any]:
        """Return the values of a column."""
        kind, *content = found
        read: Callable[..., Iterable[Any]] = COLUMNS[kind]
        return iter(read(self, *content))
