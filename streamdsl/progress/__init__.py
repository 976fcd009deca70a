"""Out-of-order processing (paper 004): operators fed by hand, to see what order costs.

    >>> from streamdsl import progress
    >>> join = progress.BandJoin(before=2, after=3)
    >>> join.push(progress.Tuple(10, "l"), input=0)
    []
    >>> join.push(progress.Tuple(8, "r"), input=1)
    [Joined(left=Tuple(ts=10, payload='l'), right=Tuple(ts=8, payload='r'))]

Each trusts punctuation, and no order; with `order="in"` it is its counterpart in a system that keeps order.
"""

from streamdsl.progress.aggregate import WindowAggregate
from streamdsl.progress.inputs import Describe, Input, Sort
from streamdsl.progress.items import (
    Item,
    Joined,
    JointPunctuation,
    PairResult,
    Partial,
    Punctuation,
    Tuple,
    Unmatched,
    WindowResult,
    low_water_marks,
    number,
    tightness,
)
from streamdsl.progress.join import BandJoin, EqualityJoin
from streamdsl.progress.low_level import LowLevelAggregate, roll_up
from streamdsl.progress.operator import Operator, Punctuated
from streamdsl.progress.pairs import PairAggregate
from streamdsl.progress.restamp import Chain, OfAttribute, OfPairs, OfWindows
from streamdsl.progress.smooth import Smooth
from streamdsl.progress.union import Union
from streamdsl.progress.windows import extent, wids
from streamdsl.temporal.time import INFINITY

__all__ = [
    "INFINITY",
    "BandJoin",
    "Chain",
    "Describe",
    "EqualityJoin",
    "Input",
    "Item",
    "Joined",
    "JointPunctuation",
    "LowLevelAggregate",
    "OfAttribute",
    "OfPairs",
    "OfWindows",
    "Operator",
    "PairAggregate",
    "PairResult",
    "Partial",
    "Punctuated",
    "Punctuation",
    "Smooth",
    "Sort",
    "Tuple",
    "Union",
    "Unmatched",
    "WindowAggregate",
    "WindowResult",
    "extent",
    "low_water_marks",
    "number",
    "roll_up",
    "tightness",
    "wids",
]
