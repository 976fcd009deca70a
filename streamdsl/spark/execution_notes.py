"""How each node of a plan will run on Spark, known from its lowering alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, Node, sources
from streamdsl.spark.flow import Flow
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.lowering_context import ExecutionNote
from streamdsl.spark.source_frames import declared_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain_spark(plan: Node, flows: Mapping[str, Flow] | None = None) -> dict[str, str]:
    """Return for each operator's label how it runs on Spark: `native`, Python (Arrow) and why, or unsupported and why.

    Without flows sources are taken as declared; a column of unknown type is taken for a number or text. Nothing runs, and no
    session is needed.

    >>> from streamdsl.plan.node import Source
    >>> from streamdsl.plan.node import shift
    >>> explain_spark(shift(Source("trips"), 5))
    {'source:trips': 'native', 'shift_1': 'native'}
    """
    names = labels(plan)
    return {names[node]: str(note) for node, note in execution_notes(plan, flows).items() if node in names}


def execution_notes(plan: Node, flows: Mapping[str, Flow] | None = None) -> dict[int, ExecutionNote]:
    """Return how each node runs, by the node's `id()`."""
    low = lowering(plan, declared_sources(plan) if flows is None else flows)
    with contextlib.suppress(UnsupportedOnSpark):
        lower(low)
    shown = [node for node in plan.walk_all() if not isinstance(node, Group)]
    return {
        id(node): low.notes.get(id(node), ExecutionNote("unsupported", "what it reads does not run on Spark")) for node in shown
    }


def declared_sources(plan: Node) -> dict[str, Flow]:
    """Return the flows of a plan's sources by their declarations alone."""
    return {name: declared_source(node) for name, node in sources(plan).items()}


def physical_plan(frame: DataFrame) -> str:
    """Return the text of a frame's physical plan. PySpark's `explain` only prints it, to an output that threads share."""
    if hasattr(type(frame), "_explain_string"):  # Spark Connect
        return str(frame._explain_string()).strip()
    jvm, query = frame.sparkSession._jvm, frame._jdf.queryExecution()
    return str(jvm.PythonSQLUtils.explainString(query, "simple")).strip()
