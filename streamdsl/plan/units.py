"""The unit of time of a plan, which all its streams share, and filling it in for sources that leave it open."""

from __future__ import annotations

from dataclasses import replace

from streamdsl.plan.node import Group, Node, Source
from streamdsl.temporal import Unit


def in_unit(plan: Node, unit: Unit | None) -> Node:
    """Return the plan with this unit for every source without one (the same plan if all have one).

    >>> in_unit(Source("trips"), "s").unit, in_unit(Source("trips", time_unit="ms"), "s").unit
    ('s', 'ms')
    """
    if unit is None:
        return plan

    def change(node: Node) -> Node:
        return replace(node, time_unit=unit) if isinstance(node, (Source, Group)) and not node.time_unit else node

    return plan.mapped(change)


def in_calendar(plan: Node, *times: object) -> Node:
    """Return the plan in microseconds if its unit is open and some of these times or durations are not in ticks.

    >>> in_calendar(Source("trips"), 5).unit, in_calendar(Source("trips"), "5s").unit
    (None, 'us')
    """
    in_ticks = all(time is None or callable(time) or isinstance(time, int) for time in times)
    return plan if in_ticks or plan.unit is not None else in_unit(plan, "us")
