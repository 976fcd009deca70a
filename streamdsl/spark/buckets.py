"""Joins in buckets of time: rows are put into each that they live in, and meet in that where their pair begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql.functions import broadcast, expr

from streamdsl.spark.sql import integer
from streamdsl.temporal import INFINITY

_TIMES: Final = ("lle", "lre", "rle", "rre", "rend")


def bucketed(lefts: Any, rights: Any, keys: Sequence[str], conditions: Sequence[str], lengths: int = 1) -> Any:
    """Join rows that live together: whatever their number, also of one key, each is compared with its neighbours in time only.

    A bucket is as long as the mean row, `lengths` times: whatever the rows' lengths, they become about `1 + 1 / lengths` times
    as many. Conditions read the times, and columns of either side that `keys` names.
    """
    both = lefts.selectExpr("lle as le", "lre as re").unionAll(rights.selectExpr("rle as le", "rend as re"))
    stats = broadcast(both.selectExpr("max(le) as top", f"{_mean_length('le', 're', lengths)} as width"))
    spread_left = _spread(_packed(lefts, keys).crossJoin(stats), "l", "lle", "lre")
    spread_right = _spread(_packed(rights, keys).crossJoin(stats), "r", "rle", "rend")
    pairs = joined(spread_left, spread_right, [*conditions, "lb = rb", "lb = greatest(lb0, rb0)"])
    names = (*lefts.columns, *rights.columns)
    return pairs.selectExpr(
        *(name if name in keys else f"element_at({name}, 1) as {name}" for name in names if name not in _TIMES), *_TIMES
    )


def _packed(df: Any, keys: Sequence[str]) -> Any:
    """Return rows with all but the times and keys inside arrays.

    Spark's pruning of struct fields loses columns where rows are spread after a join; of arrays' items it prunes nothing.
    """
    return df.selectExpr(*(name if name in (*_TIMES, *keys) else f"array({name}) as {name}" for name in df.columns))


def _mean_length(le: str, re: str, times: int) -> str:
    """Return the aggregation to the mean length of rows, so many times; one that never ends counts to the last start of all."""
    endless = f"{re} = {integer(INFINITY)}"
    finite = f"sum(if({endless}, 0D, cast({re} as double) - cast({le} as double)))"
    others = f"sum(if({endless}, 1D, 0D)) * cast(max({le}) as double) - sum(if({endless}, cast({le} as double), 0D))"
    return f"cast(least(greatest(1D, {times}D * ({finite} + {others}) / count(1)), 4e18D) as bigint)"


def _spread(df: Any, side: str, le: str, re: str) -> Any:
    kept = [name for name in df.columns if name not in ("top", "width")]
    first, last = _bucket(le), _bucket(f"least({re} - 1L, top)")
    return df.selectExpr(*kept, f"{first} as {side}b0", f"explode(sequence({first}, greatest({first}, {last}))) as {side}b")


def _bucket(time: str) -> str:
    return f"({time} div width - if({time} % width < 0L, 1L, 0L))"


def joined(left: Any, right: Any, conditions: Sequence[str]) -> Any:
    """Return the pairs that fulfil all conditions."""
    return left.join(right, expr(" AND ".join(conditions)))
