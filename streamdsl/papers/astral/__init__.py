"""The window sequences of Astral (paper 003): windows by time or by position, of a query started at some time.

    >>> from streamdsl import astral
    >>> view = astral.View([("a", 1), ("b", 2), ("c", 4)])
    >>> view.content(astral.range_slide(3, 2), 4)
    ['a', 'b', 'c']

Numbers are exact: `int`, `Fraction`, or a float at its face value. `stream.windows(ws)` runs a sequence in a query, so that
the sequences themselves are the core's, in `streamdsl.windows.sequences`.
"""

from streamdsl.papers.astral.transposition import transposable
from streamdsl.windows.sequences import (
    AnySequence,
    GenericWindowSequence,
    Linear,
    Partitioned,
    Seen,
    View,
    WindowSequence,
    five_uplet,
    fixed,
    for_loop,
    landmark,
    last_n_every,
    linear,
    range_slide,
    rows_slide,
)

__all__ = [
    "AnySequence",
    "GenericWindowSequence",
    "Linear",
    "Partitioned",
    "Seen",
    "View",
    "WindowSequence",
    "five_uplet",
    "fixed",
    "for_loop",
    "landmark",
    "last_n_every",
    "linear",
    "range_slide",
    "rows_slide",
    "transposable",
]
