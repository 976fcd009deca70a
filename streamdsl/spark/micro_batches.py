"""Micro-batches as Spark hands them to `foreachBatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from streamdsl.errors import SchemaError
from streamdsl.io.layout import PHYSICAL
from streamdsl.sinks.names import column_of
from streamdsl.spark.public import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STREAM: Final = "sql.streaming.queryId"
_SHARD: Final = "shard"
"""The engine's own column of a stream: a field of this name has another in its frame."""


def stream_of(frame: DataFrame) -> str | None:
    """Return what tells the stream of a micro-batch from others: it stays as long as the checkpoint; None outside of streams."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(_STREAM)
    except (AttributeError, PySparkException):  # a session by Spark Connect has no context
        return None
    return None if found is None else str(found)


def checked(frame: DataFrame) -> DataFrame:
    """Return physical events with columns that tables can hold, without the number of the shard. Raises `SchemaError`."""
    missing = [name for name in PHYSICAL if name not in frame.columns]
    if missing:
        raise SchemaError(
            f"the frame holds no physical events: it has no column {', '.join(map(repr, missing))}; "
            f"its columns are: {', '.join(frame.columns)}",
            hint="write what query.on_spark(spark).stream(...) returns",
        )
    return storable(frame.drop(_SHARD))


def storable(frame: DataFrame) -> DataFrame:
    """Return a frame whose VARIANT columns are JSON text. Raises `SchemaError` where there are such values inside others."""
    columns = enumerate(frame.schema.fields)
    shown = [_storable(f"c{place}", field.name, field.dataType) for place, field in columns]
    return frame.toDF(*(f"c{place}" for place in range(len(shown)))).selectExpr(*shown)


def writable(frame: DataFrame) -> DataFrame:
    """Return a frame whose names of columns Spark's files can hold, which differ by more than case: by the rule of sinks."""
    names: list[str] = []
    for name in frame.columns:
        others = {each.lower() for each in names}
        names.append(column_of(name, names) if name == "" or name.lower() in others else name)
    return frame if names == frame.columns else frame.toDF(*names)


def _storable(column: str, name: str, kind: DataType) -> str:
    quoted = backquoted(name)
    if kind.typeName() == "variant":
        return f"to_json({column}) as {quoted}"
    if _holds_variant(kind):
        raise SchemaError(
            f"the column {name!r} holds values whose type nothing declares, inside others",
            hint="declare the type: annotate the function, module or field, or select the values into columns of their own",
        )
    return f"{column} as {quoted}"


def _holds_variant(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_holds_variant(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds_variant(kind.elementType)
    if isinstance(kind, MapType):
        return _holds_variant(kind.keyType) or _holds_variant(kind.valueType)
    return bool(kind.typeName() == "variant")
