"""A time that is null is an `EventError`, by whatever door it comes, and however it is spelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl import CHT, Cti, Insert, Retract
from streamdsl.cli import main
from streamdsl.errors import EventError
from streamdsl.temporal import CHTRow
from streamdsl.testing import run_udm
from streamdsl.udm.bases import IntervalEvent
from streamdsl.udm.builtin import TimeWeightedAvg
from tests.unit.contract.common import ENGINES, X

NULLS: dict[str, Any] = {
    "None": None,
    "NaN": float("nan"),
    "NaN of numpy": np.float64("nan"),
    "NaN of decimals": Decimal("NaN"),
    "NaT of pandas": pd.NaT,
    "NaT of numpy": np.datetime64("NaT"),
    "NaT of numpy, in ns": np.datetime64("NaT", "ns"),
    "NA": pd.NA,
    "null of polars": pl.Series([None], dtype=pl.Int64)[0],
    "null of Arrow": pa.scalar(None),
    "int null of Arrow": pa.scalar(None, pa.int64()),
    "timestamp null of Arrow": pa.scalar(None, pa.timestamp("us")),
}
GOOD = Insert("a", 1, 5, "x")

EVENTS: dict[str, Callable[[Any], list[Any]]] = {
    "LE is null": lambda null: [Insert("bad", null, 5, "x")],
    "RE is null": lambda null: [Insert("bad", 1, null, "x")],
    "LE is null (a point)": lambda null: [sd.point("bad", null, "x")],
    "LE is null (an interval)": lambda null: [sd.interval("bad", null, 5, "x")],
    "LE is null (an edge)": lambda null: [sd.edge_start("bad", null, "x")],
    "LE is null (a retraction)": lambda null: [GOOD, Retract("a", null, 5, 3)],
    "RE is null (a retraction)": lambda null: [GOOD, Retract("a", 1, null, 3)],
    "RE_new is null": lambda null: [GOOD, Retract("a", 1, 5, null)],
    "RE_new is null (an edge)": lambda null: [sd.edge_start("a", 1, "x"), sd.edge_end("a", 1, null)],
    "time is null": lambda null: [GOOD, Cti(null)],
}
TAKEN: dict[str, Callable[[list[Any]], Any]] = {
    "from_events": lambda events: sd.from_events(events),
    "from_events with a unit": lambda events: sd.from_events(events, unit="us"),
    "from_events in ticks": lambda events: sd.from_events(events, unit="tick"),
    "CHT.from_events": lambda events: CHT.from_events(events),
    "bind": lambda events: X.bind(x=events),
    "run": lambda events: X.run({"x": events}, engine=ENGINES[0]),
    "the reference": lambda events: X.run({"x": events}, engine=ENGINES[1]),
    "push": lambda events: X.open().push(events),
    "push one by one": lambda events: [session.push([event]) for session in [X.open()] for event in events],
    "push of a generator": lambda events: X.open().push(event for event in events),
    "push of many": lambda events: X.open().push([*(Insert(n, n, n + 5, "x") for n in range(40)), *events]),
    "push with progress": lambda events: sd.source("x", progress=sd.Progress.every(2)).open().push(events),
    "feed": lambda events: X.open().feed(events),
    "end_with": lambda events: X.open().end_with({"x": events}, 9),
    "run_udm": lambda events: run_udm(TimeWeightedAvg(), events, (0, 9)),
}


@pytest.mark.parametrize("null", NULLS.values(), ids=NULLS)
@pytest.mark.parametrize("door", TAKEN)
def test_a_null_time_of_an_event_is_refused(door: str, null: Any) -> None:
    for rule, events in EVENTS.items():
        with pytest.raises(EventError) as refused:
            TAKEN[door](events(null))
        _is_told(refused.value, rule.partition(" (")[0])


def _is_told(error: EventError, rule: str) -> None:
    said = str(error)
    assert f"is refused: its {rule}" in said
    assert "\nHint: " in said
    assert "  event: " in said


ROWS: dict[str, Callable[[list[tuple[Any, Any, Any]]], Any]] = {
    "CHT.from_rows": lambda rows: CHT.from_rows(rows),
    "CHT.from_rows with a unit": lambda rows: CHT.from_rows(rows, "us"),
    "CHT": lambda rows: CHT([CHTRow(*row) for row in rows]),
    "from_rows": lambda rows: sd.from_rows(rows),
    "from_rows with a payload": lambda rows: sd.from_rows(rows, payload=str),
    "bind": lambda rows: X.bind(x=rows),
    "run": lambda rows: X.run({"x": rows}),
    "run_udm": lambda rows: run_udm(TimeWeightedAvg(), rows, (0, 9)),
    "run_udm of events": lambda rows: run_udm(TimeWeightedAvg(), [IntervalEvent(*row) for row in rows], (0, 9)),
}


@pytest.mark.parametrize("null", NULLS.values(), ids=NULLS)
@pytest.mark.parametrize("door", ROWS)
def test_a_null_time_of_a_row_is_refused(door: str, null: Any) -> None:
    for rule, row in {"LE is null": (null, 5, "x"), "RE is null": (1, null, "x")}.items():
        with pytest.raises(EventError) as refused:
            ROWS[door]([(1, 5, "x"), row])
        _is_told(refused.value, rule)
        assert "event 1 is refused" in str(refused.value), "it is named by its number"


def test_a_refused_push_has_no_effect() -> None:
    session = X.open()
    session.push([GOOD])
    for null in NULLS.values():
        for events in EVENTS.values():
            with pytest.raises(EventError):
                session.push([Insert("b", 2, 6, "y"), events(null)[-1]])
    assert session.push([Insert("b", 2, 6, "y")]) == [Insert("b", 2, 6, "y")]


@pytest.mark.parametrize("null", NULLS.values(), ids=NULLS)
def test_a_null_start_in_a_frame_is_refused_and_a_null_end_is_infinity(null: Any) -> None:
    starts, ends = (pd.DataFrame({"le": pd.Series(le, dtype=object), "re": pd.Series(re, dtype=object), "v": [1, 2]})
                    for le, re in (([1, null], [5, 6]), ([1, 2], [5, null])))  # fmt: skip
    physical = starts.assign(kind="insert", id=["a", "b"], re_new=None)
    doors: list[Callable[[Any], Any]] = [
        lambda frame: sd.from_pandas(frame),
        lambda frame: X.bind(x=frame),
        lambda frame: X.run({"x": frame}),
        lambda frame: X.open().push(frame),
    ]
    for door in doors:
        for frame in (starts, physical):
            with pytest.raises(EventError, match=r"its start is null \(row 1, column 'le'\)(?s:.*)\nHint: "):
                door(frame)
        door(ends)
    assert [row.re for row in sd.from_pandas(ends).run().cht()] == [5, sd.INFINITY]


FRAMES: dict[str, Callable[[list[Any]], Any]] = {
    "pandas, ints": lambda le: pd.DataFrame({"le": pd.array(le, dtype="Int64"), "v": 1}),
    "pandas, floats": lambda le: pd.DataFrame({"le": np.array(le, dtype=float), "v": 1}),
    "pandas, dates": lambda le: pd.DataFrame({"le": pd.to_datetime(pd.Series(le), unit="s"), "v": 1}),
    "polars": lambda le: pl.DataFrame({"le": le, "v": [1] * len(le)}),
    "Arrow": lambda le: pa.table({"le": le, "v": [1] * len(le)}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_null_start_in_a_column_of_a_type_is_refused(kind: str) -> None:
    frame = FRAMES[kind]([1, None])
    read: Any = sd.from_polars if kind == "polars" else sd.from_arrow if kind == "Arrow" else sd.from_pandas
    for door in (read, lambda each: X.open().push(each), lambda each: X.run({"x": each})):
        with pytest.raises(EventError, match=r"its start is null \(row 1, column 'le'\)(?s:.*)\nHint: "):
            door(frame)


ROW_LINES = ['{"le": 1, "v": 7}', "", '{"le": 2, "v": 8}']
FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "CSV": ("csv", lambda path: path.write_text("le,v\n1,7\n2,8\n,9\n")),
    "JSONL, null": ("jsonl", lambda path: path.write_text("\n".join([*ROW_LINES, '{"le": null, "v": 9}']))),
    "JSONL, not there": ("jsonl", lambda path: path.write_text("\n".join([*ROW_LINES, '{"v": 9}']))),
    "JSONL, NaN": ("jsonl", lambda path: path.write_text("\n".join([*ROW_LINES, json.dumps({"le": float("nan"), "v": 9})]))),
    "Parquet": ("parquet", lambda path: pq.write_table(pa.table({"le": [1, 2, None], "v": [7, 8, 9]}), path)),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_null_start_in_a_file_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suffix, write = FILES[kind]
    (folder := tmp_path / "files").mkdir()
    write(path := folder / f"in.{suffix}")
    with pytest.raises(EventError, match=rf"its start is null \(row 2 of .*in\.{suffix}, column 'le'\)(?s:.*)\nHint: "):
        getattr(sd, f"from_{suffix}")(path).run()
    (tmp_path / "null_times_query.py").write_text('import streamdsl as sd\nall_rows = sd.source("x")\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    command = ["run", "null_times_query:all_rows"]
    once = [f"--input=x={path}", f"--output={tmp_path / 'out.csv'}"]
    stream = [f"--input=x={path.parent}", f"--output={tmp_path / 'out'}", f"--checkpoint={tmp_path / 'checkpoint'}"]
    for more in (once, stream):
        assert main([*command, *more]) == 2
        said = capsys.readouterr().err
        assert "its start is null (row 2 of" in said
        assert "Hint: " in said


def test_a_line_without_the_named_start_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "in.jsonl").write_text('{"t": 1, "v": 7}\n{"v": 8}\n')
    with pytest.raises(EventError, match=r"its start is null \(row 1 of .*, column 't'\)"):
        sd.from_jsonl(path, start="t").run()
