"""The log of events: what has come and gone again, by place, for windows that fall apart."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.columnar.terms import Terms
from streamdsl.engine.sorting import sorted_integers
from streamdsl.engine.swept.boundaries import Boundaries
from streamdsl.engine.swept.packing import Packing
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class EventLog:
    """Entries in a few runs sorted by place; what has come and what has gone are entries alike (`endpoints` is 1 or -1)."""

    def __init__(self) -> None:
        self.entries = Boundaries()
        self._runs: list[tuple[Column, Rows]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, numbers: Column, codes: Rows, le: Ticks, re: Ticks, sign: int, terms: Terms) -> None:
        """Note lifetimes that have come (1) or gone (-1), and their terms."""
        if not len(le):
            return
        slots = self.entries.make(codes, le)
        self.entries.re[slots], self.entries.endpoints[slots] = re, sign
        self.entries.lanes.add(slots, terms if sign > 0 else -terms)
        self._size += len(le)
        while self._runs and len(self._runs[-1][1]) <= 2 * len(slots):
            others, other_slots = self._runs.pop()
            numbers, slots = np.concatenate([others, numbers]), np.concatenate([other_slots, slots])
        order, numbers = sorted_integers(numbers)
        self._runs.append((numbers, slots[order]))

    def between(self, low: Column, high: Column) -> Rows:
        """Return the entries in each stretch from `low` to before `high`."""
        found = [np.empty(0, dtype=np.intp)]
        for numbers, slots in self._runs:
            starts, stops = np.searchsorted(numbers, low), np.searchsorted(numbers, high)
            lengths = stops - starts
            found.append(slots[np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)])
        return np.concatenate(found)

    def counts(self, numbers: Column, slots: Rows) -> Ticks:
        """Return for each of some entries how many lifetimes equal to it there are, given the numbers of their places."""
        if not len(slots):
            return np.empty(0, dtype=np.int64)
        re = self.entries.re[slots]
        order = np.lexsort((re, numbers))
        ordered, ends = numbers[order], re[order]
        firsts = flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]) | (ends[1:] != ends[:-1])]))
        sums = np.add.reduceat(self.entries.endpoints[slots[order]], firsts)
        counts = np.empty(len(slots), dtype=np.int64)
        counts[order] = np.repeat(sums, np.diff(firsts, append=len(slots)))
        return counts

    def all(self) -> tuple[Column, Rows]:
        """Return the numbers and the slots of all entries."""
        if not self._runs:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.intp)
        return tuple(map(np.concatenate, zip(*self._runs, strict=True)))  # type: ignore[return-value]

    def starts(self) -> Ticks:
        """Return the LE of every entry."""
        return self.entries.le[self.all()[1]]

    def keep(self, is_kept: Column) -> None:
        """Drop all entries but these of `all()`."""
        numbers, slots = self.all()
        self.entries.drop(slots[~is_kept])
        order, numbers = sorted_integers(numbers[is_kept])
        self._runs = [(numbers, slots[is_kept][order])] if len(order) else []
        self._size = len(order)

    def renumber(self, packing: Packing) -> None:
        """Give all entries other numbers, in the same order."""
        self._runs = [(packing.numbers(self.entries.code[slots], self.entries.le[slots]), slots) for _, slots in self._runs]
