"""Quantiles of more values than one would keep: two sketches, for two kinds of error.

- `KllQuantile` bounds the error of the *rank*: it gives a value of the window, of a rank that is off by at most 1.33 % (99 % of
  the time, for k = 200). Source: Z. Karnin, K. Lang, E. Liberty, *Optimal Quantile Approximation in Streams*, FOCS 2016, as
  Apache DataSketches implements it (extra `sketches`). It tosses coins, so equal windows may give different answers.
- `LogQuantile` bounds the relative error of the *value*. Source: C. Masson, J. E. Rim, H. K. Lee, *DDSketch: A Fast and
  Fully-Mergeable Quantile Sketch with Relative-Error Guarantees*, PVLDB 12(12), 2195-2205, 2019. It is a histogram: it depends on
  the values alone, members may be removed, and no library is needed.

Both give the smallest value with at least a share q of the values at or below it.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import ClassVar, TypeAlias

import streamdsl as sd
from udm_examples.quantile import rank_of, share_of
from udm_examples.settings import whole
from udm_examples.sketch_state import SketchState, datasketches


class KllQuantile(sd.IncrementalUDA[float, SketchState, float | None]):
    """The q-quantile, off by a small share of the ranks; exact for up to k values. NaN is ignored; None if nothing is left.

    Raises `QueryError` for a `q` that is not between 0 and 1, a `k` below 8, or if `datasketches` is not installed.

    >>> module = KllQuantile(0.5)
    >>> module.compute_result(module.add_events_to_state(module.create_state(), [40.0, 10.0, 30.0]))
    30.0
    >>> state = module.add_events_to_state(module.create_state(), range(100_000))
    >>> 45_000 < module.compute_result(state) < 55_000
    True

    In a query:

    >>> waits = sd.from_rows([(1, 2, 3.0), (3, 4, 9.0), (5, 6, 4.0), (12, 13, 5.0)])
    >>> waits.tumbling_window(10).aggregate(median=KllQuantile(0.5).of(lambda e: e)).run().cht()
    CHT
      [0, 10) median=4.0
      [10, 20) median=5.0
    """

    deterministic: ClassVar[bool] = False

    def __init__(self, q: float, k: int = 200) -> None:
        self.q = share_of(q)
        self.k = whole("k", k, 8, 65535)
        datasketches()

    def create_state(self) -> SketchState:
        """Return an empty sketch."""
        return SketchState(datasketches().kll_doubles_sketch(self.k))

    def add_event_to_state(self, state: SketchState, payload: float) -> SketchState:
        """Take in a value."""
        state.sketch.update(float(payload))
        return state

    def merge_states(self, a: SketchState, b: SketchState) -> SketchState:
        """Return the sketch of the values of both."""
        a.sketch.merge(b.sketch)
        return a

    def compute_result(self, state: SketchState) -> float | None:
        """Return the quantile."""
        n = state.sketch.n
        if not n:
            return None
        # The sketch rounds a share up to a rank. Half a rank below the exact one no float error leads to the next.
        return float(state.sketch.get_quantile((rank_of(self.q, n) - 0.5) / n, inclusive=True))


Bucket: TypeAlias = tuple[int, int]
Histogram: TypeAlias = Counter[Bucket]

_ZERO: Bucket = (0, 0)
_INFINITE = 2
_NAN: Bucket = (3, 0)


class LogQuantile(sd.IncrementalUDA[float, Histogram, float]):
    """The q-quantile, off by a small share of its own size: a count for each range of values that lie as close together.

    With `accuracy` a, bucket i holds the values in `(g ** (i - 1), g ** i]`, `g = (1 + a) / (1 - a)`, and stands for
    `g ** (i - 1) * (1 + a)`, which is within a share a of each of them (but for subnormal numbers). Negative values have
    buckets of their own; NaN is the largest. Values between a millisecond and a day fall into 914 buckets of 1 %.

    Raises `QueryError` for a `q` that is not between 0 and 1, or an `accuracy` that is not between a millionth and 1.

    >>> module = LogQuantile(0.5, accuracy=0.01)
    >>> state = module.add_events_to_state(module.create_state(), [float(value) for value in range(1, 100_000)])
    >>> abs(module.compute_result(state) / 50_000 - 1) <= 0.01
    True
    >>> len(state)
    430

    In a query:

    >>> waits = sd.from_rows([(1, 2, 3.0), (3, 4, 9.0), (5, 6, 4.0), (12, 13, 0.0)])
    >>> for le, re, stats in waits.tumbling_window(10).aggregate(median=LogQuantile(0.5).of(lambda e: e)).run():
    ...     print(le, re, round(stats.median, 1))
    0 10 4.0
    10 20 0.0
    """

    def __init__(self, q: float, accuracy: float = 0.01) -> None:
        if not 1e-6 <= accuracy < 1:
            raise sd.errors.QueryError(
                f"the accuracy of a quantile is a share between 0.000001 and 1, not {accuracy}",
                hint="accuracy=0.01 keeps the error within 1 %",
            )
        self.q = share_of(q)
        self.accuracy = accuracy
        self.growth = (1 + accuracy) / (1 - accuracy)

    def create_state(self) -> Histogram:
        """Return no counts."""
        return Counter()

    def add_event_to_state(self, state: Histogram, payload: float) -> Histogram:
        """Count a value in its bucket."""
        state[self._bucket(payload)] += 1
        return state

    def remove_event_from_state(self, state: Histogram, payload: float) -> Histogram:
        """Count a value no longer."""
        bucket = self._bucket(payload)
        state[bucket] -= 1
        if not state[bucket]:
            del state[bucket]
        return state

    def merge_states(self, a: Histogram, b: Histogram) -> Histogram:
        """Return the counts of both."""
        a.update(b)
        return a

    def copy_state(self, state: Histogram) -> Histogram:
        """Return the same counts."""
        return state.copy()

    def compute_result(self, state: Histogram) -> float:
        """Return what the bucket of the quantile stands for."""
        rank = rank_of(self.q, state.total())
        for bucket in sorted(state):
            rank -= state[bucket]
            if rank <= 0:
                return self._middle(bucket)
        raise AssertionError("a rank is at most the number of values")

    def _bucket(self, value: float) -> Bucket:
        """Return a bucket; buckets are in the order of their values."""
        if value != value:
            return _NAN
        if value == 0:
            return _ZERO
        sign = 1 if value > 0 else -1
        if math.isinf(value):
            return (sign * _INFINITE, 0)
        return (sign, sign * math.ceil(math.log(abs(value), self.growth)))

    def _middle(self, bucket: Bucket) -> float:
        side, place = bucket
        if bucket == _NAN:
            return math.nan
        if abs(side) == _INFINITE:
            return math.copysign(math.inf, side)
        root: float = self.growth ** ((side * place - 1) / 2)
        return side * min(root * root * (1 + self.accuracy), sys.float_info.max)
