"""The unit of time of a plan, which all its streams share, and filling it in for sources that leave it open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamdsl.plan.node import Group, GroupApply, Node, Source
from streamdsl.temporal import Unit


def in_unit(plan: Node, unit: Unit | None) -> Node:
    """Return the plan with this unit for every source without one (the same plan if all have one).

    >>> in_unit(Source("trips"), "s").unit, in_unit(Source("trips", time_unit="ms"), "s").unit
    ('s', 'ms')
    """
    if unit is None:
        return plan
    done: dict[int, Node] = {}

    def change(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = _changed(node, unit, change)
        return done[id(node)]

    return change(plan)


def _changed(node: Node, unit: Unit, change: Callable[[Node], Node]) -> Node:
    if isinstance(node, (Source, Group)):
        return node if node.time_unit else replace(node, time_unit=unit)
    node = node.map_inputs(change)
    if isinstance(node, GroupApply) and (body := change(node.body)) is not node.body:
        return replace(node, body=body)
    return node


def in_calendar(plan: Node, *times: object) -> Node:
    """Return the plan in microseconds if its unit is open and some of these times or durations are not in ticks.

    >>> in_calendar(Source("trips"), 5).unit, in_calendar(Source("trips"), "5s").unit
    (None, 'us')
    """
    in_ticks = all(time is None or callable(time) or isinstance(time, int) for time in times)
    return plan if in_ticks or plan.unit is not None else in_unit(plan, "us")
