"""What a sink takes: what a session sends, Arrow tables and frames of physical events; anything else is refused in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl.errors import SinkError
from streamdsl.sinks import DatabaseTable, ParquetEvents, ParquetTable

SINKS: list[Callable[[Path], Any]] = [
    lambda path: DatabaseTable(lambda: sqlite3.connect(path), "t"),
    ParquetTable,
    ParquetEvents,
]
FORMS: list[Callable[[Any], Any]] = [lambda sent: sent, lambda sent: sent.to_arrow(), lambda sent: sent.to_polars()]


def held(sink: Any) -> Any:
    """Return what a sink holds, without what it notes of its own."""
    if isinstance(sink, DatabaseTable):
        return sink.connect().execute("SELECT id, le, re, v FROM t").fetchall()
    return pa.concat_tables(pa.parquet.read_table(file) for file in sorted(sink.path.glob("**/*.parquet"))).to_pylist()


@pytest.mark.parametrize("sink", SINKS, ids=["database", "files", "events"])
def test_a_sink_takes_what_a_session_sends_in_any_form(sink: Callable[[Path], Any], tmp_path: Path) -> None:
    found = []
    for number, form in enumerate(FORMS):
        table = sink(tmp_path / str(number))
        session = sd.source("s").open()
        for batch, events in enumerate([[sd.interval("a", 1, 5, {"v": 1})], [sd.Retract("a", 1, 5, 3), sd.Cti(9)]]):
            table.write(form(session.feed(events)), batch)
        found.append(held(table))
    assert found[0]
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("sink", SINKS, ids=["database", "files", "events"])
@pytest.mark.parametrize(
    "wrong", [[sd.point("a", 1, 2)], None, pa.table({"le": [1]}), {"le": [1]}], ids=["events", "none", "columns", "dict"]
)
def test_anything_else_is_refused_with_what_to_write(sink: Callable[[Path], Any], wrong: Any, tmp_path: Path) -> None:
    table = sink(tmp_path / "t")
    with pytest.raises(SinkError, match=r"(?s)a micro-batch is what session\.feed.*Hint: table\.write"):
        table.write(wrong, 0)
    table.write(sd.source("s").open().feed([sd.interval("a", 1, 5, {"v": 1})]), 0)
    assert held(table)
