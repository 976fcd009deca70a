"""`streamdsl run` on the local engine: once, and as a stream that is stopped and run again."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.io.formats import FORMATS
from streamdsl.temporal import CHT, Cti, Insert, Retract
from tests.formats import entries
from tests.laws.power import cut_off_after
from tests.unit.jobs.files import (
    N,
    expected,
    expected_by_area,
    found,
    history,
    in_folder,
    write_files,
    write_named,
    write_partitions,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `rides`, in which the command is run."""
    yield from in_folder(tmp_path, monkeypatch)


def run(*options: str) -> int:
    return main(["run", "rides:by_road", *options])


@pytest.mark.parametrize("kind", FORMATS)
def test_a_query_runs_over_files(folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", kind)
    assert run("--input", "cars=in", "--output", "out") == 0
    assert found(folder / "out") == expected()
    assert re.fullmatch(rf"{len(expected())} rows to out in \d+\.\d s\n", capsys.readouterr().err)


@pytest.mark.parametrize("kind", FORMATS)
def test_its_answer_goes_to_a_file(folder: Path, kind: str) -> None:
    write_files(folder / "in", "parquet")
    path = folder / "results" / f"out{FORMATS[kind].suffixes[0]}"
    assert run("--input", "cars=in/", "--output", str(path.relative_to(folder))) == 0
    rows = entries()[kind].read(path).to_pylist()
    assert sorted(tuple(row[name] for name in ("le", "re", "road", "n", "mean")) for row in rows) == expected()
    assert entries()[kind].source(path, end="re").run().cht() == history()


@pytest.mark.parametrize("kind", FORMATS)
def test_its_answer_goes_to_a_folder(folder: Path, kind: str) -> None:
    write_files(folder / "in", kind)
    assert run("--input", "cars=in", "--output", "out", "--format", kind) == 0
    assert sd.sources.from_files(folder / "out", end="re").run().cht() == history()


@pytest.mark.parametrize("asked", [["--start", "at"], ["--start", "cars=at"], ["--start", "le", "--start", "cars=at"]])
@pytest.mark.parametrize("state", [[], ["--checkpoint", "state"]])
def test_the_columns_of_the_times_have_any_names(folder: Path, asked: list[str], state: list[str]) -> None:
    write_named(folder / "in", "at")
    assert run("--input", "cars=in", *asked, *state, "--output", "out") == 0
    assert found(folder / "out") == expected()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--start", "at"], "no column 'at'"),
        (["--start", "le", "--end", "le"], "both start and end"),
        (["--start", "le", "--start", "le"], "--start le names no column of the sources, or a second one"),
        (["--end", "cars="], "--end cars= names no column of 'cars', or a second one"),
    ],
)
def test_columns_that_cannot_be_are_refused(
    folder: Path, asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(folder / "in", "parquet")
    assert run("--input", "cars=in", *asked, "--output", "out") == 2
    assert said in capsys.readouterr().err


def test_a_stream_reads_files_of_every_format(folder: Path) -> None:
    for kind in FORMATS:
        write_files(folder / kind, kind)
        options = ("--input", f"cars={kind}", "--output", f"out of {kind}", "--checkpoint", f"state of {kind}")
        assert run(*options) == 0
        assert found(folder / f"out of {kind}") == expected()


def test_a_format_that_spark_lacks_is_named_before_anything_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "parquet")
    assert run("--input", "cars=in", "--output", "out.arrow", "--engine", "spark") == 2
    assert "Spark reads and writes no files of the format arrow" in capsys.readouterr().err


def test_a_stream_goes_on_with_the_files_that_are_new(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--input", "cars=in", "--output", "out", "--checkpoint", "state", "--every", "20")
    write_files(folder / "in", "parquet", range(2))
    assert run(*options) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["micro-batch 0", "micro-batch 1"]
    assert re.search(r": 50 rows in, \d+ out, CTI -?\d+, state [\d.]+ kB, \d+\.\d\d s$", lines[1])
    write_files(folder / "in", "parquet")
    assert run(*options) == 0
    assert run(*options) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == ["micro-batch 2", "micro-batch 3"]
    assert found(folder / "out") == expected()


def test_wherever_a_stream_is_cut_off_it_goes_on(folder: Path) -> None:
    write_files(folder / "in", "jsonl", range(3))
    options = ("--input", "cars=in", "--output", "out", "--checkpoint", "state", "--emit", "final")
    tries = 0
    for changes in range(200):
        with cut_off_after(changes % 47) as cut_off:
            assert run(*options) == 0
        tries += 1
        if not cut_off[0]:
            break
    write_files(folder / "in", "jsonl")
    assert run(*options) == 0
    assert 10 < tries < 200
    assert found(folder / "out") == [row for row in expected() if row[1] <= closed(folder)]


def closed(folder: Path) -> int:
    """Return the CTI that a stream with a slack of 20 has reached."""
    rows = [json.loads(line) for n in range(N) for line in (folder / "in" / f"{n}.jsonl").read_text().splitlines()]
    return int(max(row["le"] for row in rows)) - 20


def test_a_stream_of_events(folder: Path) -> None:
    write_files(folder / "in", "csv")
    assert run("--input", "cars=in", "--output", "out", "--checkpoint", "state", "--format", "events") == 0
    rows = pq.read_table(folder / "out").to_pylist()
    events: list[Any] = []
    for row in rows:
        payload = {name: row[name] for name in ("road", "n", "mean")}
        if row["kind"] == "cti":
            events.append(Cti(row["le"]))
        elif row["kind"] == "insert":
            events.append(Insert(row["id"], row["le"], row["re"], payload))
        else:
            events.append(Retract(row["id"], row["le"], row["re"], row["re_new"], payload))
    assert sorted((e.le, e.re, *e.payload.values()) for e in CHT.from_events(events)) == expected()


REFUSED = {
    ("rides:slow", "--input", "cars=in"): "rides has no 'slow'; its queries are: cars, by_road, tolls, paid, by_area, counted",
    ("ride:by_road", "--input", "cars=in"): "there is no module 'ride'\nHint: name it as an import does",
    (
        "rides:paid",
        "--input",
        "cars=in",
    ): "the source 'tolls' has no input; the sources are: cars, tolls\nHint: --input tolls=",
    ("rides:by_road", "--input", "car=in"): "there is no source 'car'; the sources of this query are: cars",
    ("rides:by_road", "--input", "cars=in", "--input", "cars=empty"): "the source 'cars' has several inputs\nHint: put",
    ("rides:by_road", "--input", "in"): "'in' does not say which source reads what",
    ("rides:by_road", "--input", "cars=inn"): "the input of 'cars' is not there: inn; in . there are: empty, in, rides.py",
    (
        "rides:by_road",
        "--input",
        "cars=empty",
    ): "is not a file, or a folder of files, of a known format: empty\nHint: files",
    ("rides:by_road", "--input", "cars=in", "--emit", "final"): "--emit, --every, --trigger and --bad-files are for streams",
    ("rides:by_road", "--input", "cars=in", "--format", "table"): f"one of {', '.join(FORMATS)}, not 'table'",
    (
        "rides:by_road",
        "--input",
        "cars=in",
        "--checkpoint",
        "c",
        "--format",
        "csv",
    ): "written as table or events, not as 'csv'",
    ("rides:by_road", "--input", "cars=in", "--checkpoint", "c", "--trigger", "often"): "'often' is no trigger",
    ("rides:by_road", "--input", "cars=in", "--checkpoint", "c", "--until", "9"): "a stream has no end",
    ("rides:by_road", "--input", "cars=in/0.csv", "--checkpoint", "c"): "the inputs of a stream are folders",
}


@pytest.mark.parametrize("options", REFUSED, ids=REFUSED.values())
def test_what_cannot_be_run_is_said(folder: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "csv", range(1))
    (folder / "empty").mkdir()
    assert main(["run", *options, "--output", "out"]) == 2
    assert REFUSED[options] in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_an_answer_is_not_written_under_the_name_of_another_format(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "csv", range(1))
    named = ("--input", "cars=in", "--output", "out.xlsx")
    assert run(*named) == 2
    said = capsys.readouterr().err
    assert "no format is written to 'out.xlsx': of '.xlsx' none is known\nHint: --format parquet says which" in said
    assert not (folder / "out.xlsx").exists()
    assert run(*named, "--format", "parquet") == 0


def test_what_is_there_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "csv", range(1))
    assert run("--input", "cars=in", "--output", "rides.py", "--format", "csv") == 2
    assert "the output rides.py exists already" in capsys.readouterr().err


def test_state_that_is_lost_is_missed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--input", "cars=in", "--output", "out", "--checkpoint", "state")
    write_files(folder / "in", "csv", range(2))
    assert run(*options) == 0
    assert run(*options, "--emit", "final") == 0
    write_files(folder / "in", "csv", range(3))
    assert run(*options, "--emit", "final") == 2
    assert "of a job that emits 'speculative', not 'final'" in capsys.readouterr().err
    for path in (folder / "state" / "local" / "state").iterdir():
        path.unlink()
    assert run(*options) == 2
    assert "the checkpoint has no state of micro-batch" in capsys.readouterr().err


def test_a_stream_without_pyarrow_says_what_it_needs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(folder / "in", "csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("--input", "cars=in", "--output", "out", "--checkpoint", "state") == 2
    assert "need pyarrow, which is not installed\nHint: pip install 'streamdsl[arrow]'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", FORMATS)
def test_folders_of_partitions_give_columns(folder: Path, kind: str) -> None:
    command = ["run", "rides:by_area", "--input", "cars=in"]
    write_partitions(folder / "in", kind)
    assert main([*command, "--output", "out"]) == 0
    assert found(folder / "out") == expected_by_area()
    assert main([*command, "--output", "followed", "--checkpoint", "state"]) == 0
    assert found(folder / "followed") == expected_by_area()


def test_all_that_is_wrong_with_a_job_is_said_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out.csv").touch()
    wrong = ("--input", "care=in", "--input", "cars", "--input", "cars=away", "--output", "out.csv", "--every", "20")
    assert run(*wrong) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "5 mistakes:\n- 'cars' does not say which source reads what\n  Hint: --input name=path\n- there is no source"
    )
    for each in (
        "'care'; the sources of this query are: cars",
        "is not there: away",
        "are for streams",
        "out.csv exists already",
    ):
        assert said.count(each) == 1
    # What can be seen without the query is said without it too.
    assert main(["run", "rides:by_raod", *wrong[-4:], "--trigger", "soon"]) == 2
    said = capsys.readouterr().err
    assert "4 mistakes:\n- rides has no 'by_raod'; its queries are: " in said
    assert "'soon' is no trigger" in said
    assert run("--input", "cars=away", "--output", "out") == 2
    assert capsys.readouterr().err.startswith("the input of 'cars' is not there")


def test_the_lines_of_a_stream_over_dates_have_ctis_as_dates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in").mkdir()
    rows = [{"le": f"2026-03-01T06:00:{n:02}", "road": "r", "speed": n} for n in range(0, 60, 10)]
    (folder / "in" / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "dated.py").write_text(
        "import streamdsl as sd\nquery = sd.source('cars', unit='s', progress=sd.Progress.slack('10s'))"
        ".tumbling_window('20s').aggregate(n=sd.count())\n"
    )
    assert main(["run", "dated:query", "--input", "cars=in", "--output", "out", "--checkpoint", "state"]) == 0
    sys.modules.pop("dated", None)
    assert re.search(r"out, CTI 2026-03-01T06:00:40Z, state", capsys.readouterr().err)
