"""Windows that are made of others."""

from __future__ import annotations

import streamdsl as sd
from tests.laws.modules import Above, Ends
from tests.operators.entry import Operator

OPERATORS = [
    Operator(
        "trailing_window",
        page="windows",
        ends=True,
        variants=[
            lambda s: s.trailing_window(6).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
            lambda s: s.trailing_window(7, 3, 1).aggregate(v=sd.max(lambda e: e.v)),
            lambda s: s.group_by("k").trailing_window(3, 5).apply(Above(), lambda e: e.v),
            lambda s: s.trailing_window(8, 4, clip=sd.Clip.FULL).aggregate(Ends(), lambda e: e.v),
        ],
    ),
]
