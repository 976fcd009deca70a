"""Validation of incoming payloads against the schema of their stream; errors name the event."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from streamdsl.errors import SchemaError, shortened
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Column, Table
from streamdsl.io.uniform import Fields
from streamdsl.temporal.payload import is_namedtuple, plains
from streamdsl.temporal.value_arrays import distinct

_BARE: Final = frozenset({int, float, bool, str, bytes, type(None)})


def schema_for(schema: Schema | None, id: Hashable, payload: Any, source: str | None = None) -> Schema:
    """Return the schema of a stream with this payload: the known one, else that of this first payload.

    Raises `SchemaError`, which names the event, for a payload of another shape.

    >>> schema_for(None, "a", {"k": 1})
    Schema(k)
    """
    try:
        known = Schema.of_payload(payload) if schema is None else schema
        known.values(payload)
        if not _is_of_shape(known, payload):
            raise _other_payload(known, payload)
    except SchemaError as error:
        place = f" at source {source!r}" if source else ""
        raise SchemaError(f"event {id!r}{place} is refused: {error}") from None
    return known


def table_of(payloads: Sequence[Any], schema: Schema | None, first: int = 0) -> Table:
    """Return the payloads of rows, as plain values, in columns; the rows are numbered from `first`.

    Raises `SchemaError` as `schema_for` does, naming the row by its number.
    """
    kinds = distinct(map(type, payloads))
    try:
        table = Table.from_payloads(payloads, schema, plainly=True, kinds=kinds)
        if _are_alike(table.schema, kinds):
            return table
    except SchemaError:
        pass  # the loop below finds the row, for the message
    payloads = plains(payloads)
    for number, payload in enumerate(payloads, first):
        schema = schema_for(schema, number, payload)
    return Table.from_payloads(payloads, schema)


def uniform_table(fields: Column | Fields, schema: Schema | None) -> Table | None:
    """Return payloads read as columns as a table; None unless they are numbers, or tuples of them, and fit the schema."""
    columns = [column for column in fields if not isinstance(column, list)] if isinstance(fields, list) else [fields]
    if not columns or (isinstance(fields, list) and len(columns) < len(fields)):
        return None
    found = Schema.tuple(len(columns)) if isinstance(fields, list) else Schema.scalar()
    schema = found if schema is None else schema
    if schema.cls is not None or (schema.shape, schema.names) != (found.shape, found.names):
        return None
    return Table(schema, dict(zip(schema.names, columns, strict=True)), len(columns[0]))


def _are_alike(schema: Schema, kinds: set[type]) -> bool:
    """Say whether payloads of these types, which have the schema's fields, certainly have its shape and class."""
    return kinds <= _BARE or kinds == {schema.cls} or schema.shape is Shape.RECORD or kinds == {tuple}


def _is_of_shape(schema: Schema, payload: Any) -> bool:
    """Say whether a payload, which has the schema's fields, also has its shape and class."""
    if schema.cls is not None:
        return type(payload) is schema.cls
    if schema.shape is Shape.TUPLE:
        return not is_namedtuple(payload)
    return schema.shape is not Shape.SCALAR or type(payload) in _BARE or Schema.of_payload(payload).shape is Shape.SCALAR


def _other_payload(schema: Schema, payload: Any) -> SchemaError:
    wanted, found = schema.cls.__name__ if schema.cls else schema.shape.value, type(payload).__name__
    if schema.cls is not None and isinstance(payload, schema.cls):
        return SchemaError(
            f"payload {shortened(payload)} is of a subclass of {wanted}, which may have other fields",
            hint=f"all payloads of a stream are of one class: make it a {wanted}, or declare payload={found} if all are that",
        )
    return SchemaError(
        f"payload {shortened(payload)} does not fit its stream of {wanted} payloads with the fields: {', '.join(schema.names)}",
        hint=schema.hint_of_payloads,
    )
