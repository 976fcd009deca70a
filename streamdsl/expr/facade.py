"""Expressions as values whose operators build nodes instead of computing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from streamdsl.errors import FieldNotFound
from streamdsl.expr.annotations import declared_attributes, declared_items, declared_type
from streamdsl.expr.bytecode import is_private
from streamdsl.expr.describe import describe
from streamdsl.expr.immutable import is_constant
from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    BinaryOp,
    Call,
    Constant,
    Expr,
    Field,
    Function,
    Make,
    Method,
    Unary,
    UnaryOp,
    Whole,
    is_boolean,
)
from streamdsl.expr.recording import SymbolicValue, WriterError, is_tracing, record_node, refuse
from streamdsl.expr.scalar_functions import METHODS
from streamdsl.expr.schema import Schema

_FRACTION_POWER: Final = getattr(Fraction.__pow__, "__code__", None)


def _infix(op: BinaryOp) -> Callable[[E, object], E]:
    """Return the method of an infix operator."""
    return lambda self, other: build(lambda left, right: Binary(op, left, right), self, other)


def _reflected(op: BinaryOp) -> Callable[[E, object], E]:
    """Return the method of an infix operator whose left operand is not an expression."""
    return lambda self, other: build(lambda right, left: Binary(op, left, right), self, other)


def _prefix(op: UnaryOp) -> Callable[[E], E]:
    """Return the method of a prefix operator."""
    return lambda self: build(lambda operand: Unary(op, operand), self)


class E(SymbolicValue):
    """An expression over a row, with Python's operators. Its own names are private, so that all others are its value's.

    Raises an error that says what to write instead where Python would need the value: `if`, `and`, `in`, `len`, f-strings.

    >>> from streamdsl.expr.expression_functions import col
    >>> col("price") * 2 > 10
    (e.price * 2) > 10
    """

    __slots__ = ("_hint", "_is_value", "_node")
    __array_ufunc__ = None
    _node: Expr

    def __init__(self, node: Expr, hint: Any = None, is_value: bool = True) -> None:
        self._node = node
        self._hint = hint  # the type that an annotation declares
        self._is_value = is_value
        record_node(node)

    def _family(self) -> type[E]:
        return type(self)

    __add__ = _infix("+")
    __radd__ = _reflected("+")
    __sub__ = _infix("-")
    __rsub__ = _reflected("-")
    __mul__ = _infix("*")
    __rmul__ = _reflected("*")
    __truediv__ = _infix("/")
    __rtruediv__ = _reflected("/")
    __floordiv__ = _infix("//")
    __rfloordiv__ = _reflected("//")
    __mod__ = _infix("%")
    __rmod__ = _reflected("%")
    __pow__ = _infix("**")
    __and__ = _infix("&")
    __rand__ = _reflected("&")
    __or__ = _infix("|")
    __ror__ = _reflected("|")
    __xor__ = _infix("^")
    __rxor__ = _reflected("^")
    __eq__ = _infix("==")
    __ne__ = _infix("!=")
    __lt__ = _infix("<")
    __le__ = _infix("<=")
    __gt__ = _infix(">")
    __ge__ = _infix(">=")

    def __rpow__(self, other: object) -> E:
        # Before Python 3.13 a Fraction makes itself a float to be raised to what it does not know.
        if sys._getframe(1).f_code is _FRACTION_POWER:
            refuse("a Fraction has lost its exactness here", "write sd.lit(fraction) ** expression")
        return _reflected("**")(self, other)

    __hash__ = SymbolicValue.__hash__

    __neg__ = _prefix("-")
    __pos__ = _prefix("+")
    __abs__ = _prefix("abs")

    def __invert__(self) -> E:
        if self._hint is bool or is_boolean(self._node):
            raise invert_error(describe(self._node))
        return build(lambda operand: Call(invert, (operand,), "~"), self)

    def __getattr__(self, name: str) -> Any:
        if is_private(name):
            raise AttributeError(name)
        names = declared_attributes(self._hint)
        if names is not None and name not in names and not hasattr(self._hint, name):
            raise self._no_field(name, names)
        if name in METHODS and name not in (names or ()):
            return BoundMethod(self, name)
        return self._family()(Attribute(self._operand(), name), declared_type(self._hint, name) if names else None)

    def __getitem__(self, item: Any) -> E:
        if isinstance(item, slice):
            return build(lambda *parts: Function("[:]", parts), self, item.start, item.stop, item.step)
        names = declared_items(self._hint)
        if names is None or type(item) is not str:
            return build(lambda *parts: Function("[]", parts), self, item)
        if item not in names:
            raise self._no_field(item, names)
        return self._family()(Function("[]", (self._operand(), Constant(item))), declared_type(self._hint, item))

    def _operand(self) -> Expr:
        return operand(self)

    def _no_field(self, name: str, names: tuple[str, ...]) -> FieldNotFound:
        path = "".join(f"{part}." for part in _path(self._node))
        return FieldNotFound(path + name, [path + known for known in names])

    def __repr__(self) -> str:
        return super().__repr__() if is_tracing() else describe(self._node)


def _path(node: Expr) -> list[str]:
    """Return the names that lead from a row to a nested value."""
    match node:
        case Field(name):
            return [name]
        case Attribute(inside, name) | Function("[]", (inside, Constant(name))):
            return [*_path(inside), str(name)]
    return []


class BoundMethod(SymbolicValue):
    """A method of an expression's value, to be called."""

    __slots__ = ("_name", "_operand")

    def __init__(self, operand: E, name: str) -> None:
        self._operand = operand
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            refuse(f"{self._name}() takes no names in an expression")
        return build(lambda operand, *rest: Method(operand, self._name, rest), self._operand, *args)


def node_of(expression: E) -> Expr:
    """Return the node that an expression's operators built."""
    return expression._node


def holds_values(expression: E) -> bool:
    """Say whether an expression is no choice of rows or dicts, which turn into payloads only where they are results."""
    return expression._is_value


def family(*parts: object) -> type[E]:
    """Return the class of the expressions among `parts`; expressions over rows and over windows do not mix."""
    kinds = {part._family() for part in parts if isinstance(part, E)}
    if len(kinds) > 1:
        refuse("an expression over rows and one over a window do not mix")
    return kinds.pop() if kinds else E


def build(make: Callable[..., Expr], *parts: object) -> E:
    """Return the expression that `make` gives for the nodes of `parts`, which are expressions and constants."""
    return family(*parts)(make(*map(operand, parts)))


def operand(value: object) -> Expr:
    """Return the node of an operator's operand: an expression, a constant, or a tuple of them."""
    if isinstance(value, E):
        is_value = holds_values(value) or isinstance(node_of(value), Whole)
        return node_of(value) if is_value else refuse("a chosen row or record is a result and no operand")
    if type(value) is tuple and not all(map(is_constant, value)):
        return Make(Schema.tuple(len(value)), tuple(map(operand, value)))
    return constant(value)


def constant(value: Any) -> Constant:
    """Return the node of a value; outside tracing anything that cannot change may stand in an expression."""
    if is_constant(value):
        return Constant(value)
    if is_tracing() or isinstance(value, (SymbolicValue, list, dict, set, bytearray, np.ndarray)):
        refuse(f"{type(value).__name__} is not a constant that an expression can hold")
    return Constant(value.item() if isinstance(value, np.generic) else value)


class InvertError(WriterError):
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
