"""The built-in aggregates as functions: what `aggregate(n=sd.count(), mean=sd.avg(lambda e: e.fare))` is written with.

Each takes the expression first and `where=`, a predicate that leaves rows out. None is ignored; the rules for NaN, ties and for
windows where nothing is left are those of `streamdsl.udm.builtin`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, overload

from typing_extensions import TypeVar

from streamdsl.udm import builtin
from streamdsl.udm.bases import Agg
from streamdsl.udm.counted_values import check_values

T = TypeVar("T")
V = TypeVar("V")
Method: TypeAlias = Literal["linear", "inverted_cdf"]

__all__ = [
    "avg",
    "collect",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "median",
    "min",
    "quantile",
    "stddev",
    "sum",
    "time_weighted_avg",
    "variance",
]


@overload
def count() -> Agg[object, int]: ...
@overload
def count(f: Callable[[T], object] | None = None, *, where: Callable[[T], object] | None = None) -> Agg[T, int]: ...
def count(f: Any = None, *, where: Any = None) -> Agg[Any, int]:
    """Return the aggregate: the number of rows, or of an expression's values that are not None; `where=` counts by a predicate.

    Raises `QueryError` for a predicate in place of values, of which each row has one: `count(where=lambda e: e.fare > 5)`.

    >>> count(lambda e: e.fare).function.compute_result([1, None, 3])
    2
    """
    check_values(f)
    return Agg(builtin.Count(), f, where)


def sum(f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> Agg[T, V]:
    """Return the aggregate: the sum, of integers exact beyond int64 too.

    >>> sum(lambda e: e.fare).function.compute_result([1, None, 3])
    4
    """
    return Agg(builtin.Sum(), f, where)


def avg(f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> Agg[T, float]:
    """Return the aggregate: the mean.

    >>> avg(lambda e: e.fare).function.compute_result([4, 8])
    6.0
    """
    return Agg(builtin.Avg(), f, where)


def min(f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> Agg[T, V]:
    """Return the aggregate: the smallest value; NaN counts as the largest.

    >>> min(lambda e: e.fare).function.compute_result([3, 1])
    1
    """
    return Agg(builtin.Min(), f, where)


def max(f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> Agg[T, V]:
    """Return the aggregate: the largest value; NaN counts as the largest.

    >>> max(lambda e: e.fare).function.compute_result([3, None, 1])
    3
    """
    return Agg(builtin.Max(), f, where)


def median(f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> Agg[T, float]:
    """Return the aggregate: the middle value; of an even number the mean of the two.

    >>> median(lambda e: e.fare).function.compute_result([1, 2, 4, 8])
    3.0
    """
    return Agg(builtin.Median(), f, where)


def quantile(
    f: Callable[[T], float | None], q: float, method: Method = "linear", *, where: Callable[[T], object] | None = None
) -> Agg[T, float]:
    """Return the aggregate: the q-quantile, interpolated, or a value that occurs (`"inverted_cdf"`).

    >>> quantile(lambda e: e.fare, 0.25, "inverted_cdf").function.compute_result([1, 2, 4, 8])
    1
    """
    return Agg(builtin.Quantile(q, method), f, where)


def stddev(f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> Agg[T, float]:
    """Return the aggregate: the standard deviation of the sample; None for one row.

    >>> stddev(lambda e: e.fare).function.compute_result([1, 1])
    0.0
    """
    return Agg(builtin.Stddev(), f, where)


def variance(f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> Agg[T, float]:
    """Return the aggregate: the variance of the sample; None for one row.

    >>> variance(lambda e: e.fare).function.compute_result([1, 3])
    2.0
    """
    return Agg(builtin.Variance(), f, where)


@overload
def count_distinct() -> Agg[object, int]: ...
@overload
def count_distinct(f: Callable[[T], object] | None = None, *, where: Callable[[T], object] | None = None) -> Agg[T, int]: ...
def count_distinct(f: Any = None, *, where: Any = None) -> Agg[Any, int]:
    """Return the aggregate: the number of different values, of the whole payload without an expression.

    >>> count_distinct(lambda e: e.zone).function.compute_result(["a", "b", "a", None])
    2
    """
    return Agg(builtin.CountDistinct(), f, where)


def first(f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> Agg[T, V]:
    """Return the aggregate: the value of the first row in order of (LE, payload).

    >>> first(lambda e: e.fare).function.compute_result([3, 1])
    3
    """
    return Agg(builtin.First(), f, where)


def last(f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> Agg[T, V]:
    """Return the aggregate: the value of the last row in order of (LE, payload).

    >>> last(lambda e: e.fare).function.compute_result([3, 1])
    1
    """
    return Agg(builtin.Last(), f, where)


def collect(f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> Agg[T, list[V]]:
    """Return the aggregate: the list of all values in order of (LE, payload).

    >>> collect(lambda e: e.fare).function.compute_result([3, None, 1])
    [3, 1]
    """
    return Agg(builtin.Collect(), f, where)


def time_weighted_avg(f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> Agg[T, float]:
    """Return the aggregate: the sum of value x lifetime inside the window over the window's length; always fully clipped.

    >>> time_weighted_avg(lambda e: e.load).function.label
    'time_weighted_avg'
    """
    return Agg(builtin.TimeWeightedAvg(), f, where)
