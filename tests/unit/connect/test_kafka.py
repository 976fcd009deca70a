"""The source and the sink of Kafka, on the broker that librdkafka has inside (`tests/kafka_broker.py`)."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.connect import Batch, KafkaTopic, OpenSource, Source, calling, kafka_source, kafka_topic, sink_at, source_at
from streamdsl.connect.kafka_messages import Sent, messages_of
from streamdsl.errors import InputError, QueryError, SinkError
from streamdsl.monitoring import Endpoint
from streamdsl.sinks import DatabaseTable
from streamdsl.testing import check_sink, check_source

pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")
from tests.kafka_broker import broker, new_topic, places_of_messages, send


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with broker() as servers:
        yield servers


@dataclass(frozen=True)
class Value:
    v: int


def reading(at: int, v: int) -> bytes:
    return json.dumps({"at": at, "v": v}).encode()


def polled(reader: OpenSource) -> list[Any]:
    """Return all that is there."""
    found = list[Any]()
    while isinstance(batch := reader.poll(0.2), Batch):
        found += batch.data
    return found


def read(source: Source, position: Any = None) -> list[Any]:
    with closing(source.open(position)) as reader:
        return polled(reader)


def test_a_source_gives_the_same_from_each_position(servers: str) -> None:
    topic = new_topic(servers, [(1, reading(n, n)) for n in range(20)])
    report = check_source(lambda: kafka_topic(topic, servers, start="at"))
    assert report.records == 20
    send(servers, topic, [(1, b"no json")])
    assert check_source(lambda: kafka_topic(topic, servers, start="at")).bad_records == 1


def test_a_topic_holds_each_event_once_and_is_read_again(servers: str) -> None:
    topic = new_topic(servers)
    report = check_sink(lambda: KafkaTopic(topic, servers), lambda: read(kafka_topic(topic, servers)))
    assert report.promise == "exactly_once"


def test_a_micro_batch_that_was_cut_off_is_made_whole_and_no_message_is_there_twice(servers: str) -> None:
    rows = [{"kind": "insert", "id": f"i{n}", "le": n, "re": n + 1, "re_new": None, "n": n} for n in range(8)]
    rows.append({"kind": "cti", "id": None, "le": 8, "re": None, "re_new": None, "n": None})
    table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
    for cut in range(0, 13, 3):
        topic = new_topic(servers)
        for message in list(messages_of(table, 4))[:cut]:
            header = Sent("s", 0, message.number).to_header()
            send(servers, topic, [(message.partition, message.value)], headers=[header], key=message.key)
        assert not KafkaTopic(topic, servers).has(0, "s")
        sink = KafkaTopic(topic, servers)
        sink.write(table, 0, "s")
        assert sink.has(0, "s")
        sink.close()
        assert len(places_of_messages(servers, topic)) == 8 + 4 + 1, cut
        assert sorted(event.le for event in read(kafka_topic(topic, servers)) if isinstance(event, sd.Insert)) == list(range(8))


def test_a_repeated_message_of_a_sink_is_read_once(servers: str) -> None:
    topic = new_topic(servers)
    rows = [{"kind": "insert", "id": "a", "le": n, "re": n + 1, "re_new": None, "n": n} for n in range(3)]
    messages = [
        message._replace(partition=2) for message in messages_of(pytest.importorskip("pyarrow").Table.from_pylist(rows), 4)
    ]
    for number in (0, 1, 0, 1, 2):
        header = Sent("s", 0, number).to_header()
        send(servers, topic, [(2, messages[number].value)], headers=[header], key=messages[number].key)
    assert [event.le for event in read(kafka_topic(topic, servers))] == [0, 1, 2]
    assert read(
        kafka_topic(topic, servers), {**{each: {"offset": 0} for each in "013"}, "2": {"offset": 2, "sent": ["s", 0, 1]}}
    ) == [sd.Insert('["a", 2]', 2, 3, {"n": 2})]


def test_the_cti_is_that_of_the_slowest_partition(servers: str) -> None:
    topic = new_topic(servers, [(partition, reading(10 * partition, 0)) for partition in range(4)])
    source = kafka_topic(topic, servers, start="at", slack=2)
    with closing(source.open(None)) as reader:
        found = polled(reader)
        assert [event for event in found if isinstance(event, sd.Cti)][-1] == sd.Cti(-2)
        send(servers, topic, [(0, reading(25, 0))])
        assert polled(reader)[-1] == sd.Cti(8)
        send(servers, topic, [(1, reading(90, 0))])
        send(servers, topic, [(2, reading(90, 0))])
        assert polled(reader)[-1] == sd.Cti(23)


def test_a_silent_partition_holds_back_until_it_is_idle(servers: str) -> None:
    messages = [(partition, reading(10 + partition, 0)) for partition in range(3)]
    topic = new_topic(servers, messages)
    assert not any(isinstance(event, sd.Cti) for event in read(kafka_topic(topic, servers, start="at", slack=0)))
    with closing(kafka_topic(topic, servers, start="at", slack=0, idle="300ms").open(None)) as reader:
        found = polled(reader)
        for _ in range(3):
            found += polled(reader)
    assert [event for event in found if isinstance(event, sd.Cti)][-1] == sd.Cti(12), "all are idle: the furthest counts"


def test_without_a_field_the_start_is_the_time_of_the_message(servers: str) -> None:
    topic = new_topic(servers)
    send(servers, topic, [(0, b'{"v": 1}')], timestamp=86_400_000)
    (event,) = read(kafka_topic(topic, servers))
    assert (event.le.isoformat(), event.payload) == ("1970-01-02T00:00:00+00:00", {"v": 1})
    query = sd.source("readings", unit="ms").where(lambda e: e.v > 0)
    assert query.run({"readings": [event]}).cht().rows[0].le == 86_400_000


def test_dates_and_lifetimes_are_fields(servers: str) -> None:
    topic = new_topic(servers, [(0, b'{"from": "2026-01-01T01:00:00+01:00", "to": "2026-01-02", "v": 1}')])
    (event,) = read(kafka_topic(topic, servers, start="from", end="to"))
    assert (event.le.isoformat(), event.re.isoformat(), event.payload) == (
        "2026-01-01T00:00:00+00:00",
        "2026-01-02T00:00:00+00:00",
        {"v": 1},
    )


def test_objects_become_instances_of_a_class(servers: str) -> None:
    topic = new_topic(servers, [(0, reading(1, 7)), (0, b'{"at": 2, "v": 8, "more": 0}'), (0, b'{"at": 3, "w": 8}')])
    with closing(kafka_topic(topic, servers, payload=Value, start="at").open(None)) as reader:
        assert isinstance(batch := reader.poll(1), Batch)
    assert batch.data == [sd.Insert(f"{topic}:0:0", 1, 2, Value(7)), sd.Insert(f"{topic}:0:1", 2, 3, Value(8))]
    assert [bad.reason for bad in batch.bad] == ["InputError: it has no v; its fields are: w"]


def test_what_a_function_makes_of_messages(servers: str) -> None:
    def decode(message: Any) -> Any:
        number = int(message.value())
        return None if number == 2 else sd.Cti(number) if number == 3 else sd.point(message.key().decode(), number, number)

    topic = new_topic(servers)
    send(servers, topic, [(0, b"1"), (0, b"2"), (0, b"no number"), (0, b"3")], key=b"k")
    with closing(kafka_topic(topic, servers, decode=decode).open(None)) as reader:
        batches = [batch for _ in range(2) if isinstance(batch := reader.poll(0.2), Batch)]
    assert [event for batch in batches for event in batch.data] == [sd.point("k", 1, 1)], "three partitions have no CTI yet"
    (bad,) = [bad for batch in batches for bad in batch.bad]
    assert bad.where == f"message 2 of {topic}[0]"
    assert bad.reason.startswith("ValueError: invalid literal")
    assert batches[-1].position["0"] == {"offset": 4, "cti": 3}


def test_a_group_shows_how_far_the_job_is(servers: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = new_topic(servers, [(0, reading(n, n)) for n in range(5)])
    source = kafka_topic(topic, servers, start="at", group=f"group of {topic}")
    with closing(source.open(None)) as reader:
        batch = reader.poll(1)
        assert isinstance(batch, Batch)
        reader.committed(batch.position)
    with closing(Consumer({"bootstrap.servers": servers, "group.id": f"group of {topic}"})) as monitor:
        assert monitor.committed([TopicPartition(topic, 0)], 10)[0].offset == 5


def test_what_is_not_there_is_said(servers: str) -> None:
    topic = new_topic(servers, [(0, reading(n, n)) for n in range(5)])
    with pytest.raises(InputError, match=r"does not keep its messages from offset 50 on"):
        read(kafka_topic(topic, servers, start="at"), {**{each: {"offset": 0} for each in "123"}, "0": {"offset": 50}})
    with pytest.raises(InputError, match="has no partition 7"):
        read(kafka_topic(topic, servers), {"7": {"offset": 0}})
    with pytest.raises(QueryError, match=r"sets group\.id itself"):
        kafka_topic(topic, servers, settings={"group.id": "g"})
    with pytest.raises(SinkError, match="has a message that no stream of this kind has written"):
        KafkaTopic(topic, servers).has(0)


def test_from_a_topic_to_a_table_and_to_another_topic(servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers, [(n % 4, reading(n, n % 7)) for n in range(100)])
    out = new_topic(servers)
    table = DatabaseTable(lambda: sqlite3.connect(tmp_path / "rows.db"), "rows")
    query = sd.source("readings", unit="tick").tumbling_window(10).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))
    for _ in range(2):
        source = kafka_topic(topic, servers, start="at", slack=50)
        query.serve(source, [table, KafkaTopic(out, servers)], checkpoint=tmp_path / "state", every=7, once=True)
        send(servers, topic, [(n % 4, reading(n, n % 7)) for n in range(100, 200)] if _ == 0 else [])
    every = [sd.point(n, n, {"v": n % 7}) for n in range(200)]
    expected = sorted(
        (row.le, row.payload.n, row.payload.most) for row in query.run({"readings": every}, engine="reference").cht()
    )
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        assert sorted(connection.execute("SELECT le, n, most FROM rows")) == expected
    history = sd.CHT.from_events([event for event in read(kafka_topic(out, servers)) if not isinstance(event, sd.Cti)])
    assert sorted((row.le, row.payload["n"], row.payload["most"]) for row in history) == expected


def test_a_topic_has_an_address(servers: str) -> None:
    topic = new_topic(servers, [(0, reading(1, 7))])
    assert read(source_at(f"kafka://{servers}/{topic}", start="at")) == [sd.Insert(f"{topic}:0:0", 1, 2, {"v": 7})]
    assert repr(sink_at(f"kafka://{servers}/{topic}")) == f"KafkaTopic({topic!r})"
    with pytest.raises(QueryError, match="'readings' does not say servers and topic"):
        source_at("kafka://readings")


def test_partitions_say_their_cti_and_what_is_not_read(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "_AT_ONCE", 2)
    topic = new_topic(servers, [(partition, reading(n, n)) for partition in (0, 2) for n in range(9)])
    with closing(kafka_topic(topic, servers, start="at", slack=2).open(None)) as reader:
        seen = 0
        until = time.monotonic() + 60  # where the machine is busy it is long until an empty partition is known to be that
        while isinstance(batch := reader.poll(0.2), Batch) or (
            None in [each.lag for each in reader.partitions().values()] and time.monotonic() < until
        ):
            data = batch.data if isinstance(batch, Batch) else []
            seen += len([event for event in data if not isinstance(event, sd.Cti)])
            told = reader.partitions()
            known = {name: each.lag for name, each in told.items() if each.lag is not None}
            if {"0", "2"} <= known.keys():
                assert sum(known.values()) == 18 - seen
        assert [(told[name].cti, told[name].lag) for name in "0123"] == [(6, 0), (None, 0), (6, 0), (None, 0)]


def test_a_scraped_job_tells_of_each_partition(servers: str) -> None:
    topic = new_topic(servers, [(partition, reading(n, n)) for partition in range(4) for n in range(9)])
    statuses: list[Any] = []
    endpoint = Endpoint("127.0.0.1:0")
    sink = calling(lambda events: statuses.append(endpoint.figures))
    query = sd.source("readings", unit="tick").where(lambda e: e.v >= 0)
    query.serve(kafka_topic(topic, servers, start="at", slack=2), sink, once=True, metrics=endpoint)
    (trips,) = statuses[0].status.sources
    assert dict(trips.partition_ctis) == dict.fromkeys("0123", 6)
    assert dict(trips.partition_lags) == dict.fromkeys("0123", 0)
