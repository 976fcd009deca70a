"""Checkpoints that somebody has made up to do harm: they are refused, and nothing that they name is called."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamdsl as sd
from streamdsl.engine.starting import restored
from streamdsl.errors import CheckpointError
from tests.unit.engine.state.crafted import Apart, changed

QUERY = sd.source("trips").where(lambda e: e.fare > 5).tumbling_window(10).aggregate(n=sd.count())


def saved() -> bytes:
    session = QUERY.open()
    session.push([sd.point("a", 3, {"fare": 7}), sd.point("b", 14, {"fare": 9}), sd.Cti(12)])
    return session.snapshot()


def test_no_command_runs_for_a_sort_key_that_the_file_names(tmp_path: Path) -> None:
    made = tmp_path / "made"

    def names_popen(apart: Apart) -> None:
        command = ["tuple", 1, [["str", ["touch"]], ["str", [str(made)]]]]
        text = apart.texts["session"]
        text["chunks"].append(["sorted key list", 1, [[1], command, ["class", ["subprocess:Popen"]]]])
        text["root"]["_now"] = ["refs", "sorted key list", [0, 1]]

    with pytest.raises(CheckpointError):
        restored(QUERY.plan(), None, changed(saved(), names_popen))
    assert not made.exists()
