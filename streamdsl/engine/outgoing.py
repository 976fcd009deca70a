"""The output of a push, in columns: events and frames are made of it when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from typing_extensions import TypeVar

from streamdsl.engine.batch import Batch
from streamdsl.engine.id_texts import id_texts
from streamdsl.engine.outcome import payload_fields
from streamdsl.engine.step_output import StepOutput, output_events
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Rows
from streamdsl.extras import need_pyarrow
from streamdsl.plan.types import Hints
from streamdsl.temporal import INFINITY, Event, Unit
from streamdsl.temporal.completion import Completed
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.html import text
from streamdsl.temporal.time import Ticks

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from streamdsl.engine.query_session import Session
    from streamdsl.io.data_frames import PhysicalRows
    from streamdsl.pictures.timeline_picture import Timeline

T = TypeVar("T", default=Any)


class Outgoing(Completed, Displayed, Generic[T]):
    """Physical events that a push has caused, in order; `len` says how many.

    Frames have the columns `kind` (insert, retract, cti), `id`, `le`, `re`, `re_new`, then the payload's. A CTI's time is its
    `le`; what a kind does not have is null, as INFINITY is.

    >>> import streamdsl as sd
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> out = session.feed([sd.point("a", 3, {"fare": 7}), sd.Cti(20)])
    >>> out
    2 events: 1 insert, 0 retract, 1 cti
    >>> out.to_arrow().column("id").to_pylist()
    ["('window_aggregate_1', 0, 0)", None]
    >>> out.timeline()
    time: 0    5    10   15   20
    n=1 : [=========)
    cti : --------------------|
    """

    __slots__ = ("_schema", "_sent", "_types", "unit")
    _internal = frozenset({"changes", "joined", "rows"})

    def __init__(
        self, sent: Sequence[StepOutput], unit: Unit | None, schema: Schema | None, types: Callable[[], Hints] | None = None
    ) -> None:
        self._sent = [each for each in sent if len(each)]
        self._schema = schema
        self._types = types
        self.unit = unit

    @classmethod
    def joined(cls, parts: Sequence[Outgoing[T]], session: Session[T]) -> Outgoing[T]:
        """Return the output of several pushes of a session as that of one."""
        sent = [each for part in parts for each in part._sent]
        return cls(sent, session.unit, session.written.schema, lambda: session.types)

    def __len__(self) -> int:
        return sum(map(len, self._sent))

    def __repr__(self) -> str:
        rows, ctis = self.changes(), len(self) - sum(len(each.rows) for each in self._sent)
        inserts = int(np.count_nonzero(rows.re_old == rows.le))
        return f"{len(self)} event{'s' * (len(self) != 1)}: {inserts} insert, {len(rows) - inserts} retract, {ctis} cti"

    def events(self) -> list[Event[T]]:
        """Return the events."""
        return output_events(self._sent, self.unit)

    def timeline(self) -> Timeline:
        """Return a picture of the events: text that `print` shows, SVG in Jupyter (docs/pictures.md)."""
        from streamdsl.pictures.lanes import events_lane
        from streamdsl.pictures.timeline_picture import Timeline

        return Timeline([events_lane("", self.events(), "output")], self.unit)

    def _picture(self) -> Timeline:
        return self.timeline()

    def _below(self) -> str:
        return text(repr(self))

    def to_pandas(self) -> pd.DataFrame:
        """Return the events as a pandas frame; ids are Python objects."""
        from streamdsl.io.data_frames import events_to_pandas

        return events_to_pandas(self.events(), self.unit, self._schema)

    def to_arrow(self) -> Any:
        """Return the events as an Arrow table; ids are texts, and types are those that the query declares, where it does.

        Raises as `Result.to_arrow` does, and `SchemaError` for an id that has no text.
        """
        from streamdsl.io.data_frames import physical_to_arrow

        return physical_to_arrow(self.rows())

    def to_polars(self) -> pl.DataFrame:
        """Return the events as a polars frame; ids are texts. Raises as `Result.to_polars` does."""
        from streamdsl.io.data_frames import physical_to_polars

        return physical_to_polars(self.rows())

    def rows(self) -> PhysicalRows:
        """Return the events in columns."""
        from streamdsl.io.data_frames import PhysicalRows

        need_pyarrow("frames of what a session sends")
        rows = self.changes()
        is_retraction = rows.re_old != rows.le
        re = np.where(is_retraction, rows.re_old, rows.re_new)
        re_new = np.where(is_retraction, rows.re_new, INFINITY)
        fields, memo = payload_fields(rows.table, self._schema.names if self._schema else ())
        types = {} if self._types is None else self._types()
        return PhysicalRows(is_retraction, id_texts(rows.ids), rows.le, re, re_new, fields, memo, types, self.unit, *self._ctis())

    def changes(self) -> Batch:
        """Return the insertions and retractions as changes."""
        return Batch.concat(each.changes() for each in self._sent)

    def _ctis(self) -> tuple[Rows, Ticks]:
        """Return the places of CTIs among the events, and their times."""
        stops = np.cumsum([len(each) for each in self._sent], dtype=np.intp)
        risen = [n for n, each in enumerate(self._sent) if each.cti is not None]
        return stops[risen] - 1, np.array([self._sent[n].cti for n in risen], dtype=np.int64)
