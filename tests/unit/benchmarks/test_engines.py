"""The engines that are asked for their settings: each runs in a process of its own, and this is what the page says of them."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

import pytest

from benchmarks.engines import engines
from benchmarks.engines.__main__ import asked, shown
from benchmarks.engines.engine import Running
from streamdsl import secret


@pytest.mark.parametrize("name", engines())
def test_every_engine_has_a_function_that_a_process_of_its_own_finds(name: str) -> None:
    run = engines()[name].run
    assert getattr(importlib.import_module(f"benchmarks.engines.{engines()[name].module}"), run.__name__) is run


def test_a_session_reports_final_windows_as_they_close() -> None:
    found = asked(engines()["streamdsl-final"])
    assert settings(secret.STREAMDSL_FINAL) in map(settings, found.candidates)
    assert re.search(r"size 5 slide 1: \d+@\d+#1", shown(found))


def settings(profile: secret.Profile) -> tuple[object, ...]:
    """The settings of a profile; a period of one is none."""
    report = replace(profile.report, periodic=profile.report.period)
    return (profile.t0, report, profile.tick, profile.scope)


def test_a_session_says_each_change_of_each_open_window() -> None:
    assert settings(secret.STREAMDSL) in map(settings, asked(engines()["streamdsl"]).candidates)


def test_windows_of_polars_begin_with_the_slot_of_the_first_tuple() -> None:
    pytest.importorskip("polars")
    assert settings(secret.POLARS_DYNAMIC) in map(settings, asked(engines()["polars-dynamic"]).candidates)


def test_a_window_frame_reports_every_row_which_no_settings_do() -> None:
    pytest.importorskip("polars")
    found = asked(engines()["polars-rolling"])
    assert not found
    last = found.witnesses[-1]
    assert len(last.outputs) == len(last.tuples)
    assert len(last.expected) != len(last.tuples)


def test_a_running_engine_answers_as_often_as_it_is_asked() -> None:
    running = Running(engines()["streamdsl"])
    try:
        assert [running(3, 3, [(7, 4, 1, 1), (8, 4, 2, 1)]) for _ in range(2)] == [[[7], [7, 8]]] * 2
    finally:
        running.stop()
