"""What the payloads of a stream look like: their fields, and how to take them apart and build them again."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamdsl.errors import SchemaError, shortened
from streamdsl.temporal.identifiers import exact
from streamdsl.temporal.payload import Record, is_dataclass, is_namedtuple


class Shape(enum.Enum):
    """How a payload holds its fields."""

    SCALAR = "scalar"
    """One bare value, which is itself in every lambda; its column is `value`."""
    RECORD = "record"
    """A mapping with `str` keys; results are `Record`s."""
    TUPLE = "tuple"
    """A plain tuple, fields `_0`, `_1`, ..."""
    CLASS = "class"
    """A plain dataclass or named tuple, rebuilt from its fields."""
    OBJECT = "object"
    """Any object kept whole: results of opaque functions, and dataclasses whose construction runs code of their own."""


class TupleRow(tuple[Any, ...]):
    """What a lambda sees of a tuple payload: the tuple, with its fields `_0`, `_1`, ... as attributes too."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_" and name[1:].isdigit() and int(name[1:]) < len(self):
            return tuple.__getitem__(self, int(name[1:]))
        raise AttributeError(name)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            try:
                return getattr(self, index)
            except AttributeError:
                raise KeyError(index) from None
        return tuple.__getitem__(self, index)


def is_plain_class(cls: type) -> bool:
    """Say whether instances are nothing but their fields: a dataclass or named tuple that runs no code when it is made.

    >>> @dataclass
    ... class P:
    ...     x: int
    >>> is_plain_class(P), is_plain_class(dict)
    (True, False)
    """
    if type(cls).__call__ is not type.__call__:
        return False
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _is_plain_namedtuple(cls)
    if not dataclasses.is_dataclass(cls):
        return False
    params = cls.__dict__.get("__dataclass_params__")
    custom = {"__post_init__", "__getattr__", "__getattribute__", "__setattr__"} - (
        {"__setattr__"} if params is not None and params.frozen else set()
    )
    fields = dataclasses.fields(cls)
    return (
        params is not None
        and params.init
        and _is_generated(vars(cls).get("__init__"))
        and cls.__new__ is object.__new__
        and not any(name in klass.__dict__ for klass in cls.__mro__[:-1] for name in custom)
        and all(f.init and _is_stored(cls, f.name) for f in fields)
        and {f.name for f in fields} == set(_init_fields(cls))
    )


@functools.lru_cache(maxsize=1024)
def is_positional(cls: type) -> bool:
    """Say whether a plain class takes all its fields by position."""
    return not dataclasses.is_dataclass(cls) or not any(f.kw_only for f in dataclasses.fields(cls))


def _is_plain_namedtuple(cls: type) -> bool:
    direct = cls.__bases__ == (tuple,) or typing.NamedTuple in cls.__dict__.get("__orig_bases__", ())
    made = getattr(cls.__new__, "__code__", None)
    return direct and made is not None and made.co_names == ("_tuple_new",) and "__getattribute__" not in cls.__dict__


def _is_generated(function: object) -> bool:
    # dataclass() keeps an __init__ that the class body defines; the one that it writes itself comes out of a function of its own.
    code = getattr(function, "__code__", None)
    return code is not None and code.co_qualname == "__create_fn__.<locals>.__init__"


def _is_stored(cls: type, name: str) -> bool:
    found = inspect.getattr_static(cls, name, None)
    return isinstance(found, types.MemberDescriptorType) or not hasattr(type(found), "__set__")


def _init_fields(cls: type) -> list[str]:
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    return [] if code is None else list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a stream's payloads and the shape that holds them.

    >>> Schema.of_payload({"k": "a", "v": 1})
    Schema(k, v)
    """

    shape: Shape
    names: tuple[str, ...]
    cls: type | None = None
    kind: type | None = field(default=None, compare=False)
    """Of bare values the class that is declared for them, or that the first one has."""

    def __post_init__(self) -> None:
        if any(type(name) is not str for name in self.names):
            object.__setattr__(self, "names", tuple(map(exact, self.names)))

    @classmethod
    @functools.cache
    def scalar(cls, kind: Any = None) -> Schema:
        """Return the schema of bare values, of which the class may be known."""
        return cls(Shape.SCALAR, ("value",), kind=kind)

    @classmethod
    def record(cls, names: Sequence[str]) -> Schema:
        """Return the schema of records with these fields."""
        return cls(Shape.RECORD, tuple(names))

    @classmethod
    def tuple(cls, size: int) -> Schema:
        """Return the schema of plain tuples."""
        return cls(Shape.TUPLE, tuple(f"_{i}" for i in range(size)))

    @classmethod
    def object(cls) -> Schema:
        """Return the schema of any objects kept whole."""
        return cls(Shape.OBJECT, ())

    @classmethod
    def of_type(cls, payload: type | None) -> Schema | None:
        """Return the schema of a payload type; None where only a first event can tell (mappings, tuples, Any).

        >>> Schema.of_type(int)
        Schema(value)
        """
        if payload is None or payload is Any or not isinstance(payload, type):
            return None
        if typing.is_typeddict(payload):
            return cls.record(tuple(typing.get_type_hints(payload)))
        if dataclasses.is_dataclass(payload):
            names = tuple(f.name for f in dataclasses.fields(payload))
            return cls(Shape.CLASS if is_plain_class(payload) else Shape.OBJECT, names, payload)
        if issubclass(payload, tuple) and hasattr(payload, "_fields"):
            return cls(Shape.CLASS if is_plain_class(payload) else Shape.OBJECT, tuple(payload._fields), payload)
        if issubclass(payload, (Mapping, tuple)) or payload is object:
            return None
        return cls.scalar(payload)  # type: ignore[arg-type]

    @classmethod
    def of_payload(cls, payload: Any) -> Schema:
        """Return the schema that a first payload shows."""
        if isinstance(payload, Mapping):
            if not all(isinstance(name, str) for name in payload):
                raise SchemaError(f"a mapping payload has str keys, not {shortened(payload)}")
            return cls.record(tuple(payload))
        if is_dataclass(payload) or is_namedtuple(payload):
            found = cls.of_type(type(payload))
            assert found is not None
            return found
        kind: Any = type(payload)
        return cls.tuple(len(payload)) if isinstance(payload, tuple) else cls.scalar(kind)

    def values(self, payload: Any) -> Sequence[Any]:
        """Return the payload's field values in order, or raise `SchemaError`; an object stays whole.

        >>> Schema.record(["k", "v"]).values({"v": 1, "k": "a"})
        ['a', 1]
        """
        if self.shape is Shape.SCALAR or self.shape is Shape.OBJECT:
            return (payload,)
        if self.shape is Shape.RECORD:
            if not isinstance(payload, Mapping) or len(payload) != len(self.names):
                raise self._mismatch(payload)
            try:
                return [payload[name] for name in self.names]
            except KeyError:
                raise self._mismatch(payload) from None
        if self.shape is Shape.TUPLE:
            if not isinstance(payload, tuple) or len(payload) != len(self.names):
                raise self._mismatch(payload)
            return payload
        if not isinstance(payload, self.cls or object):
            raise self._mismatch(payload)
        return payload if isinstance(payload, tuple) else [getattr(payload, name) for name in self.names]

    def build(self, values: Sequence[Any]) -> Any:
        """Return the payload with these field values (of an object: the object itself).

        >>> Schema.tuple(2).build([1, "x"])
        (1, 'x')
        """
        if self.shape is Shape.SCALAR or self.shape is Shape.OBJECT:
            return values[0]
        if self.shape is Shape.RECORD:
            return Record(zip(self.names, values, strict=True))
        if self.shape is Shape.TUPLE:
            return tuple(values)
        assert self.cls is not None
        if issubclass(self.cls, tuple):
            return self.cls(*values)
        return self.cls(**dict(zip(self.names, values, strict=True)))

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns that hold the payloads: the fields, or `""` for objects kept whole."""
        return ("",) if self.shape is Shape.OBJECT else self.names

    def _mismatch(self, payload: Any) -> SchemaError:
        wanted = self.cls.__name__ if self.cls else self.shape.value
        return SchemaError(
            f"payload {shortened(payload)} does not fit its stream of {wanted} payloads with the fields: {', '.join(self.names)}",
            hint=self.hint_of_payloads,
        )

    @property
    def hint_of_payloads(self) -> str:
        """What an error says of a payload that does not fit."""
        if self.cls is None:
            return "every payload of a stream has the same fields; None is a value"
        return f"every payload of this stream is an instance of its class: {self.cls.__name__}(...)"

    def __repr__(self) -> str:
        return f"{self.cls.__name__ if self.cls else 'Schema'}({', '.join(self.names)})"


def row_view(payload: Any) -> Any:
    """Return what a lambda sees of a payload: itself, of a mapping a record, of a plain tuple one with fields `._0`, `._1`.

    >>> row_view(5), row_view((1, 2))._1
    (5, 2)
    """
    if isinstance(payload, Record) or is_dataclass(payload) or is_namedtuple(payload):
        return payload
    if isinstance(payload, Mapping):
        return Record(payload)
    return TupleRow(payload) if isinstance(payload, tuple) else payload


def as_payload(result: Any) -> Any:
    """Return the payload that a user function's result stands for: a `dict` becomes a `Record`, a row becomes its payload."""
    kind = type(result)
    if kind is dict:
        return Record(result)
    if kind is Record or kind is tuple:
        return result
    if isinstance(result, TupleRow):
        return tuple(result)
    if isinstance(result, Mapping) and not isinstance(result, Record):
        return Record(result)
    return result
