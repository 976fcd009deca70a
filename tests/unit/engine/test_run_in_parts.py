"""A run takes a large input in parts, whatever kinds of pieces it is read in, and its answer is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.ingress import Ingress
from streamdsl.expr.table import Table
from streamdsl.io.binding import Bound, Inserts, Piece

sizes = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["columns", "columns", "ids", "events"])), max_size=6)


@given(sizes, st.one_of(st.none(), st.integers(1, 9)))
def test_the_parts_of_an_input_are_its_pieces_in_order(kinds: list[tuple[int, str]], rows: int | None) -> None:
    def pieces() -> Iterator[Piece]:
        first = 0
        for size, kind in kinds:
            times = np.arange(first, first + size)
            inserts = Inserts([f"id {n}" for n in times] if kind == "ids" else None, times, times + 1, table(times))
            yield list(inserts.events(first)) if kind == "events" else inserts
            first += size

    bound = Bound("tick", None, pieces)
    found = list(Bound("tick", None, lambda: bound.parts(rows)).events())
    assert found == list(bound.events())
    if rows is not None and all(kind == "columns" for _, kind in kinds):
        assert all(len(part) < rows + 4 for part in bound.parts(rows))


def table(times: Any) -> Table:
    return Table.from_payloads(times.tolist()) if len(times) else Table.of_objects([])


def test_a_large_file_is_never_in_memory_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.arange(20_000)
    pq.write_table(pa.table({"le": times, "k": times % 7, "v": times * 0.1}), tmp_path / "bids.parquet", row_group_size=1_000)
    windows = sd.from_parquet(tmp_path / "bids.parquet").group_by("k").tumbling_window(500)
    query = windows.aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v))
    whole = query.run().cht()
    taken: list[int] = []
    stage = Ingress.stage

    def noted(ingress: Any, pushed: Any, stays_open: bool = False) -> Any:
        taken.append(len(pushed))
        return stage(ingress, pushed, stays_open)

    monkeypatch.setattr("streamdsl.engine.run.PART_ROWS", 3_000)
    monkeypatch.setattr("streamdsl.io.files.PIECE_ROWS", 1_000)
    monkeypatch.setattr("streamdsl.engine.ingress.Ingress.stage", noted)
    assert query.run().cht() == whole
    assert len(taken) >= 6
    assert max(taken) <= 3_000
