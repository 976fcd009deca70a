"""Runs read the columns that they use: from Parquet files with a column that cannot be read, from CSV files and from frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.errors import StreamDslError
from streamdsl.expr.deferred import AnyColumn
from streamdsl.io.arrow_columns import ArrowColumns
from streamdsl.io.pandas_columns import PandasColumns

ROWS = 4000


@dataclass(frozen=True)
class Trip:
    zone: str
    km: int
    notes: str


@pytest.fixture
def poisoned(tmp_path: Path) -> str:
    """A Parquet file whose column `notes` cannot be read beyond its first rows, which a source looks at."""
    table = pa.table(
        {
            "le": range(ROWS),
            "zone": ["A", "B"] * (ROWS // 2),
            "km": range(ROWS),
            "notes": [f"note {n}" for n in range(ROWS)],
        }
    )
    path = tmp_path / "trips.parquet"
    pq.write_table(table, path, row_group_size=1024, use_dictionary=False, compression="none")
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(3)
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(bytes(content))
    return str(path)


def total(trips: Any) -> int:
    query = trips.where(lambda e: e.zone == "A").tumbling_window(ROWS).aggregate(lambda w: w.sum(lambda e: e.km))
    return sum(row.payload for row in query.run().cht())


@pytest.mark.parametrize("payload", [None, Trip])
def test_a_column_that_nothing_uses_is_not_read_from_parquet(poisoned: str, payload: type | None) -> None:
    assert total(sd.from_parquet(poisoned, payload, start="le")) == sum(range(0, ROWS, 2))


def test_a_column_of_which_a_later_projection_reads_nothing_is_not_read(poisoned: str) -> None:
    made = sd.from_parquet(poisoned, start="le").select(km=lambda e: e.km, mark=lambda e: e.notes + "!")
    assert len(made.select(lambda e: e.km).run().cht()) == ROWS
    with pytest.raises(OSError):
        made.run()


@pytest.mark.parametrize(
    "query",
    [
        lambda s: s,
        lambda s: s.where(lambda e: e.notes == ""),
        lambda s: s.select(lambda e: str(e.km)),
        lambda s: s.snapshot_window().aggregate(sd.first(lambda e: e.km)),
        lambda s: s.distinct().select(lambda e: e.km),
    ],
    ids=["results", "read", "opaque", "order", "compared"],
)
def test_a_column_that_may_be_used_is_read(poisoned: str, query: Any) -> None:
    with pytest.raises(OSError):
        query(sd.from_parquet(poisoned, start="le")).run()


def test_all_columns_are_read_where_the_rule_is_off(poisoned: str) -> None:
    query = sd.from_parquet(poisoned, start="le").select(lambda e: e.km)
    assert len(query.run().cht()) == ROWS
    for choice in ("off", ["fuse_selects"]):
        with pytest.raises(OSError):
            query.run(engine_options={"rewrite": choice})


def test_a_source_that_drops_late_events_shows_them_whole(tmp_path: Path) -> None:
    path = tmp_path / "late.parquet"
    pq.write_table(pa.table({"le": [9, 1], "k": ["a", "b"], "v": [1, 2]}), path)
    trips = sd.source("trips", progress=sd.Progress.ordered(), on_violation="drop").select(lambda e: e.k)
    result = trips.run({"trips": sd.from_parquet(str(path), start="le")})
    assert [rejection.event.payload for rejection in result.rejected()] == [sd.Record(k="b", v=2)]


def test_a_csv_file_may_hold_what_is_no_number_in_a_column_that_nothing_uses(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Reading:
        k: str
        v: int

    path = tmp_path / "readings.csv"
    path.write_text("le,k,v\n1,a,broken\n2,b,7\n")
    readings = sd.from_csv(str(path), Reading, start="le")
    assert [row.payload for row in readings.select(lambda e: e.k).run().cht()] == ["a", "b"]
    with pytest.raises(StreamDslError):
        readings.run()


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns of frames that are made columns of payloads."""
    names: list[str] = []
    for columns in (ArrowColumns, PandasColumns):
        convert = columns.held

        def held(self: Any, name: str, convert: Any = convert) -> AnyColumn:
            names.append(name)
            column: AnyColumn = convert(self, name)
            return column

        monkeypatch.setattr(columns, "held", held)
    return names


@pytest.mark.parametrize(
    "read", [sd.from_pandas, lambda frame: sd.from_arrow(pa.Table.from_pandas(frame))], ids=["pandas", "arrow"]
)
def test_columns_of_frames_are_converted_where_they_are_used_and_once(read: Any, converted: list[str]) -> None:
    trips = read(pd.DataFrame({"le": [1, 2], "zone": ["A", "B"], "km": [7, 8], "notes": ["", ""]}))
    assert [row.payload for row in trips.where(lambda e: e.zone == "A").select(lambda e: e.km).run().cht()] == [7]
    assert sorted(converted) == ["km", "zone"]
    assert len(trips.run().cht()) == 2
    assert sorted(converted) == ["km", "notes", "zone"]


def test_a_frame_that_is_changed_later_stays_what_it_was() -> None:
    frame = pd.DataFrame({"le": [1, 2], "v": [7, 8]})
    numbers = sd.from_pandas(frame).select(lambda e: e.v)
    frame.loc[0, "v"] = 9
    assert [row.payload for row in numbers.run().cht()] == [7, 8]
