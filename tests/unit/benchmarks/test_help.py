"""Each benchmark says what it is, and runs nothing, when it is asked for help; and what a study tells goes into a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.command import Study

FOLDER = Path(__file__).parents[3] / "benchmarks"
COMMANDS = sorted(
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__main__")
    for path in FOLDER.rglob("*.py")
    if '\nif __name__ == "__main__":' in path.read_text()
)
ALL = """
import contextlib, io, json, runpy, sys
for name in sys.argv[1:]:
    said, status = io.StringIO(), None
    sys.argv[1:] = ["--help"]
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            status = end.code
    print(json.dumps([name, status, said.getvalue()]), flush=True)
"""


def test_every_benchmark_answers_help_and_runs_nothing() -> None:
    command = [sys.executable, "-W", "ignore::RuntimeWarning:runpy", "-c", ALL, *COMMANDS]  # some import others
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER.parent)
    assert (done.returncode, done.stderr) == (0, "")
    answers = {name: (status, said) for name, status, said in map(json.loads, done.stdout.splitlines())}
    assert list(answers) == COMMANDS
    for name, (status, said) in answers.items():
        assert status == 0, name
        assert said.startswith(f"usage: python -m {name} "), name
        assert len(said.partition("\n\n")[2]) > 40, f"{name} says what it is"


def asked(*words: str) -> Study:
    return Study("What it costs.\n\nIt is counted.", ["q1", "q11", "by a band"], list(words), rounds=3, quick=False)


def test_words_choose_parts_and_a_whole_title_that_part_alone() -> None:
    assert asked().parts == ["q1", "q11", "by a band"]
    assert asked("q1").parts == ["q1"]
    assert asked("q").parts == ["q1", "q11"]
    assert asked("band", "q11").parts == ["q11", "by a band"]


def test_a_word_that_no_title_has_is_an_error_that_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        asked("q2")
    assert "no title has q2; there are: q1, q11, by a band" in capsys.readouterr().err


def test_options_are_numbers_or_switches() -> None:
    assert (asked().rounds, asked().quick) == (3, False)
    assert (asked("--rounds", "5", "--quick").rounds, asked("--quick").quick) == (5, True)
    with pytest.raises(AttributeError):
        _ = asked().sizes


def test_rows_are_printed_and_go_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = asked("--json", str(tmp_path / "found.json"))
    study.row("q1", "  q1   1.5", {"ns": 1.5})
    study.row("q11", "  q11  2.5", {"ns": 2.5})
    assert capsys.readouterr().out == "  q1   1.5\n  q11  2.5\n"
    told: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    assert told["rows"] == [{"title": "q1", "ns": 1.5}, {"title": "q11", "ns": 2.5}]
    assert {"at", "cpu", "cores", "load"} <= told["stamp"].keys()
