"""The inputs: columns that are the same in every process. Times are milliseconds, rows are in order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Columns: TypeAlias = dict[str, NDArray[Any]]
Data: TypeAlias = Mapping[str, Columns]
Rows: TypeAlias = list[tuple[int, ...]]

RATE = 10
"""Events per millisecond."""
KEYS = 10_000


def bids(n: int, keys: int = KEYS, rate: float = RATE, late: float = 0.0, lateness: int = 30_000) -> Columns:
    """Return bids of ten thousand bidders; a share `late` of them arrives up to `lateness` ms after its time."""
    rng = np.random.default_rng(1)
    le = (np.arange(n) / rate).astype(np.int64)
    columns = {"le": le, "key": rng.integers(0, keys, n), "price": rng.integers(1, 10_000, n)}
    if not late:
        return columns
    arrival = le + np.where(rng.random(n) < late, rng.integers(0, lateness, n), 0)
    order = np.argsort(arrival, kind="stable")
    return {name: column[order] for name, column in columns.items()}


def packets(n: int, groups: int) -> Columns:
    """Return packets whose pairs of source and destination are so many; half a million packets make up a window."""
    rng = np.random.default_rng(2)
    pair = rng.integers(0, groups, n)
    return {"le": np.arange(n) // 500, "src": pair // 512, "dst": pair % 512}


def intervals(n: int) -> Columns:
    """Return interval events; about a thousand live at a time."""
    rng = np.random.default_rng(3)
    le = np.sort(rng.integers(0, max(n, 1), n))
    return {"le": le, "re": le + rng.integers(1, 2_000, n)}


def pair_of_streams(n: int) -> dict[str, Columns]:
    """Return two streams of `n` events in all, about ten to a key on either side."""
    rng = np.random.default_rng(4)
    side = n // 2
    return {name: _side(rng, side) for name in ("asks", "offers")}


def _side(rng: np.random.Generator, n: int) -> Columns:
    return {"le": np.arange(n) // RATE, "key": rng.integers(0, max(1, n // 10), n), "number": np.arange(n)}


def rows(columns: Columns) -> Rows:
    """Return columns as Python tuples."""
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))
