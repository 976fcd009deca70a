"""Interval joins by time buckets: a row is copied into each bucket it overlaps; a pair is formed where its overlap begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql.functions import expr

from streamdsl.spark.sql_text import aliased, integer
from streamdsl.temporal import INFINITY

_TIMES: Final = ("lle", "lre", "rle", "rre", "rend")


class JoinSide(NamedTuple):
    """One side of a join: a frame, and the SQL of the columns that it is joined with, by their names."""

    frame: Any
    columns: Mapping[str, str]


def bucketed_join(
    lefts: JoinSide, rights: JoinSide, keys: Sequence[str], conditions: Sequence[str], shown: Mapping[str, str], lengths: int = 1
) -> Any:
    """Join rows whose lifetimes overlap; each row is compared only with rows near it in time, however many share its key.

    A bucket is `lengths` times as long as the mean lifetime: whatever that is, there are about `1 + 1 / lengths` copies per row.
    Conditions read the times, and the columns of either side that `keys` names. Spark analyzes each step of a plan, which takes
    longer than joining few rows: so the steps are few, and the bucket length is a scalar subquery, not a joined table.
    """
    left = lefts.frame.selectExpr(f"{lefts.columns['lle']} as le", f"{lefts.columns['lre']} as re")
    both = left.unionAll(rights.frame.selectExpr(rights.columns["rle"], rights.columns["rend"]))
    grid = f"named_struct('top', max(le), 'width', {_mean_length('le', 're', lengths)}) as grid"
    measured = both.selectExpr(grid).scalar()
    loose = {*_TIMES, *keys}
    spread_left, spread_right = (
        _in_each_bucket(lefts, "l", "lre", measured, loose),
        _in_each_bucket(rights, "r", "rend", measured, loose),
    )
    texts = {name: text if text in loose else f"element_at({text}, 1)" for name, text in shown.items()}
    return join_where(spread_left, spread_right, [*conditions, "lb = rb", "lb = greatest(lb0, rb0)"], aliased(texts))


def _mean_length(le: str, re: str, times: int) -> str:
    """Return the SQL aggregate of the mean lifetime times a factor; a row that never ends counts up to the largest LE."""
    endless = f"{re} = {integer(INFINITY)}"
    finite = f"sum(if({endless}, 0D, cast({re} as double) - cast({le} as double)))"
    others = f"sum(if({endless}, 1D, 0D)) * cast(max({le}) as double) - sum(if({endless}, cast({le} as double), 0D))"
    return f"cast(least(greatest(1D, {times}D * ({finite} + {others}) / count(1)), 4e18D) as bigint)"


def _in_each_bucket(side: JoinSide, name: str, end: str, measured: Any, loose: set[str]) -> Any:
    """Return a copy of each row per bucket that it overlaps, with all but `loose` columns inside arrays.

    Spark's pruning of nested fields loses columns below an `explode`; it does not prune inside arrays.
    """
    first, last = _bucket(side.columns[f"{name}le"]), _bucket(f"least({side.columns[end]} - 1L, grid.top)")
    kept = {column: text if column in loose else f"array({text})" for column, text in side.columns.items()}
    buckets = f"explode(sequence({first}, greatest({first}, {last}))) as {name}b"
    return side.frame.withColumn("grid", measured).selectExpr(*aliased(kept), f"{first} as {name}b0", buckets)


def _bucket(time: str) -> str:
    return f"({time} div grid.width - if({time} % grid.width < 0L, 1L, 0L))"


def join_where(left: Any, right: Any, conditions: Sequence[str], shown: Sequence[str]) -> Any:
    """Return columns of the pairs that meet all conditions."""
    return left.join(right, expr(" AND ".join(conditions))).selectExpr(*shown)
