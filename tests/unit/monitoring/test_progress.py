"""Progress of long work: what it shows where, and that it is silent where nobody looks."""

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import streamdsl as sd
from streamdsl.monitoring import progress_meter
from streamdsl.monitoring.progress_meter import ASKED, ProgressMeter, timed, tracked
from streamdsl.monitoring.terminal_line import TerminalLine
from streamdsl.testing import check_udm
from udm_examples.median import Median


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show progress from the begin, each time."""
    monkeypatch.setattr(progress_meter, "_AFTER", 0.0)
    monkeypatch.setattr(progress_meter, "_EACH", 0.0)
    monkeypatch.setattr(progress_meter, "_TICK", 0.01)
    monkeypatch.delenv(ASKED, raising=False)
    yield
    assert ProgressMeter._shown is None


def _counted(out: Terminal | io.StringIO, total: int | None = 20) -> str:
    with ProgressMeter("counting", out) as meter:
        for done in range(21):
            meter.show(done, total)
    return out.getvalue()


@pytest.mark.usefixtures("at_once")
def test_without_rich_a_terminal_has_one_line_which_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_meter, "draws", lambda out: False)
    first, second, *_, last, end = _counted(Terminal()).split("\r\x1b[K")[1:]
    assert (first, second, last, end) == ("counting: 0 %, 0 of 20", "counting: 5 %, 1 of 20", "counting: 100 %, 20 of 20", "")
    assert _counted(Terminal(), None).split("\r\x1b[K")[2] == "counting: 1"


@pytest.mark.usefixtures("at_once")
def test_rich_draws_a_bar_which_is_gone_at_the_end() -> None:
    pytest.importorskip("rich")
    shown = _counted(Terminal())
    assert "counting" in shown
    assert "50 %, 10 of 20" in shown
    assert shown.endswith("\x1b[2K") or "\x1b[2K" in shown[-20:]


@pytest.mark.usefixtures("at_once")
def test_elsewhere_it_is_silent_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _counted(io.StringIO()) == ""
    monkeypatch.setenv(ASKED, "1")
    lines = _counted(io.StringIO()).splitlines()
    assert lines[:2] == ["counting: 0 %, 0 of 20", "counting: 10 %, 2 of 20"]
    assert len(lines) == 11
    monkeypatch.setenv(ASKED, "0")
    assert _counted(Terminal()) == ""


def test_work_of_less_than_a_second_shows_nothing() -> None:
    out = Terminal()
    assert _counted(out) == ""


@pytest.mark.usefixtures("at_once")
def test_of_work_within_work_the_outer_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_meter, "draws", lambda out: False)
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    for _ in tracked(range(3), "outer"):
        list(tracked(range(3), "inner"))
    assert "outer: 66 %, 2 of 3" in out.getvalue()
    assert "inner" not in out.getvalue()
    for _ in tracked(iter(range(3)), "broken off"):
        break
    list(tracked(range(3), "then"))
    assert "then: 33 %, 1 of 3" in out.getvalue()


def _until(out: Terminal, text: str) -> None:
    deadline = time.monotonic() + 30
    while text not in out.getvalue():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("at_once")
def test_of_one_long_step_the_time_is_shown_unless_it_is_known_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_meter, "draws", lambda out: False)
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)

    @sd.udf
    def waits(v: int) -> bool:
        _until(out, "running, seconds: 0")
        return True

    assert len(sd.from_rows([(1, 2, {"v": 1})]).where(lambda e: waits(e.v)).run()) == 1
    assert out.getvalue().endswith("\r\x1b[K")
    with suppress(KeyError), timed("working"):
        _until(out, "working, seconds: 0")
        for _ in tracked(range(3), "counting"):
            _until(out, "counting: 0 %, 0 of 3")
        assert "counting: 66 %, 2 of 3" in out.getvalue()
        raise KeyError
    assert not [each for each in threading.enumerate() if each.name == "streamdsl-progress"]


def test_where_nobody_looks_no_thread_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ASKED, raising=False)
    with timed("working"):
        assert not [each for each in threading.enumerate() if each.name == "streamdsl-progress"]


def _csv(folder: Path, n_files: int) -> list[str]:
    for number in range(n_files):
        (folder / f"{number}.csv").write_text("le,v\n" + "".join(f"{row},{row}\n" for row in range(100)))
    return [str(folder / f"{number}.csv") for number in range(n_files)]


@pytest.mark.usefixtures("at_once")
def test_runs_over_files_and_checks_show_how_far_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_meter, "draws", lambda out: False)
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    counts = sd.sources.from_csv(_csv(tmp_path, 4)).tumbling_window(10).aggregate(n=sd.count())
    assert len(counts.run()) == 10
    assert "files read: 75 %, 3 of 4" in out.getvalue()
    sd.sources.from_csv(_csv(tmp_path, 1)).run()
    assert "rows read: 0" in out.getvalue()
    check_udm(Median, examples=1)
    assert "laws of Median: " in out.getvalue()


def test_a_command_in_a_pipe_says_how_far_it_is_only_if_it_is_asked(tmp_path: Path) -> None:
    program = (
        "from streamdsl.monitoring import progress_meter as meter; meter._AFTER = meter._EACH = 0.0; "
        "import streamdsl as sd; "
        f"sd.sources.from_csv({_csv(tmp_path, 3)!r}).run()"
    )
    for asked, lines in (("", 0), ("1", 3)):
        environment = {**os.environ, ASKED: asked}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
        assert len([line for line in done.stderr.splitlines() if line.startswith("files read: ")]) == lines, done.stderr


def _in_a_notebook(code: str) -> tuple[list[Any], Any]:
    """Run code in a cell; return what is displayed one after the other, and the first output that is left."""
    updates: list[Any] = []

    class Client(NotebookClient):  # type: ignore[misc]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] in ("display_data", "update_display_data"):
                updates.append(msg["content"]["data"])
            return super().process_message(msg, cell, cell_index)

    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    Client(made, timeout=60, kernel_name="python3").execute()
    return updates, made.cells[0].outputs[0]


def test_in_a_notebook_there_is_a_bar_which_is_gone_at_the_end() -> None:
    code = """
from streamdsl.monitoring import progress_meter
progress_meter._AFTER = progress_meter._EACH = 0.0
for _ in progress_meter.tracked(range(5), "<work>"):
    pass
"""
    updates, left = _in_a_notebook(code)
    assert updates[1]["text/html"] == '<progress value="0" max="5"></progress> &lt;work&gt;: 0 %, 0 of 5'
    assert [each["text/plain"] for each in updates[2:]] == [f"<work>: {20 * n} %, {n} of 5" for n in range(1, 5)] + [""]
    assert left.data["text/html"] == ""


def test_in_a_notebook_a_long_run_shows_for_how_long() -> None:
    code = """
import time
import streamdsl as sd
from streamdsl.monitoring import progress_meter
progress_meter._AFTER = progress_meter._EACH = 0.0
progress_meter._TICK = 0.02

@sd.udf
def slow(v: int) -> bool:
    time.sleep(1)
    return True

sd.from_rows([(1, 2, {"v": 1})]).where(lambda e: slow(e.v)).run().cht().rows
"""
    updates, left = _in_a_notebook(code)
    assert {each["text/plain"] for each in updates[1:]} >= {"running, seconds: 0", ""}
    assert left.data["text/html"] == ""


def test_a_line_of_a_terminal_is_cut_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out = Terminal()
    line = TerminalLine(out)
    line.show("x" * 50)
    line.say("y" * 30)
    line.end()
    assert out.getvalue() == f"\r\x1b[K{'x' * 19}\r\x1b[K{'y' * 30}\n\n"
