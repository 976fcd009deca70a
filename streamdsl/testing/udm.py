"""Running one module on one window, with no engine and no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from streamdsl.temporal import CHT, CHTRow, Lifetime
from streamdsl.udm.bases import AnyUDA, AnyUDO, IntervalEvent
from streamdsl.udm.invoke import MemberRow, aggregate, operate
from streamdsl.windows import Clip, Output


def run_udm(
    udm: AnyUDA[Any, Any] | AnyUDO[Any, Any],
    events: CHT[Any] | Iterable[tuple[int, int, Any] | IntervalEvent[Any]],
    window: tuple[int, int],
    *,
    clip: Clip = Clip.NONE,
    output: Output = Output.ALIGN,
    seed: int = 0,
) -> Any:
    """Return what a module makes of the events that overlap one window: an aggregate's value, an operator's rows.

    The events come to the module in a random order, as no order is promised. A window without events has no result: None, or
    no rows.

    >>> from streamdsl.udm.builtin import TimeWeightedAvg
    >>> run_udm(TimeWeightedAvg(), [(0, 3, 4.0), (2, 12, 8.0), (10, 11, 99.0)], (0, 10))
    7.6
    """
    period = Lifetime(*window)
    members = [MemberRow(*life, payload, (payload,)) for life, payload in map(_row, events) if life.overlaps(period)]
    Random(seed).shuffle(members)
    if isinstance(udm, AnyUDA):
        return aggregate(udm, 0, members, period, clip) if members else None
    rows = operate(udm, members, period, clip, output) if members else []
    return [CHTRow(*row) for row in rows]


def _row(event: tuple[int, int, Any] | IntervalEvent[Any]) -> tuple[Lifetime, Any]:
    if isinstance(event, IntervalEvent):
        return Lifetime(event.start_time, event.end_time), event.payload
    le, re, payload = event
    return Lifetime(le, re), payload
