"""The code about Kafka in docs/spark.md runs as it stands there, on frames that have Kafka's columns and are read from files."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
import streamdsl.spark
from streamdsl.denote import denote
from streamdsl.temporal import CHT

pytestmark = [pytest.mark.spark]

PAGE = Path(sd.__file__).parents[1] / "docs" / "spark.md"
TOPIC = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
START = datetime(2026, 1, 1, tzinfo=UTC)
BIDS = [(n * 2.500001, n % 3, n * 0.25) for n in range(30)]
"""When each bid is made, in seconds after the start, of which auction, and its price."""


def blocks() -> list[str]:
    """Return the code of the page's section about Kafka, in blocks."""
    section = PAGE.read_text().split("### From Kafka and back\n")[1].split("\n### ")[0]
    lines = [line.removeprefix("    ") if line.startswith("    ") else "" for line in section.splitlines()]
    return [block for block in "\n".join(lines).split("\n\n") if block.strip()]


def send(spark: Any, values: list[str], topic: Path, place: int) -> None:
    """Write messages to a file of a topic."""
    rows = [(None, value.encode(), "bids", 0, offset, START, 0) for offset, value in enumerate(values)]
    spark.createDataFrame(rows, TOPIC).coalesce(1).write.parquet(str(topic / str(place)))
    for file in (topic / str(place)).glob("*.parquet"):
        os.utime(file, (10**9 + place, 10**9 + place))


def test_the_page_reads_a_topic_and_writes_one_that_means_the_same_if_it_is_told_twice(streaming: Any, tmp_path: Path) -> None:
    reading, running, writing, folding = (block.strip() for block in blocks())
    for needs_kafka in (reading, writing):
        compile(needs_kafka, PAGE, "exec")
    values = [
        json.dumps({"auction": auction, "price": price, "ts": (START + timedelta(seconds=after)).isoformat()})
        for after, auction, price in BIDS
    ]
    send(streaming, [*values[:20], "no JSON"], tmp_path / "bids", 0)
    send(streaming, values[20:], tmp_path / "bids", 1)
    kafka = streaming.readStream.schema(TOPIC).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "bids" / "*"))
    said: dict[str, Any] = {"spark": streaming, "sd": sd, "streamdsl": streamdsl, "kafka": kafka}
    exec(running, said)
    failed: list[int] = []

    def at_least_once(messages: Any, batch: int) -> None:
        messages.write.mode("append").parquet(str(tmp_path / "totals"))
        if batch == 0 and not failed:
            failed.append(batch)
            raise RuntimeError("the power is gone")

    def run() -> None:
        writer = said["messages"].writeStream.foreachBatch(at_least_once).option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="the power is gone"):
        run()
    run()
    said["written"] = streaming.read.parquet(str(tmp_path / "totals")).selectExpr("cast(key as binary)", "cast(value as binary)")
    exec(folding, said)
    assert said["written"].count() > said["told"].count() > 0
    assert said["events"].columns == ["kind", "id", "le", "re", "re_new", "auction", "n", "most", "shard"]
    history = said["history"].selectExpr("unix_micros(le)", "unix_micros(re)", "auction", "n", "most")
    times = [int(START.timestamp()) * 10**6 + round(after * 10**6) for after, _, _ in BIDS]
    rows = [(le, le + 1, {"auction": auction, "price": price}) for le, (_, auction, price) in zip(times, BIDS, strict=True)]
    expected = denote(said["query"].plan(), {"bids": CHT.from_rows(rows, "us")}, sd.INFINITY)
    assert sorted(map(tuple, history.collect())) == sorted((row.le, row.re, *row.payload.values()) for row in expected)
