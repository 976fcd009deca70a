"""Physical events as messages of Kafka, each with its place in the output of its stream, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from streamdsl.connect.partition_marks import instant
from streamdsl.errors import InputError
from streamdsl.io.json_columns import json_rows, json_values
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Retract, point

HEADER: Final = "streamdsl"
"""The header with the place of a message in the output of its stream."""
_TIMES: Final = ("le", "re", "re_new")
_CTI_KEY: Final = b"cti"
WHOLE: Final = b"batch"
"""The key of the message after the last one of a micro-batch, in the first partition: it is there as a whole."""
Decode: TypeAlias = Callable[[Any], Any]


class Sent(NamedTuple):
    """The place of a message: the id of its stream, its micro-batch, and its number in that."""

    stream: str
    batch: int
    number: int

    def to_header(self) -> tuple[str, bytes]:
        """Return the header that says so."""
        return HEADER, b"%b %d %d" % (self.stream.encode(), self.batch, self.number)

    @classmethod
    def of(cls, message: Any) -> Sent | None:
        """Return the place of a message, None for one that no sink of streamdsl has written."""
        for name, value in message.headers() or ():
            if name == HEADER and len(parts := value.decode().split(" ")) == 3:
                return cls(parts[0], int(parts[1]), int(parts[2]))
        return None

    def is_after(self, other: Sent | None) -> bool:
        """Say whether this comes after another message of the same stream, or is of another stream."""
        return other is None or self.stream != other.stream or self > other


class KafkaMessage(NamedTuple):
    """A message that is to be written."""

    partition: int
    number: int
    key: bytes
    value: bytes


def messages_of(events: Any, partitions: int) -> Iterator[KafkaMessage]:
    """Yield the messages of a micro-batch, an Arrow table: a row's go to the partition of its key, a CTI to each.

    >>> import pyarrow as pa
    >>> cti = pa.table({"kind": ["cti"], "id": pa.array([None], pa.string()), "le": [5]})
    >>> [message.value.decode() for message in messages_of(cti, 2)]
    ['{"kind": "cti", "id": null, "le": 5}', '{"kind": "cti", "id": null, "le": 5}']
    """
    keys = (json_values(events.column(name), plain_text, is_ascii=True) for name in ("id", "le"))
    rows = zip(events.column("kind").to_pylist(), *keys, json_rows(events, plain_text), strict=True)
    for number, (kind, id, le, text) in enumerate(rows):
        value = text.encode()
        if kind == "cti":
            yield from (KafkaMessage(partition, number, _CTI_KEY, value) for partition in range(partitions))
        else:
            key = f"[{id}, {le}]".encode()
            yield KafkaMessage(crc32(key) % partitions, number, key, value)


def whole(batch: int, rows: int) -> KafkaMessage:
    """Return the message that says that a micro-batch of so many rows is there as a whole.

    >>> whole(7, 2).value
    b'{"kind": "batch", "id": 7}'
    """
    return KafkaMessage(0, rows, WHOLE, json.dumps({"kind": "batch", "id": batch}).encode())


def sent_event(value: bytes) -> Event[Any] | None:
    """Return the physical event of a message that a sink has written, None for the end of a micro-batch.

    Its id is the key, which has the LE too. Raises `InputError` for another kind.

    >>> sent_event(b'{"kind": "retract", "id": "a", "le": 1, "re": null, "re_new": 4, "n": 7}')
    Retract(id='["a", 1]', le=1, re=INFINITY, re_new=4, payload={'n': 7})
    """
    row = json.loads(value)
    kind, id = row.pop("kind"), row.pop("id")
    if kind == "batch":
        return None
    id = json.dumps([id, row["le"]])  # an id that is used again can come from another partition, before its first use has ended
    le, re, re_new = (_time(row.pop(name)) for name in _TIMES)
    if kind == "cti":
        return Cti(le)
    if kind == "insert":
        return Insert(id, le, re, row)
    if kind == "retract":
        return Retract(id, le, re, re_new, row)
    raise InputError(f"the kind of an event is insert, retract or cti, not {kind!r}")


class MessageReader(NamedTuple):
    """How a message is read: `decode` makes its payload, of which the fields `start` and `end` are the lifetime.

    JSON objects become instances of `payload`, if it is given, of their fields `names`.
    """

    decode: Decode | None
    payload: Any
    names: Sequence[str]
    start: str | None
    end: str | None

    def event(self, message: Any) -> Event[Any] | None:
        """Return the event of a message; None if it is passed over."""
        if self.decode is None and Sent.of(message) is not None:
            return self._typed(sent_event(message.value()))
        found = json.loads(message.value()) if self.decode is None else self.decode(message)
        if found is None or isinstance(found, (Insert, Retract, Cti)):
            return found
        id = f"{message.topic()}:{message.partition()}:{message.offset()}"
        le, payload = (_timestamp(message), found) if self.start is None else _taken(found, self.start)
        if self.end is None:
            return self._typed(point(id, le, payload))
        re, payload = _taken(payload, self.end)
        return self._typed(Insert(id, le, re, payload))

    def _typed(self, event: Event[Any] | None) -> Event[Any] | None:
        if self.payload is None or not isinstance(event, (Insert, Retract)) or not isinstance(event.payload, Mapping):
            return event
        fields = event.payload
        if missing := [name for name in self.names if name not in fields]:
            raise InputError(f"it has no {', '.join(missing)}; its fields are: {', '.join(map(str, fields))}")
        payload = self.payload(**{name: fields[name] for name in self.names})
        if isinstance(event, Insert):
            return Insert(event.id, event.le, event.re, payload)
        return Retract(event.id, event.le, event.re, event.re_new, payload)


def _taken(payload: Any, field: str) -> tuple[Any, Any]:
    """Return the time in a field of a payload, and the payload without it, which only mappings can be."""
    if not isinstance(payload, Mapping):
        return _time(getattr(payload, field)), payload
    if field not in payload:
        raise InputError(f"there is no field {field!r}; the fields are: {', '.join(map(str, payload))}")
    return _time(payload[field]), {name: value for name, value in payload.items() if name != field}


def _timestamp(message: Any) -> datetime:
    _, milliseconds = message.timestamp()
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _time(value: Any) -> Any:
    """Return the time that JSON tells: ISO text as a date, null as INFINITY."""
    if value is None:
        return INFINITY
    return instant(value) if isinstance(value, str) else value


def plain_text(value: Any) -> str:
    """Return what JSON has no form for as text: dates as ISO texts, bytes as what they spell."""
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
