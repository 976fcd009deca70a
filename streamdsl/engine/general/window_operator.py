"""The general window operator: the paper's algorithm, for every kind of window, module and policy (paper 001, V).

Per group it keeps the windows (`kinds.py`). A piece of input marks windows dirty; those that are open get their results
computed anew, and what differs from the results that are out is the minimal change that goes on.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdsl.engine.batch import Batch, Changes
from streamdsl.engine.frontiers import Frontier, of_windows
from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import GroupWindows, Setting
from streamdsl.engine.general.kinds import group_windows
from streamdsl.engine.general.time_bound import Fresh, check_time_bound
from streamdsl.engine.general.window_index import OutputRow, WindowEntry
from streamdsl.engine.general.window_results import WindowResults
from streamdsl.engine.operator import EmitPolicy, Operator, inputs_of
from streamdsl.engine.window_budget import Arrivals, WindowBudget
from streamdsl.expr.evaluate import Inputs, RowError, project
from streamdsl.expr.nodes import Expr, Whole
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, column_of, flatnonzero
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal import INFINITY, MIN_TIME, payload_key
from streamdsl.temporal.change import pair
from streamdsl.udm.invoke import EXCLUDED, Stamped
from streamdsl.windows import Output
from streamdsl.windows.spec import ALL_TIME


class ComputedWindow(NamedTuple):
    """The results of one window, before they are paired with the emitted ones."""

    group: GroupWindows
    key: int | None
    entry: WindowEntry
    rows: list[Stamped]


class GeneralWindowOperator(Operator):
    """Windows of any kind with aggregates or an operator over them."""

    kind = "window (general)"
    takes_emit_policy = True

    def __init__(self, label: str, node: WindowAggregate | WindowApply, emit_policy: EmitPolicy) -> None:
        super().__init__(label)
        self.node = node
        self.results = results = WindowResults(label, node)
        self.budget = WindowBudget(label, f"{node.windows.describe()} windows", emit_policy.most)
        self.setting = Setting(
            emit_policy, node.output, node.time_sensitive, node.sees_ends, results.stateful, label, self.budget
        )
        self._unseen = group_windows(node.windows, self.setting)
        self.groups: dict[int | None, GroupWindows] = {}
        self.high_water = MIN_TIME
        self._alarms: list[tuple[int, int, int | None]] = []
        self._tickets = itertools.count()

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.budget.open(len(batch) + len(self.groups))
        touched: dict[int | None, GroupWindows] = {}
        for row, key, re_old, re_new in self._events(batch):
            group = touched[key] = self._group(key)
            group.take(row, re_old, re_new)
        self.high_water = INFINITY if self.ending else max(self.high_water, batch.high_water, ctis[0])
        self._reveal(touched)
        computed = [self._compute(group, key, entry) for key, group in touched.items() for entry in group.dirty.values()]
        self._project(computed)
        return self._emit(touched, computed)

    def _reveal(self, touched: dict[int | None, GroupWindows]) -> None:
        """Open the hidden windows that the high water has reached, in the groups that have such."""
        while self._alarms and self._alarms[0][0] <= self.high_water:
            _, _, key = heapq.heappop(self._alarms)
            group = self.groups.get(key)
            if group is not None:
                group.scheduled = None
                touched[key] = group
        for group in touched.values():
            group.cause = MIN_TIME
            group.reveal(self.high_water)

    def _schedule(self, key: int | None, group: GroupWindows) -> None:
        time = group.next_reveal()
        if time is not None and (group.scheduled is None or time < group.scheduled):
            group.scheduled = time
            heapq.heappush(self._alarms, (time, next(self._tickets), key))

    def _group(self, key: int | None) -> GroupWindows:
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = group_windows(self.node.windows, self.setting)
            group.path = self.path(key)
        return group

    def _events(self, batch: Batch) -> Iterable[tuple[EventRow, int | None, int, int]]:
        """Yield each changed event; the modules' arguments are evaluated once, when it is inserted."""
        batch = batch.changed()
        inserted = flatnonzero(batch.re_old == batch.le)
        new = batch if len(inserted) == len(batch) else batch.take(inserted)
        arguments = iter(self._arguments(new))
        needed = self.results.needs_order or self.node.windows.by_position
        payloads = iter(new.table.payloads() if needed else [None] * len(new))
        columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist(), batch.group_keys())
        for id, le, re_old, re_new, key in zip(*columns, strict=True):
            row = EventRow(id, le, re_new)
            if re_old == le:
                row.payload, row.arguments = next(payloads), next(arguments)
            yield row, key, re_old, re_new

    def _arguments(self, batch: Batch) -> list[Sequence[Any]]:
        if isinstance(self.node, WindowApply):
            exprs: list[tuple[Expr, Expr | None]] = [(self.node.argument or Whole(), None)]
        else:
            exprs = [(agg.given, agg.where) for agg in self.node.aggregates]
        inputs = inputs_of(batch)
        columns: list[list[Any]] = []
        for argument, where in exprs:
            column, chosen = self.argument(argument, where, batch, inputs)
            values = column.tolist()
            if chosen is not None:
                values = [value if keep else EXCLUDED for value, keep in zip(values, chosen.tolist(), strict=True)]
            columns.append(values)
        return list(zip(*columns, strict=True)) if columns else [()] * len(batch)

    def _compute(self, group: GroupWindows, key: int | None, entry: WindowEntry) -> ComputedWindow:
        if not group.decide(entry, self.cti):
            if not entry.n_events:
                entry.forget_computed()
            return ComputedWindow(group, key, entry, [])
        return ComputedWindow(group, key, entry, self.results.of(group, entry))

    def _project(self, computed: list[ComputedWindow]) -> None:
        """Turn the aggregates of all windows into payloads at once."""
        if not isinstance(self.node, WindowAggregate):
            return
        shown = [result for result in computed if result.rows]
        if not shown:
            return
        columns = zip(*(result.rows[0].payload for result in shown), strict=True)
        names = [f"a{i}" for i in range(len(self.node.aggregates))]
        table = Table(Schema.record(names), {n: column_of(c) for n, c in zip(names, columns, strict=False)}, len(shown))
        keys = None
        if self.key_table is not None:
            keys = self.key_table.shown(np.array([result.key for result in shown], dtype=np.int64))
        try:
            payloads = project(self.node.projection, Inputs((table,), len(shown), keys=keys)).payloads()
        except RowError as error:
            raise self.user_error(error, window=shown[error.row].entry.period) from error.cause
        for result, payload in zip(shown, payloads, strict=True):
            result.rows[0] = result.rows[0]._replace(payload=payload)

    def _emit(self, touched: dict[int | None, GroupWindows], computed: list[ComputedWindow]) -> Batch:
        by_group: dict[int | None, list[ComputedWindow]] = {}
        for result in computed:
            by_group.setdefault(result.key, []).append(result)
        changes = Changes()
        for key, group in touched.items():
            self._pair(group, key, by_group.get(key, []), changes)
            group.settled()
            self._schedule(key, group)
            if group.is_empty and not group.windows:
                del self.groups[key]
        return changes.batch(self.is_grouped)

    def _pair(self, group: GroupWindows, key: int | None, results: list[ComputedWindow], changes: Changes) -> None:
        """Emit the difference between the emitted rows and the right ones; each row keeps its id."""
        fresh = [Fresh(*row, payload_key(row.payload), result.entry) for result in results for row in result.rows]
        if isinstance(self.node, WindowApply) and self.node.output is Output.TIME_BOUND:
            check_time_bound(self.node.module.label, group, fresh)
        for before, after in pair(group.gone, fresh):
            if after is None:
                assert before is not None
                changes.add(before.id, before.le, before.re, before.le, before.payload, key)
                group.free_ordinal(*before.id[-2:])
                continue
            id = before.id if before else self._new_id(group, key, after.entry.le)
            # Equal payloads may look different (1 and 1.0): a row keeps the one that went out.
            payload = before.payload if before else after.payload
            changes.add(id, after.le, before.re if before else after.le, after.re, payload, key)
            after.entry.output.append(OutputRow(id, after.le, after.re, payload, after.key, after.window))

    def _new_id(self, group: GroupWindows, key: int | None, le: int) -> tuple[Any, ...]:
        ordinal = group.new_ordinal(le)
        return (self.label, le, ordinal) if key is None else (self.label, group.path, le, ordinal)

    def max_new_windows(self, arrivals: Arrivals) -> float:
        windows = self.node.windows
        size = windows.longest
        if size == ALL_TIME:
            return 0
        return arrivals.beyond(
            self.high_water if self.groups else None,
            size,
            windows.least_hop,
            arrivals.rows if self.is_grouped else 1,
            len(self.groups),
        )

    def forget(self, cti: int) -> None:
        for key, group in list(self.groups.items()):
            group.forget_ordinals(cti, group.forget(cti))
            if key is not None and group.is_empty:
                del self.groups[key]

    def output_cti(self, ctis: list[int]) -> int:
        settled = min([self._unseen.output_cti(ctis[0]), *(group.output_cti(ctis[0]) for group in self.groups.values())])
        if self.setting.emit_policy.until < INFINITY:
            # A window that may grow beyond the bound of the run is then not there.
            growing = (group for group in self.groups.values() if group.windows_grow)
            settled = min([settled, *(group.earliest_start(ctis[0]) for group in growing)])
        return settled

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_windows(self.node.output, self._closed(inputs[0].cti))

    def _closed(self, cti: int) -> int:
        """Return the time until which the windows of all groups are closed."""
        unseen = self._unseen.closed(cti)
        return min([unseen, *(group.closed(cti) for group in self.groups.values())]) if self.node.sees_ends else unseen

    def held_back(self) -> int:
        if not self.setting.emit_policy.by_end or self.node.output is Output.POINT_AT_END:
            return INFINITY
        return min(self._starts_held_back(), default=INFINITY)

    def _starts_held_back(self) -> Iterator[int]:
        """Yield the first LE of the rows of each window that has begun and is not open yet."""
        for group in self.groups.values():
            for entry in group.hidden_windows(self.high_water):
                if self.node.output is not Output.TIME_BOUND:
                    yield entry.le
                    break
                yield from (row.le for row in self.results.of(group, entry))

    def held_groups(self) -> Iterable[int | None]:
        return self.groups

    def slowest_group(self, cti: int) -> int | None:
        """Return the group that holds back the output CTI, None if there is no group."""
        return min(self.groups, key=lambda key: self.groups[key].output_cti(cti), default=None)

    def state(self) -> dict[str, int]:
        windows = sum(group.n_windows for group in self.groups.values())
        events = sum(group.n_events for group in self.groups.values())
        return {"windows": windows, "events": events}

    def stats(self) -> dict[str, int]:
        return super().stats() | {"udm_calls": self.results.calls}
