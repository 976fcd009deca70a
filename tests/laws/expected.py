"""What must have come out of a session so far, computed from the definitions: api.md section 5, semantics.md section 2."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamdsl.denote import denote
from streamdsl.expr.evaluate import key_row
from streamdsl.plan.node import (
    AlterLifetime,
    Chop,
    Group,
    GroupApply,
    Node,
    Source,
    WindowAggregate,
    WindowApply,
    Windowed,
)
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, CHTRow, Cti, Event, Lifetime, add_time
from streamdsl.windows import Clip, Snapshot, Windows
from streamdsl.windows.liveliness import output_cti
from streamdsl.windows.spec import R
from tests.laws.fold import Fold, Slot
from tests.laws.part_of import PartOf

ROW_WISE = ("Where", "Select", "SelectMany", "ClipInterval", "Shift")
"""Operators whose output for a row, and whose output CTI, depend on nothing else."""


def sources_of(plan: Node) -> list[str]:
    """Return the names of a plan's sources."""
    return sorted({node.source for node in plan.walk() if isinstance(node, Source)})


def windows_of(plan: Node, group_input: Node | None = None) -> list[tuple[Windowed | Chop, Node]]:
    """Return the window operators of a plan, those inside groups too, each with the node that it reads outside of groups."""
    found: list[tuple[Windowed | Chop, Node]] = []
    for node in plan.walk():
        if isinstance(node, (Windowed, Chop)):
            found.append((node, _outside(node.input, group_input)))
        elif isinstance(node, GroupApply):
            found += windows_of(node.body, _outside(node.input, group_input))
    return found


def _outside(node: Node, group_input: Node | None) -> Node:
    """Return a node of a group's body as it would read what the groups are made of."""
    if isinstance(node, Group):
        return group_input or node
    return node.map_inputs(lambda below: _outside(below, group_input))


def is_row_wise(node: Node) -> bool:
    """Say whether a source is reached through row-wise operators alone, so that its events tell the watermark."""
    return isinstance(node, Source) or (node.name in ROW_WISE and is_row_wise(node.inputs[0]))


class Watermark:
    """The largest LE or CTI that a window operator has received, which reads a source through row-wise operators."""

    def __init__(self, reads: Node) -> None:
        self.reads = reads
        (self.source,) = sources_of(reads)
        self.moved = sum(node.ends.cti(0) for node in reads.walk() if isinstance(node, AlterLifetime) and node.kind == "Shift")
        self.time = MIN_TIME
        self.doubtful = MIN_TIME

    @property
    def is_certain(self) -> bool:
        """Say whether no event with an empty lifetime makes a difference: an operator between may pass it on or not."""
        return self.doubtful <= self.time

    def take(self, fold: Fold, event: Event[Any]) -> None:
        """Follow an event that the fold of the source has just taken; an event that has been retracted since still counts."""
        if isinstance(event, Cti):
            self.time = max(self.time, add_time(fold.cti, self.moved) if fold.cti > MIN_TIME else MIN_TIME)
            return
        if isinstance(self.reads, Source):
            self.time = max(self.time, event.le)
            return
        row = fold.row(event.id)
        self.time = max(self.time, *self._passed(row))
        self.doubtful = max(self.doubtful, *self._passed(row._replace(re=max(row.re, add_time(row.le, 1)))))

    def _passed(self, row: CHTRow[Any]) -> list[int]:
        """Return the LEs of what the operators between make of a row; never nothing."""
        return [MIN_TIME, *(found.le for found in denote(self.reads, {self.source: CHT([row])}, INFINITY))]


@dataclass(frozen=True, slots=True)
class Gated(PartOf):
    """The windows of another kind that may show their result at a watermark: those that have begun, or by end, that are over.

    Only those that start before a time, `before`, count.
    """

    inner: Windows
    high_water: int
    by_end: bool
    before: int = INFINITY

    @property
    def all_windows(self) -> Windows:
        return self.inner

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        windows = self.inner.over(lifetimes, min(until, self._last_end()))
        return [w for w in windows if (w.re if self.by_end else w.le) <= self.high_water and w.le < self.before]

    def _last_end(self) -> int:
        if self.by_end or self.high_water == INFINITY:
            return self.high_water
        return min(INFINITY, self.high_water + self.inner.longest)

    def divide(self, rows: Iterable[R], until: int = INFINITY) -> list[tuple[Lifetime, list[R]]]:
        alive = list(rows)
        open_now = set(self.over([Lifetime(row.le, row.re) for row in alive], until))
        divided = self.inner.divide(alive, min(until, self._last_end()))
        return [(window, members) for window, members in divided if window in open_now]


def gate(plan: Node, watermarks: Mapping[int, int], by_end: bool, before: int = INFINITY) -> Node:
    """Return a plan that shows only the windows that are open at their operator's watermark (by the operator's `id`)."""
    changed = plan.map_inputs(lambda node: gate(node, watermarks, by_end, before))
    if isinstance(plan, Windowed) and isinstance(changed, Windowed):
        return dataclasses.replace(changed, windows=Gated(plan.windows, watermarks[id(plan)], by_end, before))
    if isinstance(plan, Chop) and isinstance(changed, Chop):
        cells: Any = Gated(plan.cells, watermarks[id(plan)], by_end, before)
        return dataclasses.replace(changed, cells=cells)
    if isinstance(plan, GroupApply) and isinstance(changed, GroupApply):
        return dataclasses.replace(changed, body=gate(plan.body, watermarks, by_end, before))
    return changed


def is_window_over_source(plan: Node) -> bool:
    """Say whether a plan is one window operator that reads its source, perhaps inside groups."""
    if isinstance(plan, GroupApply):
        return isinstance(plan.input, (Source, Group)) and is_window_over_source(plan.body)
    return isinstance(plan, Windowed) and isinstance(plan.input, (Source, Group))


def promise(plan: Node, rows: CHT[Any], cti: int) -> int:
    """Return the output CTI of the liveliness table for a window over its source; the least of all groups and of a new one."""
    if isinstance(plan, GroupApply):
        found = [promise(plan.body, CHT(members), cti) for members in _groups(plan, rows)]
        return min([*found, promise(plan.body, CHT([]), cti)])
    assert isinstance(plan, (WindowAggregate, WindowApply))
    lives = [Lifetime(row.le, row.re) for row in rows]
    clip = plan.clip if plan.sees_ends else Clip.FULL
    time = output_cti(plan.windows, clip, plan.output, plan.time_sensitive, lives, cti)
    return MIN_TIME if time is None else time


def forgotten(plan: Node, rows: Mapping[Slot, CHTRow[Any]], cti: int) -> set[Slot]:
    """Return the rows of groups of time-sensitive snapshots in which none can change any more: they count as not yet seen."""
    body = plan.body if isinstance(plan, GroupApply) else None
    if not isinstance(body, (WindowAggregate, WindowApply)) or not isinstance(body.windows, Snapshot) or not body.time_sensitive:
        return set()
    assert isinstance(plan, GroupApply)
    groups: dict[Hashable, list[Slot]] = {}
    for slot, row in rows.items():
        groups.setdefault(key_row(plan.key, (row.payload,)), []).append(slot)
    gone = (slots for slots in groups.values() if all(rows[slot].re < cti or rows[slot].re == rows[slot].le for slot in slots))
    return {slot for slots in gone for slot in slots}


def _groups(plan: GroupApply, rows: CHT[Any]) -> list[list[CHTRow[Any]]]:
    found: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        found.setdefault(key_row(plan.key, (row.payload,)), []).append(row)
    return list(found.values())
