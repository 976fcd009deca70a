"""A sink that writes physical events to a topic of Kafka, each once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamdsl.connect.kafka_messages import WHOLE, KafkaMessage, Sent, messages_of, whole
from streamdsl.connect.kafka_source import CALM, partitions_of
from streamdsl.errors import InputError, QueryError, SinkError, without_hint
from streamdsl.extras import need
from streamdsl.monitoring.logs import log_of
from streamdsl.sinks.last_batch import LastBatch
from streamdsl.sinks.row_changes import event_table

_log = log_of("streamdsl.connect.kafka")
_PATIENCE: Final = 10.0
_AGAIN: Final = "mend that and start the job again: what the topic has is not written twice"


class KafkaTopic:
    """A topic of Kafka that gets the physical events of a stream as JSON: `kind`, `id`, `le`, `re`, `re_new` and the fields.

    The key is `[id, le]`, so all messages of a row are in one partition, in order, and the last one says what the row is: in a
    compacted topic they are the table. CTIs go to each partition, with the key `cti`. Dates are ISO texts, a null `re` is
    INFINITY. `kafka_topic` reads it again.

    Each message has its place (stream, micro-batch, number) in the header `streamdsl`, and the messages of a partition are in
    this order; `{"kind": "batch"}` in the first partition ends a micro-batch. After a crash the sink looks up the last message of
    each partition, and writes only what comes after it: so each is there once, without transactions. The topic must exist, be
    this sink's alone, and keep its number of partitions. A reader can see a micro-batch before it is whole. `settings` are
    librdkafka's. Raises `SinkError` for a topic of another stream, for one that lacks earlier micro-batches, and for what
    brokers refuse.

    >>> from streamdsl.connect import KafkaTopic
    >>> KafkaTopic("alarms", "localhost:9092")
    KafkaTopic('alarms')
    """

    promise: Final = "exactly_once"

    def __init__(self, topic: str, servers: str, *, settings: Mapping[str, Any] | None = None) -> None:
        need("confluent_kafka", "sinks of Kafka", "kafka")
        if "bootstrap.servers" in (settings or ()):
            raise QueryError("the sink sets bootstrap.servers itself", hint="give servers as an argument")
        self._topic = topic
        self._config = {**CALM, **(settings or {}), "bootstrap.servers": servers, "logger": _log}
        self._producer: Any = None
        self._last: dict[int, Sent | None] = {}
        self._whole = LastBatch()
        self._failed: list[str] = []

    def __repr__(self) -> str:
        return f"KafkaTopic({self._topic!r})"

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the topic holds a micro-batch as a whole. Raises `SinkError` as `write` does."""
        return not self._opened().needs(batch, stream, f"the topic {self._topic}")

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write what the topic lacks of a micro-batch: what `session.feed` returns, or an Arrow table of events."""
        last = self._opened()
        if not last.needs(batch, stream, f"topic {self._topic}"):
            return
        table, name = event_table(events), stream or last.stream or "-"
        try:
            for message in messages_of(table, len(self._last)):
                self._send(message, Sent(name, batch, message.number))
            self._flush()
            self._send(whole(batch, table.num_rows), Sent(name, batch, table.num_rows))
            self._flush()
        except BaseException:
            self.close()  # so that the next write looks up what the topic has
            raise
        self._whole = LastBatch(batch, stream or last.stream)

    def close(self) -> None:
        """Let go of the connections."""
        producer, self._producer, self._failed = self._producer, None, []
        if producer is not None:
            producer.purge()
            producer.flush(0)

    def _opened(self) -> LastBatch:
        """Return the last micro-batch that the topic holds as a whole."""
        from confluent_kafka import KafkaException, Producer

        if self._producer is None:
            # Acknowledged by all replicas, and neither twice nor out of order, however often the client has to try.
            self._producer = Producer({**self._config, "enable.idempotence": True})
            try:
                self._last, self._whole = last_sent(self._topic, self._config, partitions_of(self._producer, self._topic))
            except (InputError, KafkaException) as error:
                self.close()
                raise SinkError(f"the topic {self._topic} cannot be written: {_why(error)}", hint=_AGAIN) from error
        return self._whole

    def _send(self, message: KafkaMessage, sent: Sent) -> None:
        """Hand a message to the client, unless the topic has it."""
        if not sent.is_after(self._last[message.partition]):
            return
        self._last[message.partition] = sent
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    message.value,
                    message.key,
                    message.partition,
                    headers=[sent.to_header()],
                    on_delivery=self._delivered,
                )
                return
            except BufferError:  # as many are under way as the client holds
                self._producer.poll(0.1)
                self._raise_failed()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error.str())

    def _flush(self) -> None:
        self._producer.flush()
        self._raise_failed()

    def _raise_failed(self) -> None:
        if self._failed:
            raise SinkError(f"the topic {self._topic} does not take a message: {self._failed[0]}", hint=_AGAIN)


def last_sent(topic: str, config: Mapping[str, Any], partitions: list[int]) -> tuple[dict[int, Sent | None], LastBatch]:
    """Return the place of the last message of each partition, None for one that is empty, and the last whole micro-batch.

    Raises `SinkError` for a message that no sink has written.
    """
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    own = {"group.id": "streamdsl", "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error"}
    consumer = Consumer({**config, **own, "fetch.wait.max.ms": 50})
    found: dict[int, Sent | None] = dict.fromkeys(partitions)
    is_whole = False
    try:
        bounds = {each: consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=_PATIENCE) for each in partitions}
        unread = {each for each, (first, end) in bounds.items() if end > first}
        consumer.assign([TopicPartition(topic, each, bounds[each][1] - 1) for each in unread])
        while unread:
            message = consumer.poll(_PATIENCE)
            if message is not None and message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
                continue
            sent = _place(topic, message)
            found[message.partition()] = sent
            if message.partition() == 0:
                is_whole = message.key() == WHOLE
    finally:
        consumer.close()
    first = found[0]
    streams = {sent.stream for sent in found.values() if sent is not None} - {"-"}
    stream = streams.pop() if streams else None
    return found, LastBatch(-1, stream) if first is None else LastBatch(first.batch - (not is_whole), stream)


def _place(topic: str, message: Any) -> Sent:
    if message is None or message.error() is not None:
        what = "no answer" if message is None else message.error().str()
        raise SinkError(f"the last message of the topic {topic} cannot be read: {what}", hint=_AGAIN)
    sent = Sent.of(message)
    if sent is None:
        raise SinkError(
            f"the topic {topic} has a message that no stream of this kind has written",
            hint="name another, which is the sink's alone",
        )
    return sent


def _why(error: Exception) -> str:
    return without_hint(error) if isinstance(error, InputError) else str(error)
