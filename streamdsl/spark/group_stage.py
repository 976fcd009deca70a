"""Group stages: a fragment of a plan that Spark's Python workers run with the local engine, one call per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.denote import denote
from streamdsl.engine.run import run
from streamdsl.expr.nodes import Constant, Expr, Key, rebuilt
from streamdsl.io.binding import Bound, Inserts, Piece
from streamdsl.plan.node import GroupApply, Node, Source
from streamdsl.plan.properties import with_parts
from streamdsl.spark.codec import decode, decode_table, encode
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.row_stage import PayloadColumn
from streamdsl.temporal import CHT, INFINITY, CHTRow, Unit

TAG: Final = "tag"
"""The column with the index of the fragment's input that a row belongs to.

It is a text, so its Arrow type also tells whether the session uses large types (`useLargeVarTypes`).
"""


@dataclass(frozen=True, slots=True)
class GroupStage:
    """A fragment of a plan that runs on all rows of a group; memory is that of the group."""

    plan: Node
    inputs: Mapping[str, PayloadColumn]
    keys: tuple[PayloadColumn, ...]
    key: PayloadColumn | None
    out: ColumnType
    unit: Unit | None
    until: int

    def run(self, table: Any) -> Any:
        """Return the output rows of one group."""
        sources = {name: self._rows(table, tag, payload) for tag, (name, payload) in enumerate(self.inputs.items())}
        return self._encoded(run_local(self._bound(table), sources, self.unit, self.until), table)

    def _bound(self, table: Any) -> Node:
        """Return the plan for this group, with the group's key as a constant; a group-apply has its own key."""
        if self.key is None or isinstance(self.plan, GroupApply):
            return self.plan
        plan: Node = bind_key(self.plan, decode(single_chunk(table, self.key.column)[:1], self.key.type)[0])
        return plan

    def _rows(self, table: Any, tag: int, payload: PayloadColumn) -> Inserts:
        mine = table.filter(pc.equal(table.column(TAG), str(tag))) if len(self.inputs) > 1 else table
        le, re = (single_chunk(mine, name).to_numpy() for name in ("le", "re"))
        return Inserts(None, le, re, decode_table(single_chunk(mine, payload.column), payload.type, payload.schema))

    def _encoded(self, rows: Sequence[CHTRow[Any]], table: Any) -> Any:
        columns = {
            "le": pa.array([row.le for row in rows], pa.int64()),
            "re": pa.array([row.re for row in rows], pa.int64()),
            "p": encode([row.payload for row in rows], self.out),
        }
        for key in self.keys:
            given = single_chunk(table, key.column)
            columns[key.column] = given.cast(_nullable(given.type)).take(pa.array([0] * len(rows), pa.int64()))
        made = pa.table(columns)
        return to_large_types(made) if pa.types.is_large_string(table.schema.field(TAG).type) else made


def to_large_types(table: Any) -> Any:
    """Return a table with large text and binary types, which Spark requires of results under `useLargeVarTypes`."""
    return table.cast(pa.schema([field.with_type(_large(field.type)) for field in table.schema]))


def _nullable(kind: pa.DataType) -> pa.DataType:
    """Return a type whose fields may be null, as Spark wants of results; those of a group's key may have come as never null."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _nullable(field.type)) for field in kind])
    return pa.list_(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def _large(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_large(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_large(kind.value_type))
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)


def run_local(plan: Node, sources: Mapping[str, Inserts], unit: Unit | None, until: int) -> list[CHTRow[Any]]:
    """Return the result of a plan over its sources' rows: by the local engine, or by the denotation if it cannot run it."""
    if any(map(_reads_outside, plan.walk())):
        return denote(plan, {name: _history(rows, unit) for name, rows in sources.items()}, until).rows
    bindings = {name: Bound(unit, None, partial(_pieces, rows)) for name, rows in sources.items()}
    return run(plan, bindings, None if until == INFINITY else until).cht().rows


def _reads_outside(node: Node) -> bool:
    """Say whether the body of a group-apply reads a source besides its group, which the engine does not support."""
    return isinstance(node, GroupApply) and any(isinstance(below, Source) or _reads_outside(below) for below in node.body.walk())


def _history(rows: Inserts, unit: Unit | None) -> CHT[Any]:
    return CHT(map(CHTRow, rows.le.tolist(), rows.re.tolist(), rows.table.payloads()), unit)


def _pieces(rows: Inserts) -> Iterator[Piece]:
    yield rows


def bind_key(plan: Node, key: Any) -> Any:
    """Return an operator over sources with the group's key replaced by a constant in its expressions."""

    def bound(part: Any) -> Any:
        return rebuilt(part, lambda each: Constant(key) if isinstance(each, Key) else None) if isinstance(part, Expr) else part

    return with_parts(plan, bound)


def single_chunk(table: Any, name: str) -> Any:
    """Return a column of a table as a single chunk."""
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column
