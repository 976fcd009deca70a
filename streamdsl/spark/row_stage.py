"""Row by row: the steps of a plan that run in Spark's Python workers, on one Arrow batch at a time."""

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
from streamdsl.plan.ends import Ends
from streamdsl.spark.codec import arrow_type, decode, decode_table, encode, encode_table
from streamdsl.spark.keys import canonical
from streamdsl.spark.types import Type
from streamdsl.spark.values import edge_value

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Payload:
    """A column that holds payloads: its name, its type, and the schema that lambdas were traced over."""

    column: str
    type: Type
    schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """How a batch is read as what expressions are evaluated over: payloads, the lifetime or the LEs of a pair, the key."""

    payloads: tuple[Payload, ...]
    key: Payload | None = None
    life: bool = True
    starts: tuple[str, ...] = ()

    def inputs(self, batch: Any) -> Inputs:
        """Return a batch's rows."""
        tables = tuple(decode_table(batch.column(p.column), p.type, p.schema) for p in self.payloads)
        le, re = (batch.column(name).to_numpy() for name in ("le", "re")) if self.life else (None, None)
        keys = None if self.key is None else decode_table(batch.column(self.key.column), self.key.type, self.key.schema)
        return Inputs(tables, batch.num_rows, le, re, keys, tuple(batch.column(name).to_numpy() for name in self.starts))


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows for which the predicate holds."""

    predicate: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows that stay."""
        return batch.filter(pa.array(truth(self.predicate, reader.inputs(batch))))


@dataclass(frozen=True, slots=True)
class Project:
    """Replace each payload by a projection."""

    projection: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows with new payloads."""
        return replaced(batch, p=encode_table(project(self.projection, reader.inputs(batch)), out))


@dataclass(frozen=True, slots=True)
class ProjectPairs:
    """Make a payload of each pair of rows."""

    projection: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the pairs as rows."""
        payloads = encode_table(project(self.projection, reader.inputs(batch)), out)
        names = ["p" if name == "lp" else name for name in batch.schema.names if name not in ("rp", *reader.starts)]
        return pa.RecordBatch.from_arrays([payloads if name == "p" else batch.column(name) for name in names], names)


@dataclass(frozen=True, slots=True)
class Flatten:
    """Give one row per item."""

    items: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return a row per item, its payload the item."""
        lists = [[as_payload(item) for item in items] for items in evaluate(self.items, reader.inputs(batch)).tolist()]
        rows = np.repeat(np.arange(batch.num_rows), [len(items) for items in lists])
        return replaced(batch.take(pa.array(rows)), p=encode([item for items in lists for item in items], out))


@dataclass(frozen=True, slots=True)
class Alter:
    """Give each row the lifetime that its ends are."""

    ends: Ends

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows that still live."""
        le, re = self.ends.over(reader.inputs(batch))
        return replaced(batch, le=pa.array(le), re=pa.array(re)).filter(pa.array(le < re))


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Add a column of bytes that are equal where the keys are equal."""

    key: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows with their key; text of Python need not be valid Unicode."""
        keys = [canonical(key).encode("utf-8", "surrogatepass") for key in key_values(self.key, reader.inputs(batch))]
        return pa.RecordBatch.from_arrays([*batch.columns, pa.array(keys, pa.binary())], [*batch.schema.names, "j"])


@dataclass(frozen=True, slots=True)
class Reencode:
    """Hold each payload as another type."""

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows with the same payloads."""
        (payload,) = reader.payloads
        return replaced(batch, p=encode(decode(batch.column(payload.column), payload.type), out))


@dataclass(frozen=True, slots=True)
class Construct:
    """Make an object of each record."""

    cls: type

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows with objects as payloads."""
        (payload,) = reader.payloads
        records = decode(batch.column(payload.column), payload.type)
        return replaced(batch, p=encode([_on_row(row, self.cls, record) for row, record in enumerate(records)], out))


def _on_row(row: int, cls: type, record: Mapping[str, Any]) -> Any:
    try:
        return cls(**record)
    except Exception as error:
        raise RowError(row, error) from error


@dataclass(frozen=True, slots=True)
class Publish:
    """Hold each payload as its type at the public edge."""

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the same rows."""
        (payload,) = reader.payloads
        values = [edge_value(value, out) for value in decode(batch.column(payload.column), payload.type)]
        return replaced(batch, p=pa.array(values, arrow_type(out)))


Step = Filter | Project | ProjectPairs | Flatten | Alter | KeyColumn | Reencode | Construct | Publish


@dataclass(frozen=True, slots=True)
class RowStage:
    """One node of a plan, run row by row."""

    operator: str
    step: Step
    reader: Reader
    out: Type

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the output of each batch."""
        for batch in batches:
            if batch.num_rows:
                yield on_batch(self.operator, self.reader, batch, partial(self.step.apply, self.reader, batch, self.out))


def on_batch(operator: str, reader: Reader, batch: Any, compute: Callable[[], R]) -> R:
    """Return what `compute` makes of a batch; where user code fails the `UserCodeError` names the payload of its row."""
    try:
        return compute()
    except RowError as error:
        payload = [decode(batch.column(p.column).slice(error.row, 1), p.type)[0] for p in reader.payloads]
        if isinstance(error.cause, (UnitError, TimeOverflow)):
            raise type(error.cause)(f"operator {operator}, event {payload[0]!r}: {error.cause}") from None
        raise UserCodeError(error.cause, operator=operator, event=payload[0] if len(payload) == 1 else payload) from error


def replaced(batch: Any, **columns: Any) -> Any:
    """Return a batch with some columns replaced."""
    arrays = [columns.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)
