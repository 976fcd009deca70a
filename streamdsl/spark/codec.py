"""The codec between payloads and Arrow columns, for the stages that run in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from streamdsl.errors import SchemaError, UnsupportedOnSpark, shortened
from streamdsl.expr.arrow_buffers import as_arrow
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, parts_of, with_parts
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Table, column_of, object_column
from streamdsl.io.arrow_held import held_values
from streamdsl.spark.column_types import (
    ColumnType,
    ForeignType,
    ListType,
    NumberType,
    PickledType,
    RecordType,
    ScalarType,
    types_inside,
)
from streamdsl.spark.shipping import dump_values, load_values
from streamdsl.temporal import plain

_ARROW = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_PYTHON = {"int": int, "float": float, "bool": bool, "str": str}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """Return the Arrow type of a column.

    >>> from streamdsl.spark.column_types import INT
    >>> arrow_type(RecordType(Schema.record(["a"]), (INT,)))
    StructType(struct<f0: int64>)
    """
    if isinstance(kind, RecordType):
        return pa.struct([(f"f{i}", arrow_type(field)) for i, field in enumerate(kind.fields)])
    if isinstance(kind, ListType):
        return pa.list_(arrow_type(kind.item))
    if isinstance(kind, NumberType):
        return pa.struct([("i", pa.int64()), ("f", pa.float64())])
    if kind.ddl.startswith("decimal("):
        precision, scale = kind.ddl[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[kind.ddl]


def check_portable(kind: ColumnType) -> None:
    """Raise `UnsupportedOnSpark` for a type that Python stages cannot read."""
    for part in types_inside(kind):
        if isinstance(part, ForeignType) and part.ddl not in _ARROW and not part.is_decimal:
            raise UnsupportedOnSpark(
                f"a Python stage of the query reads a column of Spark's type {part.ddl}, which has no counterpart in Python",
                hint="drop the column, or cast it to a number, text, date, timestamp, decimal, binary, array or struct",
            )


def decode(array: Any, kind: ColumnType) -> list[Any]:
    """Return a column's Python values."""
    if isinstance(kind, PickledType):
        return load_values(array.to_pylist())
    if isinstance(kind, RecordType):
        return _decode_rows(array, kind)
    if isinstance(kind, ListType):
        return [None if items is None else items for items in _decode_items(array, kind)]
    if isinstance(kind, NumberType):
        whole, real = (part.to_pylist() for part in array.flatten())
        return [f if i is None else i for i, f in zip(whole, real, strict=True)]
    values: list[Any] = array.to_pylist()
    return [_in_utc(value) for value in values] if kind.ddl == "timestamp" else values


def _decode_rows(array: Any, kind: RecordType) -> list[Any]:
    columns = [decode(array.flatten()[i], field) for i, field in enumerate(kind.fields)]
    rows = zip(*columns, strict=True)
    if not array.null_count:
        return list(map(kind.schema.build, rows))
    return [kind.schema.build(row) if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _decode_items(array: Any, kind: ListType) -> list[Any]:
    return [None if items is None else decode(pa.array(items, arrow_type(kind.item)), kind.item) for items in array.to_pylist()]


def _in_utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


def encode(values: Sequence[Any], kind: ColumnType) -> Any:
    """Return Python values as a column of exactly this type; raises `SchemaError` for a value of another type."""
    if isinstance(kind, PickledType):
        return pa.array(dump_values(values), pa.binary())
    if isinstance(kind, RecordType):
        return _encode_rows(values, kind)
    if isinstance(kind, ListType):
        return _encode_items(values, kind)
    values = [plain(value) for value in values]
    if isinstance(kind, NumberType):
        return pa.array([as_number(value) for value in values], arrow_type(kind))
    if isinstance(kind, ScalarType):
        _check_scalars(values, kind)
    return pa.array(values, arrow_type(kind))


def as_number(value: float | None) -> dict[str, float | None] | None:
    """Return a number as a struct of which one field is None.

    >>> as_number(2), as_number(2.5), as_number(None)
    ({'i': 2, 'f': None}, {'i': None, 'f': 2.5}, None)
    """
    whole = type(value) is int
    return None if value is None else {"i": value if whole else None, "f": None if whole else value}


def _check_scalars(values: Sequence[Any], kind: ScalarType) -> None:
    wanted = _PYTHON.get(kind.kind)
    for value in values:
        if value is not None and type(value) is not wanted:
            raise SchemaError(f"{shortened(value)} is not of type {kind.kind}, as all values of its column are on Spark")
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise OverflowError(f"the integer {value} leaves int64, which Spark cannot hold")


def _encode_rows(values: Sequence[Any], kind: RecordType) -> Any:
    size = len(kind.fields)
    rows = [(None,) * size if value is None else kind.schema.values(value) for value in values]
    arrays = [encode([row[i] for row in rows], field) for i, field in enumerate(kind.fields)]
    fields = [pa.field(f"f{i}", array.type) for i, array in enumerate(arrays)]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _encode_items(values: Sequence[Any], kind: ListType) -> Any:
    lists = [None if items is None else encode(items, kind.item).to_pylist() for items in values]
    return pa.array(lists, arrow_type(kind))


def decode_table(array: Any, kind: ColumnType, schema: Schema | None) -> Table:
    """Return a payload column as a table; columns of native types are not converted to Python values."""
    if isinstance(kind, RecordType) and not kind.nullable:
        fields = zip(kind.schema.names, array.flatten(), kind.fields, strict=True)
        return Table(kind.schema, with_parts({name: decode_column(column, field) for name, column, field in fields}), len(array))
    if isinstance(kind, ScalarType) and (schema is None or schema.shape is Shape.SCALAR):
        return Table(Schema.scalar(), with_parts({"value": decode_column(array, kind)}), len(array))
    payloads = decode(array, kind)
    known = schema is not None and schema.shape in (Shape.SCALAR, Shape.OBJECT)
    return Table.from_payloads(payloads, schema) if known else Table.of_objects(payloads)


def decode_column(array: Any, kind: ColumnType) -> AnyColumn:
    """Return a column's values as one of a table; texts become Python's when they are read."""
    if isinstance(kind, ScalarType) and kind.kind in ("int", "float", "bool") and not array.null_count:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if _is_of_texts(kind):
        return held_values(pa.chunked_array([array]))
    values = decode(array, kind)
    return object_column(values) if not isinstance(kind, ScalarType) else column_of(values)


def encode_table(table: Table, kind: ColumnType) -> Any:
    """Return a table's payloads as a column; columns of native types are not converted to Python values."""
    parts = parts_of(table.columns)
    if isinstance(kind, RecordType) and table.schema == kind.schema:
        arrays = [_encode_column(parts[name], field) for name, field in zip(kind.schema.names, kind.fields, strict=True)]
        fields = [pa.field(f"f{i}", array.type) for i, array in enumerate(arrays)]
        return pa.StructArray.from_arrays(arrays, fields=fields)
    if isinstance(kind, ScalarType) and table.schema.shape is Shape.SCALAR:
        return _encode_column(parts["value"], kind)
    return encode(table.payloads(), kind)


def _encode_column(part: AnyColumn, kind: ColumnType) -> Any:
    if isinstance(part, DeferredColumn):
        if _is_of_texts(kind):
            return _encode_texts(part, kind)
        part = part.column
    typed = {"bigint": "int64", "double": "float64", "boolean": "bool"}.get(kind.ddl)
    if isinstance(kind, ScalarType) and part.dtype == typed:
        return pa.array(part)
    return encode(part.tolist(), kind)


def _encode_texts(part: DeferredColumn, kind: ColumnType) -> Any:
    """Return texts that Arrow holds as they are; of others each value is looked at once."""
    if (texts := part.source.passed(part.rows)) is not None:
        return texts
    codes, known = part.encoded()
    return encode(known.tolist(), kind).take(as_arrow(codes))


def _is_of_texts(kind: ColumnType) -> bool:
    return isinstance(kind, ScalarType) and kind.kind == "str"
