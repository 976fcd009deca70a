"""Out-of-order processing (paper 004): operators fed by hand, to see what order costs.

    >>> from streamdsl import progress
    >>> join = progress.BandJoin(before=2, after=3)
    >>> join.push(progress.Tuple(10, "l"), input=0)
    []
    >>> join.push(progress.Tuple(8, "r"), input=1)
    [Joined(left=Tuple(ts=10, payload='l'), right=Tuple(ts=8, payload='r'))]

Each trusts punctuation, and no order; with `order="in"` it is its counterpart in a system that keeps order.
"""

from streamdsl.papers.out_of_order.aggregate import WindowAggregate
from streamdsl.papers.out_of_order.input_operators import Describe, Input, Sort
from streamdsl.papers.out_of_order.items import (
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
from streamdsl.papers.out_of_order.low_level import LowLevelAggregate, roll_up
from streamdsl.papers.out_of_order.pair_aggregate import PairAggregate
from streamdsl.papers.out_of_order.punctuated_join import BandJoin, EqualityJoin
from streamdsl.papers.out_of_order.punctuated_operator import Operator, Punctuated
from streamdsl.papers.out_of_order.punctuated_union import Union
from streamdsl.papers.out_of_order.restamp import Chain, OfAttribute, OfPairs, OfWindows
from streamdsl.papers.out_of_order.smooth import Smooth
from streamdsl.papers.out_of_order.window_numbers import extent, wids
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
