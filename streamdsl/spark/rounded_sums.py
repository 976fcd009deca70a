"""Sums, means and variances of floats by Spark's own aggregates, which round at each step: what `exact=False` asks for."""

from __future__ import annotations

from typing import Any, Final

from streamdsl.spark.aggregation_plan import BufferColumn, NativeAggregate
from streamdsl.spark.column_types import as_nullable
from streamdsl.spark.sql_text import Sql
from streamdsl.udm import builtin
from streamdsl.windows import Snapshot, Windows

_SPREADS: Final = {builtin.Variance: "var_samp", builtin.Stddev: "stddev_samp"}


def rounded(function: Any, value: Sql, windows: Windows) -> NativeAggregate | None:
    """Return a rounded aggregate of floats, None where there is none or where it gains nothing.

    Running sums of snapshots must be exact, as rows are retracted from them. Spark's variances cannot be merged, so in
    overlapping windows each row would be copied.
    """
    kind, total = type(function), BufferColumn("sum({x})")
    if kind not in (builtin.Sum, builtin.Avg, *_SPREADS) or value.kind != "float" or isinstance(windows, Snapshot):
        return None
    if kind in _SPREADS:
        return _aggregate(value, "{0}", BufferColumn(f"{_SPREADS[kind]}({{x}})", None)) if windows.are_apart else None
    if kind is builtin.Sum:
        return _aggregate(value, "{0}", total)
    return _aggregate(value, "{0} / nullif({1}, 0L)", total, BufferColumn("count({x})"))


def _aggregate(value: Sql, result: str, *buffer: BufferColumn) -> NativeAggregate:
    return NativeAggregate(value, buffer, lambda columns: result.format(*columns), as_nullable(value.type))
