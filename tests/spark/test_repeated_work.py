"""`explain` says how often Spark computes what a query reads more than once, and sinks compute a micro-batch once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.spark.repeated_work import computed_often
from tests.spark.helpers import history, stream
from tests.spark.kills import SINKS
from tests.spark.streams import frame_of, told_in_files

pytestmark = [pytest.mark.spark]


def noted_in(file: Path) -> Callable[[Any], Any]:
    """Return a function that writes down each of its calls."""

    def noted(value: Any) -> Any:
        with file.open("a") as calls:
            calls.write(".")
        return value

    return noted


def calls(file: Path) -> int:
    """Return how often the function has been called."""
    return len(file.read_text()) if file.exists() else 0


def both(a: Any, b: Any) -> Any:
    return {"a": a.v, "b": b.v}


S = stream()
QUERIES: dict[str, tuple[Callable[[sd.Stream[Any]], sd.Stream[Any]], int]] = {
    "once": (lambda rows: rows.shift(5), 1),
    "union": (lambda rows: rows.union(rows.shift(5)), 2),
    "join, of which the lengths of rows are measured": (lambda rows: rows.join(S, on="k", select=both), 2),
    "join with itself": (lambda rows: rows.join(rows, on="k", select=both), 3),
    "outer join": (lambda rows: rows.left_join(S, on="k", select=both), 3),
    "semi join": (lambda rows: rows.semi_join(S, on="k"), 3),
    "ranks": (lambda rows: rows.snapshot_window().top_k(2, by="v"), 1),
    "medians": (lambda rows: rows.group_by("k").snapshot_window().aggregate(m=sd.median(lambda e: e.v)), 1),
    "windows, which are reused": (lambda rows: twice(rows.group_by("k").tumbling_window(5).aggregate(v=sd.count())), 1),
}
"""Queries of rows that Python computes, and how often it does."""


def twice(rows: sd.Stream[Any]) -> sd.Stream[Any]:
    return rows.union(rows.shift(1))


@pytest.mark.parametrize(
    ("name", "adaptive"),
    [*((name, "false") for name in QUERIES), ("windows, which are reused", "true")],
)
def test_explain_says_how_often_python_is_called(name: str, adaptive: str, spark: Any, tmp_path: Path) -> None:
    of, times = QUERIES[name]
    noted, frame = noted_in(tmp_path / "calls"), spark.createDataFrame([(1, 2, "a", 1)], "le long, re long, k string, v long")
    part = S.select(k=lambda e: e.k, v=lambda e: noted(e.v))
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        query = of(part).on_spark(spark)
        tree = query.explain(frame).split("\n\n")[0]
        assert calls(tmp_path / "calls") == 0
        query.batch(frame).collect()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)
    said = re.search(r"select_1 .*; computed (\d+) times>", tree)
    assert ((1 if said is None else int(said[1])), calls(tmp_path / "calls")) == (times, times)
    assert ("Hint: select_1 is computed" in tree) == (times > 1)


def test_what_is_persisted_is_computed_once(spark: Any, tmp_path: Path) -> None:
    """The remedy that `explain` names."""
    noted, frame = noted_in(tmp_path / "calls"), spark.createDataFrame([(1, 2, "a", 1)], "le long, re long, k string, v long")
    kept = S.select(k=lambda e: e.k, v=lambda e: noted(e.v)).on_spark(spark).batch(frame).persist()
    rest = S.join(S, on="k", select=both).on_spark(spark)
    try:
        assert "Hint: source:s is read 3 times: s.persist()" in rest.explain(frame)
        assert "times" not in rest.explain(kept).split("\n\n")[0]
        assert len(rest.batch(kept).collect()) == 1
        assert calls(tmp_path / "calls") == 1
    finally:
        kept.unpersist()


def test_a_label_that_no_operator_has_is_not_shown() -> None:
    lines = "Union\n:- MapInArrow output(p#1)#2\n:  +- Scan\n+- MapInArrow output(p#3)#4\n   +- Scan"
    assert computed_often(lines, ["select_1"]) == {}
    assert computed_often(lines, ["output"]) == {"output": 2}


@pytest.mark.parametrize("sink", ["ParquetTable", "DatabaseTable", "delta", "iceberg"])
def test_sinks_compute_a_micro_batch_once(sink: str, streaming: Any, tmp_path: Path) -> None:
    for package in {"delta": ["deltalake"], "iceberg": ["pyiceberg"]}.get(sink, []):
        pytest.importorskip(package)
    rows = history(3, 12, unending=False)
    told_in_files(rows, 1, tmp_path / "s", seed=5)
    noted = noted_in(tmp_path / "calls")
    query = stream().select(k=lambda e: e.k, n=lambda e: noted(e.v)).on_spark(streaming)
    frame, table = frame_of(streaming, tmp_path / "s"), SINKS[sink].open(tmp_path)
    query.write(frame, table, tmp_path / "c", trigger="available-now").awaitTermination()
    told = streaming.read.parquet(str(tmp_path / "s")).where("kind <> 'cti'").count()
    assert calls(tmp_path / "calls") == told
