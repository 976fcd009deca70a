"""Payloads on their way in: each has the fields of its stream, or is refused with its event named."""

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
    """Return the schema of a stream that takes this payload: the known one, else what this first payload shows.

    Raises `SchemaError`, which names the event, for a payload with other fields.

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
    """Return the payloads of rows, made plain, as columns; the rows are numbered from `first`.

    Raises `SchemaError`, which names the row by its number, as `schema_for` does.
    """
    kinds = distinct(map(type, payloads))
    try:
        table = Table.from_payloads(payloads, schema, plainly=True, kinds=kinds)
        if _are_alike(table.schema, kinds):
            return table
    except SchemaError:
        pass  # the rows will tell which
    payloads = plains(payloads)
    for number, payload in enumerate(payloads, first):
        schema = schema_for(schema, number, payload)
    return Table.from_payloads(payloads, schema)


def uniform_table(fields: Column | Fields, schema: Schema | None) -> Table | None:
    """Return payloads that have been read as columns; None where they are not numbers, or tuples of them, as the schema wants."""
    columns = [column for column in fields if not isinstance(column, list)] if isinstance(fields, list) else [fields]
    if not columns or (isinstance(fields, list) and len(columns) < len(fields)):
        return None
    found = Schema.tuple(len(columns)) if isinstance(fields, list) else Schema.scalar()
    schema = found if schema is None else schema
    if schema.cls is not None or (schema.shape, schema.names) != (found.shape, found.names):
        return None
    return Table(schema, dict(zip(schema.names, columns, strict=True)), len(columns[0]))


def _are_alike(schema: Schema, kinds: set[type]) -> bool:
    """Say whether payloads of these types that have the fields of a schema are all as it wants them."""
    return kinds <= _BARE or kinds == {schema.cls} or schema.shape is Shape.RECORD or kinds == {tuple}


def _is_of_shape(schema: Schema, payload: Any) -> bool:
    """Say whether a payload that has the fields of its stream is what its stream's payloads are."""
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
        hint="every payload of a stream has the same fields; None is a value",
    )
