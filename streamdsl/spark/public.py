"""The public form of a result: flat columns, times as timestamps, every value of a type that Spark users know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamdsl.spark import stages
from streamdsl.spark.flow import Flow
from streamdsl.spark.times import from_ticks
from streamdsl.spark.types import Items, Json, Row, Type, parts
from streamdsl.spark.values import edge_of
from streamdsl.temporal.pandas_frames import LIFETIME, column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def public_frame(flow: Flow) -> DataFrame:
    """Return a flow's rows as `le`, `re` and a column per payload field.

    Times are timestamps in a calendar unit, else bigint; INFINITY is null. Records inside payloads are structs. Values whose type
    nothing declares are VARIANT. A field that is called `le` or `re`, in whatever case, becomes `payload_le` or `payload_re`.
    """
    kind = edge_of(flow.type)
    made = flow if kind == flow.type else stages.published(flow, kind)
    times = [f"{from_ticks(name, flow.unit)} as {name}" for name in LIFETIME]
    return made.make().selectExpr(*times, *payload_texts(kind))


def payload_texts(kind: Type, reserved: Sequence[str] = LIFETIME) -> list[str]:
    """Return the SQL of the columns of payloads in their public form, behind `payload_` where a name is reserved."""
    if not isinstance(kind, Row):
        return [f"{_shown('p', kind)} as value"]
    clashing = [name for name in kind.schema.names if name.lower() in reserved]
    names = column_names(kind.schema.names, {*reserved, *clashing})
    return [
        f"{_shown(f'p.f{i}', field)} as {backquoted(name)}"
        for i, (name, field) in enumerate(zip(names, kind.fields, strict=True))
    ]


def _shown(text: str, kind: Type) -> str:
    """Return the SQL of a value in its public form."""
    if isinstance(kind, Json):
        return f"parse_json({text})"
    if isinstance(kind, Items) and any(isinstance(part, (Row, Json)) for part in parts(kind.item)):
        return f"transform({text}, x -> {_shown('x', kind.item)})"
    if not isinstance(kind, Row):
        return text
    fields = [f"{_shown(f'{text}.f{i}', field)} as {backquoted(kind.schema.names[i])}" for i, field in enumerate(kind.fields)]
    made = f"struct({', '.join(fields)})"
    return f"if({text} IS NULL, NULL, {made})" if kind.nullable else made


def backquoted(name: str) -> str:
    """Return a column's name as SQL.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"
