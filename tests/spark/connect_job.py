"""Queries of every kind on a Spark Connect session, each answer beside that of the definition; run as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamdsl as sd

ROWS = [(1, 5, "a", 2.5), (2, 9, "a", 7.0), (3, 4, "b", 9.0), (6, 12, None, -1.0)]
S = sd.source("s", unit="tick")


@sd.udf
def named(key: str | None) -> bool:
    return key is not None


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


QUERIES: dict[str, sd.Stream[Any]] = {
    "native": S.where(lambda e: e.v > 2).group_by("k").tumbling_window(5).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v)),
    "Arrow": S.where(lambda e: named(e.k)),
    "UDA": S.group_by("k").snapshot_window().aggregate(spread=Spread().of(lambda e: e.v)),
    "join": S.join(S, on="k", select=lambda a, b: {"a": a.v, "b": b.v}),
    "join without key": S.join(S, select=lambda a, b: {"a": a.v, "b": b.v}),
}


def shown(rows: Any) -> list[str]:
    """Return rows as texts, in order."""
    return sorted(repr(tuple(row)) for row in rows)


def main() -> None:
    """Run all queries, and say how many there were."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[1]")
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled", "spark.ui.enabled"):
        builder = builder.config(name, "false")
    spark = (
        builder.config("spark.sql.codegen.factoryMode", "NO_CODEGEN").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    )
    assert "connect" in type(spark).__module__
    frame = spark.createDataFrame(ROWS, "le long, re long, k string, v double")
    events = [sd.Insert(i, le, re, {"k": k, "v": v}) for i, (le, re, k, v) in enumerate(ROWS)]
    for name, query in QUERIES.items():
        expected = [(row.le, row.re, *row.payload.values()) for row in query.run({"s": events}, engine="reference").cht()]
        assert shown(query.on_spark(spark).batch({"s": frame}).collect()) == shown(expected), name
    assert "== Physical Plan ==" in QUERIES["native"].on_spark(spark).explain({"s": frame})
    own = sd.from_rows([(1, 5, {"v": 2})]).where(lambda e: e.v > 1)
    assert own.run(engine="spark").cht() == own.run().cht()
    print(f"{len(QUERIES)} queries give the same rows")


if __name__ == "__main__":
    main()
