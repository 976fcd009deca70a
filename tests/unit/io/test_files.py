"""Parquet, and what all files have in common: paths, pieces, errors with their place, histories out and in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamdsl.errors import EventError, QueryError, UnitError
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Bound
from streamdsl.io.data_frames import events_to_pandas, history_to_arrow
from streamdsl.temporal import CHT, INFINITY, Insert
from streamdsl.temporal.pandas_frames import HistoryColumns
from tests.unit.io.written import DAY, lifetimes, payloads, read_csv, read_parquet, written


def test_parquet_is_streamed_in_batches(tmp_path: Path, piece_rows: int) -> None:
    pq.write_table(pa.table({"t": [1, 2, 3], "v": ["a", None, "c"]}), tmp_path / "in.parquet", row_group_size=2)
    bound = read_parquet(tmp_path / "in.parquet", start="t")
    assert (bound.unit, bound.schema, bound.size_hint) == ("tick", Schema.record(["v"]), 3)
    assert [len(piece) for piece in bound.pieces()] == ([2, 1] if piece_rows == 2 else [3])
    expected = [Insert(0, 1, 2, {"v": "a"}), Insert(1, 2, 3, {"v": None}), Insert(2, 3, 4, {"v": "c"})]
    assert list(bound.events()) == list(bound.events()) == expected


def test_only_the_needed_columns_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"le": [1], "v": [2], "unwanted": [3]}), tmp_path / "in.parquet")
    bound = read_parquet(tmp_path / "in.parquet", Schema.record(["v"]))
    assert payloads(bound) == [{"v": 2}]


def test_a_directory_with_the_name_of_a_file_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "out.parquet").mkdir()
    pq.write_table(pa.table({"le": [7]}), tmp_path / "out.parquet" / "part-0.parquet")
    assert lifetimes(read_parquet(tmp_path)) == lifetimes(read_parquet(tmp_path / "out.parquet")) == [(7, 8)]


@pytest.mark.parametrize("paths", [5, None, {"a.csv": 1}])
def test_paths_are_paths(paths: Any) -> None:
    with pytest.raises(QueryError, match=f"not by a {type(paths).__name__}"):
        read_csv(paths)


def test_an_empty_parquet_file_has_a_unit_and_a_schema(tmp_path: Path) -> None:
    pq.write_table(pa.table({"le": pa.array([], pa.timestamp("ns")), "v": pa.array([], pa.int64())}), tmp_path / "in.parquet")
    bound = read_parquet(tmp_path / "in.parquet")
    assert (bound.unit, bound.schema, bound.size_hint, list(bound.events())) == ("us", Schema.record(["v"]), 0, [])


def test_errors_name_file_and_row(tmp_path: Path, piece_rows: int) -> None:
    pq.write_table(pa.table({"le": [1, 2, None]}), tmp_path / "in.parquet")
    with pytest.raises(EventError, match=r"row 2 of .*in\.parquet, column 'le'"):
        list(read_parquet(tmp_path / "in.parquet").events())
    with pytest.raises(EventError, match=r"row 2 of .*in\.csv"):
        list(read_csv(written(tmp_path / "in.csv", "le,v\n1,1\n2,1\n,1\n")).events())
    with pytest.raises(UnitError, match=r"row 2 of .*in\.csv, column 'le'"):
        list(read_csv(written(tmp_path / "in.csv", "le\n2013-02-08\n2013-02-08\nsoon-or-late\n")).events())


def test_a_history_goes_through_parquet_unchanged(tmp_path: Path) -> None:
    rows = [(DAY, INFINITY, {"v": 2**60 + 1, "s": None}), (DAY + 1, DAY + 3, {"v": None, "s": "x"})]
    cht = CHT.from_rows(rows, "us")
    pq.write_table(history_to_arrow(HistoryColumns.of(cht)), tmp_path / "arrow.parquet")
    cht.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    for path in (tmp_path / "arrow.parquet", tmp_path / "pandas.parquet"):
        bound = read_parquet(path, end="re")
        assert bound.unit == "us"
        assert CHT.from_events(bound.events()) == cht


def test_scalars_go_through_parquet_as_scalars(tmp_path: Path) -> None:
    cht: CHT[Any] = CHT.from_rows([(1, 5, "x"), (2, INFINITY, "y")])
    cht.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    pq.write_table(history_to_arrow(HistoryColumns.of(cht)), tmp_path / "arrow.parquet")
    assert payloads(read_parquet(tmp_path / "pandas.parquet", end="re")) == ["x", "y"]
    assert payloads(read_parquet(tmp_path / "arrow.parquet", end="re")) == ["x", "y"]


def test_physical_files_are_read_once(tmp_path: Path, piece_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [Insert(n, n, n + 5, {"v": n}) for n in range(5)]
    events_to_pandas(events).to_parquet(tmp_path / "in.parquet")
    bound = read_parquet(tmp_path / "in.parquet")
    readings: list[int] = []
    again = Bound(bound.unit, bound.schema, lambda: readings.append(1) or bound.reader())  # type: ignore[func-returns-value]
    assert again.whole() == events
    assert readings == [1]
