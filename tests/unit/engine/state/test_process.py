"""A process that is killed, and another one that goes on from its last checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import streamdsl as sd
from streamdsl.temporal import Event
from tests.unit.engine.state.program import PUSHES, busy, shown

FOLDER = Path(__file__).parents[4]


def run_on(path: Path, first: int, last: int, output: Path) -> subprocess.Popen[bytes]:
    """Start a process that pushes some pushes, saves, and then waits to be killed."""
    arguments = [sys.executable, "-c", "from tests.unit.engine.state.program import main; main()"]
    arguments += [str(path), str(first), str(last), str(output)]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "PYTHONHASHSEED": str(first + 1)}
    return subprocess.Popen(arguments, cwd=FOLDER, env=environment, stdout=subprocess.PIPE)


def test_a_session_outlives_the_processes_that_it_runs_in(tmp_path: Path) -> None:
    path, output = tmp_path / "checkpoint", tmp_path / "output"
    for first, last in [(0, 4), (4, 5), (5, 9)]:
        process = run_on(path, first, last, output)
        assert process.stdout is not None
        assert process.stdout.readline() == b"saved\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    session = busy().restore(path)
    found = output.read_text().splitlines()
    for push in PUSHES[9:]:
        found += shown(session.push(push))
    assert found + shown(session.close()) == uninterrupted()


def uninterrupted() -> list[str]:
    session: Any = busy().open()
    events: list[Event[Any]] = [event for push in PUSHES for event in session.push(push)]
    assert any(isinstance(event, sd.Retract) for event in events)
    return shown([*events, *session.close()])
