"""Row stages: steps of a plan that Spark's Python workers run row by row, one Arrow batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from streamdsl.errors import TimeOverflow, UnitError, UserCodeError
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, key_values, project, truth
from streamdsl.expr.nodes import Expr
from streamdsl.expr.schema import Schema, as_payload
from streamdsl.plan.ends import NewLifetime
from streamdsl.sharding.key_encoding import encode_key
from streamdsl.spark.codec import arrow_type, decode, decode_table, encode, encode_table
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.public_values import public_value

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class PayloadColumn:
    """A column of payloads (or keys): its name, its type, and the schema that lambdas were traced over."""

    column: str
    type: ColumnType
    schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class BatchReader:
    """Reads from a batch the inputs of expressions: payloads, the lifetime or the LEs of a pair, and the group's key."""

    payloads: tuple[PayloadColumn, ...]
    key: PayloadColumn | None = None
    life: bool = True
    starts: tuple[str, ...] = ()

    def inputs(self, batch: Any) -> Inputs:
        """Return the inputs of expressions over a batch."""
        tables = tuple(decode_table(batch.column(p.column), p.type, p.schema) for p in self.payloads)
        le, re = (batch.column(name).to_numpy() for name in ("le", "re")) if self.life else (None, None)
        keys = None if self.key is None else decode_table(batch.column(self.key.column), self.key.type, self.key.schema)
        return Inputs(tables, batch.num_rows, le, re, keys, tuple(batch.column(name).to_numpy() for name in self.starts))


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which the predicate holds."""

    predicate: Expr

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows that pass."""
        return batch.filter(pa.array(truth(self.predicate, reader.inputs(batch))))


@dataclass(frozen=True, slots=True)
class ProjectRows:
    """Replaces each payload by a projection of it."""

    projection: Expr

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows with new payloads."""
        return with_columns(batch, p=encode_table(project(self.projection, reader.inputs(batch)), out))


@dataclass(frozen=True, slots=True)
class ProjectPairs:
    """Replaces the payloads of each pair by a projection of both."""

    projection: Expr

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the pairs as rows."""
        payloads = encode_table(project(self.projection, reader.inputs(batch)), out)
        names = ["p" if name == "lp" else name for name in batch.schema.names if name not in ("rp", *reader.starts)]
        return pa.RecordBatch.from_arrays([payloads if name == "p" else batch.column(name) for name in names], names)


@dataclass(frozen=True, slots=True)
class Flatten:
    """Replaces each row by one row per item that a function returns."""

    items: Expr

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return a row per item, whose payload is the item."""
        lists = [[as_payload(item) for item in items] for items in evaluate(self.items, reader.inputs(batch)).tolist()]
        rows = np.repeat(np.arange(batch.num_rows), [len(items) for items in lists])
        return with_columns(batch.take(pa.array(rows)), p=encode([item for items in lists for item in items], out))


@dataclass(frozen=True, slots=True)
class Alter:
    """Give each row the lifetime that its ends are."""

    ends: NewLifetime

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows that still live."""
        le, re = self.ends.over(reader.inputs(batch))
        return with_columns(batch, le=pa.array(le), re=pa.array(re)).filter(pa.array(le < re))


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Adds the column `j`: bytes that are equal exactly where the keys are equal."""

    key: Expr

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows with their encoded key. Surrogates pass, as Python's text need not be valid Unicode."""
        keys = [encode_key(key).encode("utf-8", "surrogatepass") for key in key_values(self.key, reader.inputs(batch))]
        return pa.RecordBatch.from_arrays([*batch.columns, pa.array(keys, pa.binary())], [*batch.schema.names, "j"])


@dataclass(frozen=True, slots=True)
class Reencode:
    """Encodes each payload as another column type."""

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows with the same payloads."""
        (payload,) = reader.payloads
        return with_columns(batch, p=encode(decode(batch.column(payload.column), payload.type), out))


@dataclass(frozen=True, slots=True)
class Construct:
    """Constructs an object of a class from each record."""

    cls: type

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows with objects as payloads."""
        (payload,) = reader.payloads
        records = decode(batch.column(payload.column), payload.type)
        return with_columns(batch, p=encode([_on_row(row, self.cls, record) for row, record in enumerate(records)], out))


def _on_row(row: int, cls: type, record: Mapping[str, Any]) -> Any:
    try:
        return cls(**record)
    except Exception as error:
        raise RowError(row, error) from error


@dataclass(frozen=True, slots=True)
class Publish:
    """Encodes each payload as its public column type."""

    def apply(self, reader: BatchReader, batch: Any, out: ColumnType) -> Any:
        """Return the rows with payloads of the public type."""
        (payload,) = reader.payloads
        values = [public_value(value, out) for value in decode(batch.column(payload.column), payload.type)]
        return with_columns(batch, p=pa.array(values, arrow_type(out)))


Step = Filter | ProjectRows | ProjectPairs | Flatten | Alter | KeyColumn | Reencode | Construct | Publish


@dataclass(frozen=True, slots=True)
class RowStage:
    """One node of a plan that runs row by row, without state."""

    operator: str
    step: Step
    reader: BatchReader
    out: ColumnType

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the output of each batch."""
        for batch in batches:
            if batch.num_rows:
                yield run_on_batch(self.operator, self.reader, batch, partial(self.step.apply, self.reader, batch, self.out))


def run_on_batch(operator: str, reader: BatchReader, batch: Any, compute: Callable[[], R]) -> R:
    """Return the result of `compute`; where user code fails on a row, raise a `UserCodeError` with that row's payload."""
    try:
        return compute()
    except RowError as error:
        payload = [decode(batch.column(p.column).slice(error.row, 1), p.type)[0] for p in reader.payloads]
        if isinstance(error.cause, (UnitError, TimeOverflow)):
            raise type(error.cause)(f"operator {operator}, event {payload[0]!r}: {error.cause}") from None
        raise UserCodeError(error.cause, operator=operator, payloads=tuple(payload)) from error


def with_columns(batch: Any, **columns: Any) -> Any:
    """Return a batch with some columns replaced."""
    arrays = [columns.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)
