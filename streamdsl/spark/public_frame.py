"""The public form of a result: flat columns, times as timestamps, and payload values in Spark's ordinary types."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamdsl.errors import UntypedColumnWarning, level_of_caller, with_hint
from streamdsl.spark import stages
from streamdsl.spark.column_types import ColumnType, JsonType, ListType, NumberType, RecordType, types_inside
from streamdsl.spark.flow import Flow
from streamdsl.spark.public_values import public_type
from streamdsl.spark.sql_text import raise_error
from streamdsl.spark.time_columns import from_ticks
from streamdsl.temporal.pandas_frames import LIFETIME, column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def public_frame(flow: Flow) -> DataFrame:
    """Return a flow's rows as `le`, `re` and a column per payload field.

    Times are timestamps in a calendar unit, else bigint; INFINITY is null. Records inside payloads are structs. Values whose type
    nothing declares are VARIANT. A field that is called `le` or `re`, in whatever case, becomes `payload_le` or `payload_re`.
    """
    kind = public_type(flow.type)
    made = flow if kind == flow.type else stages.publish_payloads(flow, kind)
    times = [f"{from_ticks(name, flow.unit)} as {name}" for name in LIFETIME]
    return made.make().selectExpr(*times, *payload_columns(kind))


def payload_columns(kind: ColumnType, reserved: Sequence[str] = LIFETIME) -> list[str]:
    """Return the SQL of the payload columns in their public form, with the prefix `payload_` where a name is reserved.

    Warns of columns that are VARIANT as nothing says of what type their values are (`UntypedColumnWarning`).
    """
    _warn_of_untyped(kind)
    if not isinstance(kind, RecordType):
        return [f"{_public_sql('p', kind)} as value"]
    clashing = [name for name in kind.schema.names if name.lower() in reserved]
    names = column_names(kind.schema.names, {*reserved, *clashing})
    return [
        f"{_public_sql(f'p.f{i}', field)} as {backquoted(name)}"
        for i, (name, field) in enumerate(zip(names, kind.fields, strict=True))
    ]


def _warn_of_untyped(kind: ColumnType) -> None:
    columns = zip(kind.schema.names, kind.fields, strict=True) if isinstance(kind, RecordType) else [("value", kind)]
    untyped = {name: part.origin for name, column in columns for part in types_inside(column) if isinstance(part, JsonType)}
    if not untyped:
        return
    given = "".join(f"\n  {name!r}, of {origin or 'values whose types only a run tells'}" for name, origin in untyped.items())
    warnings.warn(
        with_hint(
            f"columns are VARIANT, as nothing declares the type of their values:{given}",
            "annotate what gives them, def f(e) -> float or class M(sd.UDA[int, float]), or write sd.functions.cast(..., float)",
        ),
        UntypedColumnWarning,
        stacklevel=level_of_caller(),
    )


def _public_sql(text: str, kind: ColumnType) -> str:
    """Return the SQL of a value in its public form."""
    if isinstance(kind, JsonType):
        return f"parse_json({text})"
    if isinstance(kind, NumberType):
        return f"coalesce({text}.f, {_as_float(f'{text}.i')})"
    if isinstance(kind, ListType) and any(
        isinstance(part, (RecordType, JsonType, NumberType)) for part in types_inside(kind.item)
    ):
        return f"transform({text}, x -> {_public_sql('x', kind.item)})"
    if not isinstance(kind, RecordType):
        return text
    fields = [
        f"{_public_sql(f'{text}.f{i}', field)} as {backquoted(kind.schema.names[i])}" for i, field in enumerate(kind.fields)
    ]
    made = f"struct({', '.join(fields)})"
    return f"if({text} IS NULL, NULL, {made})" if kind.nullable else made


def _as_float(whole: str) -> str:
    """Return the SQL of an integer as the float that is equal to it; the task fails where there is none."""
    error = raise_error("SchemaError", "an integer beyond 2**53 is no float, as the numbers of its column are on Spark")
    exact = f"cast(cast({whole} as double) as decimal(20,0)) = cast({whole} as decimal(20,0))"
    return f"if({whole} IS NULL, NULL, if({exact}, cast({whole} as double), {error}))"


def backquoted(name: str) -> str:
    """Return a column's name as SQL.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"
