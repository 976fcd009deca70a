"""Endpoints: what a batch of changed rows does at each place where lifetimes begin or end, summed per group and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.lanes import Lanes, Terms
from streamdsl.engine.columnar.packing import Packing
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import Ticks


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows that begin or end to be in `[lo, hi)` (`signs`), and what they add to the lanes there."""

    codes: Rows
    lo: Ticks
    hi: Ticks
    signs: Ticks
    is_whole: Column
    """Whether the row is there before or after, not both: LE then is an endpoint more or less."""
    terms: Terms

    @classmethod
    def of(cls, batch: Batch, codes: Rows, terms: Terms) -> Changed:
        """Return what a batch changes."""
        lo, hi = np.minimum(batch.re_old, batch.re_new), np.maximum(batch.re_old, batch.re_new)
        return cls(codes, lo, hi, np.where(batch.re_new > batch.re_old, 1, -1), lo == batch.le, terms)


@dataclass(frozen=True, slots=True)
class Deltas:
    """By group and time, in order: endpoints that come or go, and what `lanes` hold more from then on.

    `moved` is by how much the number of changed rows around grows there. INFINITY is a place too.
    """

    numbers: Column
    codes: Rows
    times: Ticks
    endpoints: Ticks
    moved: Ticks
    lanes: Lanes

    def __len__(self) -> int:
        return len(self.times)


def deltas_of(changed: Changed, packing: Packing) -> Deltas:
    """Sum up what rows change at both ends of each."""
    size = len(changed.lo)
    codes, times = np.concatenate([changed.codes, changed.codes]), np.concatenate([changed.lo, changed.hi])
    numbers = packing.numbers(codes, times)
    order = np.argsort(numbers)
    ordered = numbers[order]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(order)), dtype=np.bool_), ordered[1:] != ordered[:-1]]))
    examples = order[firsts]
    index = np.empty(len(order), dtype=np.intp)
    index[order] = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(order)))
    lanes = Lanes(len(firsts))
    terms = changed.terms.times(changed.signs)
    lanes.add(index[:size], terms)
    lanes.add(index[size:], -terms)
    endpoints = np.concatenate([np.where(changed.is_whole, changed.signs, -changed.signs), changed.signs])
    moved = np.repeat(np.array([1, -1]), size)
    return Deltas(
        ordered[firsts],
        codes[examples],
        times[examples],
        *(np.add.reduceat(amounts[order], firsts) for amounts in (endpoints, moved)),
        lanes,
    )
