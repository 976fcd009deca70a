"""Final frontiers: up to which RE the rows of a stream are final (docs/semantics.md, when answers come).

A row of a stream is *final* if no legal continuation of the inputs can retract it or move its RE. The final frontier of a stream
is a time: its rows with RE <= it are final. The output CTI c alone gives the last time before c, as a row that ends at c may
still be lengthened; an operator may know better.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME
from streamdsl.windows import Grid, Output


class Frontier(NamedTuple):
    """The progress of a stream: changes have sync times >= `cti`, and rows with RE <= `final` are final."""

    cti: int
    final: int

    @classmethod
    def of(cls, cti: int, final: int = MIN_TIME) -> Frontier:
        """Return the frontier of a stream with this CTI, of which more may be known.

        >>> Frontier.of(60), Frontier.of(20, 60), Frontier.of(INFINITY)
        (Frontier(cti=60, final=59), Frontier(cti=20, final=60), Frontier(cti=9223372036854775807, final=9223372036854775807))
        """
        return cls(cti, max(final, before(cti)))


UNKNOWN: Final = MIN_TIME
"""No row has so early an end: nothing is known to be final beyond what the output CTI implies."""


def before(cti: int) -> int:
    """Return the last RE that no change with sync time >= `cti` reaches."""
    return cti if cti in (MIN_TIME, INFINITY) else cti - CHRONON


def moved(frontier: int, duration: int) -> int:
    """Return a frontier moved by a duration. Unending rows are final at the end of time only.

    >>> moved(60, 5), moved(60, -5), moved(INFINITY, -5) == INFINITY, moved(INFINITY - 2, 7) == INFINITY - 1
    (65, 55, True, True)
    """
    if frontier in (MIN_TIME, INFINITY):
        return frontier
    return min(max(frontier + duration, MIN_TIME), INFINITY - CHRONON)


def of_windows(output: Output, closed: int) -> int:
    """Return the final frontier of windows' results, given that all windows with W.RE <= `closed` are closed."""
    if output is Output.ALIGN:
        return closed
    return moved(closed, CHRONON) if output is Output.POINT_AT_END else UNKNOWN


def of_same_ends(rows: Frontier, cti: int) -> int:
    """Return the final frontier of rows that end where those of an input do, or are cut earlier at fixed times.

    Nothing else changes such rows before the CTI: one that is cut at the CTI stays, even if its input row is lengthened.
    """
    return min(rows.final, cti)


def quiet_until(grid: Grid, cti: int) -> int:
    """Return the CTI that closes the next window of a grid; MIN_TIME if none has begun, or it never ends.

    >>> from streamdsl.windows import Hopping
    >>> quiet_until(Hopping(10, 10), 17)
    20
    """
    first = grid.first_ending_after(cti)
    end = grid.end(first)
    return end if grid.start(first) <= cti and end <= INFINITY else MIN_TIME


def grid_cti(grid: Grid, output: Output, cti: int, settled: int) -> int:
    """Return the output CTI of a grid whose windows with W.RE <= `settled` are closed."""
    if output is Output.TIME_BOUND:
        return cti
    first = grid.first_ending_after(settled)
    if output is Output.POINT_AT_END:
        return cti if settled == cti else min(cti, grid.end(first))
    return min(cti, grid.start(first))
