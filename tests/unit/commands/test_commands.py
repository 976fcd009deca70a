"""`streamdsl explain`, `timeline`, `catalog` and `check-udm`: they print what the same calls give in a program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.testing import check_udm
from udm_examples.median import Median

ROOT: Final = Path(__file__).parents[3]
COMMANDS: Final = ("demo", "run", "check", "explain", "timeline", "catalog", "check-udm", "top", "doctor")
MODULE: Final = '''
import streamdsl as sd
from streamdsl.udm import uda
from udm_examples.median import Median

rides = sd.source("rides")
by_hour = rides.where(lambda e: e.fare > 2).tumbling_window(10).aggregate(n=sd.count())
unending = sd.source("rides").to_edges("fare").select(fare=lambda e: e.fare)
bound = sd.from_rows([(1, 5, "A")]).shift(2)
limit = 5

@uda
def first(prices: list[float]) -> float:
    """The first price."""
    return prices[0]

class Range(sd.UDA[float, float]):
    """Largest less smallest."""
    def compute_result(self, payloads):
        return max(payloads) - min(payloads)

class Share(sd.UDA[float, float]):
    def __init__(self, share: float):
        self.share = share
    def compute_result(self, payloads):
        return self.share * sum(payloads)

half = Share(0.5)
'''
ROWS: Final = [(1, 4, 3.0), (3, 12, 5.0), (5, 6, 1.0), (14, 18, 9.0)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `hours`, a package with a module that cannot be imported, and a file of rows."""
    (tmp_path / "hours.py").write_text(MODULE)
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("from kit.prices import Range\n")
    (tmp_path / "kit" / "prices.py").write_text(MODULE)
    (tmp_path / "kit" / "broken.py").write_text("import no_such_library\n")
    (tmp_path / "kit" / "__main__.py").write_text("raise SystemExit('it has run')\n")
    (tmp_path / "rides.csv").write_text("le,re,fare\n" + "".join(f"{le},{re},{fare}\n" for le, re, fare in ROWS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("hours", "kit")]:
        del sys.modules[name]


def test_help_imports_no_query_and_nothing_that_is_large(folder: Path) -> None:
    heavy = {"altair", "numba", "pandas", "polars", "pyarrow", "pyspark", "hypothesis", "streamdsl.testing", "streamdsl.spark"}
    program = f"""
import sys
from streamdsl.cli import main
for command in {COMMANDS!r}:
    try:
        main([command, "hours:by_hour", "--help"])
    except SystemExit as ended:
        assert ended.code == 0
print("imported:", *sorted({heavy | {"hours"}!r} & sys.modules.keys()))
"""
    environment = {"PYTHONPATH": f"{ROOT}", "COLUMNS": "200"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "imported:"
    assert [f"usage: streamdsl {command}" in done.stdout for command in COMMANDS] == [True] * len(COMMANDS)


def test_the_page_lists_every_command() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert [command for command in COMMANDS if f"| `streamdsl {command}" not in page] == []
    told = subprocess.run([sys.executable, "-m", "streamdsl", "no"], cwd=ROOT, capture_output=True, text=True, timeout=100).stderr
    assert [command for command in COMMANDS if f"'{command}'" not in told] == []
    assert told.count("'") == 2 * (len(COMMANDS) + 1)


@pytest.mark.parametrize("asked", [["catalog"], ["explain", "hours:by_hour"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(folder: Path, asked: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "streamdsl", *asked]
    settings = {**os.environ, "PYTHONPATH": f"{ROOT}"}
    done = subprocess.run(command, cwd=folder, env=settings, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=100)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def query(name: str) -> sd.Stream[object]:
    found: sd.Stream[object] = getattr(sys.modules["hours"], name)
    return found


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_explain_prints_the_plan_as_an_engine_runs_it(folder: Path, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "hours:by_hour", "--engine", engine]) == 0
    assert capsys.readouterr().out == f"{query('by_hour').explain(engine)}\n"  # type: ignore[arg-type]
    assert main(["explain", "hours:by_hour", "--rules"]) == 0
    assert capsys.readouterr().out == f"{query('by_hour').explain(rules=True)}\n"


def test_explain_prints_the_plan_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "hours:by_hour", "--json"]) == 0
    assert sd.composing.plan_from_json(capsys.readouterr().out) == query("by_hour").plan()
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "hours:by_hour", "--json", "--rules"])


def drawn(windows: bool = False) -> str:
    rows = sd.from_rows([(le, re, {"fare": fare}) for le, re, fare in ROWS])
    return str(query("by_hour").timeline(windows, {"rides": rows}))


def test_timeline_draws_a_run_over_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["timeline", "hours:by_hour", "--input", "rides=rides.csv", "--end", "re"]
    assert main(asked) == 0
    assert capsys.readouterr().out == f"{drawn()}\n"
    assert main([*asked, "--windows"]) == 0
    assert capsys.readouterr().out == f"{drawn(windows=True)}\n"
    assert main(["timeline", "hours:bound"]) == 0
    assert capsys.readouterr().out == f"{query('bound').timeline()}\n"


def test_timeline_writes_a_picture_or_the_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["timeline", "hours:by_hour", "--input", "rides=rides.csv", "--end", "re", "--output"]
    assert main([*asked, "pictures/run.svg"]) == 0
    assert ElementTree.parse(folder / "pictures" / "run.svg").getroot().tag.endswith("svg")
    assert main([*asked, "run.txt"]) == 0
    assert (folder / "run.txt").read_text() == f"{drawn()}\n"
    assert capsys.readouterr() == ("", "the timeline is in pictures/run.svg\nthe timeline is in run.txt\n")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([], "the source 'rides' has no input; the sources are: rides"),
        (["--input", "trips=rides.csv"], "there is no source 'trips'; the sources of this query are: rides"),
        (["--input", "rides=ride.csv"], "there are: hours.py, kit, rides.csv"),
        (["--input", "rides=rides.csv", "--start", "at"], "no column 'at'"),
        (["--input", "rides=rides.csv", "--output", "rides.csv/run.svg"], "Hint: "),
    ],
)
def test_timeline_says_what_is_missing(folder: Path, asked: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "hours:by_hour", *asked]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Hint: " in error


def test_the_catalog_of_a_program_is_that_of_the_repository(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog"]) == 0
    assert capsys.readouterr().out == f"{sd.udm.catalog()}\n"


@pytest.mark.parametrize("named", ["hours", "hours.py", "./hours.py"])
def test_the_catalog_of_a_module_has_what_it_defines(folder: Path, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", named]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "4 modules"
    assert lines[2] == "hours"
    assert [line.split("(")[0].split()[0] for line in lines[3:] if line[2] != " "] == ["first", "Range", "Share", "half"]


@pytest.mark.parametrize("named", ["kit", "kit/"])
def test_the_catalog_of_a_package_has_its_modules_be_they_broken(
    folder: Path, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", named]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("5 modules\n\nkit.broken\n  broken")
    assert "error: the module 'kit.broken' cannot be imported: ModuleNotFoundError" in printed
    assert printed.count("  Range  ") == 1


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("hour", "there is no module 'hour'"),
        ("hour.py", "there is no 'hour.py' in "),
        (".", "'.' is no module or package in "),
        ("../hours.py", "'../hours.py' is no module or package in "),
        ("kit.broken", "cannot be imported"),
    ],
)
def test_a_module_that_is_not_there_is_told(folder: Path, named: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", named]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Hint: " in error


def test_check_udm_prints_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-udm", "hours:Median", "--examples", "7", "--seed", "3"]) == 0
    assert capsys.readouterr().out == f"{check_udm(Median, seed=3, examples=7)}\n"
    assert main(["check-udm", "hours:Range"]) == 0
    assert "Range" in capsys.readouterr().out


def test_a_law_that_is_broken_is_told_with_an_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-udm", "hours:first"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("first breaks the law order_insensitive: Members in any order give the same result.")
    assert "Hint: " in printed.err


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("hours:Medium", "hours has no 'Medium'; its UDMs are: Median, first, Range, Share, half"),
        ("hours:limit", "'limit' of hours is no UDM but 5; its UDMs are: "),
        ("hours", "does not say which UDM; its UDMs are: Median"),
        ("hours:Share", "Share cannot be made without parameters"),
        ("minutes:Median", "there is no module 'minutes'"),
        (":Median", "names no UDM"),
    ],
)
def test_a_udm_that_is_not_there_is_told(folder: Path, target: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-udm", target]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Hint: " in error
