"""A stream of the command line on Spark takes each file once, as on the local engine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamdsl.cli import main
from streamdsl.errors import CheckpointError
from streamdsl.io.locks import Lock
from tests.unit.jobs.files import expected, found, in_folder, write_files

pytestmark = [pytest.mark.spark]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from in_folder(tmp_path, monkeypatch)


def run(path: str, *options: str, checkpoint: str = "state") -> int:
    command = ["run", "rides:by_road", "--engine", "spark", "--input", f"cars={path}", "--output", "out"]
    return main([*command, "--checkpoint", checkpoint, "--shards", "1", *options])


def test_a_file_that_cannot_be_read_is_an_error(streaming: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "parquet", range(1))
    (folder / "in" / "1.parquet").write_bytes(b"PAR1 this is none, and not even long PAR1")
    os.utime(folder / "in" / "1.parquet", (10**10, 10**10))
    assert run("in") == 2
    said = capsys.readouterr().err
    assert "the file in/1.parquet cannot be taken: " in said
    assert "\tat " not in said


def test_a_bad_file_never_gets_to_spark(streaming: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "csv")
    bad = folder / "in" / "bad.csv"
    bad.write_text("le,re,road,speed\n7,9,A,1\nnever,9,A,2\n")
    assert run("in") == 2
    assert "the file in/bad.csv cannot be taken: " in capsys.readouterr().err
    assert run("in", "--bad-files", "skip") == 0
    assert "passed: the file in/bad.csv cannot be taken: " in capsys.readouterr().err
    assert found(folder / "out") == expected()
    bad.unlink()
    assert run("in") == 0
    assert found(folder / "out") == expected()


def test_a_file_is_taken_once_whichever_way_leads_to_it(streaming: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "csv", range(3))
    (folder / "in" / "2.csv").rename(folder / "in" / "a [2].csv")
    assert run("in") == 0
    before = found(folder / "out")
    os.rename(folder / "in", folder / "elsewhere")
    (folder / "link").symlink_to("elsewhere")
    os.link(folder / "elsewhere" / "0.csv", folder / "elsewhere" / "7.csv")
    (folder / "elsewhere" / "1.csv").rename(folder / "elsewhere" / "8.csv")
    write_files(folder / "more", "csv", range(3, 4))
    os.utime(folder / "more" / "3.csv", (10**8, 10**8))
    shutil.move(folder / "more" / "3.csv", folder / "elsewhere" / "3.csv")
    assert run("link/../elsewhere/") == 0
    assert found(folder / "out") == expected() != before
    (folder / "elsewhere" / "3.csv").write_text("le,road,speed\n")
    assert run("link") == 2
    assert "the file link/3.csv has changed since it was taken" in capsys.readouterr().err
    (folder / "elsewhere" / "3.csv").unlink()
    shutil.copytree(folder / "state", folder / "there", symlinks=True)
    assert run("link", checkpoint="there") == 2
    assert f"the checkpoint there was at {folder / 'state'}, and Spark knows files" in capsys.readouterr().err
    with Lock(folder / "state" / "lock", "it", CheckpointError):
        assert run("link") == 2
    assert "the checkpoint state is in use by process " in capsys.readouterr().err
    shutil.rmtree(folder / "state" / "arrivals")
    assert run("link") == 2
    assert "of an earlier version, which let Spark look for files\nHint: begin" in capsys.readouterr().err
    assert found(folder / "out") == expected()
