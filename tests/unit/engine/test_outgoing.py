"""What a session sends, in columns: the same events in every form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl.engine.id_texts import id_text
from streamdsl.io.readers import read_frame

PUSHES: list[Any] = [
    [sd.point(n, n, {"k": n % 3, "v": n / 2}) for n in range(60)],
    [sd.point(100 + n, n, {"k": n % 3, "v": 1.5}) for n in range(40)],
    [sd.Cti(25), sd.point("late", 30, {"k": 1, "v": 0.5}), sd.Cti(40)],
    [sd.Cti(40)],
]
QUERY = sd.source("s").group_by("k").tumbling_window(10).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v))
EMITS: list[Any] = ["speculative", "watermark", "final", sd.emit.Emit(5)]


def texts(events: list[Any]) -> list[Any]:
    """Return events with their ids as frames without objects have them."""
    named = []
    for event in events:
        if isinstance(event, sd.Insert):
            event = sd.Insert(id_text(event.id), event.le, event.re, event.payload)
        elif isinstance(event, sd.Retract):
            event = sd.Retract(id_text(event.id), event.le, event.re, event.re_new, event.payload)
        named.append(event)
    return named


@pytest.mark.parametrize("emit", EMITS, ids=str)
def test_every_form_has_the_events_of_a_push(emit: Any) -> None:
    pushed, fed = QUERY.open(emit=emit), QUERY.open(emit=emit)
    for push in PUSHES:
        events, out = pushed.push(push), fed.feed(push)
        assert out.events() == events
        assert len(out) == len(events)
        assert read_frame(out.to_pandas()) == events
        assert read_frame(out.to_arrow()) == texts(events)
        assert read_frame(out.to_polars()) == texts(events)


def test_it_says_what_it_is() -> None:
    session = QUERY.open()
    session.feed(PUSHES[0])
    assert repr(session.feed(PUSHES[1])) == "24 events: 12 insert, 12 retract, 0 cti"
    assert repr(session.feed([])) == "0 events: 0 insert, 0 retract, 0 cti"
    assert session.feed([]).to_arrow().column_names == ["kind", "id", "le", "re", "re_new", "k", "n", "total"]


def test_times_of_a_calendar_are_timestamps() -> None:
    session = sd.source("s", unit="s").alter_duration(sd.INFINITY).open()
    out = session.feed([sd.point("a", datetime(2026, 1, 1, tzinfo=UTC), {"v": 1})])
    (row,) = out.to_arrow().to_pylist()
    assert (row["le"], row["re"], row["id"]) == (datetime(2026, 1, 1, tzinfo=UTC), None, "a")
    assert out.to_arrow().schema.field("le").type == pa.timestamp("s", tz="UTC")
    assert out.to_polars()["le"].to_list() == [datetime(2026, 1, 1, tzinfo=UTC)]
