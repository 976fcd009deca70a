"""Schema evolution of tables: widening of column types, and exact casts of rows to a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamdsl.errors import SinkError
from streamdsl.io.arrow_types import common_schema
from streamdsl.sinks.row_changes import CONTROL

_CHANGED = "declare the types of the payload's fields, or select values of one type; a changed query writes to a table of its own"


def row_schema(events: Any) -> Any:
    """Return the schema of a table of physical events: without `kind` and `re_new`, with known types of id, LE and RE.

    >>> open = dict.fromkeys(["kind", "id", "re", "re_new"], pa.null())
    >>> row_schema(pa.schema({**open, "le": pa.int64()})).types
    [DataType(string), DataType(int64), DataType(int64)]
    """
    found = {field.name: field.type for field in events if field.name not in CONTROL}
    id, le = (kind if found[name] == pa.null() else found[name] for name, kind in (("id", pa.string()), ("le", pa.int64())))
    return pa.schema({**found, "id": id, "le": le, "re": le}, events.metadata)


def widened_schema(before: Any, now: Any, what: str, *, has_rows: bool, comes: bool) -> Any:
    """Return the schema of a table after a micro-batch: `before` widened to the schema `now`.

    An unknown type (null) becomes known, a new field adds a column, and integers become floats or decimals where that is exact.
    Only schemas with rows constrain: `has_rows` is about the table, `comes` about the micro-batch. Raises `SinkError` for types
    without a common one, and for rows that lack a column.

    >>> before, now = pa.schema({"le": pa.int64(), "n": pa.null()}), pa.schema({"le": pa.int64(), "n": pa.int64()})
    >>> widened_schema(before, now, "trips", has_rows=True, comes=True).field("n").type
    DataType(int64)
    """
    wide, odd = common_schema(before, now)
    if not comes:
        return pa.schema([before.field(field.name) if field.name in odd else field for field in wide], before.metadata)
    wide = wide.with_metadata(now.metadata or before.metadata)
    if not has_rows:
        return wide
    if missing := set(before.names) - set(now.names):
        raise SinkError(
            f"{what} has the columns {', '.join(before.names)}, and the stream {', '.join(now.names)}: "
            f"it lacks {', '.join(name for name in before.names if name in missing)}",
            hint="a changed query writes to a table of its own",
        )
    if before.field("le").type != now.field("le").type:
        odd.append("le")
    for name in odd:
        raise _type_error(what, name, before.field(name).type, now.field(name).type)
    return wide


def cast_table(rows: Any, schema: Any, what: str) -> Any:
    """Return rows cast to a schema, with nulls in missing columns; raises `SinkError` for a value that a cast would change.

    >>> cast_table(pa.table({"n": [2**53 + 1]}), pa.schema({"n": pa.float64()}), "trips")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    streamdsl.errors.SinkError: the column 'n' of trips is double, and not every int64 casts to it exactly: Integer value ...
    Hint: declare the types of the payload's fields, or select values of one type; a changed query writes to a table of its own
    """
    return pa.table([_cast_column(rows, field, what) for field in schema], schema=schema)


def _cast_column(rows: Any, field: Any, what: str) -> Any:
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(field.name)
    try:
        return cast_exactly(column, field.type)
    except pa.ArrowException as error:
        raise SinkError(
            f"the column {field.name!r} of {what} is {field.type}, and not every {column.type} casts to it exactly: {error}",
            hint=_CHANGED,
        ) from None


def cast_exactly(column: Any, kind: Any) -> Any:
    """Return a column cast to another type; raises an error of Arrow where the cast would change a value.

    >>> cast_exactly(pa.chunked_array([[{"a": 1}]]), pa.struct({"a": pa.float64(), "b": pa.int64()})).to_pylist()
    [{'a': 1.0, 'b': None}]
    """
    if column.type == kind:
        return column
    nested = pa.types.is_nested(column.type) or pa.types.is_nested(kind)
    return pa.chunked_array([pa.array(column.to_pylist(), kind)]) if nested else column.cast(kind)


def _type_error(what: str, name: str, old: Any, new: Any) -> SinkError:
    return SinkError(f"the column {name!r} of {what} is {old}, and the stream sends {new}", hint=_CHANGED)
