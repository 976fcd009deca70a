"""What a run leaves, in columns: events, rows and frames are made of them when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.egress import SpeculativeEgress
from streamdsl.engine.ids import id_codes
from streamdsl.engine.operator import Piece
from streamdsl.engine.order import by_lifetime
from streamdsl.engine.sent import events_sent
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.schema import Shape
from streamdsl.expr.table import Table, flatnonzero
from streamdsl.temporal import CHT, Event, Unit
from streamdsl.temporal.frames import History, Memo, Values, payload_columns
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
            return events_sent([egress.send(step.batch, step.cti) for step in self._steps])

    def cht(self) -> CHT[Any]:
        """Return the canonical history table."""
        le, re, table = self._rows()
        with collector_paused():
            return CHT.ordered(le.tolist(), re.tolist(), table.payloads(), self.unit)

    def history(self, fields: Sequence[str] = ()) -> History:
        """Return the canonical history table in columns; `fields` are columns even where there is no row."""
        le, re, table = self._rows()
        return History(le, re, *payload_fields(table, fields), self.unit)

    def _rows(self) -> tuple[Ticks, Ticks, Table]:
        """Return the lifetimes and payloads of the rows that are left, in order of (LE, RE, payload)."""
        rows = rows_after(Batch.concat(step.batch for step in self._steps))
        order = by_lifetime(rows.table, rows.le, rows.re_new)
        if order is None:
            return rows.le, rows.re_new, rows.table
        return rows.le[order], rows.re_new[order], rows.table.take(order)


def rows_after(changes: Batch) -> Batch:
    """Return the rows that are there after these changes, as insertions; a row may have been there before.

    An id that is inserted again is another row: the one before it can no longer change.
    """
    changes = changes.changed()
    is_insertion = changes.re_old == changes.le
    if is_insertion.all():
        return changes
    ends = _last_ends(changes, is_insertion)
    rows = flatnonzero(ends > changes.le)
    found = changes.only(rows)
    return found.with_lifetimes(found.le, found.le, ends[rows])


def _last_ends(changes: Batch, is_insertion: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the last RE of each row, in the place of its first change, and LE in the places of the others."""
    codes = id_codes(changes.ids)
    order, ordered = sorted_integers(codes)
    starts = flatnonzero(is_insertion[order] | np.append(True, ordered[1:] != ordered[:-1]))
    lasts = np.append(starts[1:], len(order)) - 1
    ends = changes.le.copy()
    ends[order[starts]] = changes.re_new[order[lasts]]
    return ends


def payload_fields(table: Table, fields: Sequence[str]) -> tuple[Mapping[str, Values], Memo | None]:
    """Return payloads field by field, and the memo of their shape."""
    shape = _SHAPES.get(table.schema.shape)
    if shape is None or not table.size or not table.schema.names:
        columns, memo = payload_columns(table.payloads(), fields)
        return columns, memo
    return table.columns, Memo(shape=shape, fields=list(table.schema.names))
