"""Windows that stretches of numbers cover, of a grid for each partition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.pairs import distinct_pairs, spread
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class Covered(NamedTuple):
    """Runs of windows that rows enter or leave: the first number, the length, and the change in the number of rows."""

    codes: Rows
    first: Ticks
    lengths: Ticks
    more: Ticks

    def spread(self) -> tuple[Rows, Ticks]:
        """Return the number of each window, after that of its stretch."""
        return spread(self.first, self.first + self.lengths)


def covered(codes: Rows, lo: Ticks, hi: Ticks, more: Ticks) -> Covered:
    """Return the windows `[lo, hi)` of rows, each of which counts for so many: between two of these numbers all are alike.

    >>> one = np.ones(2, dtype=np.int64)
    >>> [part.tolist() for part in covered(np.array([0, 0]), np.array([1, 2]), np.array([4, 3]), one)]
    [[0, 0, 0], [1, 2, 3], [1, 1, 1], [1, 2, 1]]
    """
    at = flatnonzero(lo < hi)
    if not len(at):
        return Covered(codes[:0], lo[:0], lo[:0], lo[:0])
    if len(at) < len(lo):
        codes, lo, hi, more = codes[at], lo[at], hi[at], more[at]
    pairs = distinct_pairs(np.concatenate([codes, codes]), np.concatenate([lo, hi]))
    begins, ends = pairs.index[: len(lo)], pairs.index[len(lo) :]
    counts = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(counts, begins, more)
    np.subtract.at(counts, ends, more)
    covers = np.bincount(begins, minlength=len(pairs)) - np.bincount(ends, minlength=len(pairs))
    filled = flatnonzero(np.cumsum(covers))
    lengths = pairs.second[filled + 1] - pairs.second[filled]
    return Covered(pairs.first[filled], pairs.second[filled], lengths, np.cumsum(counts)[filled])
