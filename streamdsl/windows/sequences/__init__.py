"""Window sequences (paper 003): descriptions by name or by functions, and their windows over the tuples seen by a moment."""

from streamdsl.windows.sequences.description import AnySequence, GenericWindowSequence, Partitioned, WindowSequence
from streamdsl.windows.sequences.named import (
    Linear,
    five_uplet,
    fixed,
    for_loop,
    landmark,
    last_n_every,
    linear,
    range_slide,
    rows_slide,
)
from streamdsl.windows.sequences.seen import Seen
from streamdsl.windows.sequences.view import View

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
]
