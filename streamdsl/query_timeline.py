"""The timeline of a query: its bound input, the windows that it makes, and its output, over one axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamdsl import running
from streamdsl.errors import QueryError
from streamdsl.pictures.brief import cut
from streamdsl.pictures.lanes import Lane, events_lane, windows_lane
from streamdsl.pictures.timeline_picture import Timeline
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Windowed
from streamdsl.plan.parameters import settled
from streamdsl.plan.units import in_unit
from streamdsl.temporal import CHT, INFINITY, CHTRow, Rejected, Rejections, common_unit, to_ticks

if TYPE_CHECKING:
    from streamdsl.denote.environment import Environment
    from streamdsl.io.binding import Bound

MOST_ROWS: Final = 2_000
"""The rows of input up to which windows are drawn: their members are found by the definition, row by row."""


def timeline(
    plan: Node, own: Mapping[str, Bound], given: Mapping[str, Any] | None, windows: bool, until: object = None
) -> Timeline:
    """Run a query over its bounded inputs, and return its timeline."""
    named = running.runnable_sources(plan)
    if given is None and (missing := [name for name in named if name not in own]):
        raise QueryError(
            f"the timeline of a query shows its input, and the source {missing[0]!r} is bound to none",
            hint=f"timeline(bindings={{{missing[0]!r}: events_or_frame}}), or session.timeline() of a live one",
        )
    plan = settled(plan)
    bound = running.bound(plan, own, given or {})
    result = running.run(plan, own, given, "local", until, None)
    late = _late(plan, bound) if len(result.rejected()) else {}
    inputs = [_input(_title(name, plan, own), each, late.get(name, ())) for name, each in bound.items()]
    (output,) = result.timeline().lanes
    middle = _windows(plan, bound, inputs, until) if windows else []
    return Timeline([*inputs, *middle, replace(output, title="output", role="output")], result.unit)


def _title(name: str, plan: Node, own: Mapping[str, Bound]) -> str:
    """Return the title of a source's lane: its name, unless that was made up for the only source."""
    made_up = name in own and re.fullmatch(r"[a-z]+_\d+", name)
    return "input" if made_up and len(running.runnable_sources(plan)) == 1 else name


def _late(plan: Node, bound: Mapping[str, Bound]) -> dict[str, Rejections]:
    """Return what each source has dropped or adjusted."""
    from streamdsl.denote import history

    late = {name: Rejections() for name in bound}
    for name, source in running.runnable_sources(plan).items():
        history(source, bound[name].events(), bound[name].unit, late[name])
    return late


def _input(title: str, bound: Bound, late: Sequence[Rejected]) -> Lane:
    """Return the lane of a source: its physical events, or its rows in columns."""
    piece = bound.whole()
    if isinstance(piece, list) or late:
        return events_lane(title, bound.events(), late=late)
    table = piece.table
    return Lane(title, piece.le, piece.re, lambda row: table.take(np.array([row])).payloads()[0])


def _windows(plan: Node, bound: Mapping[str, Bound], inputs: list[Lane], until: object) -> list[Lane]:
    """Return a lane for each window operator: the windows that it makes, by group, each with its members."""
    from streamdsl.denote import denote, history

    count = sum(map(len, inputs))
    operators = [node for node in plan.walk_all() if isinstance(node, Windowed)]
    names = labels(plan)
    if count > MOST_ROWS:
        note = f"windows are drawn of at most {MOST_ROWS:,} rows of input, here are {count:,}"
        return [windows_lane("windows", []).noted(f"{note} ({names[id(node)]})") for node in operators]
    plan = in_unit(plan, common_unit(plan.unit, *(each.unit for each in bound.values())))
    operators = [node for node in plan.walk_all() if isinstance(node, Windowed)]
    names = labels(plan)
    made: dict[int, list[tuple[CHTRow[Any], list[CHTRow[Any]]]]] = {id(node): [] for node in operators}

    def seen(node: Node, scope: Environment, inputs: tuple[CHT[Any], ...]) -> None:
        if isinstance(node, Windowed):
            for window, members in node.windows.divide(inputs[0].rows, scope.until):
                counted = f"{len(members)} row{'s' * (len(members) != 1)}"
                label = counted if scope.key is None else f"{counted} of {cut(scope.key, 16)}"
                made[id(node)].append((CHTRow(window.le, window.re, label), members))

    sources = running.runnable_sources(plan)
    histories = {name: history(sources[name], each.events(), each.unit) for name, each in bound.items()}
    denote(plan, histories, INFINITY if until is None else to_ticks(until, plan.unit), seen)
    return [
        windows_lane("windows", made[id(node)]).noted(f"{node.windows.describe(node.unit)} of {names[id(node)]}")
        for node in operators
    ]
