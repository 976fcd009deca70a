"""What a lambda sees while it is traced: values whose operators build expression nodes instead of computing."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NoReturn

import numpy as np

from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    BinaryOp,
    Call,
    Choose,
    Constant,
    Expr,
    Field,
    Life,
    Make,
    Method,
    Unary,
    UnaryOp,
    Whole,
)
from streamdsl.expr.schema import Schema, Shape
from streamdsl.temporal.payload import Record

_TEXT: Final = """
    upper lower title capitalize casefold swapcase strip lstrip rstrip removeprefix removesuffix replace zfill find
    startswith endswith isalpha isalnum isdigit isdecimal isnumeric isspace isupper islower istitle
"""
_TIME: Final = "weekday isoweekday date time timestamp isoformat toordinal total_seconds"
TEXT_METHODS: Final = frozenset(_TEXT.split())
TIME_METHODS: Final = frozenset(_TIME.split())
METHODS: Final = TEXT_METHODS | TIME_METHODS | {"is_integer", "bit_length"}
"""The methods that an expression may call; each gives a new value and changes nothing."""

IMMUTABLE: Final = frozenset(
    {int, float, bool, str, bytes, type(None), datetime, date, time, timedelta, timezone, Decimal, Fraction}
)
"""The types whose values may stand in an expression; subclasses are others, with operators of their own."""

_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_TESTS: Final = frozenset(name for name in TEXT_METHODS if name.startswith("is") or name.endswith("swith")) | {"is_integer"}
_EXPRESSION_HINT: Final = "inside a lambda this makes it an opaque Python function; sd.col(...) builds expressions only"


class NotTraceable(QueryError, TypeError):  # noqa: N818 - it is a signal first
    """Something was asked of an expression that only a value can answer; a lambda that asks it is opaque."""


class Tracing:
    """One attempt at tracing: the nodes that were built, and whether something could not be."""

    __slots__ = ("failed", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Expr] = []
        self.failed = False

    def covers(self, *results: Expr) -> bool:
        """Say whether every node that was built is part of the results: what Python computes and throws away may still raise."""
        found = {id(node) for expr in results for node in expr.walk()}
        return not self.failed and all(id(node) in found for node in self.nodes)


_TRACING: ContextVar[Tracing | None] = ContextVar("streamdsl_tracing", default=None)


@contextmanager
def tracing() -> Iterator[Tracing]:
    """Record the nodes built inside."""
    attempt = Tracing()
    token = _TRACING.set(attempt)
    try:
        yield attempt
    finally:
        _TRACING.reset(token)


@contextmanager
def untraced() -> Iterator[None]:
    """Run user code inside that is no part of the trace."""
    token = _TRACING.set(None)
    try:
        yield
    finally:
        _TRACING.reset(token)


def is_tracing() -> bool:
    """Say whether a lambda is being traced."""
    return _TRACING.get() is not None


def refuse(what: str, hint: str = _EXPRESSION_HINT) -> NoReturn:
    """Raise `NotTraceable`, and note it in the attempt, so that nothing between can hide it."""
    attempt = _TRACING.get()
    if attempt is not None:
        attempt.failed = True
    raise NotTraceable(what, hint=hint)


class Refusing:
    """What stands for a value during tracing, and answers nothing by itself. It has no `__getitem__`: `"x" % it` must fail."""

    __slots__ = ()

    def __bool__(self) -> bool:
        refuse(
            "an expression has no truth value before it is evaluated",
            "write & and | with parentheses for `and` and `or`, sd.not_(...) for `not`, sd.when(c).then(a).otherwise(b) for `if`",
        )

    def __len__(self) -> int:
        refuse("an expression has no length before it is evaluated")

    def __iter__(self) -> Iterator[Any]:
        refuse("an expression cannot be iterated over before it is evaluated")

    def __contains__(self, item: object) -> bool:
        refuse("`in` asks an expression for its contents", "compare with == and combine with |")

    def __hash__(self) -> int:
        refuse("an expression is not hashable: it is no dictionary key or set member")

    def __eq__(self, other: object) -> Any:
        refuse(f"{self!r} cannot be compared", "compare its fields")

    def __ne__(self, other: object) -> Any:
        refuse(f"{self!r} cannot be compared", "compare its fields")

    def __str__(self) -> str:
        refuse("an expression has no text before it is evaluated", "an f-string or str() belongs into a function under @sd.udf")

    def __repr__(self) -> str:
        if is_tracing():
            refuse("an expression has no text before it is evaluated")
        return f"<{type(self).__name__}>"

    def __format__(self, spec: str) -> str:
        return str(self)

    def __index__(self) -> int:
        refuse("an expression is no integer before it is evaluated")

    def __int__(self) -> int:
        refuse("an expression is no integer before it is evaluated")

    def __float__(self) -> float:
        refuse("an expression is no number before it is evaluated")

    def __complex__(self) -> complex:
        refuse("an expression is no number before it is evaluated")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        refuse(f"{self!r} cannot be called", f"the methods of expressions are: {', '.join(sorted(METHODS))}; or use @sd.udf")


class E(Refusing):
    """An expression over a row, with Python's operators; `node` is what they build.

    Raises an error that says what to write instead where Python would need the value: `if`, `and`, `in`, `len`, f-strings.

    >>> E(Field("price")) * 2 > 10
    (e.price * 2) > 10
    """

    __slots__ = ("_boolean", "node")
    __array_ufunc__ = None
    node: Expr

    def __init__(self, node: Expr, boolean: bool = False) -> None:
        self.node = node
        self._boolean = boolean
        attempt = _TRACING.get()
        if attempt is not None:
            attempt.nodes.append(node)

    def _binary(self, op: BinaryOp, other: object) -> E:
        return build(lambda left, right: Binary(op, left, right), self, other)

    def _reflected(self, op: BinaryOp, other: object) -> E:
        return build(lambda right, left: Binary(op, left, right), self, other)

    def _unary(self, op: UnaryOp) -> E:
        return build(lambda operand: Unary(op, operand), self)

    def __add__(self, other: object) -> E:
        return self._binary("+", other)

    def __radd__(self, other: object) -> E:
        return self._reflected("+", other)

    def __sub__(self, other: object) -> E:
        return self._binary("-", other)

    def __rsub__(self, other: object) -> E:
        return self._reflected("-", other)

    def __mul__(self, other: object) -> E:
        return self._binary("*", other)

    def __rmul__(self, other: object) -> E:
        return self._reflected("*", other)

    def __truediv__(self, other: object) -> E:
        return self._binary("/", other)

    def __rtruediv__(self, other: object) -> E:
        return self._reflected("/", other)

    def __floordiv__(self, other: object) -> E:
        return self._binary("//", other)

    def __rfloordiv__(self, other: object) -> E:
        return self._reflected("//", other)

    def __mod__(self, other: object) -> E:
        return self._binary("%", other)

    def __rmod__(self, other: object) -> E:
        return self._reflected("%", other)

    def __pow__(self, other: object) -> E:
        return self._binary("**", other)

    def __rpow__(self, other: object) -> E:
        return self._reflected("**", other)

    def __and__(self, other: object) -> E:
        return self._binary("&", other)

    def __rand__(self, other: object) -> E:
        return self._reflected("&", other)

    def __or__(self, other: object) -> E:
        return self._binary("|", other)

    def __ror__(self, other: object) -> E:
        return self._reflected("|", other)

    def __xor__(self, other: object) -> E:
        return self._binary("^", other)

    def __rxor__(self, other: object) -> E:
        return self._reflected("^", other)

    def __eq__(self, other: object) -> E:  # type: ignore[override]
        return self._binary("==", other)

    def __ne__(self, other: object) -> E:  # type: ignore[override]
        return self._binary("!=", other)

    def __lt__(self, other: object) -> E:
        return self._binary("<", other)

    def __le__(self, other: object) -> E:
        return self._binary("<=", other)

    def __gt__(self, other: object) -> E:
        return self._binary(">", other)

    def __ge__(self, other: object) -> E:
        return self._binary(">=", other)

    __hash__ = Refusing.__hash__

    def __neg__(self) -> E:
        return self._unary("-")

    def __pos__(self) -> E:
        return self._unary("+")

    def __abs__(self) -> E:
        return self._unary("abs")

    def __invert__(self) -> E:
        if self._boolean or is_boolean(self.node):
            raise invert_error(describe(self.node))
        return build(lambda operand: Call(invert, (operand,), "~"), self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name[1:].isdigit():
            if is_tracing():
                refuse(f"an expression has no attribute {name!r}")
            raise AttributeError(name)
        return BoundMethod(self, name) if name in METHODS else build(lambda operand: Attribute(operand, name), self)

    def __repr__(self) -> str:
        return super().__repr__() if is_tracing() else describe(self.node)


class BoundMethod(Refusing):
    """A method of an expression's value, to be called."""

    __slots__ = ("_name", "_operand")

    def __init__(self, operand: E, name: str) -> None:
        self._operand = operand
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            refuse(f"{self._name}() takes no names in an expression")
        return build(lambda operand, *rest: Method(operand, self._name, rest), self._operand, *args)


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
            if schema is not None and schema.cls is not None and "__getitem__" in vars(schema.cls):
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


def family(*parts: object) -> type[E]:
    """Return the class of the expressions among `parts`; expressions over rows and over windows do not mix."""
    kinds = {type(part) for part in parts if isinstance(part, E)}
    if len(kinds) > 1:
        refuse("an expression over rows and one over a window do not mix")
    return kinds.pop() if kinds else E


def build(make: Callable[..., Expr], *parts: object) -> E:
    """Return the expression that `make` gives for the nodes of `parts`, which are expressions and constants."""
    return family(*parts)(make(*map(operand, parts)))


def operand(value: object) -> Expr:
    """Return the node of an operator's operand: an expression, a constant, or a tuple of them."""
    if isinstance(value, E):
        return value.node
    if type(value) is tuple and not all(map(is_constant, value)):
        return Make(Schema.tuple(len(value)), tuple(map(operand, value)))
    return constant(value)


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


def is_constant(value: object) -> bool:
    """Say whether a value is immutable through and through, of exactly a known type."""
    return all(map(is_constant, value)) if type(value) is tuple else type(value) in IMMUTABLE


def constant(value: Any) -> Constant:
    """Return the node of a value; outside tracing anything that cannot change may stand in an expression."""
    if is_constant(value):
        return Constant(value)
    if is_tracing() or isinstance(value, (Refusing, list, dict, set, bytearray, np.ndarray)):
        refuse(f"{type(value).__name__} is not a constant that an expression can hold")
    return Constant(value.item() if isinstance(value, np.generic) else value)


def is_boolean(node: Expr) -> bool:
    """Say whether an expression is certain to give a bool."""
    if isinstance(node, Binary):
        return node.op in _COMPARISONS or (node.op in ("&", "|", "^") and is_boolean(node.left) and is_boolean(node.right))
    if isinstance(node, Choose):
        return all(is_boolean(value) for _, value in node.branches) and is_boolean(node.otherwise)
    if isinstance(node, Constant):
        return type(node.value) is bool
    return (isinstance(node, Unary) and node.op in ("not", "is_none")) or (isinstance(node, Method) and node.name in _TESTS)


class InvertError(QueryError):
    """`~` was used on a boolean."""


def invert_error(what: str) -> InvertError:
    """Return the error for the one Python lambda that is refused."""
    return InvertError(
        f"~ on a boolean: ~({what}) is an integer in Python, ~True == -2 and ~False == -1, and both are true",
        hint=f"write sd.not_({what})",
    )


def invert(value: Any) -> Any:
    """Return `~value`; refuses a bool, for which it does not mean `not`."""
    if isinstance(value, (bool, np.bool_)):
        raise invert_error(repr(value))
    return ~value
