"""The place in the user's code, file and line, of the call that makes an operator."""

from __future__ import annotations

import sys
from typing import TypeVar

from streamdsl.expr.nodes import Location
from streamdsl.expr.recursion import ensure_recursion_limit
from streamdsl.plan.base import Node

N = TypeVar("N", bound=Node)


def placed(node: N) -> N:
    """Store in a new node the innermost running line outside of this package; equality and `explain()` ignore it.

    >>> from streamdsl.plan.node import Source
    >>> placed(Source("trips")) == Source("trips")
    True
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("streamdsl."):
        frame = frame.f_back
    object.__setattr__(node, "written", Location(frame.f_code.co_filename, frame.f_lineno))
    ensure_recursion_limit(node.depth, "this query")
    return node
