"""Which rows end: what a plan says about lifetimes without end, and which operator it is that makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdsl.checks.plans import Checked
from streamdsl.expr.nodes import Constant
from streamdsl.plan.node import (
    AlterLifetime,
    Calendar,
    Chop,
    ClipDuration,
    ClipInterval,
    Extend,
    Group,
    GroupApply,
    Join,
    Match,
    Node,
    SemiJoin,
    Source,
    ToEdges,
    ToPointsAtEnd,
    Union,
    Windowed,
)
from streamdsl.plan.properties import reads_re
from streamdsl.temporal import INFINITY
from streamdsl.windows import Count, Hopping, Output, Sequenced


@dataclass(frozen=True, slots=True)
class Open:
    """Rows without end: `origin` makes them, a source if the data decide whether there are any."""

    origin: Node

    @property
    def depends_on_data(self) -> bool:
        """Whether there may be none."""
        return isinstance(self.origin, Source)


def open_rows(node: Node, plan: Checked) -> Open | None:
    """Return which of a node's rows never end, None if all do.

    A filter and a duration that is computed from the row are taken to say nothing about ends.

    >>> from streamdsl.plan.node import Shift
    >>> samples = ToEdges(Source("samples"), None)
    >>> shifted, clipped = Shift(samples, 5), ClipDuration(samples, 5)
    >>> open_rows(shifted, Checked(shifted)).origin.name, open_rows(clipped, Checked(clipped))
    ('ToEdges', None)
    """
    if isinstance(node, (Source, ToEdges)):
        return Open(node)
    if isinstance(node, Group):
        return open_rows(plan.groups[id(node)], plan)
    if isinstance(node, GroupApply):
        return open_rows(node.body, plan)
    if isinstance(node, Calendar):
        return None if node.end < INFINITY else Open(node)
    if isinstance(node, (AlterLifetime, Extend, ClipDuration, ClipInterval)):
        return _of_durations(node, plan)
    if isinstance(node, Calendar):
        return Open(node) if node.end == INFINITY else None
    if isinstance(node, Windowed) and isinstance(node.windows, Sequenced):
        return Open(node) if node.windows.sequence.lasts else None
    if isinstance(node, (ToPointsAtEnd, Chop, Match)) or (isinstance(node, Windowed) and _windows_end(node)):
        return None
    below = [open_rows(each, plan) for each in node.inputs]
    if isinstance(node, (Join, SemiJoin)):
        # A row of the output ends with the first of its two rows.
        return None if None in below else _worst(below, certain=False)
    return _worst(below, certain=True) if isinstance(node, Union) else below[0]


def _of_durations(node: AlterLifetime | Extend | ClipDuration | ClipInterval, plan: Checked) -> Open | None:
    if isinstance(node, AlterLifetime):
        if isinstance(node.duration, Constant):
            return Open(node) if node.duration.value == INFINITY else None
        return open_rows(node.input, plan) if reads_re(node) else None
    if isinstance(node, Extend):
        return Open(node) if node.duration == INFINITY else open_rows(node.input, plan)
    bound = node.duration if isinstance(node, ClipDuration) else node.hi
    return None if bound < INFINITY else open_rows(node.input, plan)


def _windows_end(node: Windowed) -> bool:
    """Say whether every row that a window operator gives ends: snapshots and sessions end with their rows."""
    if node.output in (Output.UNCHANGED, Output.TIME_BOUND):
        return False
    return node.output is Output.POINT_AT_END or isinstance(node.windows, (Hopping, Count))


def _worst(found: Sequence[Open | None], certain: bool) -> Open | None:
    """Return the rows that are sure to be open if there are some (`certain`), else those that depend on data first."""
    rows = sorted((rows for rows in found if rows), key=lambda rows: rows.depends_on_data == certain)
    return rows[0] if rows else None
