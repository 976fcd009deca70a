"""`streamdsl run` on Spark gives what it gives on the local engine, once and as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.io.formats import FORMATS
from tests.unit.jobs.files import (
    expected,
    expected_by_area,
    found,
    history,
    in_folder,
    write_files,
    write_named,
    write_partitions,
)

pytestmark = [pytest.mark.spark]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from in_folder(tmp_path, monkeypatch)


def run(*options: str) -> int:
    return main(["run", "rides:by_road", "--engine", "spark", *options])


@pytest.mark.parametrize("kind", [name for name, each in FORMATS.items() if each.spark is not None])
def test_a_query_runs_over_files(streaming: Any, folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", kind)
    assert run("--input", "cars=in", "--output", "out", "--format", kind) == 0
    assert sd.sources.from_files(folder / "out", end="re").run().cht() == history()
    assert capsys.readouterr().err.startswith(f"{len(expected())} rows to out in ")
    assert run("--input", "cars=in", "--output", "out") == 2
    assert "the output out exists already" in capsys.readouterr().err


def test_a_stream_goes_on_with_the_files_that_are_new(streaming: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--input", "cars=in", "--output", "out", "--checkpoint", "state", "--every", "20", "--shards", "2")
    write_files(folder / "in", "jsonl", range(3))
    assert run(*options) == 0
    write_files(folder / "in", "jsonl", range(3, 4))
    assert run(*options) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("micro-batch")]
    assert [re.match(r"micro-batch (\d): (\d+) rows in, \d+ out, CTI \d+, ", line)[1] for line in lines] == ["0", "1"]  # type: ignore[index]
    assert found(folder / "out") == expected()
    assert main(["run", "rides:by_road", *options[:-2]]) == 2
    assert "is that of a stream on Spark\nHint: go on with --engine spark" in capsys.readouterr().err


def test_folders_of_partitions_give_columns(streaming: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "rides:by_area", "--engine", "spark", "--input", "cars=in"]
    stream = [*command, "--output", "followed", "--checkpoint", "state", "--shards", "1"]
    write_partitions(folder / "in", "parquet", range(2))
    assert main(stream) == 0
    write_partitions(folder / "in", "parquet", range(2, 4))
    assert main(stream) == 0
    assert main([*command, "--output", "out"]) == 0
    assert found(folder / "out") == found(folder / "followed") == expected_by_area()
    write_files(folder / "in", "parquet", range(1))
    assert main(stream) == 2
    assert "in/0.parquet is in no folder area=..., as others are" in capsys.readouterr().err


@pytest.mark.parametrize("state", [[], ["--checkpoint", "state", "--shards", "1"]])
def test_the_columns_of_the_times_have_any_names(streaming: Any, folder: Path, state: list[str]) -> None:
    write_named(folder / "in", "at")
    command = ["run", "rides:by_road", "--engine", "spark", "--input", "cars=in", "--start", "cars=at", "--output", "out"]
    assert main([*command, *state]) == 0
    assert found(folder / "out") == expected()
