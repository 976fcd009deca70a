"""ORC: all that tests know of it."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import orc

from tests.formats.entry import FileFormat


def orc_of(table: pa.Table, style: int) -> bytes:
    """Return a file, in every second style with small stripes."""
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, **({"stripe_size": 64, "batch_size": 2} if style % 2 else {}))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


FILES = [FileFormat("orc", orc_of, orc.read_table, broken={b"": "is no ORC file", b"le,v\n1,2\n": "is no ORC file"})]
