"""Matching of computed results with emitted ones: equal ones keep their ids."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.pairs import distinct_pairs
from streamdsl.engine.sorting import stable_order
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks


def paired(windows: Rows, codes: Rows, n_old: int) -> tuple[Rows, Rows]:
    """Match the first `n_old` rows, which are emitted results, with the others, which are computed; return the pairs.

    Rows match if they have the same window and code (equal payloads have equal codes): the first with the first, and so on.

    >>> [rows.tolist() for rows in paired(np.array([0, 0, 1, 0, 0, 0]), np.array([5, 5, 5, 5, 9, 5]), 3)]
    [[0, 1], [0, 2]]
    """
    groups = distinct_pairs(windows, codes).index
    old, new = groups[:n_old], groups[n_old:]
    return _first(old, np.bincount(new, minlength=len(groups))), _first(new, np.bincount(old, minlength=len(groups)))


def _first(groups: Rows, numbers: Ticks) -> Rows:
    """Return the first rows of each group, by group: as many as `numbers` says."""
    order = stable_order(groups)
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered)
    return order[flatnonzero(np.arange(len(order)) - starts < numbers[ordered])]


def numbered(sizes: Ticks, windows: Rows, taken: Ticks) -> Ticks:
    """Return numbers for all results that have none yet, window by window: the least that are free there.

    So many results each window has; those that have numbers are given by their windows.

    >>> numbered(np.array([3, 2]), np.array([0, 1]), np.array([1, 7])).tolist()
    [0, 2, 0]
    """
    starts = np.cumsum(sizes) - sizes
    is_free = np.ones(int(sizes.sum()), dtype=np.bool_)
    inside = taken < sizes[windows]
    is_free[starts[windows[inside]] + taken[inside]] = False
    free = flatnonzero(is_free)
    window = np.repeat(np.arange(len(sizes)), sizes)[free]
    wanted = sizes - np.bincount(windows, minlength=len(sizes))
    chosen = flatnonzero(np.arange(len(free)) - np.searchsorted(window, window) < wanted[window])
    return free[chosen] - starts[window[chosen]]
