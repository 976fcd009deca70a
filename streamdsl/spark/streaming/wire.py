"""Rows on their way between Spark and shards: many in one binary value, so that few values pass Spark's state machinery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

INSERT, RETRACT, CTI, REJECTED = range(4)
"""The kinds of rows; a rejected one is a row of a source that broke a CTI, which is then its `re_new`."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is sent to a shard: rows as which of its sources, or how far it has come, by the word of which shard before, if any.

    Rows without a source pass the shard as they are. With `seen` the CTI holds once the source has had so many rows more than
    before that its progress policy moves.
    """

    shard: int
    source: str
    cti: int | None = None
    origin: int | None = None
    seen: int | None = None
    blob: bytes | None = None


PARCEL: Final = "shard int, source string, cti bigint, origin int, seen bigint, blob binary"
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
SENT: Final = "shard int, blob binary"
"""What a shard sends: rows and CTIs in one value."""


def parcels_to_arrow(parcels: Iterable[Parcel]) -> Any:
    """Return parcels as rows of Spark."""
    rows = [(each.shard, each.source, each.cti, each.origin, each.seen, each.blob) for each in parcels]
    columns = [pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), _TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_TYPES)


def parcel_of(row: Any) -> Parcel:
    """Return a row of Spark as a parcel."""
    blob = None if row.blob is None else bytes(row.blob)
    return Parcel(row.shard, row.source, row.cti, row.origin, row.seen, blob)


def parcels_of(batch: Any) -> list[Parcel]:
    """Return the rows of an Arrow batch as parcels."""
    return [Parcel(**row) for row in batch.to_pylist()]


def packed(table: Any) -> bytes:
    """Return an Arrow table as bytes.

    >>> unpacked([packed(pa.table({"a": [1]})), packed(pa.table({"a": [2]}))]).column("a").to_pylist()
    [1, 2]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(blobs: Iterable[bytes]) -> Any:
    """Return the rows of Arrow tables in bytes, one after the other."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs], promote_options="default")


def opened(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of what shards have sent; the id of an event names its shard and its LE too.

    A shard uses an id again once its own CTI has passed it; that of all shards, by which those who read go, may not have.
    """
    for batch in batches:
        for shard, blob in zip(batch.column("shard").to_pylist(), batch.column("blob").to_pylist(), strict=True):
            table = unpacked([blob])
            shards = pa.array([shard] * table.num_rows, pa.int32())
            ids = table.column("id")
            is_result = pc.not_equal(table.column("kind"), REJECTED)
            named = pc.binary_join_element_wise(f"{shard}", table.column("le").cast(pa.string()), ids, "/")
            table = table.set_column(1, "id", pc.if_else(is_result, named, ids))
            yield from table.add_column(0, "shard", shards).combine_chunks().to_batches()
