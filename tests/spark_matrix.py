"""Write the table of docs/spark.md: how operators, windows, aggregates and modules run on Spark, as `explain` says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import streamdsl as sd
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Node
from streamdsl.spark import explain_spark
from streamdsl.spark.column_types import FLOAT, INT, STR, RecordType
from streamdsl.spark.flow import Flow
from streamdsl.udm.bases import AnyUDA, AnyUDO
from tests.operator_pages import TITLES
from tests.operators import entries, kinds
from tests.operators.entry import Query, Stream

PAGE: Final = Path(__file__).parent.parent / "docs" / "spark.md"
MARKS: Final = ("<!-- table: python -m tests.spark_matrix -->\n", "<!-- end of table -->\n")
HEAD: Final = "| | batch | batch, in a `group_by` | stream |\n|---|---|---|---|\n"
ROWS: Final = Flow.of(RecordType(Schema.record(("k", "v", "n")), (STR, FLOAT, INT)), "us", lambda: None)
"""Rows of a text, a float and an integer."""


class Own(sd.UDA[Any, Any]):
    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return payloads[0]


class OwnInTime(sd.TimeSensitiveUDA[Any, Any]):
    def compute_result(self, events: Sequence[Any], window: Any) -> Any:
        return events[0].payload


class OwnRows(sd.UDO[Any, Any]):
    def compute_result(self, payloads: Sequence[Any]) -> Iterable[Any]:
        return payloads


class OwnRowsInTime(sd.TimeSensitiveUDO[Any, Any]):
    def compute_result(self, events: Sequence[Any], window: Any) -> Iterable[Any]:
        return events


class Adding:
    def create_state(self) -> Any:
        return []

    def add_event_to_state(self, state: Any, event: Any, window: Any = None) -> Any:
        return [*state, event]

    def compute_result(self, *given: Any) -> Any:
        return given[0]


class Kept(Adding, sd.IncrementalUDA[Any, Any, Any]):
    pass


class Merged(Kept):
    def merge_states(self, a: Any, b: Any) -> Any:
        return a + b


class KeptInTime(Adding, sd.TimeSensitiveIncrementalUDA[Any, Any, Any]):
    pass


class KeptRows(Adding, sd.IncrementalUDO[Any, Any, Any]):
    pass


class KeptRowsInTime(Adding, sd.TimeSensitiveIncrementalUDO[Any, Any, Any]):
    pass


WINDOWS: Final = {name: query for entry in kinds().values() for name, query in entry.spark.items()}
"""Windows, with built-in aggregates."""

AGGREGATES: Final[dict[str, sd.Agg[Any, Any]]] = {
    "count": sd.count(),
    "count_distinct": sd.count_distinct(lambda e: e.v),
    "sum": sd.sum(lambda e: e.v),
    "avg": sd.avg(lambda e: e.v),
    "min": sd.min(lambda e: e.v),
    "max": sd.max(lambda e: e.v),
    "first": sd.first(lambda e: e.v),
    "last": sd.last(lambda e: e.v),
    "median": sd.median(lambda e: e.v),
    "quantile": sd.quantile(lambda e: e.v, 0.9),
    "variance": sd.variance(lambda e: e.v),
    "stddev": sd.stddev(lambda e: e.v),
    "time_weighted_avg": sd.time_weighted_avg(lambda e: e.v),
    "collect": sd.collect(lambda e: e.v),
}
MODULES: Final[dict[str, AnyUDA[Any, Any] | AnyUDO[Any, Any]]] = {
    "UDA, a function under `sd.uda`": Own(),
    "time-sensitive UDA": OwnInTime(),
    "UDO": OwnRows(),
    "time-sensitive UDO": OwnRowsInTime(),
    "incremental UDA": Kept(),
    "incremental UDA with `merge_states`": Merged(),
    "time-sensitive incremental UDA": KeptInTime(),
    "incremental UDO": KeptRows(),
    "time-sensitive incremental UDO": KeptRowsInTime(),
}


def operators(inputs: int) -> dict[str, Query]:
    """Return the rows of all operators with so many inputs."""
    found = [entry.spark for page in TITLES for entry in entries().values() if entry.page == page and entry.inputs == inputs]
    return {name: query for rows in found for name, query in rows.items()}


def use(module: Any) -> Query:
    """Return the query that runs a module over tumbling windows."""
    if isinstance(module, AnyUDO):
        return lambda s: s.tumbling_window(5).apply(module)
    return lambda s: s.tumbling_window(5).aggregate(x=module.of(lambda e: e.v))


def over_snapshots(module: Any) -> Query:
    """Return the query that runs a module over snapshots."""
    return lambda s: s.snapshot_window().aggregate(x=module.of(lambda e: e.v))


def aggregates(kind: str) -> Query:
    """Return the query of one built-in aggregate over tumbling windows."""
    return lambda s: s.tumbling_window(5).aggregate(x=AGGREGATES[kind])


def plans() -> list[Node]:
    """Return the plan of every row of the table."""
    rows = [query(sd.source("s")).plan() for section in queries().values() for query in section.values()]
    return rows + [query(sd.source("s"), sd.source("t")).plan() for query in operators(2).values()]


def queries() -> dict[str, dict[str, Query]]:
    """Return all rows of the table, by section."""
    return {
        "operators": operators(1),
        "windows, with built-in aggregates": WINDOWS,
        "built-in aggregates": {re.sub(r"^(\w+)", r"`\1`", name): aggregates(name) for name in AGGREGATES}
        | {"`top_k`": lambda s: s.tumbling_window(5).top_k(2, by="v")},
        "modules over tumbling, hopping and trailing windows": {name: use(module) for name, module in MODULES.items()},
        "modules over snapshot, count and session windows": {"UDA, UDO, incremental or not": over_snapshots(Own())},
    }


def batch(query: Stream) -> str:
    """Return how a query runs in batch: as its operators do, or as the first that is not native."""
    said = explain_spark(query.plan(), dict.fromkeys(("s", "t"), ROWS))
    others = [text for text in said.values() if text != "native"]
    return min(others, key=lambda text: "what it reads" in text, default="native")


def row(name: str, query: Query) -> str:
    """Return a row of the table: a query alone, and as each group's."""
    both = query(sd.source("s", unit="us")), sd.source("s", unit="us").group_by("k").apply(query)
    return _line(name, *both)


def combined(name: str, query: Query) -> str:
    """Return the row of a query over two streams."""
    return _line(
        name,
        query(sd.source("s", unit="us"), sd.source("t", unit="us")),
        sd.source("s", unit="us").group_by("k").apply(lambda group: query(group, group)),
    )


def _line(name: str, alone: Stream, grouped: Stream) -> str:
    """Return a row. A stream's group is in shards by its key, whatever is in it, so of that there is no column."""
    assert grouped.on_spark(None).explain_stream() == "shards by e.k"
    return f"| {name} | {batch(alone)} | {batch(grouped)} | {alone.on_spark(None).explain_stream()} |\n"


def table() -> str:
    """Return the table."""
    sections = {title: [row(*each) for each in rows.items()] for title, rows in queries().items()}
    sections["operators"] += [combined(*each) for each in operators(2).items()]
    return HEAD + "".join(f"| **{title}** | | | |\n{''.join(rows)}" for title, rows in sections.items())


def written(page: str) -> str:
    """Return a page with the table between its marks."""
    before, _, rest = page.partition(MARKS[0])
    return before + MARKS[0] + table() + MARKS[1] + rest.partition(MARKS[1])[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
