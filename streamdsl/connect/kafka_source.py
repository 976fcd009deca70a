"""A source of the messages of a topic of Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, Literal

from streamdsl.connect.kafka_messages import Decode, MessageReader, Sent
from streamdsl.connect.made_source import MadeSource
from streamdsl.connect.partition_marks import PartitionMarks, mark_to_json
from streamdsl.connect.protocols import BadRecord, Batch, End, OpenSource, PartitionProgress, Position, Source
from streamdsl.errors import InputError, QueryError
from streamdsl.extras import need
from streamdsl.io.layout import as_schema
from streamdsl.monitoring.logs import log_of
from streamdsl.temporal import Cti, Insert, to_duration

_log = log_of("streamdsl.connect.kafka")
_AT_ONCE: Final = 10_000
_PATIENCE: Final = 10.0
"""Seconds for which a broker may take to answer."""
CALM: Final = {"client.id": "streamdsl", "reconnect.backoff.ms": 1_000}
"""Settings of clients, unless others are given: a broker that is away is asked, and told of in the log, each second."""
_OWN: Final = ("bootstrap.servers", "group.id", "enable.auto.commit", "enable.partition.eof", "auto.offset.reset")


def kafka_topic(
    topic: str,
    servers: str,
    *,
    decode: Decode | None = None,
    payload: type | None = None,
    start: str | None = None,
    end: str | None = None,
    slack: int | str | timedelta | None = None,
    idle: int | str | timedelta | None = None,
    group: str | None = None,
    begin: Literal["earliest", "latest"] = "earliest",
    settings: Mapping[str, Any] | None = None,
) -> Source:
    """Return a source of the messages of a topic of Kafka, which reads all its partitions, from offsets in the checkpoint.

    A message is a JSON object, whose fields are the payload, an instance of `payload` if it is given; or what `decode` makes
    of it, given the `Message` of confluent-kafka: a payload, an event, or None to pass it over. Its LE is in the field `start`
    of the payload, else it is the message's timestamp; its RE is in `end`, else it is a point event. Its id is
    `topic:partition:offset`. Messages of the sink `KafkaTopic` are read as their events, each once.

    With `slack` the source makes CTIs: of each partition the largest LE minus it, of the topic the least of the partitions',
    but for those that are silent for `idle`. The position is the offset and the CTI of each partition. Offsets are committed for
    `group` too, which shows the lag to monitors; they are never read. Without a position it begins with what is kept, or with
    what comes (`latest`). `settings` are librdkafka's. Raises `InputError` if the topic, or what comes after a position, is not
    there.

    >>> from streamdsl.connect import kafka_topic
    >>> kafka_topic("readings", "localhost:9092", start="at", slack="5s", idle="1m")
    kafka_topic('readings')
    """
    need("confluent_kafka", "sources of Kafka", "kafka")
    if clash := [name for name in settings or () if name in _OWN]:
        raise QueryError(f"the source sets {', '.join(clash)} itself", hint="give servers, group and begin as arguments")
    if begin not in ("earliest", "latest"):
        raise QueryError(f"a topic is read from its earliest or its latest message, not from {begin!r}")
    given = {**CALM, "fetch.wait.max.ms": 100, **(settings or {})}
    config = {
        **given,
        "bootstrap.servers": servers,
        "group.id": group or f"streamdsl-{topic}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    seconds = None if idle is None else to_duration(timedelta(seconds=idle) if isinstance(idle, int) else idle, "us") / 10**6
    schema = as_schema(payload)
    if payload is not None and schema is None:
        raise QueryError(f"{payload!r} has no fields of which a payload could be made", hint="payload= is a dataclass")
    reading = MessageReader(decode, payload, schema.names if schema else (), start, end)

    def reader(position: Position) -> OpenSource:
        return _TopicReader(topic, config, reading, slack, seconds, begin == "latest", group is not None, position)

    return MadeSource(f"kafka_topic({topic!r})", reader)


class _TopicReader(OpenSource):
    """Reads the partitions of a topic, whose names are their numbers; `_unread` are those whose end has not been seen."""

    def __init__(
        self,
        topic: str,
        config: Mapping[str, Any],
        reading: MessageReader,
        slack: Any,
        idle: float | None,
        latest: bool,
        commits: bool,
        position: Position,
    ) -> None:
        from confluent_kafka import Consumer

        self._topic, self._reading, self._commits = topic, reading, commits
        self._consumer = Consumer({**config, "logger": _log})
        self._offsets = self._begin(position or {}, latest=latest and position is None)
        kept = {name: (position or {}).get(name, {}) for name in self._offsets}
        self._sent = {name: Sent(*at["sent"]) if at.get("sent") else None for name, at in kept.items()}
        self._marks = PartitionMarks(self._offsets, slack, idle)
        for name, at in kept.items():
            if at.get("cti") is not None:
                self._marks.cti(name, at["cti"])
        self._unread = set(self._offsets)
        self._consumer.assign([self._place(name, offset) for name, offset in self._offsets.items()])

    def poll(self, timeout: float) -> Batch | End | None:
        begun = time.monotonic()
        while True:
            now = time.monotonic()
            # Nothing is there only if the broker has said so: a fetch is under way else.
            patience = timeout if not self._unread else max(timeout, _PATIENCE)
            if (left := begun + patience - now) < 0:
                return None
            batch = self._batch(self._messages(min(left, max(0.0, begun + timeout - now) or 0.01)))
            if batch is not None:
                return batch
            if not self._unread and time.monotonic() >= begun + timeout:
                return None

    def committed(self, position: Position) -> None:
        if self._commits and position:
            self._consumer.commit(offsets=[self._place(name, at["offset"]) for name, at in position.items()], asynchronous=True)

    def partitions(self) -> Mapping[str, PartitionProgress]:
        return {
            name: PartitionProgress(self._marks.marks[name], self._lag(name, offset)) for name, offset in self._offsets.items()
        }

    def close(self) -> None:
        self._consumer.close()

    def _lag(self, name: str, offset: int) -> int | None:
        """Return the messages that are not read, as far as the client has been told of them."""
        _, end = self._consumer.get_watermark_offsets(self._place(name, offset), cached=True)
        return max(0, end - offset) if end >= 0 else None

    def _batch(self, messages: list[Any]) -> Batch | None:
        items, places, bad = list[Any](), list[str](), list[BadRecord]()
        for message in messages:
            name, where = str(message.partition()), f"message {message.offset()} of {self._topic}[{message.partition()}]"
            self._offsets[name] = message.offset() + 1
            try:
                event = None if self._is_repeated(name, message) else self._reading.event(message)
                if isinstance(event, Cti):
                    self._marks.cti(name, event.time)
                elif event is not None:
                    if isinstance(event, Insert):
                        self._marks.row(name, event.le)
                    items.append(event)
                    places.append(where)
            except Exception as error:  # of the user's function, or of the message
                bad.append(BadRecord(message.value() or b"", f"{type(error).__name__}: {error}", where))
        is_drained = len(messages) < _AT_ONCE
        if (risen := self._marks.risen(self._unread if is_drained else self._offsets)) is not None:
            items.append(Cti(risen))
            places.append(f"the CTI of {self._topic}")
        return Batch(items, self._position(), bad, places) if messages or items else None

    def _is_repeated(self, name: str, message: Any) -> bool:
        sent = Sent.of(message)
        if sent is None:
            return False
        is_repeated = not sent.is_after(self._sent[name])
        self._sent[name] = self._sent[name] if is_repeated else sent
        return is_repeated

    def _messages(self, timeout: float) -> list[Any]:
        """Return the messages that are there, after the first of them, or the timeout."""
        first = self._consumer.poll(timeout)
        if first is None:
            return []
        return [each for each in (first, *self._consumer.consume(_AT_ONCE, 0)) if self._is_message(each)]

    def _is_message(self, found: Any) -> bool:
        """Say whether what came is a message; it can tell of the end of a partition. Raises `InputError` for other errors."""
        from confluent_kafka import KafkaError

        error, name = found.error(), str(found.partition())
        if error is None:
            self._unread.add(name)
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._unread.discard(name)
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise InputError(
                f"the topic {self._topic}[{name}] does not keep its messages from offset {self._offsets[name]} on: {error.str()}",
                hint="let the topic keep messages for longer than jobs stand still; begin a new checkpoint to go on without them",
            )
        elif not error.retriable() and error.code() not in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
            raise InputError(f"the topic {self._topic} cannot be read: {error.str()}")
        return False

    def _begin(self, position: Mapping[str, Any], latest: bool) -> dict[str, int]:
        """Return the offset from which each partition is read. Raises `InputError` if a partition is not there."""
        offsets = {}
        for number in partitions_of(self._consumer, self._topic):
            first, last = self._consumer.get_watermark_offsets(self._place(str(number), 0), timeout=_PATIENCE)
            offsets[str(number)] = position.get(str(number), {}).get("offset", last if latest else first)
        if lost := sorted(position.keys() - offsets.keys()):
            raise InputError(
                f"the topic {self._topic} has no partition {', '.join(lost)}, which had been read",
                hint="it is another topic of this name: begin a new checkpoint",
            )
        return offsets

    def _position(self) -> Position:
        return {name: dict(self._at(name, offset)) for name, offset in self._offsets.items()}

    def _at(self, name: str, offset: int) -> Iterator[tuple[str, Any]]:
        yield "offset", offset
        if (mark := self._marks.marks[name]) is not None:
            yield "cti", mark_to_json(mark)
        if (sent := self._sent[name]) is not None:
            yield "sent", list(sent)

    def _place(self, name: str, offset: int) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._topic, int(name), offset)


def partitions_of(client: Any, topic: str) -> list[int]:
    """Return the numbers of a topic's partitions. Raises `InputError` if no broker answers, or it has no such topic."""
    from confluent_kafka import KafkaException

    try:
        found = client.list_topics(topic, timeout=_PATIENCE).topics[topic]
    except KafkaException as error:
        raise InputError(f"no broker of Kafka answers: {error.args[0].str()}", hint="are servers and settings right?") from None
    if not found.partitions:
        raise InputError(f"there is no topic {topic!r}", hint="create it, with as many partitions as it shall have")
    return sorted(found.partitions)
