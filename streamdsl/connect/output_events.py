"""The events of a micro-batch, as objects."""

from __future__ import annotations

from typing import Any

from streamdsl.io.readers import read_frame
from streamdsl.sinks.row_changes import event_table
from streamdsl.temporal import Event


def events_of(micro_batch: Any) -> list[Event[Any]]:
    """Return the physical events of what a sink is given, in order, CTIs included.

    Times are ticks of the query's unit, ids are texts, payloads are records. Raises `SinkError` for
    anything else than an Arrow table of events, or what `session.feed` returns.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import events_of
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> events_of(session.feed([sd.point("a", 3, {"fare": 7}), sd.Cti(20)]))
    [Insert(id="('window_aggregate_1', 0, 0)", le=0, re=10, payload=Record(n=1)), Cti(time=20)]
    """
    table = event_table(micro_batch)
    events = read_frame(table, unit=getattr(table.schema.field("le").type, "unit", None))
    assert isinstance(events, list)
    return events
