"""How objects with an identity are written, all of a kind at once, and read: first they are made, and then filled."""

from __future__ import annotations

import itertools
import math
import pickle
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from sortedcontainers import SortedDict

from streamdsl.engine.state.attributes import attributes_of, is_state, setter, slots_of
from streamdsl.engine.state.buffers import checked
from streamdsl.engine.state.classes import Classes, name_of
from streamdsl.engine.state.composites import in_order
from streamdsl.errors import CheckpointError
from streamdsl.expr.schema import Schema

if TYPE_CHECKING:
    from streamdsl.engine.state.reader import Reader
    from streamdsl.engine.state.writer import Writer

PHASES: Final = 3
"""Attributes and lists are filled first, then what looks values up by their hashes, then what orders them."""
_FACTORIES: Final = (int, float, str, list, dict, set, tuple)


class Objects(ABC):
    """One kind of objects; `key` is its name in a checkpoint."""

    key: str
    phase: ClassVar[int] = 0

    @abstractmethod
    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        """Return what the objects hold, as JSON."""

    @abstractmethod
    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        """Return the objects, empty where they can be filled later."""

    def fill(self, shells: Sequence[Any], content: Any, reader: Reader) -> None:
        """Let the objects hold what they held."""


class Items(Objects):
    """Lists and the like: `empty()` makes one, `put(one, items)` fills it."""

    def __init__(self, key: str, empty: Callable[[], Any], put: Callable[[Any, Iterable[Any]], Any], phase: int = 0) -> None:
        self.key = key
        self.phase = phase  # type: ignore[misc]
        self._empty = empty
        self._put = put

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        items = list(chain.from_iterable(objects))
        return [writer.out.numbers(list(map(len, objects))), writer.looked_up(items) if self.phase else writer.column(items)]

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        return [self._empty() for _ in range(size)]

    def fill(self, shells: Sequence[Any], content: Any, reader: Reader) -> None:
        sizes, found = content
        lengths = reader.arrays.sizes(sizes, len(shells))
        for shell, items in zip(shells, reader.parts(found, lengths, self.phase > 0), strict=True):
            self._put(shell, items)
        _check_lengths(shells, lengths)


def _check_lengths(shells: Sequence[Any], lengths: list[int]) -> None:
    """Raise `CheckpointError` where equal keys, or a bound, have left something out."""
    if list(map(len, shells)) != lengths:
        raise CheckpointError("it holds a collection with equal keys, or with more items than it can have")


class Sets(Items):
    """Sets."""

    def __init__(self) -> None:
        super().__init__("set", set, set.update, phase=1)

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        return super().write(list(map(list, map(in_order, objects))), writer)


class Deques(Items):
    """Deques, some of which are bounded."""

    def __init__(self) -> None:
        super().__init__("deque", deque, deque.extend)

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        return [*super().write(objects, writer), writer.column([each.maxlen for each in objects])]

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        return [deque(maxlen=most) for most in reader.column(content[2], size)]

    def fill(self, shells: Sequence[Any], content: Any, reader: Reader) -> None:
        super().fill(shells, content[:2], reader)


class Dicts(Objects):
    """Dictionaries of a class, in their order."""

    phase = 1

    def __init__(self, cls: Any, classes: Classes) -> None:
        self.key = f"dict {classes.name(cls)}"
        self._cls = cls

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        if self._cls is SortedDict and any(each.key is not None for each in objects):
            raise CheckpointError("it holds a SortedDict with a key function")
        sizes = writer.out.numbers(list(map(len, objects)))
        keys = writer.looked_up(list(chain.from_iterable(objects)))
        values = writer.column(list(chain.from_iterable(each.values() for each in objects)))
        return [sizes, keys, values, self._own(objects, writer)]

    def _own(self, objects: Sequence[Any], writer: Writer) -> Any:
        """Return what the dictionaries have besides their items."""
        if self._cls is defaultdict:
            return writer.column([_factory(each.default_factory) for each in objects])
        return Attributes(self._cls).write(objects, writer) if is_state(self._cls) else None

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        if self._cls is defaultdict:
            return [defaultdict(_factory(each)) for each in reader.column(content[3], size)]
        return [dict.__new__(self._cls) if is_state(self._cls) else self._cls() for _ in range(size)]

    def fill(self, shells: Sequence[Any], content: Any, reader: Reader) -> None:
        sizes, keys, values, own = content
        lengths = reader.arrays.sizes(sizes, len(shells))
        pieces = zip(shells, reader.parts(keys, lengths, True), reader.parts(values, lengths), strict=True)
        for shell, named, held in pieces:
            # A Counter's own `update` adds up.
            (self._cls if self._cls in (SortedDict, OrderedDict) else dict).update(shell, zip(named, held, strict=True))
        _check_lengths(shells, lengths)
        if is_state(self._cls):
            Attributes(self._cls).fill(shells, own, reader)


def _factory(factory: Any) -> Any:
    if factory is not None and not any(factory is each for each in _FACTORIES):
        raise CheckpointError(
            f"it holds a defaultdict of {factory!r:.80}", hint="a Counter or a dict, or a defaultdict of a built-in type"
        )
    return factory


class Arrays(Objects):
    """Arrays of numpy, typed or of objects."""

    key = "array"

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        places, held = [], []
        for array in objects:
            if array.dtype == object:
                writer.out.charge(array.size)
                held.append(array.ravel().tolist())
            places.append([list(array.shape), None if array.dtype == object else writer.out.put(array)])
        return [places, writer.column(list(chain.from_iterable(held)))]

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        return [self._made(checked(shape, int), place, reader) for shape, place in content[0]]

    def _made(self, shape: list[int], place: Any, reader: Reader) -> Any:
        if min(shape, default=0) < 0:  # numpy would find out what is meant
            raise CheckpointError(f"it holds an array of the shape {shape}")
        if place is not None:
            return reader.arrays.get(place).reshape(shape)
        reader.arrays.charge(math.prod(shape))
        return np.empty(shape, dtype=object)

    def fill(self, shells: Sequence[Any], content: Any, reader: Reader) -> None:
        held = [shell for shell in shells if shell.dtype == object]
        for shell, items in zip(held, reader.parts(content[1], [shell.size for shell in held]), strict=True):
            shell[...] = np.fromiter(items, dtype=object, count=shell.size).reshape(shell.shape)


class Counts(Objects):
    """Counters of `itertools`, by the number that comes next."""

    key = "count"

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        return writer.column([int(repr(each)[len("count(") : -1]) for each in objects])

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        return list(map(itertools.count, checked(reader.column(content, size), int)))


class Attributes(Objects):
    """Objects of a class by their attributes; they are made without running code of theirs."""

    def __init__(self, cls: type, classes: Classes | None = None) -> None:
        self.key = f"object {name_of(cls) if classes is None else classes.name(cls)}"
        self._cls = cls

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        if hasattr(self._cls, "before_saved"):
            for each in objects:
                each.before_saved()
        names = self._names(objects)
        shapes = {each: place for place, each in enumerate(dict.fromkeys(names))}
        places = list(map(shapes.__getitem__, names))
        parts: list[Any] = []
        for place, attributes in enumerate(shapes):
            members = objects if len(shapes) == 1 else [each for each, at in zip(objects, places, strict=True) if at == place]
            parts.append([attributes, [self._column(name, members, writer) for name in attributes]])
        return [writer.out.numbers(places), parts]

    def _names(self, objects: Sequence[Any]) -> list[tuple[str, ...]]:
        """Return the names of each object's attributes."""
        slots = slots_of(self._cls)
        if not hasattr(objects[0], "__dict__"):
            try:
                deque(map(attrgetter(*slots), objects), maxlen=0)
            except AttributeError:  # one that has not been set
                return [tuple(attributes_of(each)) for each in objects]
            return [slots] * len(objects)
        return [tuple(attributes_of(each)) for each in objects] if slots else list(map(tuple, map(vars, objects)))

    def _column(self, name: str, objects: Sequence[Any], writer: Writer) -> Any:
        writer.at = f"{self._cls.__name__}.{name}"
        return writer.column(list(map(attrgetter(name), objects)))

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        return [object.__new__(self._cls) for _ in range(size)]

    def fill(self, shells: Sequence[Any], content: Any, reader: Reader) -> None:
        places, parts = content
        at = reader.arrays.numbers(places, len(shells), below=len(parts))
        for place, (names, columns) in enumerate(parts):
            members = [shells[row] for row in np.flatnonzero(at == place).tolist()] if len(parts) > 1 else shells
            if not len(set(checked(names, str))) == len(names) == len(columns):
                raise CheckpointError(f"it holds a {self._cls.__name__} whose attributes are not those of its columns")
            shape = reader.outside.shapes.get(self._cls, {})
            if not shape.keys() <= set(names):
                raise CheckpointError(f"it holds a {self._cls.__name__} without {', '.join(shape.keys() - set(names))}")
            for name, column in zip(names, columns, strict=True):
                put, values = setter(self._cls, name), reader.column(column, len(members))
                check_types(name, values, shape.get(name, ()))
                for shell, value in zip(members, values, strict=True):
                    put(shell, value)
        if self._cls is Schema and not all(_is_schema(shell) for shell in shells):
            raise CheckpointError("it holds a Schema of a class that is more than its fields")


def check_types(name: str, values: Iterable[Any], fresh: Collection[type]) -> None:
    """Raise `CheckpointError` where an attribute has values of other types than a fresh one; where that is None, any may come."""
    if fresh and NoneType not in fresh and not set(map(type, values)) <= {NoneType, *fresh}:
        other = next(iter(set(map(type, values)) - {NoneType, *fresh}))
        raise CheckpointError(f"{name} is a {other.__name__}, which must be a {' or a '.join(each.__name__ for each in fresh)}")


def _is_schema(schema: Any) -> bool:
    """Say whether payloads can be made by a schema without running code of their class."""
    return schema.cls is None or schema == Schema.of_type(schema.cls)


class Pickled(Objects):
    """Objects of any other class, which are read only where the reader is told to trust them."""

    def __init__(self, cls: Any) -> None:
        self.name = name_of(cls) if isinstance(cls, type) else str(cls)
        self.key = f"pickled {self.name}"

    def write(self, objects: Sequence[Any], writer: Writer) -> Any:
        try:
            data = pickle.dumps(objects)
        except Exception as error:
            raise CheckpointError(
                f"it holds a {self.name}, which cannot be saved: {error}",
                hint="plain values, dataclasses and named tuples can be; of other objects those that can be pickled",
            ) from error
        writer.pickled.add(self.name)
        return writer.out.put_parts([data])

    def make(self, size: int, content: Any, reader: Reader) -> list[Any]:
        if not reader.trust:
            raise CheckpointError(f"it holds pickled values, of {self.name}")
        made: list[Any] = pickle.loads(reader.arrays.get_bytes(content))
        return made
