"""Column types: the exact Python type of a column's values, so that SQL over them can have Python's meaning.

A column has a native type only if all its values are of exactly one Python type (or None). All other values are pickled.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from streamdsl.expr.schema import Schema, Shape

Kind: TypeAlias = Literal["int", "float", "bool", "str", "none", "any"]
"""`none` has only the value None; `any` is a scalar of unknown type (in `explain` only)."""

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
class ScalarType:
    """A column of Python's `int` (in int64), `float`, `bool` or `str`; null is None."""

    kind: Kind
    nullable: bool = False

    @property
    def ddl(self) -> str:
        """The column's type on Spark."""
        return _DDL[self.kind]


@dataclass(frozen=True, slots=True)
class NumberType:
    """A column of numbers some of which are ints (`i`, in int64) and some floats (`f`), as Python tells them apart."""

    nullable: bool = True
    ddl: str = "struct<i:bigint,f:double>"


@dataclass(frozen=True, slots=True)
class ForeignType:
    """A column of dates, decimals, binary or the like: Spark holds and orders the values, and Python computes with them."""

    ddl: str
    nullable: bool = True

    @property
    def is_date(self) -> bool:
        """Whether the values are dates or timestamps."""
        return self.ddl.startswith(("date", "timestamp"))

    @property
    def is_decimal(self) -> bool:
        """Whether the values are decimals."""
        return self.ddl.startswith("decimal(")


@dataclass(frozen=True, slots=True)
class PickledType:
    """A column of pickled Python values; null is None. `declared` is their public type, where an annotation gives one.

    Without it `origin` is what gives the values, for a warning.
    """

    declared: ColumnType | None = None
    nullable: bool = True
    ddl: str = "binary"
    origin: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RecordType:
    """A column of payloads with fields: a struct of `f0`, `f1`, ..., so that no field name can clash on Spark."""

    schema: Schema
    fields: tuple[ColumnType, ...]
    nullable: bool = False

    @property
    def ddl(self) -> str:
        """The column's type on Spark."""
        return f"struct<{','.join(f'f{i}:{field.ddl}' for i, field in enumerate(self.fields))}>"


@dataclass(frozen=True, slots=True)
class ListType:
    """A column of lists."""

    item: ColumnType
    nullable: bool = True

    @property
    def ddl(self) -> str:
        """The column's type on Spark."""
        return f"array<{self.item.ddl}>"


@dataclass(frozen=True, slots=True)
class JsonType:
    """A public column of values without a declared type: JSON text, which becomes VARIANT. `origin` is what gives the values."""

    nullable: bool = True
    ddl: str = "string"
    origin: str = field(default="", compare=False, repr=False)


ColumnType: TypeAlias = ScalarType | NumberType | ForeignType | PickledType | RecordType | ListType | JsonType

INT = ScalarType("int")
FLOAT = ScalarType("float")
BOOL = ScalarType("bool")
STR = ScalarType("str")
NONE = ScalarType("none", True)
ANY = ScalarType("any")


def as_nullable(kind: ColumnType, nullable: bool = True) -> ColumnType:
    """Return the type with null allowed, or not allowed.

    >>> as_nullable(INT)
    ScalarType(kind='int', nullable=True)
    """
    return dataclasses.replace(kind, nullable=nullable)


def known_type(kind: ColumnType | None) -> ColumnType | None:
    """Return the type of values as far as it is known: of pickled ones that which is declared, or None.

    >>> known_type(INT), known_type(PickledType(FLOAT)), known_type(PickledType())
    (ScalarType(kind='int', nullable=False), ScalarType(kind='float', nullable=False), None)
    """
    return known_type(kind.declared) if isinstance(kind, PickledType) else kind


def types_inside(kind: ColumnType) -> Iterable[ColumnType]:
    """Yield a type and all types nested in it."""
    yield kind
    inside = kind.fields if isinstance(kind, RecordType) else (kind.item,) if isinstance(kind, ListType) else ()
    for part in inside:
        yield from types_inside(part)


def is_native(kind: ColumnType) -> bool:
    """Say whether Spark groups and compares the values as Python does: not pickled ones, ints among floats, maps and variants."""
    return is_groupable(kind) and not any(isinstance(part, (PickledType, NumberType)) for part in types_inside(kind))


def is_groupable(kind: ColumnType) -> bool:
    """Say whether Spark can group by the values at all."""
    return not any(isinstance(part, ForeignType) and part.ddl.startswith(("map<", "variant")) for part in types_inside(kind))


def is_ordered(kind: ColumnType) -> bool:
    """Say whether Spark can order the values as payloads are: None first, NaN last, field by field (`payload_order.py`)."""
    return all(isinstance(part, (ScalarType, RecordType)) or is_comparable(part) for part in types_inside(kind))


def is_comparable(kind: ColumnType) -> bool:
    """Say whether Python compares any two values that are not None, and Spark as Python does, but for NaN, its largest float."""
    if isinstance(kind, ForeignType):
        return kind.is_date or kind.is_decimal
    return isinstance(kind, ScalarType) and kind.kind != "none"


def unify(kinds: Sequence[ColumnType]) -> ColumnType:
    """Return the least type that holds the values of all: their common type, or the pickled one.

    >>> unify([INT, NONE]), unify([INT, FLOAT])
    (ScalarType(kind='int', nullable=True), PickledType(declared=None, nullable=True, ddl='binary'))
    """
    known = [kind for kind in kinds if not (isinstance(kind, ScalarType) and kind.kind == "none")] or [NONE]
    nullable = any(kind.nullable for kind in kinds)
    first = ANY if ANY in known else known[0]
    if first == ANY or all(as_nullable(kind) == as_nullable(first) for kind in known):
        return as_nullable(first, nullable)
    if isinstance(first, RecordType) and all(isinstance(kind, RecordType) and kind.schema == first.schema for kind in known):
        columns = zip(*(kind.fields for kind in known if isinstance(kind, RecordType)), strict=True)
        return RecordType(first.schema, tuple(unify(column) for column in columns), nullable)
    edges = {kind.declared if isinstance(kind, PickledType) else kind for kind in known}
    if len(edges) == 1:
        return PickledType(edges.pop(), origin=getattr(first, "origin", ""))
    unknown = next((kind for kind in known if isinstance(kind, PickledType) and known_type(kind) is None), None)
    return unknown or PickledType(origin="several types that come together")


def type_of_values(values: Iterable[Any]) -> ColumnType:
    """Return the type of a column of Python values.

    >>> type_of_values([1, None]), type_of_values([1, 2.0])
    (ScalarType(kind='int', nullable=True), PickledType(declared=None, nullable=True, ddl='binary'))
    """
    kinds: set[type] = set()
    for value in values:
        kind = type(value)
        kinds.add(kind)
        if (kind is int and not _INT64[0] <= value <= _INT64[1]) or (kind is str and not _is_utf8(value)):
            return PickledType()
    nullable = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return NONE
    kind = kinds.pop()
    return ScalarType(_KINDS[kind], nullable) if not kinds and kind in _KINDS else PickledType()


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def type_of_payloads(schema: Schema, payloads: Sequence[Any]) -> ColumnType:
    """Return the type of payloads with a schema."""
    if schema.shape is Shape.SCALAR:
        return type_of_values(payloads)
    if schema.shape is Shape.OBJECT or not schema.names:
        return PickledType()
    rows = [schema.values(payload) for payload in payloads]
    return RecordType(schema, tuple(type_of_values(row[i] for row in rows) for i in range(len(schema.names))))


def type_of_hint(hint: Any) -> ColumnType | None:
    """Return the column type that an annotation declares, or None if it has none.

    >>> type_of_hint(int | None), type_of_hint(Any) is None
    (ScalarType(kind='int', nullable=True), True)
    """
    if hint in _KINDS:
        return ScalarType(_KINDS[hint])
    if hint is type(None) or hint is None:
        return NONE
    if hint in (datetime, date, bytes):
        return ForeignType({datetime: "timestamp", date: "date", bytes: "binary"}[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        options = [type_of_hint(option) for option in arguments]
        merged = unify([option for option in options if option is not None])
        return None if None in options or isinstance(merged, PickledType) else merged
    if origin in (list, Sequence) and len(arguments) == 1:
        item = type_of_hint(arguments[0])
        return None if item is None else ListType(as_nullable(item), False)
    return type_of_class(hint) if isinstance(hint, type) else None


def type_of_class(cls: type) -> ColumnType | None:
    """Return the column type that a payload class declares by its annotations, or None if it has none."""
    schema = Schema.of_type(cls)
    if schema is None or not schema.names or schema.shape is Shape.SCALAR:
        return None
    hints = hints_of(cls)
    fields = [type_of_hint(hints.get(name, Any)) for name in schema.names]
    known = tuple(PickledType() if field is None else field for field in fields)
    return RecordType(Schema(Shape.RECORD, schema.names) if schema.shape is Shape.OBJECT else schema, known)


def hints_of(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class or function; empty where they cannot be resolved."""
    try:
        return typing.get_type_hints(cls)
    except Exception:
        return {}
