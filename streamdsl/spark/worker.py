"""The Python half of a plan: what runs inside Spark's workers, on Arrow batches."""

from __future__ import annotations

import dataclasses
import operator
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.denote import denote
from streamdsl.engine.run import run
from streamdsl.errors import UserCodeError
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, key_values, project, truth
from streamdsl.expr.nodes import Constant, Expr, Key
from streamdsl.expr.schema import Schema, as_payload
from streamdsl.expr.table import column_of
from streamdsl.io.binding import Bound, Inserts, Piece
from streamdsl.plan.node import GroupApply, Matching, Node, Source, Windowed
from streamdsl.spark.codec import arrow_type, decode, decode_table, encode, encode_table
from streamdsl.spark.keys import canonical
from streamdsl.spark.portion import Portion
from streamdsl.spark.types import Type
from streamdsl.spark.values import edge_value
from streamdsl.temporal import CHT, INFINITY, CHTRow, Unit, add_times, to_duration, to_ticks
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.windows import Hopping

TAG: Final = "tag"
"""The column that says which input of a fragment a row belongs to."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A column that holds payloads: its name, its type, and the schema that lambdas were traced over."""

    column: str
    type: Type
    schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """How a batch is read as what expressions are evaluated over: a payload for each side, the lifetime, the key."""

    payloads: tuple[Payload, ...]
    key: Payload | None = None
    life: bool = True

    def inputs(self, batch: Any) -> Inputs:
        """Return a batch's rows."""
        tables = tuple(decode_table(batch.column(p.column), p.type, p.schema) for p in self.payloads)
        le, re = (batch.column(name).to_numpy() for name in ("le", "re")) if self.life else (None, None)
        keys = None if self.key is None else column_of(decode(batch.column(self.key.column), self.key.type))
        return Inputs(tables, batch.num_rows, le, re, keys)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows for which the predicate holds."""

    predicate: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows that stay."""
        return batch.filter(pa.array(truth(evaluate(self.predicate, reader.inputs(batch)))))


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
        names = ["p" if name == "lp" else name for name in batch.schema.names if name != "rp"]
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
    """Give each row the lifetime `[start, start + duration)`."""

    start: Expr | None
    duration: Expr
    unit: Unit | None

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows that still live."""
        inputs = reader.inputs(batch)
        durations = _ticks([to_duration(value, self.unit) for value in evaluate(self.duration, inputs).tolist()])
        starts = inputs.le
        if self.start is not None:
            starts = _ticks([to_ticks(value, self.unit) for value in evaluate(self.start, inputs).tolist()])
        assert starts is not None
        lives = durations > 0
        le, re = starts[lives], add_times(starts[lives], durations[lives])
        kept = replaced(batch.filter(pa.array(lives)), le=pa.array(le), re=pa.array(re))
        return kept.filter(pa.array(le < re))


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Add a column of texts that are equal where the keys are equal."""

    key: Expr

    def apply(self, reader: Reader, batch: Any, out: Type) -> Any:
        """Return the rows with their key."""
        keys = [canonical(key) for key in key_values(self.key, reader.inputs(batch))]
        return pa.RecordBatch.from_arrays([*batch.columns, pa.array(keys, pa.string())], [*batch.schema.names, "j"])


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
                yield self._guarded(batch)

    def _guarded(self, batch: Any) -> Any:
        try:
            return self.step.apply(self.reader, batch, self.out)
        except RowError as error:
            payload = [decode(batch.column(p.column).slice(error.row, 1), p.type)[0] for p in self.reader.payloads]
            raise UserCodeError(
                error.cause, operator=self.operator, event=payload[0] if len(payload) == 1 else payload
            ) from error


@dataclass(frozen=True, slots=True)
class GroupStage:
    """A part of a plan, run by the local definition on all rows of a group."""

    plan: Node
    inputs: Mapping[str, Payload]
    keys: tuple[Payload, ...]
    key: Payload | None
    out: Type
    unit: Unit | None
    until: int
    portion: int | None = None

    def run(self, table: Any) -> Any:
        """Return the output rows of one group."""
        sources = {name: self._rows(table, tag, payload) for tag, (name, payload) in enumerate(self.inputs.items())}
        return self._encoded(run_local(self._bound(table), sources, self.unit, self.until), table)

    def _bound(self, table: Any) -> Node:
        """Return the plan in this group; a group-apply has a key of its own."""
        if self.portion is not None and isinstance(self.plan, Windowed) and isinstance(self.plan.windows, Hopping):
            first = _chunk(table, "j")[0].as_py() * self.portion
            return dataclasses.replace(self.plan, windows=Portion(self.plan.windows, first, self.portion))
        if self.key is None or isinstance(self.plan, GroupApply):
            return self.plan
        plan: Node = bind_key(self.plan, decode(_chunk(table, self.key.column)[:1], self.key.type)[0])
        return plan

    def _rows(self, table: Any, tag: int, payload: Payload) -> Inserts:
        mine = table.filter(pc.equal(table.column(TAG), tag)) if len(self.inputs) > 1 else table
        le, re = (_chunk(mine, name).to_numpy() for name in ("le", "re"))
        return Inserts(None, le, re, decode_table(_chunk(mine, payload.column), payload.type, payload.schema))

    def _encoded(self, rows: Sequence[CHTRow[Any]], table: Any) -> Any:
        columns = {
            "le": pa.array([row.le for row in rows], pa.int64()),
            "re": pa.array([row.re for row in rows], pa.int64()),
            "p": encode([row.payload for row in rows], self.out),
        }
        for key in self.keys:
            columns[key.column] = _chunk(table, key.column).take(pa.array([0] * len(rows), pa.int64()))
        return pa.table(columns)


def run_local(plan: Node, sources: Mapping[str, Inserts], unit: Unit | None, until: int) -> list[CHTRow[Any]]:
    """Return the rows that a plan makes of its sources' rows, in this process: by the engine, else by the definition."""
    if (isinstance(plan, Windowed) and isinstance(plan.windows, Portion)) or any(map(_reads_outside, plan.walk())):
        return denote(plan, {name: _history(rows, unit) for name, rows in sources.items()}, until).rows
    bindings = {name: Bound(unit, None, partial(_pieces, rows)) for name, rows in sources.items()}
    return run(plan, bindings, None if until == INFINITY else until).cht().rows


def _reads_outside(node: Node) -> bool:
    """Say whether a group-apply's body reads a source besides its group, which the engine does not run."""
    return isinstance(node, GroupApply) and any(isinstance(below, Source) or _reads_outside(below) for below in node.body.walk())


def _history(rows: Inserts, unit: Unit | None) -> CHT[Any]:
    return CHT(map(CHTRow, rows.le.tolist(), rows.re.tolist(), rows.table.payloads()), unit)


def _pieces(rows: Inserts) -> Iterator[Piece]:
    yield rows


def bind_key(value: Any, key: Any) -> Any:
    """Return a node, or what is inside one, with the group's key as a constant."""
    if isinstance(value, Key):
        return Constant(key)
    if isinstance(value, tuple):
        bound = tuple(bind_key(item, key) for item in value)
        return value if all(map(operator.is_, bound, value)) else bound
    if not isinstance(value, (Node, Expr, BoundAgg, Matching)):
        return value
    changes = {f.name: bind_key(getattr(value, f.name), key) for f in dataclasses.fields(value)}
    same = all(changed is getattr(value, name) for name, changed in changes.items())
    return value if same else dataclasses.replace(value, **changes)


def replaced(batch: Any, **columns: Any) -> Any:
    """Return a batch with some columns replaced."""
    arrays = [columns.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def run_rows(blob: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Run a shipped row stage."""
    return _loaded(blob).run(batches)  # type: ignore[no-any-return]


def run_group(blob: bytes, table: Any) -> Any:
    """Run a shipped group stage on one group."""
    return _loaded(blob).run(table)


@lru_cache(maxsize=64)
def _loaded(blob: bytes) -> Any:
    return pickle.loads(blob)


def _ticks(values: list[int]) -> Any:
    return np.array(values, dtype=np.int64)


def _chunk(table: Any, name: str) -> Any:
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column
