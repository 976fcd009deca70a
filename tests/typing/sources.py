"""What type checkers infer of sources: the declared payload, else records of a frame's columns, else anything."""

from __future__ import annotations

from typing import Any, assert_type

import pandas as pd

import streamdsl as sd
from tests.typing.payloads import Trip, Zone

frame = pd.DataFrame({"le": [1], "fare": [2.0]})
rows = [(1, 5, {"fare": 2.0})]
events = [sd.point("a", 1, {"fare": 2.0})]


def declared() -> None:
    assert_type(sd.source("trips", Trip), sd.Stream[Trip])
    assert_type(sd.source("trips", payload=Zone, unit="s", on_violation="drop"), sd.Stream[Zone])
    assert_type(sd.from_pandas(frame, Trip, end="re", unit="ms"), sd.Stream[Trip])
    assert_type(sd.from_arrow(..., Trip), sd.Stream[Trip])
    assert_type(sd.from_parquet("trips.parquet", payload=Trip), sd.Stream[Trip])
    assert_type(sd.from_jsonl(["a.jsonl", "b.jsonl"], Zone, start="at"), sd.Stream[Zone])
    assert_type(sd.from_csv("fares.csv", float), sd.Stream[float])
    assert_type(sd.from_rows(rows, Trip), sd.Stream[Trip])
    assert_type(sd.sources.from_table(frame, Trip), sd.Stream[Trip])
    assert_type(sd.sources.from_table([Trip(1, 2.0, "x", 3.0)]), sd.Stream[Trip])
    assert_type(sd.from_events(events, Trip, progress=sd.Progress.ordered()), sd.Stream[Trip])


def found() -> None:
    assert_type(sd.source("anything"), sd.Stream[Any])
    assert_type(sd.from_pandas(frame), sd.Stream[sd.Record])
    assert_type(sd.from_polars(..., None, "at"), sd.Stream[sd.Record])  # type: ignore[arg-type]
    assert_type(sd.from_parquet("trips.parquet"), sd.Stream[sd.Record])
    assert_type(sd.from_rows(rows), sd.Stream[sd.Record])
    assert_type(sd.sources.from_table(frame), sd.Stream[sd.Record])
    assert_type(sd.sources.from_table([{"fare": 2.0}]), sd.Stream[sd.Record])
    assert_type(sd.from_events(events), sd.Stream[sd.Record])
    assert_type(sd.from_events([sd.point("a", 1, 2.0)]), sd.Stream[float])


def refused() -> None:
    sd.from_pandas(frame, Trip).where(lambda e: e.faer > 1)  # type: ignore[attr-defined]
    sd.from_pandas(frame, "le", "re")  # type: ignore[arg-type]
    sd.from_csv("trips.csv", unit="minutes")  # type: ignore[arg-type]
    sd.source("trips", Trip(1, 2.0, "x", 3.0))  # type: ignore[arg-type]
    sd.source("trips", Trip, progress="5m")  # type: ignore[arg-type]
    sd.from_rows(rows, Trip, on_violation="ignore")  # type: ignore[call-overload]
