"""The session is the caller's: its settings change no answer, and stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

import streamdsl as sd
from tests.spark.helpers import check, history, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

UNUSUAL = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.caseSensitive": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.crossJoin.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.legacy.interval.enabled": "true",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}


@pytest.fixture
def unusual(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with settings that are legal but seldom."""
    before = {name: spark.conf.get(name) for name in UNUSUAL}
    for name, value in UNUSUAL.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, old) if old is not None else spark.conf.unset(name)


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


def settings(spark: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


AGGREGATES: dict[str, Any] = {
    "n": sd.count(),
    "f": sd.sum(lambda e: e.f),
    "top": sd.max(lambda e: e.m),
    "all": sd.collect(lambda e: e.k),
}
QUERIES: dict[str, sd.Stream[Any]] = {
    "windows": stream().group_by(["k", "m"]).hopping_window(7, 3).aggregate(**AGGREGATES),
    "snapshots": stream().snapshot_window().aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    "joins": stream().join(stream().anti_join(stream().where(lambda e: e.v > 0), on="k")),
    "modules": stream().group_by("k").snapshot_window().aggregate(Spread, lambda e: e.f),
    "python keys": stream().group_by(lambda e: str(e.m)).apply(lambda g: g.to_points().union(g.select(v=lambda e: f"{e.v}"))),
}


@pytest.mark.parametrize("name", QUERIES)
def test_settings_change_no_answer_and_stay(unusual: SparkSession, name: str) -> None:
    before = settings(unusual)
    check(QUERIES[name], {"s": history(2, 10, unending=False)})
    assert settings(unusual) == before


def test_a_frame_s_times_are_in_no_zone_of_the_session(unusual: SparkSession) -> None:
    asleep = unusual.sql("select timestamp_ntz'2020-03-08 02:30:00' as le, timestamp_ltz'2020-03-08 02:45:00 UTC' as re, 1 as v")
    found = sd.source("s").on_spark(unusual).batch({"s": asleep}).selectExpr("unix_seconds(le) as le", "unix_seconds(re) as re")
    assert tuple(found.collect()[0]) == (1583634600, 1583635500)


def test_a_thread_of_its_own_has_the_same_session(spark: SparkSession) -> None:
    found: list[Any] = []
    before = settings(spark)
    query = sd.from_rows([(1, 5, {"v": 2})]).where(lambda e: e.v > 1)
    thread = threading.Thread(target=lambda: found.extend(query.run(engine="spark").cht()))
    thread.start()
    thread.join()
    assert [row.payload["v"] for row in found] == [2]
    assert settings(spark) == before
