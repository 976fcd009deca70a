"""Arrow files, in both of the IPC formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl.io import files
from tests.unit.io.written import read_ipc

WRITERS: list[Callable[..., Any]] = [pa.ipc.new_file, pa.ipc.new_stream]


def written(path: Path, table: pa.Table, writer: Callable[..., Any] = pa.ipc.new_file, rows: int = 1_000) -> Path:
    with writer(path, table.schema) as out:
        out.write_table(table, max_chunksize=rows)
    return path


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_read_batch_by_batch(tmp_path: Path, writer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIECE_ROWS", 2)
    path = written(tmp_path / "in.arrow", pa.table({"le": [1, 2, 3, 4], "v": ["a", None, "c", "d"]}), writer, rows=3)
    pieces = list(read_ipc(path).pieces())
    assert [len(piece) for piece in pieces] == [2, 1, 1]
    rows = [(1, 2, {"v": "a"}), (2, 3, {"v": None}), (3, 4, {"v": "c"}), (4, 5, {"v": "d"})]
    assert sd.from_arrow(path).run().cht() == sd.from_rows(rows).run().cht()


@pytest.mark.parametrize("writer", WRITERS)
def test_an_empty_file_has_a_schema(tmp_path: Path, writer: Callable[..., Any]) -> None:
    path = written(tmp_path / "in.arrow", pa.table({"le": pa.array([], pa.int64()), "v": pa.array([], pa.string())}), writer)
    assert sd.from_arrow(path).run().to_arrow().column_names == ["le", "re", "v"]
