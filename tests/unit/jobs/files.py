"""A query in a module of its own, and the files that it reads."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.io.formats import FORMATS
from streamdsl.temporal import CHT
from tests.formats import entries

MODULE = """
import streamdsl as sd

cars = sd.source("cars", progress=sd.Progress.slack(20))
by_road = cars.group_by("road").tumbling_window(10).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.speed))
tolls = sd.source("tolls").to_points()
paid = cars.semi_join(tolls, on="road")
by_area = cars.group_by("area").tumbling_window(10).aggregate(n=sd.count())
counted = sd.source("cars").group_by("road").tumbling_window(10).aggregate(n=sd.count())
"""
N = 4


def cars() -> list[dict[str, Any]]:
    rng = random.Random(3)
    times = [n // 5 + rng.choice((0, 0, -15)) for n in range(200)]
    return [{"le": le, "road": f"r{rng.randint(0, 4)}", "speed": rng.randint(0, 90)} for le in times]


def write_files(folder: Path, kind: str, numbers: range = range(N)) -> Path:
    """Write rows to files of a kind, each later than the one before, and return their folder."""
    folder.mkdir(exist_ok=True)
    rows = cars()
    for n in numbers:
        path = folder / f"{n}{FORMATS[kind].suffixes[0]}"
        write_file(path, kind, rows[n * 50 : (n + 1) * 50])
        os.utime(path, (10**9 + n, 10**9 + n))
    return folder


def write_named(folder: Path, start: str) -> None:
    """Write the rows of `write_files` to Parquet files whose LEs are in a column of another name."""
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pylist(cars()).rename_columns({"le": start})
    for n in range(N):
        pq.write_table(table.slice(n * 50, 50), folder / f"{n}.parquet")
        os.utime(folder / f"{n}.parquet", (10**9 + n, 10**9 + n))


AREAS = {"07": "07", "5% a+b ä": "5% a+b ä", "7%2F8": "7/8", "__HIVE_DEFAULT_PARTITION__": None}
"""The area of each file's rows, by what stands for it in the name of a folder."""


def write_partitions(folder: Path, kind: str, numbers: range = range(N)) -> None:
    """Write the files of `write_files` into folders that say their areas."""
    write_files(folder, kind, numbers)
    for n in numbers:
        place = folder / f"area={list(AREAS)[n]}" / "more"
        place.mkdir(parents=True, exist_ok=True)
        file = folder / f"{n}{FORMATS[kind].suffixes[0]}"
        file.rename(place / file.name)


def expected_by_area() -> list[tuple[Any, ...]]:
    source = sd.source("cars", unit="tick")
    query = source.group_by("area").tumbling_window(10).aggregate(n=sd.count())
    areas = list(AREAS.values())
    events = [sd.point(n, row["le"], {"area": areas[n // 50]}) for n, row in enumerate(cars())]
    return sorted(((le, re, *row.values()) for le, re, row in query.run({"cars": events}, engine="reference")), key=_nulls_first)


def write_file(path: Path, kind: str, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(entries()[kind].write(pa.Table.from_pylist(rows), 0))


def expected() -> list[tuple[Any, ...]]:
    source = sd.source("cars", unit="tick")
    query = source.group_by("road").tumbling_window(10).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.speed))
    events = [sd.point(n, row["le"], {"road": row["road"], "speed": row["speed"]}) for n, row in enumerate(cars())]
    return sorted((le, re, *payload.values()) for le, re, payload in query.run({"cars": events}, engine="reference"))


def history() -> CHT[Any]:
    return CHT.from_rows([(le, re, {"road": road, "n": n, "mean": mean}) for le, re, road, n, mean in expected()])


def found(folder: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(folder)
    rows = table.drop_columns([n for n in ("id",) if n in table.column_names]).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=_nulls_first)


def _nulls_first(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in row]


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with a module `rides`, in which the command is run."""
    (folder / "rides.py").write_text(MODULE)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("rides", None)
