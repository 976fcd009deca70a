"""Public column types and values: pickled values become values of declared types, or JSON for VARIANT."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from streamdsl.errors import SchemaError, shortened
from streamdsl.spark.codec import as_number
from streamdsl.spark.column_types import (
    ColumnType,
    JsonType,
    ListType,
    NumberType,
    PickledType,
    RecordType,
    ScalarType,
    as_nullable,
)
from streamdsl.temporal.payload import fields_of, is_dataclass


def public_type(kind: ColumnType) -> ColumnType:
    """Return the public type of a column: pickled values become their declared type, or JSON without one.

    >>> public_type(PickledType(ScalarType("float")))
    ScalarType(kind='float', nullable=True)
    """
    if isinstance(kind, PickledType):
        return JsonType(origin=kind.origin) if kind.declared is None else as_nullable(public_type(kind.declared))
    if isinstance(kind, RecordType):
        return dataclasses.replace(kind, fields=tuple(map(public_type, kind.fields)))
    return dataclasses.replace(kind, item=public_type(kind.item)) if isinstance(kind, ListType) else kind


def public_value(value: Any, kind: ColumnType) -> Any:
    """Return the plain form of a value of a public type; raises `SchemaError` for a value of another type.

    >>> public_value(2, ScalarType("float")), public_value({"a": 1}, JsonType())
    (2.0, '{"a": 1}')
    """
    if value is None:
        return None
    if isinstance(kind, JsonType):
        return json.dumps(_jsonable(value))
    if isinstance(kind, RecordType):
        found = dict(fields_of(value))
        if found.keys() != set(kind.schema.names):
            raise _not_as_declared(value, f"a payload with the fields {', '.join(kind.schema.names)}")
        return {f"f{i}": public_value(found[name], kind.fields[i]) for i, name in enumerate(kind.schema.names)}
    if isinstance(kind, NumberType):
        return as_number(value)
    if isinstance(kind, ListType):
        return [public_value(item, kind.item) for item in value]
    return _public_scalar(value, kind) if isinstance(kind, ScalarType) else value


def _public_scalar(value: Any, kind: ScalarType) -> Any:
    if kind.kind == "float" and type(value) is int and int(float(value)) == value:
        return float(value)
    wanted = {"int": int, "float": float, "bool": bool, "str": str}.get(kind.kind, type(None))
    if type(value) is not wanted:
        raise _not_as_declared(value, kind.kind)
    return value


def _not_as_declared(value: Any, declared: str) -> SchemaError:
    return SchemaError(
        f"{shortened(value)} is not of the declared type: {declared}",
        hint="correct the annotation of the function, module or field; without one the column is VARIANT",
    )


def _jsonable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, set, frozenset)):
        return list(map(_jsonable, value))
    if isinstance(value, (Mapping, tuple)) or is_dataclass(value):
        return {str(name): _jsonable(item) for name, item in fields_of(value)}
    return value.isoformat() if isinstance(value, (date, time)) else str(value)
