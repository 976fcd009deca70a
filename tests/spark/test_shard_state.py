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
from streamdsl.spark.streaming import processor, state_log
from streamdsl.spark.streaming.processor import shard_processor
from streamdsl.spark.streaming.stage_layout import lay_out
from streamdsl.spark.streaming.state_log import StateLog
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


def stored(shard: TwsTester) -> tuple[Any, dict[Any, Any]]:
    return shard.peekValueState("head", 0), shard.peekMapState("chunks", 0)


def put_back(shard: TwsTester, state: tuple[Any, dict[Any, Any]]) -> None:
    head, chunks = state
    shard.updateValueState("head", 0, head)
    shard.updateMapState("chunks", 0, chunks)


FIRST = [sd.point(str(n), n, {"k": "ab"[n % 2], "v": 1}) for n in range(9)]
SECOND = [sd.point("x", 9, {"k": "b", "v": 1}), sd.Cti(12)]


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("chunk", [100, 2**18])
def test_a_shard_goes_on_from_its_state(chunk: int, forgets: bool) -> None:
    with patch.object(state_log, "CHUNK", chunk):
        shard = in_store()
        shard.test(0, messages(*FIRST))
        _, chunks = stored(shard)
        if forgets:
            processor._cache.clear()
        found = rows(shard.test(0, messages(*SECOND)))
        assert sorted(found[:2], key=str) == [(0, 10, {"f0": "a", "f1": 5}), (0, 10, {"f0": "b", "f1": 5})]
        after, more = stored(shard)
        log = StateLog.from_bytes(after[1])
        assert len(log.sizes) == 2
        assert len(log) == len(more) > len(chunks)
        assert {place: more[place] for place in chunks} == chunks  # the base is not written again
        assert log.sizes[1] < log.sizes[0] / 2


@pytest.mark.parametrize("forgets", [False, True])
def test_a_micro_batch_that_comes_again_starts_from_what_was_committed(forgets: bool) -> None:
    shard = in_store()
    shard.test(0, messages(*FIRST))
    committed = stored(shard)
    sent = rows(shard.test(0, messages(*SECOND)))
    put_back(shard, committed)
    if forgets:
        processor._cache.clear()
    assert rows(shard.test(0, messages(*SECOND))) == sent
    once = stored(shard)
    put_back(shard, committed)
    assert rows(shard.test(0, messages(*SECOND))) == sent
    processor._cache.clear()
    later = [sd.point("y", 13, {"k": "a", "v": 1}), sd.Cti(30)]
    sent = rows(shard.test(0, messages(*later)))
    assert sent[0] == (10, 20, {"f0": "a", "f1": 1})
    put_back(shard, once)
    assert rows(shard.test(0, messages(*later))) == sent


@pytest.mark.parametrize("forgets", [False, True])
def test_a_micro_batch_that_changes_nothing_writes_nothing(forgets: bool) -> None:
    shard = in_store()
    shard.test(0, messages(*FIRST, sd.Cti(5)))
    before = stored(shard)
    for _ in range(2):
        if forgets:
            processor._cache.clear()
        shard.test(0, messages(sd.Cti(5)))
        assert stored(shard) == before
    shard.test(0, messages(sd.Cti(6)))
    assert stored(shard) != before
    assert rows(shard.test(0, messages(*SECOND)))[0][:2] == (0, 10)


def test_an_old_base_gives_way_to_a_new_one() -> None:
    shard = in_store()
    with patch.object(processor, "DELTAS", 4), patch.object(state_log, "CHUNK", 1000):
        sizes = []
        for n in range(9):
            shard.test(0, messages(sd.point(f"p{n}", n, {"k": "a", "v": 1})))
            head, chunks = stored(shard)
            log = StateLog.from_bytes(head[1])
            sizes.append(len(log.sizes))
            assert sorted(chunks) == [(place,) for place in range(len(log))]
            processor._cache.clear()
        assert sizes == [1, 2, 3, 1, 2, 3, 1, 2, 3]
        assert rows(shard.test(0, messages(sd.Cti(12))))[0] == (0, 10, {"f0": "a", "f1": 9})


def test_the_state_of_an_earlier_form_is_refused() -> None:
    shard = in_store()
    shard.test(0, messages(*FIRST))
    (token, log, shards), chunks = stored(shard)
    put_back(shard, ((token.removeprefix(processor._FORM), log, shards), chunks))
    with pytest.raises(CheckpointError, match="in the form of an earlier version") as caught:
        shard.test(0, messages(*SECOND))
    assert "begin a new checkpoint" in str(caught.value)


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
