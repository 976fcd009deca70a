"""What Spark knows of a value: the exact Python type behind a column, so that a native expression can mean what Python means.

A column has a native type only if every value in it is exactly of one Python type (or None). All else travels pickled.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from streamdsl.expr.schema import Schema, Shape

Kind: TypeAlias = Literal["int", "float", "bool", "str", "none", "any"]
"""`none` has no value but None; `any` stands for a scalar of a type not yet known (in `explain` only)."""

_DDL: dict[str, str] = {
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "str": "string",
    "none": "boolean",
    "any": "string",
}
_KINDS: dict[type, Kind] = {int: "int", float: "float", bool: "bool", str: "str"}
_INT64 = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Scalar:
    """Python's `int` (in int64), `float`, `bool` or `str`; null is None."""

    kind: Kind
    nullable: bool = False

    @property
    def ddl(self) -> str:
        """The column's type on Spark."""
        return _DDL[self.kind]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A date, time, decimal or binary: carried natively, computed with in Python."""

    ddl: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Pickled:
    """Any Python value; null is None. `edge` is its type at the public edge, where something declares it."""

    edge: Type | None = None
    nullable: bool = True
    ddl: str = "binary"


@dataclass(frozen=True, slots=True)
class Row:
    """A payload with fields: a struct of `f0`, `f1`, ..., so that no field name can clash on Spark."""

    schema: Schema
    fields: tuple[Type, ...]
    nullable: bool = False

    @property
    def ddl(self) -> str:
        """The column's type on Spark."""
        return f"struct<{','.join(f'f{i}:{field.ddl}' for i, field in enumerate(self.fields))}>"


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    item: Type
    nullable: bool = True

    @property
    def ddl(self) -> str:
        """The column's type on Spark."""
        return f"array<{self.item.ddl}>"


@dataclass(frozen=True, slots=True)
class Json:
    """A value of a type that nothing declares, at the public edge: JSON text, which becomes VARIANT."""

    nullable: bool = True
    ddl: str = "string"


Type: TypeAlias = Scalar | Foreign | Pickled | Row | Items | Json

INT = Scalar("int")
FLOAT = Scalar("float")
BOOL = Scalar("bool")
STR = Scalar("str")
NONE = Scalar("none", True)
ANY = Scalar("any")


def as_nullable(kind: Type, nullable: bool = True) -> Type:
    """Return the type that may also be None.

    >>> as_nullable(INT)
    Scalar(kind='int', nullable=True)
    """
    return dataclasses.replace(kind, nullable=nullable)


def parts(kind: Type) -> Iterable[Type]:
    """Yield a type and all types inside it."""
    yield kind
    inside = kind.fields if isinstance(kind, Row) else (kind.item,) if isinstance(kind, Items) else ()
    for part in inside:
        yield from parts(part)


def is_native(kind: Type) -> bool:
    """Say whether Spark groups, joins and compares the values as Python does: nothing inside is pickled, a map or a variant."""
    return is_groupable(kind) and not any(isinstance(part, Pickled) for part in parts(kind))


def is_groupable(kind: Type) -> bool:
    """Say whether Spark can group by the values at all."""
    return not any(isinstance(part, Foreign) and part.ddl.startswith(("map<", "variant")) for part in parts(kind))


def is_ordered(kind: Type) -> bool:
    """Say whether Spark orders the values as payloads are ordered: None first, NaN last, text by code point, field by field."""
    return all(isinstance(part, (Scalar, Row)) for part in parts(kind))


def unify(kinds: Sequence[Type]) -> Type:
    """Return the one type that holds the values of several: the same type, or pickled.

    >>> unify([INT, NONE]), unify([INT, FLOAT])
    (Scalar(kind='int', nullable=True), Pickled(edge=None, nullable=True, ddl='binary'))
    """
    known = [kind for kind in kinds if not (isinstance(kind, Scalar) and kind.kind == "none")] or [NONE]
    nullable = any(kind.nullable for kind in kinds)
    first = ANY if ANY in known else known[0]
    if first == ANY or all(as_nullable(kind) == as_nullable(first) for kind in known):
        return as_nullable(first, nullable)
    if isinstance(first, Row) and all(isinstance(kind, Row) and kind.schema == first.schema for kind in known):
        columns = zip(*(kind.fields for kind in known if isinstance(kind, Row)), strict=True)
        return Row(first.schema, tuple(unify(column) for column in columns), nullable)
    edges = {kind.edge if isinstance(kind, Pickled) else kind for kind in known}
    return Pickled(edges.pop() if len(edges) == 1 else None)


def type_of_values(values: Iterable[Any]) -> Type:
    """Return the type of a column of Python values.

    >>> type_of_values([1, None]), type_of_values([1, 2.0])
    (Scalar(kind='int', nullable=True), Pickled(edge=None, nullable=True, ddl='binary'))
    """
    kinds: set[type] = set()
    for value in values:
        kind = type(value)
        kinds.add(kind)
        if (kind is int and not _INT64[0] <= value <= _INT64[1]) or (kind is str and not _is_utf8(value)):
            return Pickled()
    nullable = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return NONE
    kind = kinds.pop()
    return Scalar(_KINDS[kind], nullable) if not kinds and kind in _KINDS else Pickled()


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def type_of_payloads(schema: Schema, payloads: Sequence[Any]) -> Type:
    """Return the type of payloads of a schema."""
    if schema.shape is Shape.SCALAR:
        return type_of_values(payloads)
    if schema.shape is Shape.OBJECT or not schema.names:
        return Pickled()
    rows = [schema.values(payload) for payload in payloads]
    return Row(schema, tuple(type_of_values(row[i] for row in rows) for i in range(len(schema.names))))


def type_of_hint(hint: Any) -> Type | None:
    """Return the type that an annotation declares, or None if it says nothing that Spark knows.

    >>> type_of_hint(int | None), type_of_hint(Any) is None
    (Scalar(kind='int', nullable=True), True)
    """
    if hint in _KINDS:
        return Scalar(_KINDS[hint])
    if hint is type(None) or hint is None:
        return NONE
    if hint in (datetime, date, bytes):
        return Foreign({datetime: "timestamp", date: "date", bytes: "binary"}[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        options = [type_of_hint(option) for option in arguments]
        merged = unify([option for option in options if option is not None])
        return None if None in options or isinstance(merged, Pickled) else merged
    if origin in (list, Sequence) and len(arguments) == 1:
        item = type_of_hint(arguments[0])
        return None if item is None else Items(as_nullable(item), False)
    return type_of_class(hint) if isinstance(hint, type) else None


def type_of_class(cls: type) -> Type | None:
    """Return the type of a payload class as its annotations declare it; None if they say nothing that Spark knows."""
    schema = Schema.of_type(cls)
    if schema is None or not schema.names or schema.shape is Shape.SCALAR:
        return None
    hints = hints_of(cls)
    fields = [type_of_hint(hints.get(name, Any)) for name in schema.names]
    known = tuple(Pickled() if field is None else field for field in fields)
    return Row(Schema(Shape.RECORD, schema.names) if schema.shape is Shape.OBJECT else schema, known)


def hints_of(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class or function; none where they cannot be read."""
    try:
        return typing.get_type_hints(cls)
    except Exception:
        return {}
