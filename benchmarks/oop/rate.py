"""G1 (Figure 9): the highest rate at which a ring buffer does not overflow while the low level aggregates, by how it flushes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.oop.arrivals import SECOND
from streamdsl.progress import LowLevelAggregate, Tuple

RING = 2**16
GROUPS = [66_000, 130_000, 260_000, 520_000]
SIZES = [0.5, 1, 2]
WINDOWS = 3
PER_GROUP = 3
CHUNK = 128
POLICIES: dict[str, dict[str, Any]] = {
    "in order": {"order": "in", "every": 1},
    "out of order, slow": {"flush": "slow", "every": 160, "max_delay": 2},
    "out of order, lazy": {"flush": "lazy", "max_delay": 2},
}


class Rate(NamedTuple):
    """Tuples per second that are never lost, and that the operator takes when nothing is waiting for it."""

    supported: float
    plain: float


def packets(groups: int) -> list[Tuple]:
    """Return the packets of some windows of a minute, each of a random group."""
    rng = np.random.default_rng(groups)
    ids = rng.integers(0, 2**32, groups)
    n = groups * PER_GROUP
    chosen = ids[rng.integers(0, groups, n * WINDOWS)].tolist()
    return [Tuple(at // n * 60 * SECOND, group) for at, group in enumerate(chosen)]


def service(table: LowLevelAggregate, items: Sequence[Tuple]) -> Any:
    """Return the CPU seconds that each few packets take."""
    spent = []
    for at in range(0, len(items), CHUNK):
        start = time.process_time_ns()
        for item in items[at : at + CHUNK]:
            table.push(item)
        spent.append(time.process_time_ns() - start)
    return np.array(spent) / 1e9


def overflows(rate: float, spent: Any) -> bool:
    """Say whether packets that come at a constant rate ever fill the ring buffer."""
    arrived = np.arange(len(spent)) * CHUNK / rate
    total = np.cumsum(spent)
    done = total + np.maximum.accumulate(arrived - (total - spent))
    waiting = done * rate - np.arange(len(spent)) * CHUNK
    return bool((waiting > RING).any())


def supported(spent: Any) -> float:
    """Return the highest rate that does not overflow, within a hundredth."""
    low, high = 1.0, 1e8
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if overflows(middle, spent) else (middle, high)
    return low


PAPER = "0.76 and 0.80 M/s out of order at 260,000 groups, 0.40 M/s in order"


def measure() -> dict[tuple[str, float], list[Rate]]:
    """Return the rates of each policy with tables of each size, at each number of groups."""
    found: dict[tuple[str, float], list[Rate]] = {}
    for groups in GROUPS:
        items = packets(groups)
        for name, options in POLICIES.items():
            for size in SIZES:
                spent = service(LowLevelAggregate(60 * SECOND, int(groups * size), **options), items)
                rate = Rate(supported(spent), len(items) / spent.sum())
                found.setdefault((name, size), []).append(rate)
                print(f"G1 {name}, {groups:,} groups, table x {size:g}: {rate.supported:,.0f}/s, {rate.plain:,.0f}/s", flush=True)
    return found
