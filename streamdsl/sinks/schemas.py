"""The columns of a table: their types come of what is declared and of what has come, and rows are made to fit them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamdsl.errors import SinkError
from streamdsl.io.arrow_types import common_schema
from streamdsl.sinks.net import CONTROL

_CHANGED = "declare the types of the payload's fields, or select values of one type; a changed query writes to a table of its own"


def columns_of(events: Any) -> Any:
    """Return the schema of the rows that physical events make: without `kind` and `re_new`, and with types for id, LE and RE.

    >>> open = dict.fromkeys(["kind", "id", "re", "re_new"], pa.null())
    >>> columns_of(pa.schema({**open, "le": pa.int64()})).types
    [DataType(string), DataType(int64), DataType(int64)]
    """
    found = {field.name: field.type for field in events if field.name not in CONTROL}
    id, le = (kind if found[name] == pa.null() else found[name] for name, kind in (("id", pa.string()), ("le", pa.int64())))
    return pa.schema({**found, "id": id, "le": le, "re": le}, events.metadata)


def widened(before: Any, now: Any, what: str, *, has_rows: bool, comes: bool) -> Any:
    """Return the schema of a table that was `before`, after a micro-batch; `has_rows`, and whether rows come, decide what binds.

    A type that is not known yet (null) becomes known, a new field is an added column, integers become floats or decimals where
    that loses nothing. What has no rows binds nobody: neither a micro-batch without them, nor a table. Raises `SinkError` for
    types that have nothing in common, and where rows lack a column.

    >>> before, now = pa.schema({"le": pa.int64(), "n": pa.null()}), pa.schema({"le": pa.int64(), "n": pa.int64()})
    >>> widened(before, now, "trips", has_rows=True, comes=True).field("n").type
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
        raise _misfit(what, name, before.field(name).type, now.field(name).type)
    return wide


def fitted(rows: Any, schema: Any, what: str) -> Any:
    """Return rows with the columns of a schema, null where there are none; raises `SinkError` for a value that would be lost.

    >>> fitted(pa.table({"n": [2**53 + 1]}), pa.schema({"n": pa.float64()}), "trips")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    streamdsl.errors.SinkError: the column 'n' of trips is double, and some int64 is no such value: Integer value ...
    Hint: declare the types of the payload's fields, or select values of one type; a changed query writes to a table of its own
    """
    return pa.table([_fitted(rows, field, what) for field in schema], schema=schema)


def _fitted(rows: Any, field: Any, what: str) -> Any:
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(field.name)
    try:
        return cast_exactly(column, field.type)
    except pa.ArrowException as error:
        raise SinkError(
            f"the column {field.name!r} of {what} is {field.type}, and some {column.type} is no such value: {error}",
            hint=_CHANGED,
        ) from None


def cast_exactly(column: Any, kind: Any) -> Any:
    """Return a column as another type; raises an error of Arrow's where that would change a value.

    >>> cast_exactly(pa.chunked_array([[{"a": 1}]]), pa.struct({"a": pa.float64(), "b": pa.int64()})).to_pylist()
    [{'a': 1.0, 'b': None}]
    """
    if column.type == kind:
        return column
    nested = pa.types.is_nested(column.type) or pa.types.is_nested(kind)
    return pa.chunked_array([pa.array(column.to_pylist(), kind)]) if nested else column.cast(kind)


def _misfit(what: str, name: str, old: Any, new: Any) -> SinkError:
    return SinkError(f"the column {name!r} of {what} is {old}, and the stream sends {new}", hint=_CHANGED)
