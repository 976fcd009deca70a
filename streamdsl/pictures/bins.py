"""How many rows live where: what is drawn of more rows than can be seen one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.pictures.axis import TimeAxis
from streamdsl.temporal.time import Ticks


def live(axis: TimeAxis, le: Ticks, re: Ticks, bins: int) -> NDArray[np.int64]:
    """Return for each of `bins` equal parts of the axis the number of rows that live in it.

    >>> live(TimeAxis(0, 10, None, 0.0, 1.0), np.array([0, 1, 9]), np.array([4, 2, 10]), 5).tolist()
    [2, 1, 0, 0, 1]
    """
    kept = re > le
    starts, ends = le[kept], re[kept] - 1
    begun = np.bincount(_bin(axis, starts, bins), minlength=bins).cumsum()
    ended = np.bincount(_bin(axis, ends, bins), minlength=bins).cumsum()
    counts: NDArray[np.int64] = begun - np.concatenate([[0], ended[:-1]])
    return counts


def _bin(axis: TimeAxis, times: Ticks, bins: int) -> NDArray[np.int64]:
    parts = (axis.xs(times) - axis.low) / (axis.high - axis.low) * bins
    return np.clip(parts, 0, bins - 1).astype(np.int64)


def packed(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return for each span the first line in which nothing overlaps it; spans get lines in order of where they start.

    >>> packed([(0, 5), (3, 8), (6, 9)])
    [0, 1, 0]
    """
    ends: list[float] = []
    lines = [0] * len(spans)
    for place in sorted(range(len(spans)), key=lambda n: spans[n][0]):
        low, high = spans[place]
        line = next((line for line, end in enumerate(ends) if end <= low), len(ends))
        ends[line : line + 1] = [high]
        lines[place] = line
    return lines


def said(count: int, bins: int, counts: NDArray[Any]) -> str:
    """Return what a picture of density is: how many rows in how many bins.

    >>> said(5_000_000, 400, np.array([7, 13021]))
    '5,000,000 rows in 400 bins, at most 13,021 in one'
    """
    return f"{count:,} rows in {bins} bins, at most {int(counts.max(initial=0)):,} in one"
