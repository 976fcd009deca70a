"""Which columns of a frame are the times: one rule for every way in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamdsl as sd

ROWS = {"le": [1, 4], "re": [3, 9], "v": [10, 20]}
POINTS = {"le": [1, 4], "v": [10, 20]}


def csv(columns: dict[str, Any], folder: Path) -> str:
    pd.DataFrame(columns).to_csv(folder / "rows.csv", index=False)
    return str(folder / "rows.csv")


def parquet(columns: dict[str, Any], folder: Path) -> str:
    pd.DataFrame(columns).to_parquet(folder / "rows.parquet")
    return str(folder / "rows.parquet")


def jsonl(columns: dict[str, Any], folder: Path) -> str:
    pd.DataFrame(columns).to_json(folder / "rows.jsonl", orient="records", lines=True)
    return str(folder / "rows.jsonl")


def pushed(columns: dict[str, Any], folder: Path) -> sd.CHT[Any]:
    session = sd.source("rows").open()
    sent = [*session.push(pd.DataFrame(columns)), *session.close()]
    return sd.from_events(sent).run().cht()


WAYS: dict[str, Callable[[dict[str, Any], Path], sd.CHT[Any]]] = {
    "from_pandas": lambda columns, folder: sd.from_pandas(pd.DataFrame(columns)).run().cht(),
    "from_polars": lambda columns, folder: sd.from_polars(pl.DataFrame(columns)).run().cht(),
    "from_arrow": lambda columns, folder: sd.from_arrow(pa.table(columns)).run().cht(),
    "from_csv": lambda columns, folder: sd.from_csv(csv(columns, folder)).run().cht(),
    "from_parquet": lambda columns, folder: sd.from_parquet(parquet(columns, folder)).run().cht(),
    "from_jsonl": lambda columns, folder: sd.from_jsonl(jsonl(columns, folder)).run().cht(),
    "bind": lambda columns, folder: sd.source("rows").bind(rows=pd.DataFrame(columns)).run().cht(),
    "push": pushed,
}


@pytest.mark.parametrize("way", WAYS)
def test_le_and_re_are_the_times_whichever_way_a_frame_comes(way: str, tmp_path: Path) -> None:
    assert [(row.le, row.re, dict(row.payload)) for row in WAYS[way](ROWS, tmp_path)] == [(1, 3, {"v": 10}), (4, 9, {"v": 20})]
    assert [(row.le, row.re, dict(row.payload)) for row in WAYS[way](POINTS, tmp_path)] == [(1, 2, {"v": 10}), (4, 5, {"v": 20})]


def test_with_a_start_of_another_name_re_is_a_field() -> None:
    frame = pd.DataFrame({"at": [1], "re": [7]})
    for end, wanted in ((None, (1, 2, {"re": 7})), ("re", (1, 7, {}))):
        rows = sd.from_pandas(frame, start="at", end=end).run().cht()
        assert [(row.le, row.re, dict(row.payload)) for row in rows] == [wanted]
