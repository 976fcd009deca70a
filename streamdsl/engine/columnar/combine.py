"""Combining: what the rows of a slice add to windows, summed per group and window before anything is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamdsl.engine.codes import group_codes
from streamdsl.engine.columnar.lanes import Lanes
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.terms import ROWS, Terms
from streamdsl.engine.pairs import counted_pairs, distinct_pairs, span_of
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal.time import Ticks


class Combined(NamedTuple):
    """Sums by group and window number."""

    groups: Ticks
    numbers: Ticks
    lanes: Lanes


def combine_windows(parts: Sequence[Pending]) -> Combined:
    """Return what rows add to the windows that each covers, none without end, nor none at all."""
    found = _dense(parts)
    if found is not None:
        return found
    rows = Pending.concat(parts)
    if rows.is_single and rows.terms.counts_rows:
        numbers, groups, counts = counted_pairs(rows.lo, rows.groups)
        lanes = Lanes(len(counts))
        lanes.add(np.arange(len(counts)), Terms(len(counts), [part._replace(amounts=counts) for part in rows.terms.parts]))
        return Combined(groups, numbers, lanes)
    if rows.is_single:
        pairs = distinct_pairs(rows.lo, rows.groups)
        lanes = Lanes(len(pairs))
        lanes.add(pairs.index, rows.terms)
        return Combined(pairs.second, pairs.first, lanes)
    return _between_deltas(rows.groups, rows.lo, rows.hi, rows.terms)


def _dense(parts: Sequence[Pending]) -> Combined | None:
    """Add rows up in a place for each window and group; None if these are many more than rows, or there is more than numbers."""
    first = min(part.first for part in parts)
    n = max(part.stop for part in parts) - first + 1
    lowest, width = span_of([part.groups for part in parts])
    if (n + 1) * width > 2 * sum(len(part.lo) for part in parts) + 1024 or not all(map(_is_plain, parts)):
        return None
    lanes = Lanes((n + 1) * width)
    is_single = all(part.is_single for part in parts)
    for part in parts:
        lanes.add(_flat(part.lo - first, width, part.groups, lowest), part.terms)
        if not is_single:
            lanes.add(_flat(part.hi - first, width, part.groups, lowest), -part.terms)
    if not is_single:
        lanes.cumulate(width)
    found = flatnonzero(lanes.counts(ROWS))
    return Combined(found % width + lowest, found // width + first, lanes.take(found))


def _flat(numbers: Ticks, width: int, groups: Ticks, lowest: int) -> Ticks:
    """Return the place of each window and group, in the memory of `numbers`."""
    numbers *= width
    numbers += groups
    numbers -= lowest
    return numbers


def _is_plain(part: Pending) -> bool:
    """Say whether rows only add numbers, so that a window with rows in it has a number of rows."""
    return part.signs is None and not part.terms.loose


def _between_deltas(groups: Ticks, lo: Ticks, hi: Ticks, terms: Terms) -> Combined:
    """Sum up the deltas of each group: between two of them all windows are alike."""
    codes, known = group_codes(groups)
    pairs = distinct_pairs(np.concatenate([codes, codes]), np.concatenate([lo, hi]))
    starting, ending = pairs.index[: len(lo)], pairs.index[len(lo) :]
    lanes = Lanes(len(pairs))
    lanes.add(starting, terms)
    lanes.add(ending, -terms)
    lanes.cumulate()
    begun, ended = np.bincount(starting, minlength=len(pairs)), np.bincount(ending, minlength=len(pairs))
    covered = flatnonzero(np.cumsum(begun - ended))
    lengths = pairs.second[covered + 1] - pairs.second[covered]
    positions = np.repeat(covered, lengths)
    offsets = np.arange(len(positions)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Combined(known[pairs.first[positions]], pairs.second[positions] + offsets, lanes.take(positions))
