"""The output of a whole run, in columns: events, rows and frames are made of it when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamdsl.engine.batch import Batch
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.consolidate import consolidated
from streamdsl.engine.egress import SpeculativeEgress
from streamdsl.engine.operator import Piece
from streamdsl.engine.order import by_lifetime
from streamdsl.engine.step_output import output_events
from streamdsl.expr.schema import Shape
from streamdsl.expr.table import Table
from streamdsl.temporal import CHT, Event, Unit
from streamdsl.temporal.pandas_frames import HistoryColumns, PayloadMemo, Values, payload_columns
from streamdsl.temporal.time import Ticks

_SHAPES = {Shape.RECORD: "record", Shape.CLASS: "record", Shape.TUPLE: "tuple", Shape.SCALAR: "scalar"}


class Outcome:
    """The output of a run: its steps, each a net change and the CTI that then holds."""

    def __init__(self, steps: Sequence[Piece], unit: Unit | None) -> None:
        self._steps = steps
        self.unit = unit

    def events(self) -> list[Event[Any]]:
        """Return the physical events, CTIs included."""
        egress = SpeculativeEgress()
        with collector_paused():
            return output_events([egress.send(step.batch, step.cti) for step in self._steps])

    def cht(self) -> CHT[Any]:
        """Return the canonical history table."""
        le, re, table = self._rows()
        with collector_paused():
            return CHT.ordered(le.tolist(), re.tolist(), table.payloads(), self.unit)

    def history(self, fields: Sequence[str] = ()) -> HistoryColumns:
        """Return the canonical history table in columns; `fields` are columns even where there is no row."""
        le, re, table = self._rows()
        return HistoryColumns(le, re, *payload_fields(table, fields), self.unit)

    def _rows(self) -> tuple[Ticks, Ticks, Table]:
        """Return the lifetimes and payloads of the rows that are left, in order of (LE, RE, payload)."""
        rows = consolidated(Batch.concat(step.batch for step in self._steps))
        order = by_lifetime(rows.table, rows.le, rows.re_new)
        if order is None:
            return rows.le, rows.re_new, rows.table
        return rows.le[order], rows.re_new[order], rows.table.take(order)


def payload_fields(table: Table, fields: Sequence[str]) -> tuple[Mapping[str, Values], PayloadMemo | None]:
    """Return payloads field by field, and the memo of their shape."""
    shape = _SHAPES.get(table.schema.shape)
    if shape is None or not table.size or not table.schema.names:
        columns, memo = payload_columns(table.payloads(), fields)
        return columns, memo
    return table.columns, PayloadMemo(shape=shape, fields=list(table.schema.names))
