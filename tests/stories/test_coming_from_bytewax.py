"""What the page for users of Bytewax says of both: the dataflows print what is recorded, and queries print the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks.bytewax_page import PAGE, dataflows, job, printed_on_kafka, readings, recorded

TEXT = Path(PAGE).read_text()


def test_the_query_that_was_moved_over_in_steps_prints_the_same() -> None:
    """What Bytewax prints is recorded; what streamdsl prints is what the doctest of the page finds."""
    steps, _ = recorded()
    assert len(steps.splitlines()) == 10
    assert TEXT.count(steps) == 2


def test_what_is_shown_of_the_first_dataflow_is_what_runs() -> None:
    steps, on_kafka = dataflows()
    shown = [part for part in re.findall(r"```py\n(.*?)```", TEXT, re.DOTALL) if part not in (on_kafka, job())]
    assert len(shown) > 1
    assert [part for part in shown if part not in steps] == []


def test_the_job_on_kafka_prints_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    _, on_kafka = recorded()
    assert printed_on_kafka((sys.executable, job())) == [on_kafka]
    assert sum(int(line.rpartition(" ")[2]) for line in on_kafka.splitlines()) == len(readings())
