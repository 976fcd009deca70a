"""Spark's pages say which operator of which query a job, an SQL execution or a part of a plan is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.spark import ParquetTable
from streamdsl.spark.job_descriptions import described
from tests.spark.helpers import history, stream
from tests.spark.streams import Spread, by_key, frame_of, told_in_files

pytestmark = [pytest.mark.spark]

BUSY = stream("busy").where(lambda e: e.v > 0).group_by("k").tumbling_window(5).aggregate(spread=Spread().of(lambda e: e.v))


def executions(spark: Any, since: int = 0) -> list[tuple[str, str]]:
    """Return the description and the plan of each SQL execution after so many."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    each = [found.apply(place) for place in range(since, found.size())]
    return [(one.description(), one.physicalPlanDescription()) for one in each]


def test_plans_name_their_operators(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 2, "a", 1)], "le long, re long, k string, v long")
    planned = BUSY.on_spark(spark).batch(frame)._jdf.queryExecution()
    assert "MapInArrow window_aggregate_1(" in planned.executedPlan().toString()
    for label in ("source:busy", "where_1", "window_aggregate_1", "group_apply_1"):
        assert f"SubqueryAlias {label}" in planned.analyzed().toString().replace("`", "")
        assert f"SubqueryAlias {label}" not in planned.optimizedPlan().toString().replace("`", "")


def test_a_run_says_which_query_it_is_and_restores_what_was_said(spark: Any) -> None:
    context = spark.sparkContext
    query, rows = BUSY, {"busy": [sd.Insert(0, 1, 2, {"k": "a", "v": 1})]}
    for before, said in ((None, "group_apply_1 of busy"), ("nightly", "nightly\ngroup_apply_1 of busy")):
        known = len(executions(spark))
        context.setLocalProperty("spark.job.description", before)
        query.run(rows, engine="spark")
        assert context.getLocalProperty("spark.job.description") == before
        ((description, plan),) = executions(spark, known)
        assert description == said
        assert "window_aggregate_1(" in plan
        assert context._jsc.sc().statusStore().jobsList(None).apply(0).description().get() == said
    with pytest.raises(ZeroDivisionError), described(spark, "it fails"):
        raise ZeroDivisionError
    assert context.getLocalProperty("spark.job.description") == "nightly"
    context.setLocalProperty("spark.job.description", None)


@pytest.mark.parametrize("engine", ["shards", "driver"])
def test_a_stream_names_the_sink_and_its_stages(engine: Any, streaming: Any, tmp_path: Path) -> None:
    told_in_files(history(3, 12, unending=False), 1, tmp_path / "s", seed=5)
    query, table = by_key().hopping_window(8, 4).aggregate(n=sd.count()).tumbling_window(8).aggregate(n=sd.count()), "table"
    known = len(executions(streaming))
    running = query.on_spark(streaming).write(
        frame_of(streaming, tmp_path / "s"),
        ParquetTable(tmp_path / table),
        tmp_path / "c",
        trigger="available-now",
        name="busy",
        engine=engine,
    )
    running.awaitTermination()
    found = executions(streaming, known)
    said = [description.split("\n") for description, _ in found]
    written = [parts for parts in said if parts[-1] == repr(ParquetTable(tmp_path / table))]
    assert written
    assert all(parts[0] == "busy" and any(part.startswith("batch = ") for part in parts) for parts in written), written
    assert (["rows to the engine in the driver"] in [parts[-1:] for parts in said]) == (engine == "driver")
    plans = "\n".join(plan for _, plan in found)
    assert "source:s to stage 1(" in plans
    assert ("window_aggregate to stage 2(" in plans or "group_apply to stage 2(" in plans) == (engine == "shards")
