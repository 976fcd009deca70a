"""When a query's windows are those of one started earlier: transposition in time (paper 003, property 4 and corollary 2).

The printed conditions are corrected: D is the number of tuples that only the earlier query sees, and the two are equal from the
moment on when the later one has created its first window.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamdsl.windows.sequences import AnySequence, Linear, View
from streamdsl.windows.sequences.numbers import Given, exact
from streamdsl.windows.sequences.transposing import synchronous
from streamdsl.windows.sequences.view import Tuple


def transposable(ws1: AnySequence, t0: Given, ws2: AnySequence, t1: Given, tuples: Iterable[Tuple] = ()) -> bool:
    """Say whether `ws2` started at t1 gives what `ws1` started at t0 gives, restricted to tuples with t >= t1.

    That is from the moment on when the later query has created its first window. Both are `linear` sequences at one rate and in
    one domain; in the domain of positions `tuples` counts: those before t1 are seen by the earlier query alone.

    >>> from streamdsl.astral import linear
    >>> transposable(linear((2, 3), (5, 3), 5), 0, linear((2, 7), (5, 13), 5), 5)
    True
    >>> transposable(linear((2, 3), (5, 3), 5), 0, linear((2, 12), (5, 18), 5), 10)
    False
    """
    first, second = _linear(ws1), _linear(ws2)
    start, later = exact(t0), exact(t1)
    if first.domain != second.domain or first.rate != second.rate or later < start:
        return False
    if first.start[0] != second.start[0] or first.end[0] != second.end[0]:
        return False
    if first.domain == "time":
        return synchronous(first, second, 0, later)
    view = View(tuples, start)
    hidden = view.first_from(later)
    return synchronous(first, second, hidden, 0) and (_ends_with_batches(first, view) or _is_never_cut(first, second, hidden))


def _ends_with_batches(sequence: Linear, view: View) -> bool:
    """Say whether every window of positions ends where a batch does."""
    return len(set(view.batches)) == len(view.batches) or sequence.end[0] == sequence.rate == 1


def _is_never_cut(first: Linear, second: Linear, hidden: int) -> bool:
    """Say whether the windows of the later query begin, by their formula, at its first position or later."""
    slope, offset = first.start
    return slope >= 0 and (second.start[1] if slope else offset - hidden) >= 0


def _linear(sequence: object) -> Linear:
    if not isinstance(sequence, Linear) or sequence.relative or not sequence.cut or sequence.rate is None:
        raise TypeError(f"transposable compares linear sequences, not {sequence!r}")
    return sequence
