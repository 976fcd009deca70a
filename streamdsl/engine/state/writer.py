"""State on its way out: the attributes of one object, and of all that hangs on them, as columns.

A *column* is a list of values of any types, written by type: plain values as they are, tuples as columns of their items, and
objects that have an identity as numbers. The objects of a type are written together, in *chunks*: an attribute of all of them is
a column again. So nothing is written twice, circles and long chains cost nothing more, and what is much is written in columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from streamdsl.engine.state.buffers import Data, Writing
from streamdsl.engine.state.classes import Classes
from streamdsl.engine.state.external import ExternalReferences
from streamdsl.engine.state.objects import Objects
from streamdsl.engine.state.plain_values import Write
from streamdsl.engine.state.unfolded import unfolded
from streamdsl.engine.state.value_kinds import kind_of
from streamdsl.expr.deferred import DeferredColumn, DeferredColumns


class _KnownObjects:
    """The objects of one kind, their numbers, and how many of them have been written."""

    def __init__(self, kind: Objects) -> None:
        self.kind = kind
        self.members: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.n_written = 0

    def of(self, objects: Sequence[Any]) -> list[int]:
        """Return the numbers of objects; new ones get the next."""
        ids = list(map(id, objects))
        new = {key: item for key, item in zip(ids, objects, strict=True) if key not in self.numbers}
        self.numbers.update(zip(new, itertools.count(len(self.members)), strict=False))
        self.members += new.values()
        return list(map(self.numbers.__getitem__, ids))


class Writer:
    """Writes one section; `at` says which attribute is being written, `pickled` of which classes there are pickled values."""

    def __init__(self, outside: ExternalReferences, classes: Classes) -> None:
        self.out = Writing()
        self.classes = classes
        self.at = ""
        self.pickled: set[str] = set()
        self.n_references = 0
        self._outside = outside
        self._known: dict[str, _KnownObjects] = {}
        self._kinds: dict[type, Write | Objects] = {}

    def section(self, attributes: Mapping[str, Any]) -> list[Data]:
        """Return the attributes, and all that hangs on them, as bytes in parts."""
        root = {}
        for name, value in attributes.items():
            self.at = name
            root[name] = self.column([value])
        chunks: list[Any] = []
        while pending := [known for known in self._known.values() if known.n_written < len(known.members)]:
            for known in pending:
                objects = known.members[known.n_written :]
                known.n_written = len(known.members)
                self.out.charge(len(objects))
                chunks.append([known.kind.key, len(objects), known.kind.write(objects, self)])
        return self.out.parts({"root": root, "chunks": chunks})

    def column(self, values: Sequence[Any]) -> list[Any]:
        """Return values as a column."""
        self.out.charge(len(values))
        kinds = list(map(type, values))
        if DeferredColumn in kinds or DeferredColumns in kinds:
            values = list(map(_read, values))
            kinds = list(map(type, values))
        return self.split(kinds, values, self._typed)

    def split(
        self, keys: Sequence[Hashable], values: Sequence[Any], write: Callable[[Any, Sequence[Any]], list[Any]]
    ) -> list[Any]:
        """Return values as one column for each key, and of which of them each value is."""
        codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        if len(codes) < 2:
            return write(next(iter(codes)), values) if codes else ["none"]
        parts: list[list[Any]] = [[] for _ in codes]
        places = list(map(codes.__getitem__, keys))
        for place, value in zip(places, values, strict=True):
            parts[place].append(value)
        return ["mixed", self.out.numbers(places), [write(key, part) for key, part in zip(codes, parts, strict=True)]]

    def looked_up(self, values: Sequence[Any]) -> list[Any]:
        """Return values that are looked up by their hashes, or have a place in an order, as a column."""
        before = self.n_references
        found = self.column(values)
        if self.n_references > before:
            self.out.charge(unfolded(values))
        return found

    def references(self, kind: Objects, objects: Sequence[Any]) -> list[Any]:
        """Return objects as their numbers among all of their kind."""
        known = self._known.setdefault(kind.key, _KnownObjects(kind))
        self.n_references += 1
        numbers = known.of(objects)
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return ["refs", kind.key, numbers[0]]
        return ["ref", kind.key, self.out.numbers(numbers)]

    def _typed(self, cls: type, values: Sequence[Any]) -> list[Any]:
        if cls in self._outside.types:
            names = list(map(self._outside.name, values))
            if None not in names:
                return ["outside", names]
            if any(name is not None for name in names):
                return self.split([name is None for name in names], values, lambda inside, part: self._within(cls, part, inside))
        return self._within(cls, values)

    def _within(self, cls: type, values: Sequence[Any], inside: bool = True) -> list[Any]:
        if not inside:
            return ["outside", list(map(self._outside.name, values))]
        kind = self._kinds.get(cls)
        if kind is None:
            kind = self._kinds[cls] = kind_of(cls, self.classes)
        return self.references(kind, values) if isinstance(kind, Objects) else kind(values, self)


def _read(value: Any) -> Any:
    """Return what is held as what it is when it has been read."""
    if type(value) is DeferredColumn:
        return value.column
    return dict(value) if type(value) is DeferredColumns else value
