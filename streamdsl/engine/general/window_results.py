"""The results of one window: what the modules make of its members, or of the states that they keep (paper 001, V.E)."""

from __future__ import annotations

from functools import partial

from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import GroupWindows
from streamdsl.engine.general.window_index import WindowEntry
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal import sort_rows
from streamdsl.udm import incremental
from streamdsl.udm.bases import UDM
from streamdsl.udm.builtin import Builtin
from streamdsl.udm.incremental import Held, keeps_state
from streamdsl.udm.invoke import Stamped, aggregate, guarded, operate, stamp


class WindowResults:
    """The modules of a window operator: it invokes them for a window, once for each time that it must."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply) -> None:
        self.label = label
        self.node = node
        self.modules = node.modules
        self.stateful = {i: module for i, module in enumerate(self.modules) if keeps_state(module)}
        self.needs_order = not all(_takes_any_order(module) for module in self.modules)
        self.calls = 0

    def of(self, group: GroupWindows, entry: WindowEntry) -> list[Stamped]:
        """Return the results of a window; those of aggregates are the values of all, before they are projected."""
        return guarded(self.label, entry.period, partial(self._remembered, group, entry))

    def _remembered(self, group: GroupWindows, entry: WindowEntry) -> list[Stamped]:
        """Invoke the modules, unless they are time-insensitive and the window has the members it had."""
        if self.node.time_sensitive:
            return self._invoke(group, entry)
        if entry.results is None:
            entry.results = [row.payload for row in self._invoke(group, entry)]
        return [Stamped(*stamp(entry.period, self.node.output), payload) for payload in entry.results]

    def _invoke(self, group: GroupWindows, entry: WindowEntry) -> list[Stamped]:
        """Return what the modules make of a window: incremental ones of their states, others of the members."""
        self.calls += len(self.modules)
        states = self._advance(group, entry)
        members = self._members(group, entry) if None in states else []
        period, clip, output = entry.period, self.node.clip, self.node.output
        if isinstance(self.node, WindowApply):
            module = self.node.module
            held = states[0]
            if held is None:
                return operate(module, members, period, clip, output)
            return incremental.rows(module, held, period, output)
        values = tuple(
            aggregate(agg.function, i, members, period, clip) if held is None else incremental.value(agg.function, held, period)
            for i, (agg, held) in enumerate(zip(self.node.aggregates, states, strict=True))
        )
        return [Stamped(*stamp(period, output), values)]

    def _advance(self, group: GroupWindows, entry: WindowEntry) -> list[Held | None]:
        """Bring the states of a window up to date, by what has changed or else from its members."""
        states = entry.states or [None] * len(self.modules)
        changes, entry.changes = entry.changes, []
        for i, module in self.stateful.items():
            held = states[i]
            if held is not None:
                held = incremental.advance(module, i, held, changes, entry.period, self.node.clip)
            if held is None:
                build = partial(incremental.build, module, i, window=entry.period, clip=self.node.clip)
                held = build(group.members(entry))
            states[i] = held
        entry.states = states if self.stateful else None
        return states

    def _members(self, group: GroupWindows, entry: WindowEntry) -> list[EventRow]:
        members = group.members(entry)
        if self.needs_order:
            sort_rows(members, EventRow.rank)
        return members


def _takes_any_order(module: UDM) -> bool:
    return keeps_state(module) or (isinstance(module, Builtin) and module.order_insensitive)
