"""The preview of a payload in error messages: the fields that the expression reads, which cost no further column reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamdsl.errors import VALUE_LENGTH
from streamdsl.expr.nodes import Expr, Field, Whole
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
from streamdsl.expr.schema import Shape
from streamdsl.spark.column_types import STR, RecordType, ScalarType
from streamdsl.spark.operations import apply
from streamdsl.spark.sql_text import Sql, quote
from streamdsl.spark.task_errors import MessagePart

if TYPE_CHECKING:
    from streamdsl.spark.expressions import PayloadRef

_QUOTE: Final = quote("'")


def payload_preview(expr: Expr, rows: Sequence[PayloadRef]) -> list[MessagePart]:
    """Return the preview of the payload, or pair of payloads, that an expression reads; empty if it reads none."""
    names: list[list[str]] = [[] for _ in rows]
    for part in expr.walk():
        if isinstance(part, (Field, Whole)) and rows:
            name = part.name if isinstance(part, Field) else ""
            names[part.side] += [name] if name not in names[part.side] else []
    if not any(names):
        return []
    payloads = [_payload(row, read) for row, read in zip(rows, names, strict=True)]
    return payloads[0] if len(rows) == 1 else ["(", *payloads[0], ", ", *payloads[1], ")"]


def _payload(row: PayloadRef, read: Sequence[str]) -> list[MessagePart]:
    if isinstance(row.type, ScalarType):
        return [_repr(row.whole())] if read else ["..."]
    if not isinstance(row.type, RecordType) or row.type.nullable:
        return ["..."]
    schema = row.type.schema
    name = {Shape.RECORD: "Record", Shape.TUPLE: ""}.get(schema.shape) or getattr(schema.cls, "__name__", "")
    pieces: list[MessagePart] = [f"{name}("]
    known = [field for field in schema.names if field in read and isinstance(row.field(field).type, ScalarType)]
    for field in known:
        pieces += [f"{field}=", _repr(row.field(field)), ", "]
    return [*pieces, "...)"] if len(known) < len(schema.names) else [*pieces[:-1], ")"]


def _repr(value: Sql) -> Sql:
    """Return the SQL of a value's `repr`, which is never null; a long text is truncated."""
    if value.kind not in ("str", "float"):
        return apply(SCALAR_FUNCTIONS["str"], [value])
    is_text = value.kind == "str"
    text = f"concat({_QUOTE}, left({value.text}, {VALUE_LENGTH}), {_QUOTE})" if is_text else f"cast({value.text} as string)"
    return Sql(f"coalesce({text}, 'None')" if value.type.nullable else text, STR)
