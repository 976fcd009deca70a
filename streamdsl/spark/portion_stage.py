"""Portion stages: windows of a grid in Spark's Python workers, a session of the local engine for each portion of windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.engine.egress import FinalEgress
from streamdsl.engine.query_session import Session
from streamdsl.expr.deferred import parts_of, with_parts
from streamdsl.expr.nodes import Expr, Field, Key, Make, Whole
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.plan.node import Group, GroupApply, Node, Select, Windowed
from streamdsl.spark.codec import decode_column, decode_table, encode
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.portion import WindowPortion
from streamdsl.spark.row_stage import PayloadColumn
from streamdsl.temporal import INFINITY, Cti, Event, Insert
from streamdsl.windows import Hopping

_KEYED: Final = Make(Schema.tuple(2), (Key(), Whole()))
_UNLIMITED: Final[Any] = {"most_windows": INFINITY}


@dataclass(frozen=True, slots=True)
class PortionStage:
    """The windows of a partition, whose rows come in order of portion (`j`), then of LE.

    A portion is a session with the rows of all groups, which is told the time before each further batch. So memory is that of the
    windows that are open, however many rows a group or a portion has. A portion has `size` windows.
    """

    node: Windowed
    size: int
    payload: PayloadColumn
    keys: tuple[PayloadColumn, ...]
    out: ColumnType
    until: int

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the results of the windows, as batches."""
        session: PortionSession | None = None
        now = 0
        for batch in batches:
            for portion, part in _by_portion(batch):
                rows, schema = self._rows(part)
                if session is not None and portion == now:
                    yield self._encoded(session.push([Cti(int(rows.le[0]))]))
                else:
                    if session is not None:
                        yield self._encoded(session.end(self.until))
                    session, now = PortionSession(self._plan(portion, schema), None, "final", _UNLIMITED, self.until), portion
                yield self._encoded(session.push(rows))
        if session is not None:
            yield self._encoded(session.end(self.until))

    def _rows(self, batch: Any) -> tuple[Inserts, Schema]:
        """Return rows and the schema of their payloads; in groups the keys are columns beside those of the payloads."""
        table = decode_table(batch.column(self.payload.column), self.payload.type, self.payload.schema)
        le, re = (batch.column(name).to_numpy() for name in ("le", "re"))
        schema = table.schema
        if self.keys:
            keys = {key.column: decode_column(batch.column(key.column), key.type) for key in self.keys}
            parts = parts_of(table.columns)
            own = {f"p{i}": parts[name] for i, name in enumerate(schema.columns)}
            table = Table(Schema.record((*keys, *own)), with_parts({**keys, **own}), len(le))
        return Inserts(None, le, re, table), schema

    def _plan(self, portion: int, schema: Schema) -> Node:
        """Return the node over a portion of windows, in a group-apply for each key; payloads come out beside their keys."""
        assert isinstance(self.node.windows, Hopping)
        source, levels = self.node.input, range(len(self.keys))
        groups = [Group(None, None, level) for level in levels]
        node = replace(self.node, windows=WindowPortion(self.node.windows, portion * self.size, self.size))
        if groups:
            fields: tuple[Expr, ...] = tuple(Field(f"p{i}") for i in range(len(schema.columns)))
            bare = schema.shape in (Shape.SCALAR, Shape.OBJECT)
            node = replace(node, input=Select(groups[-1], fields[0] if bare else Make(schema, fields)))
        plan: Node = node
        for level in reversed(levels):
            plan = GroupApply(groups[level - 1] if level else source, Field(self.keys[level].column), plan, _KEYED)
        return plan

    def _encoded(self, events: Iterable[Event[Any]]) -> Any:
        """Return the rows of a session's output as a batch."""
        rows = [event for event in events if isinstance(event, Insert)]
        payloads = [row.payload for row in rows]
        keys = []
        for key in self.keys:
            keys.append(encode([payload[0] for payload in payloads], key.type))
            payloads = [payload[1] for payload in payloads]
        columns = [pa.array([row.le for row in rows], pa.int64()), pa.array([row.re for row in rows], pa.int64())]
        names = ["le", "re", "p", *(key.column for key in self.keys)]
        return pa.RecordBatch.from_arrays([*columns, encode(payloads, self.out), *keys], names)


class PortionSession(Session[Any]):
    """A session without limits, of which all rows are final at its end, whatever the time of that is."""

    undoes = False
    _is_last = False

    def _end(self) -> None:
        super()._end()
        self._is_last = True

    def _final_frontier(self, egress: FinalEgress) -> int:
        return INFINITY if self._is_last else super()._final_frontier(egress)


def _by_portion(batch: Any) -> Iterator[tuple[int, Any]]:
    """Return the slices of a batch whose rows have the same portion."""
    numbers = batch.column("j").to_numpy()
    cuts = [*np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1)).tolist(), len(numbers)]
    for first, end in pairwise(cuts):
        yield int(numbers[first]), batch.slice(first, end - first)
