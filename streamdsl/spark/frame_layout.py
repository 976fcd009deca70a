"""Which columns of a DataFrame hold the times, and which the payload; they are referred to by position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from streamdsl.errors import SchemaError, UnsupportedOnSpark, closest
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Source
from streamdsl.spark.frame_roles import SourceFrame
from streamdsl.spark.physical_frames import PHYSICAL
from streamdsl.temporal.pandas_frames import LIFETIME


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """A column of a frame, referred to by position: names of columns, and of nested fields, can be ambiguous in Spark's SQL."""

    place: int
    field: StructField

    @property
    def name(self) -> str:
        """The name by which the user knows it."""
        return str(self.field.name)

    @property
    def text(self) -> str:
        """The column as SQL, once the frame is positional."""
        return f"c{self.place}"

    @property
    def kind(self) -> str:
        """Spark's name of the column's type."""
        return str(self.field.dataType.simpleString())


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """All columns of a frame by name, those that have a role, and the payload, which is read from the columns of its fields.

    Roles are `le` (absent: rows hold at all times), `re` (absent: point events), and for physical events `kind`, `id` and
    `re_new`. The fields of a payload that nothing declares are the columns without a role.
    """

    columns: Mapping[str, FrameColumn]
    roles: Mapping[str, FrameColumn]
    payload: Schema

    @classmethod
    def of(cls, node: Source, frame: SourceFrame) -> FrameLayout:
        """Return the layout of a source's frame; raises `SchemaError` for duplicate or missing columns."""
        columns = _columns(node, frame.rows)
        lives = frame.lives and frame.lives.among([name.lower() for name in columns])
        roles = (("le", lives.start), ("re", lives.end)) if lives else ()
        names = {role: name for role, name in roles if name is not None}
        if set(PHYSICAL) <= columns.keys() and lives and lives.may_be_physical:
            names |= {name: name for name in PHYSICAL}
        for name in names.values():
            if name not in columns:
                raise _no_column(node, name, columns)
        fields = tuple(name for name in columns if name not in names.values())
        return cls(columns, {role: columns[name] for role, name in names.items()}, node.payload or Schema.record(fields))

    @property
    def physical(self) -> bool:
        """Whether the rows are physical events."""
        return "kind" in self.roles

    @property
    def missing(self) -> list[str]:
        """The fields of the payload that have no column."""
        return [name for name in self.payload.names if name not in self.columns]

    @property
    def times(self) -> dict[str, FrameColumn]:
        """The columns that hold times, by role."""
        return {role: column for role, column in self.roles.items() if role in (*LIFETIME, "re_new")}

    def positional(self, frame: DataFrame) -> DataFrame:
        """Return the columns that are read of a frame, named by position: `c0`, `c1`, ..., and nested fields `f0`, `f1`, ..."""
        aliased = frame.toDF(*(column.text for column in self.columns.values()))
        read = {column.place: column for column in (*self.roles.values(), *map(self.columns.__getitem__, self.payload.names))}
        chosen = [_with_positions_inside(read[place]) for place in sorted(read)]
        if len(read) == len(self.columns) and not any(is_cast for is_cast, _ in chosen):
            return aliased  # Spark analyzes each step of a plan, which takes time
        return aliased.select(*(made for _, made in chosen))


def _columns(node: Source, frame: DataFrame) -> dict[str, FrameColumn]:
    columns: dict[str, FrameColumn] = {}
    for place, field in enumerate(frame.schema.fields):
        if field.name in columns:
            raise SchemaError(f"the frame of the source {node.source!r} has two columns named {field.name!r}")
        columns[field.name] = FrameColumn(place, field)
    return columns


def _no_column(node: Source, name: str, columns: Mapping[str, FrameColumn]) -> SchemaError:
    close = closest(name, columns)
    return SchemaError(
        f"the frame of the source {node.source!r} has no column {name!r}; its columns are: {', '.join(columns) or '(none)'}",
        hint=(f"did you mean {close!r}? " if close else "")
        + "name the columns of the times with start= and end= (no end: point events), or say SourceFrame(rows, start=None) of a "
        "table whose rows hold at all times",
    )


def _with_positions_inside(column: FrameColumn) -> tuple[bool, Column]:
    """Return a column whose nested fields are named by position, and whether it had to be cast; no VARIANT inside can be."""
    kind, numbered = column.field.dataType, _with_numbered_fields(column.field.dataType)
    if kind != numbered and holds_variant(kind):
        raise UnsupportedOnSpark(
            f"the query reads the column {column.name!r} of Spark's type {column.kind}, which holds VARIANT values beside others",
            hint="drop the column, or select what is needed of it into columns of their own",
        )
    return (False, col(column.text)) if kind == numbered else (True, col(column.text).cast(numbered))


def _with_numbered_fields(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f"f{i}", _with_numbered_fields(field.dataType), field.nullable) for i, field in enumerate(kind.fields)]
        )
    return ArrayType(_with_numbered_fields(kind.elementType), kind.containsNull) if isinstance(kind, ArrayType) else kind


def holds_variant(kind: DataType) -> bool:
    """Say whether values of a type of Spark's are VARIANT, or hold such values."""
    if isinstance(kind, StructType):
        return any(holds_variant(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return holds_variant(kind.elementType)
    if isinstance(kind, MapType):
        return holds_variant(kind.keyType) or holds_variant(kind.valueType)
    return bool(kind.typeName() == "variant")
