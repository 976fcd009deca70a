"""streamdsl: a typed, LINQ-style language for temporal stream processing. Users write `import streamdsl as sd`.

>>> import streamdsl as sd
>>> fares = sd.from_rows([(1, 2, {"zone": "A", "fare": 10.0}), (3, 4, {"zone": "B", "fare": 4.0})])
>>> fares.where(lambda e: e.fare > 5).tumbling_window(10).aggregate(n=sd.count()).run().cht()
CHT
  [0, 10) n=1
"""

from importlib import import_module
from typing import TYPE_CHECKING

from streamdsl import errors, functions
from streamdsl import running as _running  # noqa: F401 - it knows what runs each operator of a plan that is shown
from streamdsl.aggregates import (
    avg,
    collect,
    count,
    count_distinct,
    first,
    last,
    max,  # noqa: A004
    median,
    min,  # noqa: A004
    quantile,
    stddev,
    sum,  # noqa: A004
    time_weighted_avg,
    variance,
)
from streamdsl.expr.expression_functions import col, is_none, lit, not_, udf, when
from streamdsl.sources import (
    from_arrow,
    from_csv,
    from_events,
    from_jsonl,
    from_pandas,
    from_parquet,
    from_polars,
    from_rows,
    source,
)
from streamdsl.sql import sql
from streamdsl.stream import GroupedStream, GroupedWindowedStream, Stream, WindowedStream
from streamdsl.temporal import (
    CHT,
    INFINITY,
    MIN_TIME,
    CHTRow,
    Cti,
    Event,
    Insert,
    Progress,
    Record,
    Rejected,
    Retract,
    correct,
    edge_end,
    edge_start,
    interval,
    point,
    sync_time,
)
from streamdsl.udm import (
    UDA,
    UDO,
    Agg,
    IncrementalUDA,
    IncrementalUDO,
    IntervalEvent,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
    WindowDescriptor,
    uda,
    udo,
)
from streamdsl.windows import Clip, Output

if TYPE_CHECKING:
    from streamdsl import astral, cql, progress, secret, testing
    from streamdsl import checks as checks
    from streamdsl import composing as composing
    from streamdsl import connect as connect
    from streamdsl import debugger as debugger
    from streamdsl import emit as emit
    from streamdsl import functions as functions
    from streamdsl import papers as papers
    from streamdsl import pattern as pattern
    from streamdsl import sinks as sinks
    from streamdsl import sources as sources
    from streamdsl import temporal as temporal
    from streamdsl import windows as windows
    from streamdsl.checks import Finding as Finding
    from streamdsl.checks import check as check
    from streamdsl.composing import plan_from_json as plan_from_json
    from streamdsl.composing import run_all as run_all
    from streamdsl.emit import Emit as Emit
    from streamdsl.functions import cast as cast
    from streamdsl.functions import coalesce as coalesce
    from streamdsl.functions import contains as contains
    from streamdsl.functions import length as length
    from streamdsl.functions import local_time as local_time
    from streamdsl.functions import param as param
    from streamdsl.functions import truncate as truncate
    from streamdsl.pattern import Pattern as Pattern
    from streamdsl.pattern import Step as Step
    from streamdsl.pattern import Steps as Steps
    from streamdsl.sources import from_table as from_table
    from streamdsl.temporal import Lifetime as Lifetime
    from streamdsl.udm import UDSO as UDSO
    from streamdsl.udm.repository import repository as udm  # at run time the package `streamdsl.udm`, which is called likewise

    __version__: str
else:

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from streamdsl.extras import own_version

            return own_version()
        if name in _MODULES:
            return import_module(f"streamdsl.{name}")
        from streamdsl.moved import moved

        return moved(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


_MODULES = (
    "astral",
    "checks",
    "composing",
    "connect",
    "cql",
    "debugger",
    "emit",
    "functions",
    "papers",
    "pattern",
    "progress",
    "secret",
    "sinks",
    "sources",
    "temporal",
    "testing",
    "windows",
)
"""What is imported when it is first asked for, unless it is there already."""

__all__ = [
    "CHT",
    "INFINITY",
    "MIN_TIME",
    "UDA",
    "UDO",
    "Agg",
    "CHTRow",
    "Clip",
    "Cti",
    "Event",
    "GroupedStream",
    "GroupedWindowedStream",
    "IncrementalUDA",
    "IncrementalUDO",
    "Insert",
    "IntervalEvent",
    "Output",
    "Progress",
    "Record",
    "Rejected",
    "Retract",
    "Stream",
    "TimeSensitiveIncrementalUDA",
    "TimeSensitiveIncrementalUDO",
    "TimeSensitiveUDA",
    "TimeSensitiveUDO",
    "WindowDescriptor",
    "WindowedStream",
    "astral",
    "avg",
    "col",
    "collect",
    "correct",
    "count",
    "count_distinct",
    "cql",
    "edge_end",
    "edge_start",
    "errors",
    "first",
    "from_arrow",
    "from_csv",
    "from_events",
    "from_jsonl",
    "from_pandas",
    "from_parquet",
    "from_polars",
    "from_rows",
    "interval",
    "is_none",
    "last",
    "lit",
    "max",
    "median",
    "min",
    "not_",
    "point",
    "progress",
    "quantile",
    "secret",
    "source",
    "sql",
    "stddev",
    "sum",
    "sync_time",
    "testing",
    "time_weighted_avg",
    "uda",
    "udf",
    "udm",
    "udo",
    "variance",
    "when",
]
