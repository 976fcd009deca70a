"""The formats that there are; the order is that of the door laws, which draw by it."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

import streamdsl as sd
from tests.formats.entry import FileFormat


def csv_of(table: pa.Table, style: int) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    writer.writerows([["" if value is None else text_of(value) for value in row.values()] for row in table.to_pylist()])
    return text.getvalue().encode()


def json_lines_of(table: pa.Table, style: int) -> bytes:
    return "".join(json.dumps(row, default=text_of) + "\n" for row in table.to_pylist()).encode()


def text_of(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def parquet_of(table: pa.Table, style: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def arrow_of(table: pa.Table, style: int) -> bytes:
    """Return a file, or a stream in every second style, with small batches."""
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if style % 2 else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def arrow_in(path: Path) -> pa.Table:
    return pa.ipc.open_file(path).read_all()


FILES = [
    FileFormat(
        "csv",
        csv_of,
        pyarrow.csv.read_csv,
        sd.from_csv,
        door="CSV",
        lacks=("list",),
        broken={b"": "is no CSV with a header", b"le,v\n1,2\n4,5,6\n": "is no CSV with a header"},
    ),
    FileFormat(
        "jsonl",
        json_lines_of,
        pyarrow.json.read_json,
        sd.from_jsonl,
        door="JSONL",
        lacks=("Decimal", "datetime"),
        is_headed=False,
        broken={b'{"le": 2,': ", line 1 is no JSON", b"[1]\n": ", line 1 holds no JSON object"},
    ),
    FileFormat(
        "parquet",
        parquet_of,
        pq.read_table,
        sd.from_parquet,
        door="Parquet",
        broken={b"": "is no Parquet file", b"le,v\n1,2\n": "is no Parquet file"},
    ),
    FileFormat("arrow", arrow_of, arrow_in, sd.from_arrow, door="Arrow file", broken={b"le,v\n1,2\n": "is no Arrow file"}),
]
