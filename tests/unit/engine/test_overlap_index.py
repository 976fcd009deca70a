"""The overlap index finds what overlaps, and looks at little else: counted in rows and runs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streamdsl.engine.batch import Batch
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.sorted.overlap import OverlapIndex, Probe
from streamdsl.engine.sorted.side import SortedSide
from streamdsl.engine.sorted.sort_keys import SortKeyEncoding
from streamdsl.expr.table import Column, Table
from streamdsl.temporal import INFINITY


def side_of(numbers: Column, le: Column, re: Column, pieces: int = 1) -> SortedSide:
    """Return a side that has taken rows in so many steps."""
    side = SortedSide(SortKeyEncoding())
    for rows in np.array_split(np.arange(len(le)), pieces):
        table = Table.from_payloads(rows.tolist())
        side.take(Batch(rows, le[rows], le[rows], re[rows], table), lambda batch: numbers[batch.ids])  # type: ignore[index]
        side.end_step()
        looked(side.index, 0, 0, 1)
    return side


def looked(index: OverlapIndex, number: int, lo: int, hi: int, copies: int = 1) -> set[int]:
    """Return the slots that are looked at for a row, asked for alone or among copies of it; each is looked at once."""
    asked = Probe(*(np.full(copies, value, dtype=np.int64) for value in (number, lo, hi)))
    slots = [int(slot) for at, slots in index.candidates(asked) for row, slot in zip(at, slots, strict=True) if row == copies - 1]
    assert len(slots) == len(set(slots))
    return set(slots)


def random_rows(rng: np.random.Generator, n: int, keys: int) -> tuple[Column, Column, Column]:
    le = rng.integers(-5_000, 5_000, n)
    re = np.where(rng.random(n) < 0.05, INFINITY, le + 1 + (2.0 ** rng.uniform(0, 14, n)).astype(np.int64))
    return rng.integers(0, keys, n) * int(rng.choice([1, 2**40])), le, re


@pytest.mark.parametrize("copies", [1, 40])
def test_it_finds_every_row_that_overlaps(copies: int) -> None:
    rng = np.random.default_rng(copies)
    for pieces in (1, 7, 60):
        numbers, le, re = random_rows(rng, 6_000, 5)
        side = side_of(numbers, le, re, pieces)
        for row in rng.integers(0, len(le), 30):
            lo, hi = int(le[row]), int(min(re[row], 10**6))
            overlap = np.flatnonzero((numbers == numbers[row]) & (le < hi) & (re > lo))
            assert set(overlap.tolist()) <= looked(side.index, int(numbers[row]), lo, hi, copies)


@pytest.mark.parametrize("copies", [1, 40])
def test_it_looks_at_a_small_multiple_of_what_overlaps_whatever_the_durations(copies: int) -> None:
    rng = np.random.default_rng(0)
    n = 40_000
    le = rng.integers(0, 100_000, n)
    re = le + 1 + (2.0 ** rng.uniform(0, 12, n)).astype(np.int64)
    side = side_of(np.zeros(n, dtype=np.int64), le, re)
    for lo in range(0, 100_000, 5_000):
        overlap = np.count_nonzero((le < lo + 100) & (re > lo))
        assert len(looked(side.index, 0, lo, lo + 100, copies)) <= 4 * overlap + 50


@pytest.mark.parametrize("copies", [1, 40])
def test_rows_that_never_end_do_not_make_every_search_long(copies: int) -> None:
    n = 20_000
    le = np.arange(n)
    re = np.where(le % 4_000 == 0, INFINITY, le + 3)
    side = side_of(np.zeros(n, dtype=np.int64), le, re)
    assert len(looked(side.index, 0, n - 5, n - 4, copies)) <= 3 + 5
    assert len(looked(side.index, 0, 5, 6, copies)) <= 3 + 1


def test_a_row_that_is_ended_is_looked_for_among_the_short_ones_from_then_on() -> None:
    n = 2_000
    le = np.arange(n)
    side = side_of(np.zeros(n, dtype=np.int64), le, np.full(n, INFINITY))
    table = Table.from_payloads(le.tolist())
    side.take(Batch(le, le, np.full(n, INFINITY), le + 2, table), lambda batch: le)
    side.end_step()
    assert len(looked(side.index, 0, n - 1, n)) <= 3


def test_times_that_leave_the_span_are_soon_told_apart_again() -> None:
    n = 5_000
    le = np.arange(n) * 10**15
    side = side_of(np.zeros(n, dtype=np.int64), le, le + 10**15, pieces=50)
    assert len(looked(side.index, 0, int(le[-2]), int(le[-2]) + 1)) <= 300


def test_there_are_few_runs_however_many_rows_come_one_by_one() -> None:
    rng = Random(1)
    le = np.sort(np.array([rng.randrange(10**6) for _ in range(40_000)]))
    side = side_of(np.zeros(len(le), dtype=np.int64), le, le + 50, pieces=400)
    assert sum(map(len, side.index._runs.values())) <= 5


def test_rows_that_a_cti_has_passed_are_let_go_and_their_memory_too() -> None:
    n = 10_000
    le = np.arange(n)
    side = side_of(np.zeros(n, dtype=np.int64), le, le + 5)
    full = MemoryMeter().bytes_of([side])
    side.forget(n - 10)
    assert side.n_events == 15
    assert MemoryMeter().bytes_of([side]) < full / 100
    assert len(looked(side.index, 0, n - 3, n)) >= 3
