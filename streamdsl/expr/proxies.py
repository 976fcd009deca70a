"""What a lambda is called with while it is traced: rows and a lifetime whose fields are expressions."""

from __future__ import annotations

import functools
import typing
from typing import Any, NoReturn

from streamdsl.errors import FieldNotFound
from streamdsl.expr.facade import E, operand
from streamdsl.expr.nodes import Expr, Field, Life, Make, Whole
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.tracing import Refusing, refuse
from streamdsl.temporal.payload import Record


class AttributeRow(Refusing):
    """A row whose fields are attributes. Its own names are private, so that no field is hidden."""

    __slots__ = ("__schema", "__side")
    __schema: Schema | None
    __side: int

    def __init__(self, schema: Schema | None, side: int = 0) -> None:
        self.__schema = schema
        self.__side = side

    def __getattr__(self, name: str) -> Any:
        schema = self.__schema
        if name.startswith("__"):
            raise AttributeError(name)
        if schema is None or (schema.shape is Shape.OBJECT and not schema.names and schema.cls is None):
            _refuse_hidden(name)
        elif name not in schema.names or (schema.shape is Shape.RECORD and hasattr(Record, name)):
            _refuse_unless_missing(schema, name)
        return E(Field(name, self.__side), _is_declared_bool(schema, name))


class RowProxy(AttributeRow):
    """A row whose fields are attributes and items: `e.x`, `e["x"]`, and `e[0]` of a tuple.

    >>> RowProxy(Schema.record(["x", "y"])).x + 1
    e.x + 1
    >>> RowProxy(Schema.record(["price"])).prise
    Traceback (most recent call last):
        ...
    streamdsl.errors.FieldNotFound: there is no field 'prise'; the fields are: price
    Hint: did you mean 'price'?
    """

    __slots__ = ()

    def __getitem__(self, name: Any) -> Any:
        schema, side = _schema_of(self), side_of(self)
        if type(name) is str:
            if schema is not None and schema.names and name not in schema.names and schema.shape is not Shape.OBJECT:
                raise FieldNotFound(name, schema.names)
            if schema is not None and schema.cls is not None and _has_items_of_its_own(schema.cls):
                refuse(f"{schema.cls.__name__} has a __getitem__ of its own")
            return E(Field(name, side), _is_declared_bool(schema, name))
        size = 0 if schema is None or not _is_tuple(schema) else len(schema.names)
        if type(name) is not int or not -size <= name < size:
            refuse(f"a row has no item {name!r}", "the items of a row are its fields")
        assert schema is not None
        return E(Field(schema.names[name], side), _is_declared_bool(schema, schema.names[name]))


class LifeProxy(Refusing):
    """The lifetime of the row, in ticks."""

    __slots__ = ()

    @property
    def le(self) -> E:
        """The start."""
        return E(Life("le"))

    @property
    def re(self) -> E:
        """The end."""
        return E(Life("re"))

    def __getattr__(self, name: str) -> Any:
        refuse(f"a traced lifetime has le and re, not {name!r}")


class Made(Refusing):
    """A payload that a lambda builds."""

    __slots__ = ("node",)

    def __init__(self, node: Make) -> None:
        self.node = node


def side_of(row: AttributeRow) -> int:
    """Return which of a pair's rows this is."""
    side: int = object.__getattribute__(row, "_AttributeRow__side")
    return side


def _schema_of(row: AttributeRow) -> Schema | None:
    schema: Schema | None = object.__getattribute__(row, "_AttributeRow__schema")
    return schema


def _is_tuple(schema: Schema) -> bool:
    return schema.shape is Shape.TUPLE or (schema.cls is not None and issubclass(schema.cls, tuple))


def _has_items_of_its_own(cls: type) -> bool:
    return any("__getitem__" in vars(base) for base in cls.__mro__ if base is not tuple)


def _refuse_hidden(name: str) -> None:
    if hasattr(Record, name) or (name.startswith("_") and not name[1:].isdigit()):
        refuse(f"{name!r} may be a method of the row", f'write e["{name}"] for the field')


def _refuse_unless_missing(schema: Schema, name: str) -> NoReturn:
    owner = {Shape.RECORD: Record, Shape.TUPLE: tuple}.get(schema.shape, schema.cls)
    if schema.shape is Shape.OBJECT or (owner is not None and hasattr(owner, name)):
        refuse(f"{name!r} is not a field but an attribute of {getattr(owner, '__name__', 'the object')}")
    raise FieldNotFound(name, schema.names)


def _is_declared_bool(schema: Schema | None, name: str) -> bool:
    return schema is not None and schema.cls is not None and name in _booleans(schema.cls)


@functools.lru_cache(maxsize=256)
def _booleans(cls: type) -> frozenset[str]:
    try:
        return frozenset(name for name, hint in typing.get_type_hints(cls).items() if hint is bool)
    except Exception:  # an annotation may name anything
        return frozenset()


def argument(value: object) -> Expr:
    """Return the node of what may be a whole payload too: a row, a payload that is built, a tuple of them."""
    if isinstance(value, AttributeRow):
        return Whole(side_of(value))
    if isinstance(value, Made):
        return value.node
    if type(value) is tuple:
        return Make(Schema.tuple(len(value)), tuple(map(argument, value)))
    return operand(value)


def result(value: object) -> Expr:
    """Return the node of what a lambda returns: an argument, or a dict of them, which is a record."""
    if type(value) is dict:
        if not all(type(name) is str for name in value):
            refuse("a record has str keys")
        return Make(Schema.record(tuple(value)), tuple(map(argument, value.values())))
    return argument(value)
