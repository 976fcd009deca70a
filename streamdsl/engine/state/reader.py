"""State on its way back: what `writer` has written, over the attributes of a fresh object.

Who can write a checkpoint can falsify what a session goes on with: rows, sums, times. That cannot be told from a true one, and a
checksum keeps nobody out. What such a file must not do is anything else, so this is what is read of it:

- Values of a closed list of types. Lists, sets and dictionaries are filled, arrays have plain types, times and decimals are made
  by their own classes. Nothing else is called, and no name, attribute or module that the file names is looked up.
- Objects of the engine's own classes that are state, and of the classes that the query declares (`classes`), which the file can
  only choose among by name. They are made by `object.__new__` and their attributes are set past all code of the class, so that
  of it only `__hash__`, `__eq__` and `__lt__` run, where a declared class has its own and its objects are keys, or in an order.
- Functions, expressions and modules are the query's; the file has their numbers, or the way to them in a fresh operator.
- As many values as the file has bytes, times a constant: sizes, shapes and references are compared with what is there before
  anything is made, and what is looked up by its hash is not larger than that when it is unfolded. Numbers that are
  chosen for their hashes can still make a dictionary slow, as in any Python program.

Whatever else is wrong is a `CheckpointError`. Pickled values, which may call anything, are loaded with `trust` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamdsl.engine.state.buffers import parsed
from streamdsl.engine.state.classes import Classes
from streamdsl.engine.state.composites import COLUMNS
from streamdsl.engine.state.external import ExternalReferences
from streamdsl.engine.state.objects import PHASES, Objects
from streamdsl.engine.state.unfolded import unfolded
from streamdsl.engine.state.value_kinds import objects_of
from streamdsl.errors import CheckpointError


class Reader:
    """Reads one section; `trust` says whether pickled values are loaded."""

    def __init__(self, data: bytes | memoryview, outside: ExternalReferences, classes: Classes, trust: bool) -> None:
        self._text, self.arrays = parsed(data)
        self.outside = outside
        self.classes = classes
        self.trust = trust
        self.objects: dict[str, list[Any]] = {}
        self.n_references = 0

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the section holds."""
        made: list[tuple[Objects, list[Any], Any]] = []
        for key, size, content in self._text["chunks"]:
            kind = objects_of(key, self.classes)
            self.arrays.charge(size)
            shells = kind.make(size, content, self)
            if len(shells) != size:
                raise CheckpointError(f"it has {len(shells)} of {size} objects of the kind {key}")
            made.append((kind, shells, content))
            self.objects.setdefault(key, []).extend(shells)
        # A value that is looked up by its hash, or has a place in an order, must be whole by then.
        for phase in range(PHASES):
            for kind, shells, content in made:
                if kind.phase == phase:
                    kind.fill(shells, content, self)
        return {name: self.column(found, 1)[0] for name, found in self._text["root"].items()}

    def column(self, found: list[Any], size: int) -> Sequence[Any]:
        """Return the values of a column, of which there must be so many."""
        self.arrays.charge(size)
        return self.part(found, size)

    def part(self, found: list[Any], size: int) -> Sequence[Any]:
        """Return the values of a part of a column."""
        kind, *content = found
        values = COLUMNS[kind](self, size, *content)
        if len(values) != size:
            raise CheckpointError(f"it has {len(values)} values where {size} must be")
        return values

    def parts(self, found: list[Any], lengths: Sequence[int], looked_up: bool = False) -> list[Sequence[Any]]:
        """Return a column in pieces of such lengths; `looked_up` as in `Writer.looked_up`."""
        before = self.n_references
        values = self.column(found, sum(lengths))
        if looked_up and self.n_references > before:
            self.arrays.charge(unfolded(values))
        pieces, end = [], 0
        for length in lengths:
            pieces.append(values[end : end + length])
            end += length
        return pieces
