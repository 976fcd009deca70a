"""Code on the workers: modules that the workers do not have, and what cannot travel."""

from __future__ import annotations

import sys
import threading
import types
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import cloudpickle

import streamdsl as sd
from streamdsl.errors import UnsupportedOnSpark
from streamdsl.spark import explain_spark
from streamdsl.spark.shipping import by_value, dump_values, load_values
from tests.spark.helpers import stream

pytestmark = pytest.mark.spark


MODULE = """
import streamdsl as sd


class Middle(sd.UDA):
    def compute_result(self, payloads):
        return sorted(payloads)[len(payloads) // 2]
"""


class Locked(sd.UDA[float, float]):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads)


class Free(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return min(payloads)


def test_what_cannot_travel_is_refused_before_anything_runs(spark: Any) -> None:
    query = stream().snapshot_window().aggregate(Locked(), lambda e: e.f)
    with pytest.raises(UnsupportedOnSpark, match=r"window_aggregate_1 \(Locked\) cannot be sent"):
        query.run({"s": []}, engine="spark")
    assert explain_spark(query.plan())["window_aggregate_1"].startswith("unsupported: ")


def test_of_several_modules_that_which_cannot_travel_is_named() -> None:
    both = stream().group_by("k").snapshot_window().aggregate(a=Free().of(lambda e: e.f), b=Locked().of(lambda e: e.f))
    assert "window_aggregate_1 (Locked) cannot be sent" in explain_spark(both.plan())["window_aggregate_1"]


def test_values_come_back_as_they_went() -> None:
    values: list[Any] = [None, 1, 2**80, "x", float("inf"), (1, "a"), {"a": [1]}, sd.Record(a=1), {1, 2}, b"x", 1.5 + 2j]
    assert load_values(dump_values(values)) == values


def test_local_modules_travel_by_value_and_packages_of_the_user_do_not() -> None:
    local, installed = types.ModuleType("of_two_names"), types.ModuleType("of_the_user")
    local.__file__, installed.__file__ = "/home/me/of_two_names.py", "/home/me/.local/lib/python3/site-packages/of_the_user.py"
    with patch.dict(sys.modules, {"of_two_names": local, "its_other_name": local, "of_the_user": installed}):
        with by_value():
            known = cloudpickle.list_registry_pickle_by_value()
        assert {"of_two_names", "of_the_user"} & known == {"of_two_names"}
    assert "of_two_names" not in cloudpickle.list_registry_pickle_by_value()


def test_what_workers_cannot_import_is_said_before_the_job_starts(spark: Any, tmp_path: Path) -> None:
    """A module that only this process has; then the workers get it, zipped."""
    module = types.ModuleType("given_to_workers_later")
    with patch.dict(sys.modules, {module.__name__: module}):
        exec(MODULE, module.__dict__)
        both = stream().group_by("k").snapshot_window().aggregate(a=Free().of(lambda e: e.f), b=module.Middle().of(lambda e: e.f))
        with pytest.raises(UnsupportedOnSpark, match=r"Middle cannot be loaded by .*No module named 'given_to_workers_later'"):
            both.on_spark(spark).check()
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as file:
        file.writestr(f"{module.__name__}.py", MODULE)
    spark.addArtifact(str(tmp_path / "modules.zip"), pyfile=True)
    with patch.dict(sys.modules, {module.__name__: module}):
        both.on_spark(spark).check()


def test_workers_whose_python_lacks_pyarrow_are_said_to_be_of_another_environment(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session has another Python from here on, which PYSPARK_PYTHON gives it when it starts."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -m pyspark.daemon pyspark.worker\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    windows: sd.Stream[Any] = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
    with pytest.raises(UnsupportedOnSpark) as refused:
        windows.on_spark(spark).check()
    said = str(refused.value)
    assert said.startswith("Spark's workers cannot run Python: ModuleNotFoundError: No module named ")
    assert (
        f"PYSPARK_PYTHON, else the first `python3` of the PATH: set it before the session starts, here to {sys.executable}"
        in said
    )
