"""The wire format between Spark and shards: many rows in one binary value, as each value costs much in Spark's state API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

INSERT, RETRACT, CTI, REJECTED = range(4)
"""The kinds of rows. A rejected row violated the CTI of its source, which is then in its `re_new`."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a shard, for one of its sources: rows (`blob`, Arrow IPC), a CTI, or both.

    `origin` is the shard of an earlier stage that has sent the CTI, if any. Rows with an empty `source` pass the shard unchanged.
    `seen` is a number of rows: the CTI holds once so many more rows have come that the source's progress policy moves.
    """

    shard: int
    source: str
    cti: int | None = None
    origin: int | None = None
    seen: int | None = None
    blob: bytes | None = None


MESSAGE: Final = "shard int, source string, cti bigint, origin int, seen bigint, blob binary"
_TYPES: Final = pa.schema(
    [
        ("shard", pa.int32()),
        ("source", pa.string()),
        ("cti", pa.int64()),
        ("origin", pa.int32()),
        ("seen", pa.int64()),
        ("blob", pa.binary()),
    ]
)
OUTPUT: Final = "shard int, blob binary"
"""The schema of what a shard sends: rows and CTIs in one value."""


def messages_to_arrow(messages: Iterable[Message]) -> Any:
    """Return messages as an Arrow batch of Spark's rows."""
    rows = [(each.shard, each.source, each.cti, each.origin, each.seen, each.blob) for each in messages]
    columns = [pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), _TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_TYPES)


def message_of(row: Any) -> Message:
    """Return a row of Spark as a message."""
    shard, source, cti, origin, seen, blob = row
    return Message(shard, source, cti, origin, seen, None if blob is None else bytes(blob))


def messages_of(batch: Any) -> list[Message]:
    """Return the rows of an Arrow batch as messages."""
    return [Message(**row) for row in batch.to_pylist()]


def to_ipc(table: Any) -> bytes:
    """Return an Arrow table as bytes of an IPC stream.

    >>> from_ipc([to_ipc(pa.table({"a": [1]})), to_ipc(pa.table({"a": [2]}))]).column("a").to_pylist()
    [1, 2]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_ipc(blobs: Iterable[bytes]) -> Any:
    """Return the tables of IPC streams as one table, one after the other."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs], promote_options="default")


def unpack_output(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows that shards have sent; the id of an event becomes `shard/LE/id`.

    A shard reuses an id once its own CTI has passed the event. Readers go by the least CTI of all shards, which may be behind:
    so the shard and the LE tell the uses of an id apart.
    """
    for batch in batches:
        for shard, blob in zip(batch.column("shard").to_pylist(), batch.column("blob").to_pylist(), strict=True):
            table = from_ipc([blob])
            shards = pa.array([shard] * table.num_rows, pa.int32())
            ids = table.column("id")
            is_result = pc.not_equal(table.column("kind"), REJECTED)
            named = pc.binary_join_element_wise(f"{shard}", table.column("le").cast(pa.string()), ids, "/")
            table = table.set_column(1, "id", pc.if_else(is_result, named, ids))
            yield from table.add_column(0, "shard", shards).combine_chunks().to_batches()
