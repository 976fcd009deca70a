"""streamdsl: a typed, LINQ-style language for temporal stream processing. Users write `import streamdsl as sd`.

>>> import streamdsl as sd
>>> fares = sd.from_rows([(1, 2, {"zone": "A", "fare": 10.0}), (3, 4, {"zone": "B", "fare": 4.0})])
>>> fares.where(lambda e: e.fare > 5).tumbling_window(10).aggregate(n=sd.count()).run().cht()
CHT
  [0, 10) n=1
"""

from typing import TYPE_CHECKING

from streamdsl import errors
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
from streamdsl.checking import check
from streamdsl.checks import Finding
from streamdsl.composing import plan_from_json, run_all
from streamdsl.emit import Emit
from streamdsl.expr.functions import (
    cast,
    coalesce,
    col,
    contains,
    is_none,
    length,
    lit,
    local_time,
    not_,
    param,
    truncate,
    udf,
    when,
)
from streamdsl.pattern import Pattern, Step, Steps
from streamdsl.sources import (
    from_arrow,
    from_csv,
    from_events,
    from_jsonl,
    from_pandas,
    from_parquet,
    from_polars,
    from_rows,
    from_table,
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
    Lifetime,
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
from streamdsl.udm.stream_operator import UDSO
from streamdsl.windows import Clip, Output

if TYPE_CHECKING:
    from streamdsl import astral, cql, testing
    from streamdsl.udm.repository import repository as udm  # at run time the package `streamdsl.udm`, which is called likewise
else:

    def __getattr__(name: str) -> object:
        if name not in ("astral", "cql", "testing"):
            raise AttributeError(f"module 'streamdsl' has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"streamdsl.{name}")


__all__ = [
    "CHT",
    "INFINITY",
    "MIN_TIME",
    "UDA",
    "UDO",
    "UDSO",
    "Agg",
    "CHTRow",
    "Clip",
    "Cti",
    "Emit",
    "Event",
    "Finding",
    "GroupedStream",
    "GroupedWindowedStream",
    "IncrementalUDA",
    "IncrementalUDO",
    "Insert",
    "IntervalEvent",
    "Lifetime",
    "Output",
    "Pattern",
    "Progress",
    "Record",
    "Rejected",
    "Retract",
    "Step",
    "Steps",
    "Stream",
    "TimeSensitiveIncrementalUDA",
    "TimeSensitiveIncrementalUDO",
    "TimeSensitiveUDA",
    "TimeSensitiveUDO",
    "WindowDescriptor",
    "WindowedStream",
    "astral",
    "avg",
    "cast",
    "check",
    "coalesce",
    "col",
    "collect",
    "contains",
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
    "from_table",
    "interval",
    "is_none",
    "last",
    "length",
    "lit",
    "local_time",
    "max",
    "median",
    "min",
    "not_",
    "param",
    "plan_from_json",
    "point",
    "quantile",
    "run_all",
    "source",
    "sql",
    "stddev",
    "sum",
    "sync_time",
    "testing",
    "time_weighted_avg",
    "truncate",
    "uda",
    "udf",
    "udm",
    "udo",
    "variance",
    "when",
]
