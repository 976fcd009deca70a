"""Pieces: the maximal, disjoint periods for which a row is in the output."""

from __future__ import annotations

from typing import NamedTuple

from streamdsl.engine.pairs import all_but
from streamdsl.engine.sorted.overlap import Probe
from streamdsl.engine.sorted.periods import Patches, Periods, touching
from streamdsl.engine.sorted.side import SortedSide
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class PieceChanges(NamedTuple):
    """Pieces that end elsewhere (at LE: they are retracted), and new ones, each with the number of its stretch."""

    at: Rows
    slots: Rows
    ends: Ticks
    come: Periods


def piece_changes(pieces: SortedSide, numbers: Rows, stretches: Patches, inside: Periods) -> PieceChanges:
    """Return how the pieces in some stretches change, if only these periods are in the output there.

    `numbers` are the pieces' keys.
    """
    at, known = pieces.living(touching(Probe(numbers, stretches.lo, stretches.hi)))
    rows = pieces.rows
    out = Periods(at, rows.le.take(known), rows.re.take(known))
    now = out.outside(stretches).and_also(inside).merged()
    stays, again = out.in_both(now)
    ends = out.le.copy()
    ends[stays] = now.re[again]
    moved = flatnonzero(ends != out.re)
    return PieceChanges(at[moved], known[moved], ends[moved], now.take(all_but(again, len(now.at))))
