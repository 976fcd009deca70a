"""Proxies that a lambda is called with while it is traced: rows and a lifetime whose fields are expressions."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from streamdsl.errors import FieldNotFound
from streamdsl.expr.annotations import declared_type
from streamdsl.expr.bytecode import is_private
from streamdsl.expr.facade import E, holds_values, node_of, operand
from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.nodes import Expr, Field, Life, Make, Whole
from streamdsl.expr.recording import SymbolicValue, WriterError, discard_mistake, record_mistake, refuse
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.user_calls import warn_value_attribute
from streamdsl.temporal.payload import Record


class RowProxy(SymbolicValue):
    """A row whose fields are attributes and items: `e.x`, `e["x"]`, and `e[0]` of a tuple.

    >>> RowProxy(Schema.record(["x", "y"])).x + 1
    e.x + 1
    >>> RowProxy(Schema.record(["price"])).prise
    Traceback (most recent call last):
        ...
    streamdsl.errors.FieldNotFound: there is no field 'prise'; the fields are: price
    Hint: did you mean 'price'?
    """

    __slots__ = ("_schema", "_side")

    def __init__(self, schema: Schema | None, side: int = 0) -> None:
        self._schema = schema
        self._side = side

    def __getattr__(self, name: str) -> Any:
        if is_private(name):
            raise AttributeError(name)
        schema = self._schema
        if hasattr(Record, name) and (schema is None or schema.shape is Shape.RECORD):
            return MethodProxy(name, schema is not None)
        if schema is not None and name not in schema.names:
            _refuse_unless_missing(schema, name)
        return self._field(name)

    def __getitem__(self, name: Any) -> Any:
        schema = self._schema
        if type(name) is str:
            if schema is not None and schema.cls is not None and _has_items_of_its_own(schema.cls):
                refuse(f"{schema.cls.__name__} has a __getitem__ of its own")
            if schema is not None and name not in schema.names:
                raise FieldNotFound(name, schema.names)
            return self._field(name)
        names = schema.names if schema is not None and _is_tuple(schema) else ()
        if type(name) is not int or not -len(names) <= name < len(names):
            refuse(f"a row has no item {name!r}", "the items of a row are its fields")
        return self._field(names[name])

    def _field(self, name: str) -> E:
        return E(Field(name, self._side), declared_type(self._schema.cls, name) if self._schema is not None else None)


class MethodProxy(SymbolicValue):
    """A method of records, which a trace does not show; to take it for a field is a mistake."""

    __slots__ = ("_name",)

    def __init__(self, name: str, is_record: bool) -> None:
        self._name = name
        if is_record:
            record_mistake(self, WriterError(f"{name} is a method of records", hint=f"write e[{name!r}] for the field"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        discard_mistake(self)
        refuse(f"{self._name!r} is a method of records")


class RowE(E):
    """A row that is an expression itself, as a bare payload is: without a schema only the run can tell what it is.

    >>> RowE(0) + 1, RowE(0).price
    (e + 1, e.price)
    >>> row_proxy(Schema.scalar(int), 0) > 3
    e > 3
    """

    __slots__ = ("_row",)

    def __init__(self, side: int) -> None:
        self._row = RowProxy(None, side)
        self._node = Whole(side)
        self._hint = None
        self._is_value = False

    def _family(self) -> type[E]:
        return E

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)

    def __getitem__(self, item: Any) -> Any:
        return self._row[item]


class BareE(E):
    """A bare payload.

    Its own attributes are those of its type. `value`, which a builtin type has not, is the payload, for one version more.
    """

    __slots__ = ("_kind",)

    def __init__(self, side: int, kind: type | None) -> None:
        self._node = Whole(side) if kind is None else Field("value", side, bare=True)
        self._hint = kind
        self._is_value = True
        self._kind = kind

    def _family(self) -> type[E]:
        return E

    def __getattr__(self, name: str) -> Any:
        if name == "value" and self._kind is not None:
            warn_value_attribute(sys._getframe(1))
            return E(self._node, self._hint)
        if self._kind is not None and not hasattr(self._kind, name) and not is_private(name):
            raise FieldNotFound(name, (), bare=self._kind)
        return super().__getattr__(name)

    def __getitem__(self, item: Any) -> Any:
        if item == "value" and self._kind is not None:
            warn_value_attribute(sys._getframe(1))
            return E(self._node, self._hint)
        return super().__getitem__(item)


def row_proxy(schema: Schema | None, side: int) -> Any:
    """Return what a lambda is called with for a row while it is traced."""
    if schema is None:
        return RowE(side)
    if schema.shape is not Shape.SCALAR:
        return RowProxy(schema, side)
    return BareE(side, schema.kind if schema.kind in IMMUTABLE else None)


class LifeProxy(SymbolicValue):
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


class BuiltPayload(SymbolicValue):
    """A payload that a lambda builds; `is_value` says whether a function in the lambda would get the same payload."""

    __slots__ = ("_is_value", "_node")

    def __init__(self, node: Expr, is_value: bool) -> None:
        self._node = node
        self._is_value = is_value


def is_value(part: object) -> bool:
    """Say whether a value contains no row and no dict, which become payloads only as results of a lambda."""
    if type(part) is tuple:
        return all(map(is_value, part))
    if isinstance(part, E):
        return holds_values(part)
    return part._is_value if isinstance(part, BuiltPayload) else not isinstance(part, (RowProxy, dict))


def _is_tuple(schema: Schema) -> bool:
    return schema.shape is Shape.TUPLE or (schema.cls is not None and issubclass(schema.cls, tuple))


def _has_items_of_its_own(cls: type) -> bool:
    return any("__getitem__" in vars(base) for base in cls.__mro__ if base is not tuple)


def _refuse_unless_missing(schema: Schema, name: str) -> NoReturn:
    owner = tuple if schema.shape is Shape.TUPLE else schema.cls
    if owner is not None and (schema.shape is Shape.OBJECT or hasattr(owner, name)):
        refuse(f"{name!r} is not a field but an attribute of {owner.__name__}")
    raise FieldNotFound(name, schema.names)


def argument_node(value: object) -> Expr:
    """Return the node of an argument that may be a whole payload: a row, a payload that is built or chosen, a tuple of them."""
    if isinstance(value, E):
        return node_of(value)
    if isinstance(value, RowProxy):
        return Whole(value._side)
    if isinstance(value, BuiltPayload):
        return value._node
    if type(value) is tuple:
        return Make(Schema.tuple(len(value)), tuple(map(argument_node, value)))
    return operand(value)


def call_argument_node(value: object) -> Expr:
    """Return the node of an argument of a registered function: a row, or a value that contains none."""
    if not isinstance(value, (RowProxy, RowE)) and not is_value(value):
        refuse("a row or a record inside a value is not yet what a function is called with")
    return argument_node(value)


def result_node(value: object) -> Expr:
    """Return the node of a lambda's result: an argument, or a dict of arguments, which becomes a record."""
    if type(value) is dict:
        if not all(type(name) is str for name in value):
            refuse("a record has str keys")
        return Make(Schema.record(tuple(value)), tuple(map(argument_node, value.values())))
    return argument_node(value)
