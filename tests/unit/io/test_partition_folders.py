"""Folders such as `month=01` give the rows of the files in them columns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl.errors import SchemaError
from streamdsl.io.formats import FORMATS
from streamdsl.sources import from_csv, from_files
from tests.formats import entries


@dataclass
class Reading:
    n: int
    day: date | None
    place: int


def written(folder: Path, kind: str, *places: str, **more: Any) -> Path:
    """Write a file of one row into each of the folders, with the number of the folder as `n`."""
    for n, place in enumerate(places):
        (folder / place).mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist([{"le": n, "n": n, **more}])
        (folder / place / f"rows{FORMATS[kind].suffixes[0]}").write_bytes(entries()[kind].write(table, 0))
    return folder


def payloads(stream: sd.Stream[Any]) -> list[Any]:
    return [row.payload for row in sorted(stream.run().cht(), key=lambda row: row.le)]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_folder_gives_a_column_of_texts(tmp_path: Path, kind: str) -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    stream = from_files(written(tmp_path, kind, "m=01/other/p%3D=a%2Fb", f"m={null}/p%3D=ä", "m=/p%3D=+", m="its own"))
    assert payloads(stream) == [
        {"n": 0, "m": "01", "p=": "a/b"},
        {"n": 1, "m": None, "p=": "ä"},
        {"n": 2, "m": "", "p=": "+"},
    ]
    assert payloads(stream.where(lambda e: e.m == "01").select(lambda e: e.n)) == [0]
    assert payloads(stream.select(lambda e: e.m)) == ["01", None, ""]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_declared_type_is_what_the_text_says(tmp_path: Path, kind: str) -> None:
    stream = from_files(written(tmp_path, kind, "day=2024-02-29/place=07"), Reading)
    assert payloads(stream) == [Reading(0, date(2024, 2, 29), 7)]
    written(tmp_path, kind, "day=2024-02-29/place=7a")
    with pytest.raises(SchemaError, match=r"place=7a.*column 'place': '7a' is no int"):
        from_files(tmp_path, Reading)


def test_names_above_the_folder_and_of_single_files_say_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "year=2024", "csv", "month=01", ".")
    assert payloads(from_csv(folder / "month=01")) == [{"n": 0}]
    assert payloads(from_csv(folder / "month=01" / "rows.csv")) == [{"n": 0}]
    with pytest.raises(SchemaError, match=r"year=2024/rows\.csv is in no folder month=\.\.\., as others are"):
        from_csv(folder)


def test_without_such_folders_no_annotation_is_read(tmp_path: Path) -> None:
    @dataclass
    class Odd:
        n: Unknown  # type: ignore[name-defined]  # noqa: F821

    assert [row.n for row in payloads(from_files(written(tmp_path, "parquet", "."), Odd))] == [0]
    with pytest.raises(SchemaError, match="the types of the fields of Odd cannot be read"):
        from_files(written(tmp_path / "more", "parquet", "m=1"), Odd)


def test_times_may_be_in_names(tmp_path: Path) -> None:
    stream = from_csv(written(tmp_path, "csv", "day=2024-02-29"), start="day", unit="s")
    assert [row.le for row in stream.run().cht()] == [1709164800]
