"""`streamdsl top`: the figures of a job elsewhere, from a server that has real ones, in a terminal and in a pipe."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.connect import calling, iterable
from streamdsl.monitoring import Endpoint

COUNTS = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())


class Job:
    """A session whose status a server of the standard library gives, as a job does."""

    def __init__(self) -> None:
        self.session: Any = COUNTS.open()
        self.asked: list[str] = []
        job = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                job.asked.append(self.path)
                status = None if job.session is None else job.session.status(sizes=True).to_json()
                body = json.dumps(status).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    made.session.push([sd.point("a", 3, 1), sd.point("b", 14, 1), sd.Cti(5)])
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_one_look_prints_all_tables(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", job.address, "--once"]) == 0
    headline, _, *lines = capsys.readouterr().out.splitlines()
    assert headline.startswith("open · 0/s in · 0/s out · 2 windows open · state ")
    assert lines[:2] == [
        "source  behind  per s  in  retractions  late  CTI",
        "trips        9      0   2            0     0    5",
    ]
    assert job.asked == ["/status.json"]


@pytest.mark.parametrize("written", ["{}", "http://{}", "http://{}/", "http://{}/status.json"])
def test_an_address_may_be_written_short(job: Job, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", written.format(job.address), "--once", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sources"] == job.session.status().to_json()["sources"]
    assert job.asked == ["/status.json"]


def test_a_job_that_has_none_yet_has_no_figures(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.session = None
    assert main(["top", job.address, "--once"]) == 0
    assert main(["top", job.address, "--once", "--json"]) == 0
    assert capsys.readouterr().out == "the job has done no micro-batch yet\nnull\n"


def _top(*options: str, **how: Any) -> subprocess.Popen[bytes]:
    """Watch a job in a process that a signal interrupts, also where the tests run in the background of a shell."""
    command = [sys.executable, "-m", "streamdsl", "top", "--every", "0.1", *options]
    return subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **how)


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_in_a_pipe_each_look_is_a_line_also_when_the_job_is_gone(job: Job) -> None:
    watching = _top(job.address, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _until(lambda: len(job.asked) >= 2)
    job.session.push([sd.point("c", 15, 1)])
    _until(lambda: len(job.asked) >= 4)
    job.server.shutdown()
    job.server.server_close()
    assert watching.stdout is not None
    lines = list[str]()
    for line in islice(watching.stdout, 300):
        lines.append(line.decode().rstrip())
        if lines[-1].startswith("no figures"):
            break
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=30)
    lines += out.decode().splitlines()
    assert "\x1b" not in "".join(lines)
    assert lines[0].startswith("open · 0/s in")
    assert lines[0].endswith("trips 9 behind · speculative 14 behind")
    assert any("trips 10 behind" in line for line in lines)
    assert lines[-1].startswith(f"no figures of a job at http://{job.address}/status.json: ")
    assert (watching.returncode, err.decode()) == (130, "stopped\n")


def test_in_a_terminal_it_draws_again_in_place(job: Job) -> None:
    pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    shape = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    watching = _top(job.address, stdin=theirs, stdout=theirs, stderr=theirs, env=shape)
    os.close(theirs)
    shown = b""
    try:
        _until(lambda: len(job.asked) >= 2)
        job.session.push([sd.point("c", 27, 1)])
        deadline = time.monotonic() + 30
        while b" 22 " not in shown and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 65_536)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) == 130
    finally:
        watching.kill()
        os.close(ours)
    text = shown.decode()
    assert "behind" in text
    assert "\x1b[1A" in text
    assert "\x1b[2J" not in text


def test_a_checkpoint_says_how_far_the_job_has_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    served = COUNTS.serve(iterable([sd.point(n, n, {"fare": n}) for n in range(30)]), calling(len), checkpoint=state, every=10)
    assert main(["top", str(state), "--once"]) == 0
    headline, *lines = capsys.readouterr().out.splitlines()
    assert f" {served.micro_batches} micro-batches · checkpoint " in headline
    assert lines[-1].split() == ["trips", "30"]


@pytest.mark.parametrize(
    ("named", "why"),
    [
        (["127.0.0.1:1"], r"no figures of a job at http://127.0.0.1:1/status.json: .*refused"),
        (["ftp://127.0.0.1/x"], "no figures of a job at ftp://127.0.0.1/x"),
        (["."], r"is no checkpoint of query.serve"),
        (["--every", "0"], "top looks again after some seconds"),
    ],
)
def test_a_job_that_is_not_there_is_said(
    named: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["top", *named, "--once"]) == 2
    told = capsys.readouterr().err
    assert re.search(why, told)
    assert "\nHint: " in told


def test_what_is_no_status_is_refused(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    class Other:
        def status(self, **_: Any) -> Any:
            return self

        def to_json(self) -> Any:
            return {"data": []}

    job.session = Other()
    assert main(["top", job.address, "--once"]) == 2
    assert "no figures of a job at" in capsys.readouterr().err


def test_a_job_is_looked_at_where_it_serves_its_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("prometheus_client")
    endpoint = Endpoint("127.0.0.1:0")
    told: list[str] = []

    def look(_: Any) -> None:
        if len(told) < 3:
            main(["top", endpoint.address, "--once"])
            told.append(capsys.readouterr().out)

    events = [sd.point(n, n, {"fare": n}) for n in range(30)]
    served = COUNTS.serve(iterable(events, at_once=5), calling(look), every=5, metrics=endpoint)
    assert served.micro_batches > 3
    assert told[0] == "the job has done no micro-batch yet\n"
    assert re.search(r" 2 micro-batches · p50 .* · checkpoint ", told[2])
    assert re.search(r"^trips +[\d.]+ +10 +0 +0 +none yet$", told[2], re.MULTILINE)
    assert re.search(r"^trips +10$", told[2], re.MULTILINE)


def test_a_checkpoint_without_its_state_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = tmp_path / "served" / "positions"
    records.mkdir(parents=True)
    (records / "0").write_text('{"letters": 0, "positions": {}}')
    assert main(["top", str(tmp_path), "--once"]) == 2
    assert "lacks the state of its last micro-batch" in capsys.readouterr().err
