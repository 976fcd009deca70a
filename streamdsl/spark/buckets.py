"""Joins in buckets of time: rows are put into each that they live in, and meet in that where their pair begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql.functions import expr

from streamdsl.spark.sql import integer, named
from streamdsl.temporal import INFINITY

_TIMES: Final = ("lle", "lre", "rle", "rre", "rend")


class Side(NamedTuple):
    """One side of a join: a frame, and the SQL of the columns that it is joined with, by their names."""

    frame: Any
    columns: Mapping[str, str]


def bucketed(
    lefts: Side, rights: Side, keys: Sequence[str], conditions: Sequence[str], shown: Mapping[str, str], lengths: int = 1
) -> Any:
    """Join rows that live together: whatever their number, also of one key, each is compared with its neighbours in time only.

    A bucket is as long as the mean row, `lengths` times: whatever the rows' lengths, they become about `1 + 1 / lengths` times
    as many. Conditions read the times, and columns of either side that `keys` names. Each step is analyzed, which takes longer
    than to join few rows: so there are few, and what was measured is a value to Spark, not a table to be joined with.
    """
    left = lefts.frame.selectExpr(f"{lefts.columns['lle']} as le", f"{lefts.columns['lre']} as re")
    both = left.unionAll(rights.frame.selectExpr(rights.columns["rle"], rights.columns["rend"]))
    grid = f"named_struct('top', max(le), 'width', {_mean_length('le', 're', lengths)}) as grid"
    measured = both.selectExpr(grid).scalar()
    loose = {*_TIMES, *keys}
    spread_left, spread_right = _spread(lefts, "l", "lre", measured, loose), _spread(rights, "r", "rend", measured, loose)
    texts = {name: text if text in loose else f"element_at({text}, 1)" for name, text in shown.items()}
    return joined(spread_left, spread_right, [*conditions, "lb = rb", "lb = greatest(lb0, rb0)"], named(texts))


def _mean_length(le: str, re: str, times: int) -> str:
    """Return the aggregation to the mean length of rows, so many times; one that never ends counts to the last start of all."""
    endless = f"{re} = {integer(INFINITY)}"
    finite = f"sum(if({endless}, 0D, cast({re} as double) - cast({le} as double)))"
    others = f"sum(if({endless}, 1D, 0D)) * cast(max({le}) as double) - sum(if({endless}, cast({le} as double), 0D))"
    return f"cast(least(greatest(1D, {times}D * ({finite} + {others}) / count(1)), 4e18D) as bigint)"


def _spread(side: Side, name: str, end: str, measured: Any, loose: set[str]) -> Any:
    """Return rows in each bucket that they live in, with all but `loose` columns inside arrays.

    Spark's pruning of struct fields loses columns where rows are spread; of arrays' items it prunes nothing.
    """
    first, last = _bucket(side.columns[f"{name}le"]), _bucket(f"least({side.columns[end]} - 1L, grid.top)")
    kept = {column: text if column in loose else f"array({text})" for column, text in side.columns.items()}
    buckets = f"explode(sequence({first}, greatest({first}, {last}))) as {name}b"
    return side.frame.withColumn("grid", measured).selectExpr(*named(kept), f"{first} as {name}b0", buckets)


def _bucket(time: str) -> str:
    return f"({time} div grid.width - if({time} % grid.width < 0L, 1L, 0L))"


def joined(left: Any, right: Any, conditions: Sequence[str], shown: Sequence[str]) -> Any:
    """Return columns of the pairs that fulfil all conditions."""
    return left.join(right, expr(" AND ".join(conditions))).selectExpr(*shown)
