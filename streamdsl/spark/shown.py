"""What a fault shows of a payload: the fields that the expression reads, which Spark reads anyway, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamdsl.errors import VALUE_LENGTH
from streamdsl.expr.nodes import Expr, Field, Whole
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
from streamdsl.expr.schema import Shape
from streamdsl.spark.faults import Piece
from streamdsl.spark.operations import apply
from streamdsl.spark.sql import Sql, quote
from streamdsl.spark.types import STR, Row, Scalar

if TYPE_CHECKING:
    from streamdsl.spark.expressions import RowAt

_QUOTE: Final = quote("'")


def shown(expr: Expr, rows: Sequence[RowAt]) -> list[Piece]:
    """Return what is shown of the payload of an expression, or of the pair of them; nothing if it reads none."""
    names: list[list[str]] = [[] for _ in rows]
    for part in expr.walk():
        if isinstance(part, (Field, Whole)) and rows:
            name = part.name if isinstance(part, Field) else ""
            names[part.side] += [name] if name not in names[part.side] else []
    if not any(names):
        return []
    payloads = [_payload(row, read) for row, read in zip(rows, names, strict=True)]
    return payloads[0] if len(rows) == 1 else ["(", *payloads[0], ", ", *payloads[1], ")"]


def _payload(row: RowAt, read: Sequence[str]) -> list[Piece]:
    if isinstance(row.type, Scalar):
        return [_repr(row.whole())] if read else ["..."]
    if not isinstance(row.type, Row) or row.type.nullable:
        return ["..."]
    schema = row.type.schema
    name = {Shape.RECORD: "Record", Shape.TUPLE: ""}.get(schema.shape) or getattr(schema.cls, "__name__", "")
    pieces: list[Piece] = [f"{name}("]
    known = [field for field in schema.names if field in read and isinstance(row.field(field).type, Scalar)]
    for field in known:
        pieces += [f"{field}=", _repr(row.field(field)), ", "]
    return [*pieces, "...)"] if len(known) < len(schema.names) else [*pieces[:-1], ")"]


def _repr(value: Sql) -> Sql:
    """Return the SQL of a value as Python shows it, of a long text the beginning, and never null."""
    if value.kind not in ("str", "float"):
        return apply(SCALAR_FUNCTIONS["str"], [value])
    is_text = value.kind == "str"
    text = f"concat({_QUOTE}, left({value.text}, {VALUE_LENGTH}), {_QUOTE})" if is_text else f"cast({value.text} as string)"
    return Sql(f"coalesce({text}, 'None')" if value.type.nullable else text, STR)
