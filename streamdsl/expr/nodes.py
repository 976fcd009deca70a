"""Expressions: frozen values that say what is computed from a row. They mean what Python means by the same words.

Comparing two nodes compares them; the facade (`facade.py`) is what builds nodes when operators are used on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.recursion import bottom_up
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from streamdsl.expr.schema import Schema
from streamdsl.temporal.identifiers import exact

BinaryOp: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "==", "!=", "<", "<=", ">", ">="]
UnaryOp: TypeAlias = Literal["-", "+", "abs", "not", "is_none"]
LOGICAL: Final = ("&", "|", "^")


class Location(NamedTuple):
    """A line of a file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Expr:
    """The base of all expressions."""

    written: Location | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The line of the lambda that it was traced from."""

    def children(self) -> Iterator[Expr]:
        """Yield the expressions that this one is made of."""
        cls: Any = type(self)
        for name in _names(cls):
            yield from _expressions(getattr(self, name))

    def walk(self) -> Iterator[Expr]:
        """Yield this expression and all below it, a shared one once."""
        seen: set[int] = set()
        waiting: list[Expr] = [self]
        while waiting:
            expr = waiting.pop()
            if id(expr) not in seen:
                seen.add(id(expr))
                yield expr
                waiting.extend(reversed(list(expr.children())))

    def evaluated(self) -> Iterator[Expr]:
        """Yield the same expressions in the order in which they are evaluated: each after those that it is made of."""
        return bottom_up(self, lambda expr: expr.children())


@functools.cache
def _names(cls: type[Expr]) -> tuple[str, ...]:
    """Return the names of the fields of a class."""
    return tuple(field.name for field in fields(cls) if field.compare)


def _expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """A field of the row; of a pair of rows, `side` 0 is the left and 1 the right. A `bare` payload is shown as the row."""

    name: str
    side: int = 0
    bare: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if type(self.name) is not str:
            object.__setattr__(self, "name", exact(self.name))


@dataclass(frozen=True, slots=True)
class Whole(Expr):
    """The whole payload."""

    side: int = 0


@dataclass(frozen=True, slots=True)
class Life(Expr):
    """An end of the row's lifetime, in ticks; of a pair of rows the LE of one of them."""

    end: Literal["le", "re"]
    side: int = 0


@dataclass(frozen=True, slots=True)
class Key(Expr):
    """The key of the group that the row is in."""


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A value that is the same for every row. Constants of different types are different: `1` is not `True`."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[str, str]:
        return (type(self.value).__name__, repr(self.value))


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """A value that is bound before the query runs: of the types that `accepts` says, `default` where nothing else is bound."""

    name: str
    accepts: Any = object
    default: Constant | None = None


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`left op right`."""

    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`op operand`; `not` and `is_none` are `sd.not_` and `sd.is_none`."""

    op: UnaryOp
    operand: Expr


@dataclass(frozen=True, slots=True)
class Attribute(Expr):
    """`operand.name`, of a value that is not a row: a date's `year`, a nested record's field."""

    operand: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Method(Expr):
    """`operand.name(*arguments)`, for the methods that `scalar_functions.METHODS` lists."""

    operand: Expr
    name: str
    arguments: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Function(Expr):
    """A scalar function (`scalar_functions.py`) of its arguments, all of which are evaluated."""

    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A registered function (`@sd.udf`) of its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Expr, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Choose(Expr):
    """The first value whose condition holds, else `otherwise`; only the chosen one is evaluated."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Make(Expr):
    """A payload built of its fields: a record, a tuple, or a plain class."""

    schema: Schema
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Opaque(Expr):
    """A Python function called row by row with the rows (`sides` of them), and with the lifetime if `life`.

    `recorded` is what a trace shows of it, where it is opaque for the payloads' sake: a key takes its names from that.
    """

    function: Callable[..., Any]
    sides: int = 1
    life: bool = False
    name: str = "opaque"
    recorded: Expr | None = None

    def children(self) -> Iterator[Expr]:
        """Yield nothing: what a function computes is not in the tree."""
        return iter(())


def rebuilt(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return an expression with the parts replaced for which `change` gives another, not None; what it shares stays shared.

    >>> rebuilt(Binary("+", Field("x"), Field("y")), lambda part: Constant(1) if part == Field("y") else None)
    Binary(op='+', left=Field(name='x', side=0), right=Constant(value=1))
    """
    done: dict[int, Expr] = {}

    def visit(part: Expr) -> Expr:
        if id(part) not in done:
            new = change(part)
            done[id(part)] = _with_children(part, visit) if new is None else new
        return done[id(part)]

    return visit(expr)


def _with_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    return replace(expr, **{f.name: _map_expressions(getattr(expr, f.name), change) for f in fields(expr)})


def _map_expressions(value: Any, change: Callable[[Expr], Expr]) -> Any:
    if isinstance(value, Expr):
        return change(value)
    return tuple(_map_expressions(item, change) for item in value) if type(value) is tuple else value


def depth(expr: Expr) -> int:
    """Return how many nodes are inside each other.

    >>> depth(Binary("+", Field("a"), Unary("-", Field("b"))))
    3
    """
    depths: dict[int, int] = {}
    for part in expr.evaluated():
        depths[id(part)] = 1 + max((depths[id(child)] for child in part.children()), default=0)
    return depths[id(expr)]


def is_opaque(expr: Expr | None) -> bool:
    """Say whether some part runs as Python, row by row."""
    return expr is not None and any(isinstance(part, Opaque) for part in expr.walk())


def reads_lifetime(expr: Expr) -> bool:
    """Say whether an expression may read an end of the lifetime.

    >>> reads_lifetime(Life("le")), reads_lifetime(Constant(5))
    (True, False)
    """
    return any(isinstance(part, Life) or (isinstance(part, Opaque) and part.life) for part in expr.walk())


def reads_re(expr: Expr) -> bool:
    """Say whether an expression may read RE, which may still change.

    >>> reads_re(Life("re")), reads_re(Life("le"))
    (True, False)
    """
    return any(part == Life("re") or (isinstance(part, Opaque) and part.life) for part in expr.walk())


def reads(expr: Expr, side: int = 0) -> frozenset[str] | None:
    """Return the names of the fields read from one side, or None if that cannot be known.

    >>> sorted(reads(Binary("+", Field("a"), Field("b"))))
    ['a', 'b']
    """
    parts = list(expr.walk())
    if any(isinstance(part, (Opaque, Whole)) for part in parts):
        return None
    return frozenset(part.name for part in parts if isinstance(part, Field) and part.side == side)


def is_boolean(expr: Expr) -> bool:
    """Say whether an expression is certain to give a bool, where it does not fail.

    >>> is_boolean(Binary("<", Field("x"), Constant(1))), is_boolean(Field("x"))
    (True, False)
    """
    if isinstance(expr, Choose):
        return all(is_boolean(value) for _, value in expr.branches) and is_boolean(expr.otherwise)
    if isinstance(expr, Constant):
        return type(expr.value) is bool
    if isinstance(expr, Binary) and expr.op in LOGICAL:
        return is_boolean(expr.left) and is_boolean(expr.right)
    applied = application(expr)
    return applied is not None and applied[0].gives == "bool"


def application(expr: Expr) -> tuple[ScalarFunction, tuple[Expr, ...]] | None:
    """Return the scalar function that an expression applies, and its arguments; None for any other expression.

    >>> word, parts = application(Unary("-", Field("x")))
    >>> word.name, parts
    ('-x', (Field(name='x', side=0),))
    """
    found = _APPLICATIONS.get(type(expr))
    return None if found is None else found(expr)


_SIGNS: Final = {"-": "-x", "+": "+x"}
_APPLICATIONS: Final[Mapping[type[Expr], Callable[[Any], tuple[ScalarFunction, tuple[Expr, ...]]]]] = {
    Binary: lambda expr: (SCALAR_FUNCTIONS[expr.op], (expr.left, expr.right)),
    Unary: lambda expr: (SCALAR_FUNCTIONS[_SIGNS.get(expr.op, expr.op)], (expr.operand,)),
    Method: lambda expr: (SCALAR_FUNCTIONS[f".{expr.name}"], (expr.operand, *expr.arguments)),
    Function: lambda expr: (SCALAR_FUNCTIONS[expr.name], expr.arguments),
}


def schema_of(expr: Expr, inputs: tuple[Schema | None, ...]) -> Schema | None:
    """Return the schema of the payloads that a projection makes, or None if only a run can tell.

    >>> schema_of(Binary(">", Field("x"), Constant(1)), (None,)), schema_of(Binary("+", Field("x"), Field("y")), (None,))
    (Schema(value), None)
    """
    if isinstance(expr, Make):
        return expr.schema
    if isinstance(expr, Whole):
        return inputs[expr.side]
    if isinstance(expr, Constant):
        return Schema.of_payload(expr.value) if type(expr.value) in IMMUTABLE else None
    applied = application(expr)
    gives = "int" if isinstance(expr, Life) else "bool" if is_boolean(expr) else None if applied is None else applied[0].gives
    return None if gives is None else Schema.scalar(_TYPES[gives])


_TYPES: Final[Mapping[str, type]] = {"int": int, "float": float, "bool": bool, "str": str, "none": type(None)}
