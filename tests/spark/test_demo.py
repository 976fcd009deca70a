"""The demo's queries on Spark, and one as a stream whose job is killed, give what they give locally."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamdsl.demo.flight_files import Period
from streamdsl.demo.main import demo
from streamdsl.demo.queries import QUESTIONS
from streamdsl.demo.replay import REPLAYED
from tests.spark.conftest import OF_OTHERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORM = Period("8-9 February 2013", date(2013, 2, 8), date(2013, 2, 9))


def test_spark_gives_the_same_answers(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", OF_OTHERS)
    assert demo(STORM, tmp_path, streamed=REPLAYED[-1:]) == 0
    assert capsys.readouterr().out.count("the same, row for row") == len(QUESTIONS) + 1
