"""The demo's queries on Spark, and whether they can run there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

import streamdsl as sd
from streamdsl.demo.data import Data
from streamdsl.demo.queries import Question
from streamdsl.installation import INSTALL_JAVA, JAVA, java_version
from streamdsl.testing import assert_cht_equal

Ask: TypeAlias = Callable[[Question, Data], sd.CHT[Any]]
"""A way to answer a question from the whole history."""


def ask_spark(question: Question, data: Data) -> sd.CHT[Any]:
    """Answer a question on Spark, from the whole history at once."""
    return question.query.run({name: data.feeds()[name].events for name in question.sources}, engine="spark").cht()


def difference(local: sd.CHT[Any], spark: sd.CHT[Any]) -> str | None:
    """Return the difference of two answers as text, or None for equal rows; floats are compared with a tolerance."""
    try:
        assert_cht_equal(local, spark, rel=1e-9, abs=1e-9)
    except AssertionError as error:
        return str(error)
    return None


def why_no_spark() -> str | None:
    """Return why the Spark half cannot run here and how to get it, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'streamdsl[spark]'"
    version = java_version()
    if version is None:
        return f"there is no Java here: {INSTALL_JAVA}"
    return None if version >= JAVA else f"Spark 4 needs Java {JAVA} or later, and this is Java {version}"
