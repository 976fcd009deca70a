"""What Spark's pages say of the jobs that are started here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, sources

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_DESCRIPTION: Final = "spark.job.description"


def context_of(spark: SparkSession) -> SparkContext | None:
    """Return the session's context; Spark Connect sessions have none."""
    try:
        return spark.sparkContext
    except (AttributeError, PySparkException):
        return None


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the jobs and SQL executions that this thread starts within: after what is said already, which is restored.

    On Spark Connect, where descriptions are the server's, nothing is said.
    """
    context = context_of(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, text if before is None else f"{before}\n{text}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)


def title_of(plan: Node) -> str:
    """Return what a query is called where it has no name: the label of its last operator, and its sources.

    >>> import streamdsl as sd
    >>> title_of(sd.source("bids").join(sd.source("asks")).plan())
    'join_1 of bids, asks'
    """
    return f"{labels(plan)[id(plan)]} of {', '.join(sources(plan))}"
