"""Layouts: which columns of a frame hold the times, and which the payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, Final, NewType, TypeAlias, Union, get_origin

from streamdsl.errors import QueryError, SchemaError, UserCodeError
from streamdsl.expr.deferred import with_parts
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Column, Table, largest, object_column
from streamdsl.io.binding import Inserts
from streamdsl.io.columns import Columns
from streamdsl.io.times import Place, unit_of
from streamdsl.temporal import CHRONON, INFINITY, LifetimeColumns, Unit, add_times
from streamdsl.temporal.pandas_frames import column_names
from streamdsl.temporal.time import Ticks

PHYSICAL: Final = ("kind", "id", "le", "re", "re_new")
"""The columns of a physical frame, before the payload's."""
_NAMED: Final = "name the columns of the times with start= and end= (no end: point events)"
_SAID: Final = "; run and push read those that sd.source(name, start=, end=) names, jobs also --start and --end"
PayloadLike: TypeAlias = type | Schema | None


@dataclass(frozen=True, slots=True)
class Payloads:
    """A payload schema, and the column that each of its fields is read from."""

    schema: Schema
    columns: tuple[str, ...]

    def values(self, columns: Columns, file: str | None = None) -> Mapping[str, Column]:
        """Return the values of each field; some columns may be deferred."""
        missing = [name for name in self.columns if name not in columns.names]
        if missing:
            raise _no_columns(missing, columns.names, file)
        return with_parts({field: columns.held(column) for field, column in zip(self.schema.names, self.columns, strict=True)})

    def table(self, values: Mapping[str, Column], size: int) -> Table:
        """Return the payloads with these field values."""
        if self.schema.shape is not Shape.OBJECT:
            return Table(self.schema, values, size)
        rows = zip(*(column.tolist() for column in values.values()), strict=True)
        return Table(self.schema, {"": object_column([_build(self.schema, row, n) for n, row in enumerate(rows)])}, size)


def _build(schema: Schema, row: Sequence[Any], number: int) -> Any:
    """Return an object of a class whose constructor runs user code; raises `UserCodeError` if that fails."""
    assert schema.cls is not None
    fields = dict(zip(schema.names, row, strict=True))
    try:
        return schema.cls(**fields)
    except Exception as error:
        raise UserCodeError(error, operator=f"source, making a {schema.cls.__name__} of row {number}", event=fields) from error


def as_schema(payload: PayloadLike) -> Schema | None:
    """Return the schema of a payload type, None if only the input determines it; raises `QueryError` for a value that is no type.

    >>> as_schema(int), as_schema(dict[str, int])
    (Schema(value), None)
    """
    if payload is None or isinstance(payload, Schema):
        return payload
    cls: Any = payload
    while isinstance(cls, NewType):
        cls = cls.__supertype__
    origin = get_origin(cls)
    if cls is not Any and origin is None and not isinstance(cls, type):
        raise QueryError(
            f"the payload {payload!r} is not a class",
            hint="a payload is a dataclass, NamedTuple, TypedDict or a scalar's type; start= and end= name the times' columns",
        )
    return None if origin in (Union, UnionType) else Schema.of_type(origin or cls)


def frame_schema(payload: PayloadLike) -> Schema | None:
    """Return the schema of a payload type that is read from named columns; raises `QueryError` for plain tuples."""
    if tuple in (payload, get_origin(payload)):
        raise QueryError(
            "the columns of a frame have names, and the fields of a plain tuple have none",
            hint="declare a NamedTuple or a dataclass with the columns to read, or no payload for records of all",
        )
    return as_schema(payload)


def payloads_of(columns: Columns, reserved: Sequence[str], wanted: Schema | None, file: str | None = None) -> Payloads:
    """Return how payloads are read: as the wanted schema, else as records of all columns but the reserved ones.

    With a payload memo, tuples and scalars are restored as such. A field called like a reserved column is the one with the prefix
    `payload_`, if there is one. Raises `SchemaError` for fields without a column.
    """
    others = tuple(name for name in columns.names if name not in reserved)
    known = _remembered(columns, others, reserved)
    if wanted is None or (wanted.shape is Shape.OBJECT and wanted.cls is None):
        return known or Payloads(Schema.record(others), others)
    renamed = dict(zip(known.schema.names, known.columns, strict=True)) if known else {}
    written = zip(wanted.names, column_names(wanted.names, reserved), strict=True)
    found = tuple(renamed.get(name, column if column in columns.names else name) for name, column in written)
    missing = [name for name in found if name not in columns.names]
    if missing:
        is_scalar = wanted.shape is Shape.SCALAR
        what = "a payload that is no record has the column" if is_scalar else f"the payload {wanted!r} has no column for"
        raise _no_columns(missing, columns.names, file, what)
    return Payloads(wanted, found)


def _remembered(columns: Columns, others: tuple[str, ...], reserved: Sequence[str]) -> Payloads | None:
    """Return the payloads that the frame's memo describes; None if there is no memo, or the columns have changed since."""
    if columns.memo is None:
        return None
    fields = list(columns.memo["fields"])
    if tuple(column_names(fields, reserved)) != others:
        return None
    shapes = {"scalar": Schema.scalar(), "tuple": Schema.tuple(len(fields))}
    return Payloads(shapes.get(columns.memo["shape"], Schema.record(fields)), others)


def _no_columns(missing: Sequence[str], names: Sequence[str], file: str | None, what: str = "there is no column") -> SchemaError:
    place = f"{file}: " if file else ""
    return SchemaError(f"{place}{what} {', '.join(map(repr, missing))}; the columns are: {', '.join(names) or '(none)'}")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a frame are read: the columns of their LEs and REs (no `end`: point events), the unit, the payloads."""

    start: str
    end: str | None
    unit: Unit | None
    payloads: Payloads
    file: str | None = None

    @classmethod
    def of(
        cls, columns: Columns, lives: LifetimeColumns, unit: Unit | None, payload: Schema | None, file: str | None = None
    ) -> Layout:
        """Return the layout of frames with these columns; raises `SchemaError` for columns that are missing."""
        start, end = lives.start, lives.end
        times = (start,) if end is None else (start, end)
        missing = [name for name in times if name not in columns.names]
        if missing:
            error = _no_columns(missing, columns.names, file)
            raise SchemaError(str(error), hint=_NAMED + _SAID)
        payloads = payloads_of(columns, times, payload, file)
        return cls(start, end, unit or unit_of(columns.times(name) for name in times), payloads, file)

    @property
    def needed(self) -> list[str]:
        """The names of the columns that are read."""
        return list(dict.fromkeys([self.start, *([self.end] if self.end else []), *self.payloads.columns]))

    def narrowed(self, schema: Schema) -> Layout:
        """Return the layout that reads only the fields of `schema`, as records."""
        columns = dict(zip(self.payloads.schema.names, self.payloads.columns, strict=True))
        return replace(self, payloads=Payloads(schema, tuple(columns[name] for name in schema.names)))

    def inserts(self, columns: Columns, first_row: int = 0) -> Inserts:
        """Return the rows of a piece as insertions."""
        le, ends = self.lifetimes(columns, first_row)
        return Inserts(None, le, ends, self.table(columns))

    def table(self, columns: Columns) -> Table:
        """Return the payloads of a piece."""
        return self.payloads.table(self.payloads.values(columns, self.file), columns.size)

    def lifetimes(self, columns: Columns, first_row: int = 0) -> tuple[Ticks, Ticks | None]:
        """Return the LEs and REs (None: point events) of a piece; raises `EventError` and `UnitError` for invalid times."""
        le = columns.times(self.start).starts(self.unit, Place(self.start, self.file, first_row))
        if self.end is None:
            is_early = not len(le) or largest(le) + CHRONON < INFINITY
            return le, None if is_early else add_times(le, CHRONON)
        return le, columns.times(self.end).ends(self.unit, Place(self.end, self.file, first_row))
