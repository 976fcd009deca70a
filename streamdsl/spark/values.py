"""Values at the public edge: what is pickled inside becomes of a type that Spark users know."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from streamdsl.errors import SchemaError, shortened
from streamdsl.spark.types import Items, Json, Pickled, Row, Scalar, Type, as_nullable
from streamdsl.temporal.payload import fields_of, is_dataclass


def edge_of(kind: Type) -> Type:
    """Return the type of a value at the public edge: what is pickled becomes what something declares, else VARIANT.

    >>> edge_of(Pickled(Scalar("float")))
    Scalar(kind='float', nullable=True)
    """
    if isinstance(kind, Pickled):
        return Json() if kind.edge is None else as_nullable(edge_of(kind.edge))
    if isinstance(kind, Row):
        return dataclasses.replace(kind, fields=tuple(map(edge_of, kind.fields)))
    return dataclasses.replace(kind, item=edge_of(kind.item)) if isinstance(kind, Items) else kind


def edge_value(value: Any, kind: Type) -> Any:
    """Return a value as the plain form of an edge type; raises `SchemaError` where it is not of that type.

    >>> edge_value(2, Scalar("float")), edge_value({"a": 1}, Json())
    (2.0, '{"a": 1}')
    """
    if value is None:
        return None
    if isinstance(kind, Json):
        return json.dumps(_jsonable(value))
    if isinstance(kind, Row):
        found = dict(fields_of(value))
        if found.keys() != set(kind.schema.names):
            raise _not_as_declared(value, f"a payload with the fields {', '.join(kind.schema.names)}")
        return {f"f{i}": edge_value(found[name], kind.fields[i]) for i, name in enumerate(kind.schema.names)}
    if isinstance(kind, Items):
        return [edge_value(item, kind.item) for item in value]
    return _edge_scalar(value, kind) if isinstance(kind, Scalar) else value


def _edge_scalar(value: Any, kind: Scalar) -> Any:
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
