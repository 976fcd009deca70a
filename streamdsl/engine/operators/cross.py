"""Cross joins: a word to who joins all with all, once it is no longer a few rows that all the others meet."""

from __future__ import annotations

import warnings
from typing import Final

from streamdsl.errors import CrossJoinWarning
from streamdsl.plan.node import Join, Matching

FEW: Final = 100_000
"""So many pairs are no reason to warn."""
FEW_EACH: Final = 100
"""Nor are so many pairs for each row that came: what all rows meet is then a small table, or lives briefly."""


class CrossJoinGuard:
    """Counts the pairs of a cross join, and warns once that they are very many, at the line of the query that joins."""

    def __init__(self, label: str, node: Join) -> None:
        self._label = label
        self._written = node.written
        self._watches = node.matching == Matching()
        self._rows = 0
        self._pairs = 0

    def met(self, rows: int, partners: int) -> None:
        """Count rows that have come, and partners that they have met."""
        if not self._watches:
            return
        self._rows += rows
        self._pairs += partners
        if self._pairs > FEW and self._pairs > FEW_EACH * self._rows:
            self._watches = False
            self._warn()

    def _warn(self) -> None:
        text = (
            f"{self._label} is a cross join, and has made {self._pairs:,} pairs of {self._rows:,} rows: neither on nor where "
            "says which rows belong together.\n"
            'Hint: give on="field" or on=(lambda l: ..., lambda r: ...); if all pairs are meant, '
            'warnings.simplefilter("ignore", streamdsl.errors.CrossJoinWarning)'
        )
        if self._written is None:
            warnings.warn(text, CrossJoinWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, CrossJoinWarning, *self._written)
