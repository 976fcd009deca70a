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
from streamdsl.temporal import Rejected, common_unit, to_ticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamdsl.io.binding import Bound
    from streamdsl.spark.flow import Flow

__all__ = ["OnSpark", "explain_spark", "run_batch"]


def run_batch(plan: Node, bindings: Mapping[str, Bound], until: int | None = None) -> Result[Any]:
    """Run a plan over bounded inputs on Spark: the caller's session, or a local one; the result comes back to this process.

    Raises `UnsupportedOnSpark` before anything runs, and what a failing task raised as the local engine would.
    """
    rejected: list[Rejected] = []
    with default_session() as session, translated():
        flows = {name: _own_rows(session, node, bindings, rejected) for name, node in sources(plan).items()}
        flow = lower(lowering(plan, flows, until))
        return Result.from_cht(collected(flow), flow.unit, rejected)


def _own_rows(session: SparkSession, node: Source, bindings: Mapping[str, Bound], rejected: list[Rejected] | None = None) -> Flow:
    """Return a source with the rows that this process holds; what it drops or adjusts is added to `rejected`."""
    if node.source not in bindings:
        raise _unbound(node.source, bindings)
    bound = bindings[node.source]
    return source_of_rows(session, node, history(node, bound.events(), bound.unit, rejected))


def _unbound(name: str, known: Mapping[str, Any]) -> QueryError:
    return QueryError(
        f"the source {name!r} is bound to nothing; bound are: {', '.join(known) or '(none)'}",
        hint=f"give a DataFrame: batch({{{name!r}: frame}})",
    )


class OnSpark:
    """A query on a Spark session, whose settings stay as they are."""

    def __init__(self, plan: Node, spark: SparkSession, own: Mapping[str, Bound] | None = None) -> None:
        self._plan = plan
        self._spark = spark
        self._own = own or {}

    def batch(self, frames: Mapping[str, DataFrame], until: Any = None) -> DataFrame:
        """Return the output's history as a DataFrame: `le`, `re`, and a column per payload field. Nothing runs, or is collected.

        Each frame holds a source's history: `le`, `re` (ticks or timestamps; null: INFINITY; absent: point events) and a column
        per payload field; or physical events, with `kind`, `id` and `re_new` too. A source that brings its own rows needs no
        frame. Raises `UnsupportedOnSpark`; what a task raises has the same name as the local engine's error.
        """
        named = sources(self._plan)
        for name in frames:
            if name not in named:
                raise QueryError(f"there is no source {name!r}; the sources of this query are: {', '.join(named) or '(none)'}")
        flows = {name: self._source(node, frames) for name, node in named.items()}
        end = None if until is None else to_ticks(until, common_unit(*(flow.unit for flow in flows.values())))
        return public_frame(lower(lowering(self._plan, flows, end)))

    def _source(self, node: Source, frames: Mapping[str, DataFrame]) -> Flow:
        if node.source in frames:
            return source_of_frame(node, frames[node.source])
        if node.source in self._own:
            return _own_rows(self._spark, node, self._own)
        raise _unbound(node.source, frames)
