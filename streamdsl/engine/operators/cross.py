"""A warning about large cross joins: when each row meets many others, rather than a small table."""

from __future__ import annotations

import warnings
from typing import Final

from streamdsl.errors import CrossJoinWarning
from streamdsl.plan.node import Join, Matching

FEW: Final = 100_000
"""Up to this many pairs there is no warning."""
FEW_EACH: Final = 100
"""Nor is there one up to this many pairs for each row: a table that all rows meet is small, or its rows live briefly."""


class CrossJoinGuard:
    """Counts the pairs of a cross join, and warns once if there are very many, at the line of the query that joins."""

    def __init__(self, label: str, node: Join) -> None:
        self._label = label
        self._written = node.written
        self._watches = node.matching == Matching()
        self._rows = 0
        self._pairs = 0

    def met(self, rows: int, partners: int) -> None:
        """Count rows, and the partners that they have met."""
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
