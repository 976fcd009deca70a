"""Joins without a key: rows are put into buckets of time, and meet in that where their pair begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql.functions import broadcast, expr

from streamdsl.spark.sql import integer
from streamdsl.temporal import INFINITY

_TIMES: Final = ("lle", "lre", "rle", "rre", "rend")


def bucketed(lefts: Any, rights: Any, meet: str) -> Any:
    """Join rows without a key: each is put into the buckets of time that it lives in; a pair is found in that where it begins.

    A bucket is as long as the mean row, so that the rows become at most twice as many whatever their lengths.
    """
    both = lefts.selectExpr("lle as le", "lre as re").unionAll(rights.selectExpr("rle as le", "rend as re"))
    stats = broadcast(both.selectExpr("max(le) as top", f"{_mean_length('le', 're')} as width"))
    spread_left = _spread(_packed(lefts).crossJoin(stats), "l", "lle", "lre")
    spread_right = _spread(_packed(rights).crossJoin(stats), "r", "rle", "rend")
    pairs = joined(spread_left, spread_right, ["lb = rb", "lb = greatest(lb0, rb0)", meet])
    return pairs.selectExpr(
        *(f"element_at({name}, 1) as {name}" for name in (*lefts.columns, *rights.columns) if name not in _TIMES), *_TIMES
    )


def _packed(df: Any) -> Any:
    """Return rows with all but the times inside arrays.

    Spark's pruning of struct fields loses columns where rows are spread after a join; of arrays' items it prunes nothing.
    """
    return df.selectExpr(*(name if name in _TIMES else f"array({name}) as {name}" for name in df.columns))


def _mean_length(le: str, re: str) -> str:
    """Return the aggregation to the mean length of rows; one that never ends counts to the last start of all."""
    endless = f"{re} = {integer(INFINITY)}"
    finite = f"sum(if({endless}, 0D, cast({re} as double) - cast({le} as double)))"
    others = f"sum(if({endless}, 1D, 0D)) * cast(max({le}) as double) - sum(if({endless}, cast({le} as double), 0D))"
    return f"cast(least(greatest(1D, ({finite} + {others}) / count(1)), 4e18D) as bigint)"


def _spread(df: Any, side: str, le: str, re: str) -> Any:
    kept = [name for name in df.columns if name not in ("top", "width")]
    first, last = _bucket(le), _bucket(f"least({re} - 1L, top)")
    return df.selectExpr(*kept, f"{first} as {side}b0", f"explode(sequence({first}, greatest({first}, {last}))) as {side}b")


def _bucket(time: str) -> str:
    return f"({time} div width - if({time} % width < 0L, 1L, 0L))"


def joined(left: Any, right: Any, conditions: Sequence[str]) -> Any:
    """Return the pairs that fulfil all conditions."""
    return left.join(right, expr(" AND ".join(conditions)))
