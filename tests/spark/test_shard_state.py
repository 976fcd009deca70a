"""The state of a shard, in the state store of Spark's own test kit: what is read is what was written, of as many shards."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("google.protobuf")
pytest.importorskip("pyspark.sql.streaming.tws_tester")

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

import streamdsl as sd
from streamdsl.errors import CheckpointError, QueryError, UserCodeError
from streamdsl.spark.flow import Flow
from streamdsl.spark.shipping import ship
from streamdsl.spark.streaming import processor
from streamdsl.spark.streaming.processor import shard_processor
from streamdsl.spark.streaming.stage_layout import lay_out
from streamdsl.spark.streaming.wire import from_ipc
from tests.laws.sharded import TYPE, frame_of

PLAN = sd.source("s", unit="tick").group_by("k").tumbling_window(10).aggregate(n=sd.count()).plan()
FLOWS = {"s": Flow.of(TYPE, "tick", lambda: None)}


def in_store(shards: int = 1, emit: Any = "final") -> TwsTester:
    (sharded,) = lay_out(PLAN, FLOWS, range(shards), emit)
    return TwsTester(shard_processor(ship(sharded.shard_stage, "the query")))


def messages(*events: Any) -> list[Row]:
    ((exchange,),) = [sharded.exchanges for sharded in lay_out(PLAN, FLOWS, [0], "final")]
    return [Row(**row) for table in exchange.stage.run([frame_of(events)]) for row in table.to_pylist()]


def rows(results: list[Row]) -> list[Any]:
    return [tuple(row.values()) for row in from_ipc([each.blob for each in results]).select(["le", "re", "p"]).to_pylist()]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_shard_goes_on_from_its_state(forgets: bool) -> None:
    with patch.object(processor, "CHUNK", 1000):
        shard = in_store()
        shard.test(0, messages(*(sd.point(str(n), n, {"k": "ab"[n % 2], "v": 1}) for n in range(9))))
        chunks = shard.peekMapState("chunks", 0)
        if forgets:
            processor._cache.clear()
        found = rows(shard.test(0, messages(sd.point("x", 9, {"k": "b", "v": 1}), sd.Cti(12))))
        assert sorted(found[:2], key=str) == [(0, 10, {"f0": "a", "f1": 5}), (0, 10, {"f0": "b", "f1": 5})]
        after = shard.peekMapState("chunks", 0)
        assert len(chunks) > 3
        assert after != chunks
        assert len(shard.peekValueState("head", 0)[1]) == 16 * len(after)


def test_another_number_of_shards_is_refused() -> None:
    two, three = in_store(2), in_store(3)
    two.test(0, messages(sd.point("a", 1, {"k": "a", "v": 1})))
    three.updateValueState("head", 0, two.peekValueState("head", 0))
    with pytest.raises(QueryError, match="of 2 shards, and it would go on with 3"):
        three.test(0, messages(sd.point("b", 2, {"k": "a", "v": 1})))


def test_another_way_to_emit_is_refused() -> None:
    final, speculative = in_store(), in_store(emit="speculative")
    final.test(0, messages(sd.point("a", 1, {"k": "a", "v": 1})))
    processor._cache.clear()
    speculative.updateValueState("head", 0, final.peekValueState("head", 0))
    speculative.updateMapState("chunks", 0, final.peekMapState("chunks", 0))
    with pytest.raises(CheckpointError, match="emit='final', this one has 'speculative'"):
        speculative.test(0, messages(sd.point("b", 2, {"k": "a", "v": 1})))


def test_a_key_that_fails_is_an_error_of_the_user_s_code() -> None:
    plan = sd.source("s", unit="tick").group_by(lambda e: 1 // e.v).tumbling_window(10).aggregate(n=sd.count()).plan()
    ((exchange,),) = [sharded.exchanges for sharded in lay_out(plan, FLOWS, [0, 1], "final")]
    with pytest.raises(UserCodeError, match="the key of source:s"):
        list(exchange.stage.run([frame_of([sd.point("a", 1, {"k": "a", "v": 0})])]))
