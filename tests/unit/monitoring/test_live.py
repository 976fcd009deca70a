"""Live views, in a kernel of Jupyter, in a terminal, and where neither is."""

import gc
import io
import re
import threading
import time
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import streamdsl as sd
from streamdsl.connect import calling, iterable
from streamdsl.errors import QueryError
from streamdsl.monitoring import Live, OperatorStatus, SourceStatus, Status, live
from streamdsl.monitoring.panel import Panel, Panels
from streamdsl.monitoring.views import RichView

COUNTS = sd.source("trips", on_violation="drop").tumbling_window(10).aggregate(n=sd.count())
CELLS = (
    """
import asyncio, threading, time
import streamdsl as sd
from streamdsl.connect import async_iterable, calling, iterable
from streamdsl.monitoring import live

query = sd.source("<trips>", on_violation="drop").tumbling_window(10).aggregate(n=sd.count())
session = query.open()
final = session.subscribe("final")
shown = session.live(every=0.05)
for n in range(20):
    session.push([sd.point(n, n, {"fare": n}), sd.Cti(n)])
    time.sleep(0.02)
_ = session.push([sd.point("late", 3, {"fare": 1})])
shown.stop()
""",
    """
other = query.open()
with other.live(every=0.05):
    def pushes():
        for n in range(1_000):
            other.push([sd.point(n, n, {"fare": n})])
    pushing = threading.Thread(target=pushes)
    pushing.start()
    pushing.join()
""",
    """
def trips():
    for n in range(300):
        yield sd.point(n, n, {"fare": n})
        time.sleep(0.001)
job = query.serve_async(iterable(trips), {"speculative": calling(len), "final": calling(len)}, every=20, watch=live(every=0.05))
print((await job).micro_batches)
""",
)


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in CELLS])
    messages: list[Any] = []

    class Client(NotebookClient):  # type: ignore[misc]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            messages.append((cell_index, msg["msg_type"]))
            return super().process_message(msg, cell, cell_index)

    Client(made, timeout=120, kernel_name="python3").execute()
    for place, cell in enumerate(made.cells):
        cell["updates"] = messages.count((place, "update_display_data"))
    return list(made.cells)


def test_a_cell_has_one_output_which_is_replaced_and_ends_with_the_last_figures(cells: list[Any]) -> None:
    (shown,) = cells[0].outputs
    assert shown.output_type == "display_data"
    assert cells[0].updates >= 3
    html, text = shown.data["text/html"], shown.data["text/plain"]
    assert "&lt;trips&gt;" in html
    assert "<trips>" not in html
    assert "newest speculative answers" in html
    assert "newest final answers" in html
    assert re.search(r"<trips> +[\d.]+ +21 +0 +1 +19\n", text)
    assert "insert 'late' [3, 4) fare=1: dropped: it changes a time before the CTI; CTI 19 by a Cti of '<trips>', push 20" in text
    assert "[0, 10) n=10" in text


def test_another_thread_may_push_in_a_notebook(cells: list[Any]) -> None:
    (shown,) = cells[1].outputs
    assert re.search(r"<trips> +[\d.,]+ +1,000 +0 +0 +none yet\n", shown.data["text/plain"])


def test_a_job_is_watched_in_a_notebook(cells: list[Any]) -> None:
    shown, printed = cells[2].outputs
    done = printed.text.strip()
    assert cells[2].updates >= 3
    headline = shown.data["text/plain"].splitlines()[0]
    assert headline.startswith("closed · ")
    assert f" {done} micro-batches" in headline
    assert re.search(r"read of +partition +position\n<trips> +300$", shown.data["text/plain"])


class Kept:
    """A view that keeps what it is shown."""

    def __init__(self) -> None:
        self.panels: list[Panel] = []
        self.ended = 0

    def show(self, panel: Panel) -> None:
        self.panels.append(panel)

    def end(self) -> None:
        self.ended += 1


def test_a_view_is_shown_at_most_so_often_and_the_last_status_is_shown_at_the_end() -> None:
    kept = Kept()
    shown = Live(60, kept)
    for n in range(1_000):
        shown.show(Status(time=float(n)))
    shown.show(Status(time=1_000.0, state="closed"))
    assert [panel.headline.split(" ")[0] for panel in kept.panels] == ["open"]
    shown.stop()
    shown.stop()
    assert [panel.headline.split(" ")[0] for panel in kept.panels] == ["open", "closed"]
    assert kept.ended == 1


def test_a_row_of_the_state_that_was_shown_keeps_its_place() -> None:
    panels = Panels()

    def named(*held: tuple[str, int]) -> list[str]:
        operators = [OperatorStatus(name=name, events=size, state_bytes=size) for name, size in held]
        return [row[0] for row in panels.panel(Status(time=0.0, operators=operators)).tables[-1].rows]

    assert named(("where", 0), ("window", 1), ("output", 7)) == ["window", "output"]
    assert named(("where", 0), ("window", 9), ("output", 0)) == ["window", "output"]
    many = [(f"operator_{n}", n + 1) for n in range(12)]
    assert named(*many) == [f"operator_{n}" for n in range(4, 12)]


def test_what_has_not_changed_is_not_shown_again() -> None:
    kept = Kept()
    shown = Live(1e-9, kept)
    for n in range(20):
        shown.show(Status(time=float(n)))
    assert len(kept.panels) == 1


def test_a_view_ends_with_its_session_and_does_not_keep_it() -> None:
    def threads() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name == "streamdsl live"]

    def wait_for_none() -> None:
        deadline = time.monotonic() + 10
        while threads() and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.02)

    wait_for_none()
    session = COUNTS.open()
    session.live(every=0.02)
    assert threads()
    session.close()
    wait_for_none()
    assert threads() == []
    session = COUNTS.open()
    session.live(every=0.02)
    del session
    wait_for_none()
    assert threads() == []


def test_where_there_is_neither_notebook_nor_terminal_each_refresh_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    session = COUNTS.open()
    shown = session.live(every=60)
    session.push([sd.point("a", 3, 1), sd.point("b", 14, 1), sd.Cti(5)])
    shown.stop()
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"open · .*/s in · .*/s out · 2 windows open · state .* · trips 9 behind · speculative 14 behind", last)


def test_rich_draws_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rich = pytest.importorskip("rich.console")
    out = io.StringIO()
    view = RichView(rich.Console(file=out, force_terminal=True, width=100, height=40))
    panels = Panels()
    session = COUNTS.open()
    session.push([sd.point("a", 3, 1), sd.Cti(5)])
    view.show(panels.panel(session.status()))
    before = len(out.getvalue())
    session.push([sd.point("b", 17, 1)])
    view.show(panels.panel(session.status()))
    redrawn = out.getvalue()[before:]
    view.end()
    assert "\x1b[1A" in redrawn
    assert "\x1b[2J" not in redrawn
    assert "trips" in redrawn


def test_a_job_may_be_watched_by_a_view_and_by_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    events = [sd.point(n, n, {"fare": n}) for n in range(30)]
    served = COUNTS.serve(iterable(events), calling(len), every=10, watch=live(every=60))
    assert f" {served.micro_batches} micro-batches" in capsys.readouterr().err.splitlines()[-1]
    figures: list[Any] = []
    COUNTS.serve(iterable(events), calling(len), every=10, watch=figures.append)
    assert sum(each["rows_in"] for each in figures) == served.rows_in == 30


def test_partitions_of_a_source_have_a_line_each() -> None:
    readings = SourceStatus(name="readings", cti=5, furthest=30, partition_ctis={"0": 5, "1": 20}, partition_lags={"1": 1_200})
    assert str(Panels().panel(Status(time=0.0, sources=(readings,)))).splitlines()[2:] == [
        "source             behind  per s  in  retractions  late  CTI",
        "readings               25      0   0            0     0    5",
        "  0                    25                                  5",
        "  1, 1,200 unread      10                                 20",
    ]


@pytest.mark.parametrize("every", [0, -1])
def test_a_view_needs_some_time(every: float) -> None:
    with pytest.raises(QueryError, match=r"(?s)not after .*Hint: live\(every=0.5\)"):
        live(every=every)
