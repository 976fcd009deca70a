"""`streamdsl run --source --sink`: jobs from sources to sinks, by their addresses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamdsl.cli import main
from tests.unit.jobs.files import cars, expected, found, in_folder, write_files

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `rides`, in which the command is run, and a file of rows."""
    (tmp_path / "cars.jsonl").write_text("".join(json.dumps(row) + "\n" for row in cars()))
    yield from in_folder(tmp_path, monkeypatch)


def run(*options: str) -> int:
    return main(["run", "rides:by_road", *options])


def events(text: str) -> Any:
    """Return the history that lines of physical events mean."""
    rows = [row for line in text.splitlines() if (row := json.loads(line))["kind"] != "cti"]
    ends = {
        (row["id"], row["le"]): row["re_new"] if row["kind"] == "retract" else row["re"] for row in rows if row["kind"] != "cti"
    }
    fields = {(row["id"], row["le"]): (row["road"], row["n"], row["mean"]) for row in rows}
    return sorted((le, ends[id, le], *fields[id, le]) for id, le in ends if ends[id, le] != le)


@pytest.mark.parametrize("source", ["cars.jsonl", "cars=cars.jsonl", "cars=jsonl://cars.jsonl?at_once=7"])
def test_a_job_reads_a_source_and_writes_a_sink(folder: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--source", source, "--sink", "out.jsonl") == 0
    assert events((folder / "out.jsonl").read_text()) == expected()
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("micro-batch 0: 200 rows in")
    assert told[-1].startswith("ended: 1 micro-batch, 200 rows in, ")


def test_a_job_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--source", "cars.jsonl", "--sink", "stdout://") == 0
    assert events(capsys.readouterr().out) == expected()


def test_with_once_it_goes_on_where_it_stopped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--source", "cars=here", "--sink", "parquet://out?every=50", "--checkpoint", "state", "--once", "--every", "60")
    for numbers in (range(2), range(4), range(4)):
        write_files(folder / "here", "csv", numbers)
        assert run(*asked) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines() if "caught up" in line] == [
        "caught up: 1 micro-batch",
        "caught up: 1 micro-batch",
        "caught up: 0 micro-batches",
    ]
    assert found(folder / "out") == expected()
    assert run(*asked[:-3]) == 0
    assert "ended: 1" in capsys.readouterr().err
    assert run(*asked) == 0
    assert "ended: 0" in capsys.readouterr().err


def test_sinks_get_rows_as_they_say(folder: Path) -> None:
    asked = ("--sink", "speculative=live.jsonl", "--sink", "final=parquet://archive", "--checkpoint", "state", "--once")
    assert run("--source", "cars.jsonl", *asked) == 0
    live = events((folder / "live.jsonl").read_text())
    assert live == expected()
    closed = max(row["le"] for row in cars()) - 20
    assert found(folder / "archive") == [row for row in expected() if row[1] <= closed]


def test_what_is_refused_and_what_is_late_goes_beside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "late = sd.source('cars', progress=sd.Progress.slack(5), on_violation='drop').where(lambda e: e.speed > 80)\n"
    (folder / "rides.py").write_text((folder / "rides.py").read_text() + source)
    with (folder / "cars.jsonl").open("a") as file:
        file.write('no JSON\n{"le": 1, "road": "r1", "speed": 3}\n')
    beside = ("--dead-letters", "letters.jsonl", "--late", "late.jsonl")
    assert main(["run", "rides:late", "--source", "cars.jsonl", "--sink", "out.jsonl", *beside]) == 0
    assert "1 REJECTED" in capsys.readouterr().err.splitlines()[-1]
    letters, late = ([json.loads(line) for line in (folder / name).read_text().splitlines()] for name in beside[1::2])
    assert [each["record"] for each in letters] == ["no JSON"]
    assert json.loads(late[-1]["record"])["le"] == 1
    assert main(["run", "rides:late", "--source", "cars.jsonl", "--sink", "other.jsonl"]) == 2
    assert "line 201 of cars.jsonl" in capsys.readouterr().err


def test_a_job_runs_in_workers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cloudpickle")
    query = (
        "most = sd.source('cars').group_by('road').session_window(4).aggregate(n=sd.count(), mean=sd.max(lambda e: e.speed))\n"
    )
    (folder / "rides.py").write_text((folder / "rides.py").read_text() + query)
    (folder / "streamdsl.toml").write_text('[jobs.most]\nquery = "rides:most"\nsource = "cars.jsonl"\nworkers = 2\n')
    assert main(["run", "rides:most", "--source", "cars.jsonl", "--sink", "alone.jsonl"]) == 0
    assert main(["run", "--job", "most", "--sink", "out.jsonl", "--checkpoint", "state"]) == 0
    assert events((folder / "out.jsonl").read_text()) == events((folder / "alone.jsonl").read_text())
    (state,) = (folder / "state" / "served" / "state").iterdir()
    assert state.read_bytes().startswith(b"streamdsl checkpoint of shards")
    capsys.readouterr()
    assert main(["run", "rides:most", "--source", "cars.jsonl", "--sink", "out.jsonl", "--workers", "0"]) == 2
    assert "workers is a number of processes, from 1 to 256, not 0" in capsys.readouterr().err
    assert main(["run", "rides:most", "--input", "cars.jsonl", "--output", "out.csv", "--workers", "2"]) == 2
    assert "--input is for jobs of files" in capsys.readouterr().err


def test_figures_are_served_while_it_runs(folder: Path) -> None:
    pytest.importorskip("prometheus_client")
    command = [sys.executable, "-m", "streamdsl", "run", "rides:by_road", "--source", "cars.jsonl", "--follow"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    asked = [*command, "--sink", "stdout://", "--metrics", address]
    job = subprocess.Popen(
        asked, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    until, text = time.monotonic() + 60, ""
    while "streamdsl_events_in_total" not in text and time.monotonic() < until:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=60)
    assert "streamdsl_events_in_total" in text


def test_the_columns_of_times_have_any_names(folder: Path) -> None:
    (folder / "at.jsonl").write_text("".join(json.dumps({"at": row.pop("le"), **row}) + "\n" for row in cars()))
    assert run("--source", "at.jsonl", "--start", "at", "--sink", "out.jsonl") == 0
    assert events((folder / "out.jsonl").read_text()) == expected()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--source", "cars.jsonl"], ["no sink is given"]),
        (["--sink", "out.jsonl"], ["no source is given; the sources are: cars"]),
        (
            ["--source", "trips=cars.jsonl", "--sink", "out.jsonl"],
            ["there is no source 'trips'; the sources of this query are"],
        ),
        (
            ["--source", "cars=a.jsonl", "--source", "cars=b.jsonl", "--sink", "out.jsonl"],
            ["several addresses are given"],
        ),
        (
            ["--source", "cars.txt", "--sink", "mongo://me:secret@here", "--engine", "spark", "--once"],
            [
                "3 mistakes",
                "no source is known for 'cars.txt'",
                "no sink is known for 'mongo://***@here'",
                "--engine is for jobs of files",
            ],
        ),
        (
            ["--source", "cars.jsonl", "--sink", "a.jsonl", "--sink", "final=b.jsonl"],
            ["some sinks say how their rows"],
        ),
        (["--once"], ["2 mistakes", "no source is given", "no sink is given"]),
        ([], ["nothing says where the answer goes"]),
    ],
)
def test_what_is_wrong_is_said_at_once(
    folder: Path, asked: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*asked) == 2
    error = capsys.readouterr().err
    assert [each for each in said if each not in error] == []
    assert "secret" not in error
    assert not list(folder.glob("*out*"))


def test_jobs_of_files_and_of_sources_have_checkpoints_of_their_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "jsonl")
    served = ("--source", "cars=in", "--sink", "served.jsonl", "--checkpoint")
    of_files = ("--input", "cars=in", "--output", "out", "--checkpoint")
    assert [run(*served, "a"), run(*of_files, "b"), run(*served, "b"), run(*of_files, "a")] == [0, 0, 2, 2]
    error = capsys.readouterr().err
    assert "b is that of a job of the command line" in error
    assert "a is that of a job from sources to sinks" in error


def test_a_signal_ends_a_job_that_follows(folder: Path) -> None:
    command = [sys.executable, "-m", "streamdsl", "run", "rides:by_road", "--source", "cars.jsonl", "--follow"]
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    asked = [*command, "--sink", "out.jsonl", "--checkpoint", "state", "--every", "50ms"]
    job = subprocess.Popen(asked, cwd=folder, env=settings, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (folder / "out.jsonl").exists() and time.monotonic() < until:
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    assert "stopped: 1 micro-batch, 200 rows in" in job.communicate(timeout=60)[1]
    assert job.returncode == 0
    assert events((folder / "out.jsonl").read_text()) == expected()
