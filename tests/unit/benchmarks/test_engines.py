"""The engines that are asked for their settings: each runs in a process of its own, and this is what the page says of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.engines.__main__ import asked, shown
from benchmarks.engines.engine import ENGINES, Running
from streamdsl.secret import Grid, Scope

PAGE = Path(__file__).parents[3] / "docs" / "secret-profiles.md"


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_a_function_and_is_on_the_page(name: str) -> None:
    engine = ENGINES[name]
    module, function = engine.run.split(":")
    assert callable(getattr(importlib.import_module(f"benchmarks.engines.{module}"), function))
    assert f"| {engine.title} |" in PAGE.read_text()


def test_a_session_reports_final_windows_as_they_close() -> None:
    found = asked(ENGINES["streamdsl-final"])
    assert found.profile is not None
    assert found.profile.t0 == Grid(-1)
    assert found.profile.report.window_close
    assert "size 5 slide 1: 1@6#1" in shown(found)


def test_a_window_frame_reports_every_row_which_no_settings_do() -> None:
    pytest.importorskip("polars")
    found = asked(ENGINES["polars-rolling"])
    assert not found
    assert found.witnesses[-1].outputs[:3] == [[1, 2, 4]] * 3


def test_a_running_engine_answers_as_often_as_it_is_asked() -> None:
    running = Running(ENGINES["streamdsl"])
    try:
        assert [running(3, 3, [(7, 4, 1, 1), (8, 4, 2, 1)]) for _ in range(2)] == [[[7], [7, 8]]] * 2
    finally:
        running.stop()
    assert Scope.ALL_OPEN.words == "all open windows"
