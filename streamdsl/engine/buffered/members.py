"""Which rows are in windows."""

from __future__ import annotations

from typing import NamedTuple

from streamdsl.expr.table import Rows


class Members(NamedTuple):
    """The members of windows: those of window i are at `places[lo[i]:hi[i]]`; windows that overlap may share them."""

    places: Rows
    lo: Rows
    hi: Rows

    def at(self, windows: Rows) -> Members:
        """Return those of some windows."""
        return Members(self.places, self.lo[windows], self.hi[windows])
