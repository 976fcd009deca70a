"""Sums, means and variances of floats by Spark's own aggregates, which round at each step: what `exact=False` asks for."""

from __future__ import annotations

from typing import Any, Final

from streamdsl.spark.aggregation_plan import BufferColumn, NativeAggregate
from streamdsl.spark.column_types import as_nullable
from streamdsl.spark.sql_text import Sql
from streamdsl.udm import builtin
from streamdsl.windows import Hopping, Snapshot, Windows

_OF_FLOATS: Final = (builtin.Sum, builtin.Avg, builtin.Variance, builtin.Stddev)


def rounded(function: Any, value: Sql, windows: Windows) -> NativeAggregate | None:
    """Return a rounded aggregate of floats, None where there is none or where it gains nothing.

    Running sums of snapshots must be exact, as rows are retracted from them. Spark's variances cannot be merged, so in
    overlapping windows each row would be copied.
    """
    if not isinstance(function, _OF_FLOATS) or value.kind != "float" or isinstance(windows, Snapshot):
        return None
    if isinstance(function, builtin.Sum):
        return _aggregate(value, "{0}", BufferColumn("sum({x})"))
    if isinstance(function, builtin.Avg):
        return _aggregate(value, "{0} / nullif({1}, 0L)", BufferColumn("sum({x})"), BufferColumn("count({x})"))
    if not isinstance(windows, Hopping) or windows.size > windows.hop:
        return None
    name = "stddev_samp" if isinstance(function, builtin.Stddev) else "var_samp"
    return _aggregate(value, "{0}", BufferColumn(f"{name}({{x}})", None))


def _aggregate(value: Sql, result: str, *buffer: BufferColumn) -> NativeAggregate:
    return NativeAggregate(value, buffer, lambda columns: result.format(*columns), as_nullable(value.type))
