"""`streamdsl run --job`: options by name, in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamdsl.cli import main
from tests.unit.jobs.files import cars, expected, found, in_folder, write_files
from tests.unit.jobs.test_served import events

JOB = """
query = "rides:by_road"
source.cars = "${CARS_FILE}"
sink = ["out.jsonl", "parquet://out"]
follow = true
once = false
every = 60
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `rides`, in which the command is run, and a file of rows."""
    (tmp_path / "cars.jsonl").write_text("".join(json.dumps(row) + "\n" for row in cars()))
    monkeypatch.setenv("CARS_FILE", "cars.jsonl")
    yield from in_folder(tmp_path, monkeypatch)


def write_job(folder: Path, job: str, own_file: bool = False) -> None:
    file, table = ("streamdsl.toml", "jobs") if own_file else ("pyproject.toml", "tool.streamdsl.jobs")
    (folder / file).write_text(f"[{table}.roads]\n{job}")


@pytest.mark.parametrize("own_file", [False, True])
def test_a_job_has_its_options_from_a_file(folder: Path, own_file: bool, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(folder, JOB.replace("follow = true", "follow = false"), own_file)
    assert main(["run", "--job", "roads"]) == 0
    assert "ended: " in capsys.readouterr().err
    assert found(folder / "out") == events((folder / "out.jsonl").read_text()) == expected()


def test_a_job_of_files_too(folder: Path) -> None:
    write_files(folder / "in", "csv")
    write_job(folder, 'query = "rides:by_road"\ninput = ["cars=in"]\noutput = "out"\ncheckpoint = "state"\nbad-files = "skip"\n')
    assert main(["run", "--job", "roads"]) == 0
    assert found(folder / "out") == expected()


def test_the_command_line_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(folder, JOB.replace("${CARS_FILE}", "no/such.jsonl"))
    asked = ["--source", "cars=cars.jsonl", "--sink", "stdout://", "--every", "100", "--once"]
    assert main(["run", "--job", "roads", *asked]) == 0
    told = capsys.readouterr()
    assert events(told.out)[0] == expected()[0]
    assert "caught up: 1 micro-batch, 200 rows in" in told.err
    assert not (folder / "out.jsonl").exists()
    write_job(folder, JOB.replace('["out.jsonl", "parquet://out"]', '{speculative = "a.jsonl", final = "b.jsonl"}'))
    assert main(["run", "--job", "roads", "rides:counted", "--sink", "final=c.jsonl", "--once"]) == 0
    assert sorted(path.name for path in folder.glob("?.jsonl")) == ["a.jsonl", "c.jsonl"]
    assert "mean" not in (folder / "a.jsonl").read_text()


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("qery = 3", "the job 'roads' in pyproject.toml has what no option is called, 'qery'; there are: query, start, end"),
        ("follow = 3", "has follow = 3, which is true or false"),
        ("sink = 3.5", "has sink = 3.5, which is a text"),
        ('every = ["1s"]', "has every = ['1s'], which is a text"),
        ('sink = "kafka://${KAFKA_PLACE}/a"', "has ${KAFKA_PLACE}, and there is no such environment variable"),
        ("query =", "pyproject.toml is no TOML"),
        ('sink = "out.jsonl"', "no query is named"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(folder: Path, job: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(folder, job)
    assert main(["run", "--job", "roads"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Hint: " in error


def test_a_job_that_is_not_there_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--job", "roads"]) == 2
    assert "there are no jobs in " in capsys.readouterr().err
    write_job(folder, JOB)
    assert main(["run", "--job", "rodes"]) == 2
    assert "pyproject.toml has no job 'rodes'; its jobs are: roads" in capsys.readouterr().err
    (folder / "streamdsl.toml").write_text("[job.roads]")
    assert main(["run", "--job", "roads"]) == 2
    assert "streamdsl.toml has what is not known, 'job'; it has jobs" in capsys.readouterr().err


FAILING = """
import streamdsl as sd

def failing(address, **settings):
    raise ValueError(f"cannot reach {address}")
"""


@pytest.mark.parametrize(
    ("job", "status"),
    [
        ('source.cars = "mongo://${PASSWORD}"', 2),
        ('source.cars = "jsonl://${PASSWORD}"', 2),
        ('source.cars = "cars.jsonl"\nemit = "${PASSWORD}"', "2"),
        ('source.cars = "failing://${PASSWORD}"', "1"),
    ],
)
def test_secrets_are_never_printed(
    folder: Path, job: str, status: int | str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "failing.py").write_text(FAILING)
    info = folder / "failing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[streamdsl.sources]\nfailing = failing:failing\n")
    monkeypatch.setenv("PASSWORD", "open sesame")
    write_job(folder, f'query = "rides:by_road"\nsink = "stdout://"\n{job}\n')
    if isinstance(status, str):
        with pytest.raises(SystemExit, match=status):
            main(["run", "--job", "roads"])
    else:
        assert main(["run", "--job", "roads"]) == status
    error = capsys.readouterr().err
    assert "${PASSWORD}" in error
    assert "sesame" not in error
