"""The commands besides `run`, `demo` and `doctor`: they print what the same calls give in a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.testing import check_udm
from udm_examples.median import Median

ROOT: Final = Path(__file__).parents[3]
COMMANDS: Final = (
    "demo",
    "run",
    "check",
    "explain",
    "timeline",
    "debug",
    "replay",
    "bench",
    "catalog",
    "check-udm",
    "top",
    "doctor",
)
MODULE: Final = '''
from dataclasses import dataclass
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

@dataclass(frozen=True)
class Ride:
    fare: float

paid = sd.source("rides", Ride).where(lambda e: e.fare > 2).tumbling_window(10).aggregate(n=sd.count())
joined = by_hour.join(sd.source("zones"), on="n")
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


RECORDED: Final = (
    '{"kind": "insert", "id": "a", "le": 1, "re": 4, "re_new": null, "fare": 3.0}',
    '{"kind": "insert", "id": "b", "le": 3, "re": 12, "re_new": null, "fare": 5.0}',
    '{"kind": "retract", "id": "b", "le": 3, "re": 12, "re_new": 5, "fare": 5.0}',
    '{"kind": "cti", "id": null, "le": 12, "re": null, "re_new": null, "fare": null}',
    '{"kind": "insert", "id": "c", "le": 14, "re": 18, "re_new": null, "fare": 9.0}',
)


def counts(text: str) -> list[tuple[int, int]]:
    """Return the windows that lines of events bring, with their numbers of rows, but for those that are retracted."""
    rows = [json.loads(line) for line in text.splitlines()]
    gone = {(row["id"], row["le"]) for row in rows if row["kind"] == "retract" and row["re_new"] == row["le"]}
    return [(row["le"], row["n"]) for row in rows if row["kind"] == "insert" and (row["id"], row["le"]) not in gone]


@pytest.mark.parametrize("more", [[], ["--speed", "1000"], ["--emit", "final"]], ids=str)
def test_replay_plays_what_was_recorded(folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rides.jsonl").write_text("\n".join(RECORDED) + "\n")
    assert main(["replay", "hours:by_hour", "rides.jsonl", *more]) == 0
    printed = capsys.readouterr()
    assert counts(printed.out) == [(0, 2), (10, 1)]
    assert printed.err.startswith("ended: ")
    assert main(["replay", "hours:by_hour", "rides=rides.jsonl", "--sink", "out.jsonl", *more]) == 0
    assert counts((folder / "out.jsonl").read_text()) == [(0, 2), (10, 1)]


def test_replay_takes_the_time_that_it_is_asked_to(folder: Path) -> None:
    (folder / "rides.jsonl").write_text("\n".join(RECORDED) + "\n")
    began = time.monotonic()
    assert main(["replay", "hours:by_hour", "rides.jsonl", "--speed", "13"]) == 0
    assert time.monotonic() - began >= 1, "from 1 to 14"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["ride.jsonl"], "the file ride.jsonl cannot be read"),
        (["trips=rides.jsonl"], "there is no source 'trips'"),
        (["rides.csv", "--speed", "0"], "a speed is a number above 0"),
    ],
)
def test_replay_says_what_is_wrong(folder: Path, asked: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "hours:by_hour", *asked]) == 2
    assert told in capsys.readouterr().err


def test_debug_writes_a_page_and_opens_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    asked = ["debug", "hours:by_hour", "--input", "rides=rides.csv", "--end", "re"]
    assert main([*asked, "--output", "page.html", "--no-open"]) == 0
    assert opened == []
    assert "EventTrace: 4 events in, 5 out; its page is page.html" in capsys.readouterr().err
    page = (folder / "page.html").read_text()
    assert "window_aggregate_1" in page
    assert main([*asked, "--last", "3"]) == 0
    assert opened[0].startswith("file:///")
    assert opened[0].endswith("/by_hour.html")
    assert "no browser could be opened" in capsys.readouterr().err
    assert main(["debug", "hours:by_hour"]) == 2


@pytest.mark.parametrize(("asked", "events"), [(["hours:by_hour", "--input", "rides=rides.csv"], 4), (["hours:paid"], 500)])
def test_bench_says_what_an_event_costs(folder: Path, asked: list[str], events: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *asked, "--events", "500", "--repeat", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{events} events, the median of 2 runs"
    assert [line[:30].strip() for line in lines[1:]][:2] == ["reading alone", "run"]
    assert "x reading alone" in lines[2]
    assert main(["bench", *asked, "--events", "500", "--repeat", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["parts"]
    assert {part["name"] for part in said} > {"run", "window_aggregate_1", "taking in and giving out"}
    assert {part["events"] for part in said} == {events}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["hours:by_hour"], "the source 'rides' declares no payload"),
        (["hours:paid", "--repeat", "0"], "--repeat and --events are numbers above 0"),
        (["hours:bound", "--input", "rides=rides.csv"], "there is no source 'rides'"),
    ],
)
def test_bench_says_what_is_missing(folder: Path, asked: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *asked]) == 2
    assert told in capsys.readouterr().err


def test_reports_as_json_have_one_shape(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*asked: str) -> tuple[int, dict[str, Any]]:
        return main([*asked, "--json"]), json.loads(capsys.readouterr().out)

    reports = {
        "check": said("check", "hours:by_hour", "hours:joined"),
        "catalog": said("catalog", "kit"),
        "holds": said("check-udm", "hours:Median"),
        "broken": said("check-udm", "hours:first"),
        "doctor": said("doctor"),
    }
    for status, report in reports.values():
        assert list(report) == ["sound", "streamdsl", "parts"]
        assert report["sound"] == all(part["state"] != "wrong" for part in report["parts"]) == (status == 0)
        assert all({"name", "state"} <= set(part) for part in report["parts"])
    assert {part["query"] for part in reports["check"][1]["parts"]} == {"hours:by_hour", "hours:joined"}
    assert [part["name"] for part in reports["catalog"][1]["parts"] if part["state"] == "absent"] == ["broken"]
    assert {part["state"] for part in reports["holds"][1]["parts"]} == {"ok", "absent"}
    assert [(part["name"], part["state"]) for part in reports["broken"][1]["parts"]] == [("order_insensitive", "wrong")]
    assert main(["check", "hours:no", "--json"]) == 2
    assert capsys.readouterr().out == ""


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
