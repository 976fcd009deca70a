"""`python -m benchmarks` runs ways in processes of their own, and says what it could not run."""

import json
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.__main__ import main
from benchmarks.report import BEGIN, END


def test_one_workload_is_compared_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    page.write_text(f"Above.\n{BEGIN}\nold\n{END}\nBelow.\n")
    command = ["incremental", "--events", "300", "--runs", "1", "--peers", "dict", "--write", str(results), "--write", str(page)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "dict loop" in printed
    assert "WRONG" not in printed
    lines = json.loads(results.read_text())["workloads"]["incremental"]
    ours, loop = (next(line for line in lines if line["way"] == way) for way in ("streamdsl tuples", "dict loop"))
    assert loop["ratio"] == ours["ns"] / loop["ns"]
    assert [line["events"] for line in lines] == [300] * 3
    above, tables, below = page.read_text().partition(BEGIN)[0], page.read_text(), page.read_text().partition(END)[2]
    assert (above, below) == ("Above.\n", "\nBelow.\n")
    assert "| dict loop | 300 |" in tables
    assert "old" not in tables


def test_a_peer_that_is_not_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environments.NEEDS, "duckdb", "no_such_package")
    with pytest.raises(environments.AbsentError, match="no_such_package is not installed"):
        environments.python_of("duckdb")


def test_a_peer_that_does_not_install_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "no_such_wheel.whl"
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setitem(environments.OWN, "bytewax", str(nowhere))
    with pytest.raises(environments.AbsentError, match="does not install on Python"):
        environments.python_of("bytewax")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "there is no workload 'nothing'"),
        (["--peers", "nobody"], "there is no peer 'nobody'"),
        (["--events", "0"], "at least 1"),
    ],
)
def test_what_is_not_there_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err
