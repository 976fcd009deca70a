"""Plans on Spark: a DataFrame that holds the input's history in, a DataFrame that holds the output's out (extra `spark`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamdsl.denote.source import history, sources
from streamdsl.errors import QueryError
from streamdsl.plan.node import Node, Source
from streamdsl.result import Result
from streamdsl.spark.frames import collected, source_of_frame, source_of_rows
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.public import public_frame
from streamdsl.spark.session import default_session, translated
from streamdsl.spark.support import explain_spark
from streamdsl.temporal import to_ticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamdsl.io.binding import Bound

__all__ = ["OnSpark", "explain_spark", "run_batch"]


def run_batch(plan: Node, bindings: Mapping[str, Bound], until: int | None = None) -> Result[Any]:
    """Run a plan over bounded inputs on Spark: the active session, or a local one; the result comes back to this process.

    Raises `UnsupportedOnSpark` before anything runs, and what a failing task raised as the local engine would.
    """
    session = default_session()
    named = sources(plan)
    flows = {name: source_of_rows(session, node, _history(node, bindings)) for name, node in named.items()}
    flow = lower(lowering(plan, flows, until))
    with translated():
        cht = collected(flow)
    return Result.from_cht(cht, flow.unit)


def _history(node: Source, bindings: Mapping[str, Bound]) -> Any:
    if node.source not in bindings:
        raise _unbound(node.source, bindings)
    bound = bindings[node.source]
    return history(node, bound.events(), bound.unit)


def _unbound(name: str, known: Mapping[str, Any]) -> QueryError:
    return QueryError(
        f"the source {name!r} is bound to nothing; bound are: {', '.join(known) or '(none)'}",
        hint=f"give a DataFrame: batch({{{name!r}: frame}})",
    )


class OnSpark:
    """A query on a Spark session."""

    def __init__(self, plan: Node, spark: SparkSession) -> None:
        self._plan = plan
        self._spark = spark

    def batch(self, frames: Mapping[str, DataFrame], until: Any = None) -> DataFrame:
        """Return the output's history as a DataFrame: `le`, `re`, and a column per payload field. Nothing runs, or is collected.

        Each frame holds a source's history: `le`, `re` (ticks or timestamps; null: INFINITY; absent: point events) and a column
        per payload field; or physical events, with `kind`, `id` and `re_new` too. Raises `UnsupportedOnSpark`; what a task raises
        has the same name as the local engine's error.
        """
        named = sources(self._plan)
        for name in frames:
            if name not in named:
                raise QueryError(f"there is no source {name!r}; the sources of this query are: {', '.join(named) or '(none)'}")
        for name in named:
            if name not in frames:
                raise _unbound(name, frames)
        flows = {name: source_of_frame(node, frames[name]) for name, node in named.items()}
        end = None if until is None else to_ticks(until, next((flow.unit for flow in flows.values()), None))
        return public_frame(lower(lowering(self._plan, flows, end)))
