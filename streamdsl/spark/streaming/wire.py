"""Rows on their way between Spark and shards: many in one binary value, so that few values pass Spark's state machinery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

PARCEL: Final = "shard int, source string, cti bigint, blob binary"
"""Rows of one source for a shard; or, without rows, how far that source has come."""
INSERT, RETRACT, CTI = range(3)


def packed(table: Any) -> bytes:
    """Return an Arrow table as bytes.

    >>> unpacked([packed(pa.table({"a": [1]})), packed(pa.table({"a": [2]}))]).column("a").to_pylist()
    [1, 2]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def opened(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of what shards have sent; the id of an event names its shard too."""
    for batch in batches:
        for shard, blob in zip(batch.column("shard").to_pylist(), batch.column("blob").to_pylist(), strict=True):
            table = unpacked([blob])
            shards = pa.array([shard] * table.num_rows, pa.int32())
            named = pc.binary_join_element_wise(f"{shard}", table.column("id"), "/")
            table = table.set_column(1, "id", named)
            yield from table.add_column(0, "shard", shards).combine_chunks().to_batches()


def unpacked(blobs: Iterable[bytes]) -> Any:
    """Return the rows of Arrow tables in bytes, one after the other."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs], promote_options="default")
