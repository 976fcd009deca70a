"""The micro-batches that Spark passes to `foreachBatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import DataType

from streamdsl.errors import SchemaError
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks.names import distinct_columns
from streamdsl.spark.frame_layout import holds_variant
from streamdsl.spark.job_descriptions import context_of
from streamdsl.spark.public_frame import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STREAM: Final = "sql.streaming.queryId"
_SHARD: Final = "shard"
"""The column of the shard's number in a stream; a payload field of this name is renamed."""


def query_id(frame: DataFrame) -> str | None:
    """Return the id of the streaming query of a micro-batch, which lasts as long as its checkpoint; None outside of streams."""
    context = context_of(frame.sparkSession)
    found = None if context is None else context.getLocalProperty(_STREAM)
    return None if found is None else str(found)


def checked_events(frame: DataFrame) -> DataFrame:
    """Return physical events without the shard's number, in types that tables can hold. Raises `SchemaError`."""
    missing = [name for name in PHYSICAL if name not in frame.columns]
    if missing:
        raise SchemaError(
            f"the frame holds no physical events: it has no column {', '.join(map(repr, missing))}; "
            f"its columns are: {', '.join(frame.columns)}",
            hint="write what query.on_spark(spark).stream(...) returns",
        )
    return storable(frame.drop(_SHARD))


def storable(frame: DataFrame) -> DataFrame:
    """Return a frame whose VARIANT columns are JSON text. Raises `SchemaError` for nested VARIANT values."""
    columns = enumerate(frame.schema.fields)
    shown = [_storable(f"c{place}", field.name, field.dataType) for place, field in columns]
    return frame.toDF(*(f"c{place}" for place in range(len(shown)))).selectExpr(*shown)


def writable(frame: DataFrame) -> DataFrame:
    """Return a frame whose column names Spark's file formats accept: not empty, and different by more than case."""
    names = distinct_columns(frame.columns)
    return frame if names == frame.columns else frame.toDF(*names)


def _storable(column: str, name: str, kind: DataType) -> str:
    quoted = backquoted(name)
    if kind.typeName() == "variant":
        return f"to_json({column}) as {quoted}"
    if holds_variant(kind):
        raise SchemaError(
            f"the column {name!r} holds values whose type nothing declares, inside others",
            hint="declare the type: annotate the function, module or field, or select the values into columns of their own",
        )
    return f"{column} as {quoted}"
