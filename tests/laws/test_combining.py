"""What rows add to windows, summed per group and window before anything is looked up, against a dictionary."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pyarrow.compute  # noqa: F401

from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.slice_sums import combine_windows
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.engine.sorting import as_one, order_by, sorted_integers
from streamdsl.engine.window_budget import WindowBudget
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

GROUPS = [[0], [0, 1, 2], [3, 2**40, 2**41], [0, 2**61], list(range(0, 2**20, 2**14))]
SUM = (0, 0)


def pending(rng: Random, groups: list[int], single: bool, counts_only: bool) -> Pending:
    size = rng.randint(1, 9)
    lo = np.array([rng.randint(-5, 5) for _ in range(size)])
    each = 1 if single else rng.choice([0, 2, 4])
    hi = None if each and rng.random() < 0.7 else lo + (each or np.array([rng.randint(1, 5) for _ in range(size)]))
    parts = [Part(ROWS, None, None, 1)]
    if not counts_only:
        parts.append(Part(SUM, None, np.array([rng.randint(-9, 9) for _ in range(size)]), 9))
    group = np.array([rng.choice(groups) for _ in range(size)])
    return Pending(group, lo, hi, Terms(size, parts), each=each if hi is None else 0)


def cells(part: Pending) -> list[tuple[tuple[int, int], int]]:
    """Return the window and group of each window that a row is in, and what the row adds to the sum."""
    amounts = part.terms.parts[-1].amounts
    values = [0] * len(part.lo) if amounts is None else amounts.tolist()
    rows = zip(part.lo.tolist(), part.hi.tolist(), part.groups.tolist(), values, strict=True)
    return [((number, group), value) for lo, hi, group, value in rows for number in range(lo, hi)]


@examples(200)
@given(SEEDS)
def test_rows_are_counted_and_summed_as_a_dictionary_does(seed: int) -> None:
    rng = Random(seed)
    groups, single, counts_only = rng.choice(GROUPS), rng.random() < 0.6, rng.random() < 0.5
    parts = [pending(rng, groups, single, counts_only) for _ in range(rng.randint(1, 3))]
    counts: Counter[tuple[int, int]] = Counter()
    sums: Counter[tuple[int, int]] = Counter()
    for cell, value in [found for part in parts for found in cells(part)]:
        counts[cell] += 1
        sums[cell] += value
    with patch("streamdsl.expr.kernel.COMPILE_FROM", rng.choice([1, 2**14])):  # pairs are hashed, or sorted
        found = combine_windows(parts, WindowBudget("", "windows", 10**6))
    keys = list(zip(found.numbers.tolist(), found.groups.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, found.totals.counts(ROWS).tolist(), strict=True)) == counts
    if not counts_only:
        assert [found.totals.digits_at(0, slot) for slot in range(len(keys))] == [(sums[key], 0) for key in keys]


@examples(100)
@given(SEEDS)
def test_what_is_clipped_are_the_windows_between(seed: int) -> None:
    rng = Random(seed)
    part = pending(rng, [0, 7], rng.random() < 0.5, rng.random() < 0.5)
    lo, hi = sorted(rng.randint(-7, 10) for _ in range(2))
    expected = [cell for cell in cells(part) if lo <= cell[0][0] < hi]
    clipped = part.clipped(lo, hi)
    assert (cells(clipped) if clipped else []) == expected
    assert not clipped or (clipped.first, clipped.stop) == (min(clipped.lo.tolist()), max(clipped.hi.tolist()))


@examples(200)
@given(SEEDS)
def test_the_order_by_columns_is_that_of_python(seed: int) -> None:
    rng = Random(seed)
    # So few rows that they are sorted as Python's values, and more.
    size, least = rng.choice([rng.randint(1, 9), rng.randint(17, 40)]), rng.choice([0, -2, -(2**63)])
    most = rng.choice([1, 3, 2**63 - 1])
    columns = [np.array([rng.choice([rng.randint(least, most), 1, 0]) for _ in range(size)]) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        columns[0].sort()
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    order = order_by(columns)
    assert (list(range(size)) if order is None else order.tolist()) == sorted(range(size), key=rows.__getitem__)
    assert order is not None or len(set(rows)) == size
    at, ordered = sorted_integers(columns[0])
    firsts = columns[0].tolist()
    assert at.tolist() == sorted(range(size), key=firsts.__getitem__)
    assert ordered.tolist() == sorted(firsts)
    one = as_one(columns)
    assert one is None or sorted(range(size), key=one.tolist().__getitem__) == sorted(range(size), key=rows.__getitem__)
    assert one is None or len(set(one.tolist())) == len(set(rows))
