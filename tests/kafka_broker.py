"""A broker of Kafka for tests: the one that librdkafka has inside, or, for a run by hand, the one at `STREAMDSL_KAFKA`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition


@contextmanager
def broker() -> Iterator[str]:
    """Give the address of a broker; that of librdkafka lives as long as the context, in this process."""
    if given := os.environ.get("STREAMDSL_KAFKA"):
        yield given
        return
    cluster = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = cluster.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{each.host}:{each.port}" for each in brokers)
    del cluster


def new_topic(servers: str, messages: list[tuple[int, Any]] = []) -> str:  # noqa: B006 - it is only read
    """Return a new topic of four partitions with these messages, each with the number of its partition."""
    topic = f"topic-{uuid.uuid4().hex[:12]}"
    if "STREAMDSL_KAFKA" in os.environ:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(topic, num_partitions=4)])[topic].result(10)
    send(servers, topic, messages)
    return topic


def send(servers: str, topic: str, messages: list[tuple[int, Any]], **more: Any) -> None:
    """Append messages to partitions. The broker of librdkafka makes a topic of four partitions when it is asked for one."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.list_topics(topic, timeout=10)
    for partition, value in messages:
        producer.produce(topic, value, partition=partition, **more)
    assert producer.flush(10) == 0


def places_of_messages(servers: str, topic: str) -> list[tuple[int, Any]]:
    """Return for each message of a topic its partition and its headers, those that are there twice twice."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "count", "enable.partition.eof": True})
    unread, found = 4, list[tuple[int, Any]]()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(unread)])
    while unread:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is None:
            found.append((message.partition(), tuple(message.headers() or ())))
        else:
            unread -= 1
    consumer.close()
    return found
