"""The composed window operator for user-defined operators: each window has any number of results, which keep their ids.

An emitted result and a computed one are the same if LE and payload are equal; then at most the end moves.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.buffered.runs import Order
from streamdsl.engine.codes import payload_codes
from streamdsl.engine.columnar.pairing import numbered, paired
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.data_driven.timeline import Touched
from streamdsl.engine.frames.causes import breach, first_of
from streamdsl.engine.frames.causes import causes as causes_of
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.operators.framed_windows import Computing, FramedWindowOperator
from streamdsl.engine.operators.grid_windows import GridWindowOperator
from streamdsl.engine.pairs import all_but, distinct_pairs
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, parts_of, with_parts
from streamdsl.expr.lists import ListSource, items_of, list_source
from streamdsl.expr.nested import field_of_nested, is_nested, nested, rows_in
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, concat_parts, flatnonzero, object_column, payload_table
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks, add_time
from streamdsl.windows import Output

_OUT: Final = Schema.record(["rows"])
_ROW: Final = Schema.record(["ordinal", "version", "payload"])
"""What is kept of an emitted result: its number in the window, the version of that number, and its payload."""
_STAMPED: Final = Schema.record([*_ROW.names, "le", "re"])
"""The same for results with lifetimes of their own, which are kept too."""
_NONE: Final[Column] = np.empty(0, dtype=np.int64)


class ResultRows(NamedTuple):
    """Results of windows, as columns: the slot of the window, number and version in it, payload, and lifetime."""

    slots: Rows
    ordinals: Ticks
    versions: Ticks
    payloads: AnyColumn
    le: Ticks
    re: Ticks

    def take(self, rows: Rows) -> ResultRows:
        """Return the results at these indices."""
        return ResultRows(*(column[rows] for column in self))  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """The number of results."""
        return len(self.slots)


class ComputedResults(NamedTuple):
    """The computed results of windows, window by window, ordered by RE: how many each has, payloads, and lifetimes."""

    sizes: Ticks
    payloads: AnyColumn
    le: Ticks
    re: Ticks


class ResultIds(WindowIds):
    """The ids of windows' results: `(operator, start, ordinal)`, in groups `(operator, key, start, ordinal)`."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[AnyColumn, list[AnyColumn], AnyColumn | None]:
        starts, *leaves, ordinals = self.columns
        return starts, leaves, ordinals

    def with_columns(self, *columns: AnyColumn) -> ResultIds:
        return ResultIds(self.label, self.keys, *columns)

    def is_like(self, other: object) -> bool:
        return isinstance(other, ResultIds) and super().is_like(other)

    def spelled(self) -> Iterator[Hashable]:
        *window, ordinals = self.columns
        ids = WindowIds(self.label, self.keys, *window).spelled()
        return ((*id[:-1], ordinal) for id, ordinal in zip(ids, ordinals.tolist(), strict=True))  # type: ignore[index]


class ApplyOperator(FramedWindowOperator):
    """A window operator whose windows have any number of results each."""

    node: WindowApply

    def __init__(self, label: str, node: WindowAggregate | WindowApply, emit_policy: EmitPolicy) -> None:
        super().__init__(label, node, emit_policy)
        self.takes_rows = False
        self._kept = _STAMPED if node.time_sensitive else _ROW
        self._is_time_bound = node.output is Output.TIME_BOUND

    def _emit(self, touched: Touched) -> Batch:
        if not len(touched.slots) and not len(touched.gone):
            return EMPTY
        slots, table, results = touched.slots, self.table, self.table.results
        was_out = results.is_emitted[slots]
        shown = self._are_shown(slots, was_out)
        gone, back = touched.gone[results.is_emitted[touched.gone]], slots[was_out & ~shown]
        dead = np.concatenate([gone, back])
        moved = slots[was_out & shown & ~touched.summed & (results.re[slots] != table.re[slots])]
        computed = slots[shown & (touched.summed | ~was_out)]
        computed = self._computed = computed[np.lexsort((table.le[computed], table.code[computed]))]
        self.udm_calls += len(computed)
        found = self._computing(computed)
        now = self._current(found)
        causes = self._causes(np.concatenate([gone, back[table.rows[back] == 0]]), found) if self._is_time_bound else None
        out = self._exchanged(dead, moved, computed, now, causes)
        results.re[computed] = table.re[computed]
        results.re[moved] = table.re[moved]
        results.clear(dead)
        return out

    def _causes(self, gone: Rows, found: Computing) -> Ticks:
        """Return by slot the time of the change that causes other results, MIN_TIME if no change counts.

        A window that opens is caused by its first member. One that must wait again is retracted, which needs no cause.
        """
        table, changed, slots = self.table, self.changes.changed, found.slots
        is_emitted, are_formed = table.results.is_emitted[slots], np.isin(slots, self.frame.formed)
        causes = np.full(table.capacity, MIN_TIME)
        if changed is not None:
            out = slots[is_emitted] if self.frame.starts_move else np.concatenate([gone, slots[is_emitted]])
            causes = causes_of(self.frame, self.rows, changed, out, slots[are_formed & ~is_emitted])
        opened = flatnonzero(~is_emitted & ~are_formed)
        if len(opened):
            members = found.members(Order.ANY).at(opened)
            causes[slots[opened]] = first_of(members, self.rows.rows.le[members.places])
        return causes

    def _check(self, causes: Ticks, gone: ResultRows, moved: ResultRows, was: Ticks, come: ResultRows) -> None:
        """Raise `TimestampViolation` if results change before their cause."""
        rows = _concat([gone, moved, come])
        ends = np.concatenate([gone.re, was, come.re])
        differs = np.concatenate([gone.le, np.where(was == moved.re, INFINITY, np.minimum(was, moved.re)), come.le])
        early = flatnonzero(causes[rows.slots] > differs)
        if len(early):
            row, slot = early[0], rows.slots[early[0]]
            lives = [Lifetime(int(rows.le[row]), re) for re in dict.fromkeys([int(ends[row]), int(rows.re[row])])]
            raise breach(self.node.module.label, int(causes[slot]), lives, int(self.table.le[slot]))

    def held_back(self) -> int:
        if not self._is_time_bound:
            return super().held_back()
        return self._first_held() if self.emit_policy.by_end else INFINITY

    def _first_held(self) -> int:
        """Return the first LE of the results of windows that have begun and do not show yet."""
        slots = self._hidden()
        return self._first_result(slots[self.table.le[slots] <= self.high_water])

    def _first_result(self, slots: Rows) -> int:
        """Return the first LE of the results that some windows, which are in order, would show."""
        if not len(slots):
            return INFINITY
        self.udm_calls += len(slots)
        results = self.members[0].results(self._computing(slots))
        return min((row.le for rows in results.tolist() for row in rows), default=INFINITY)

    def _current(self, requested: Computing) -> ComputedResults:
        """Compute the results of windows, which are in order."""
        slots, found = requested.slots, self._columns(requested)["a0"]
        if not self.node.time_sensitive:
            payloads, sizes = _items(found)
            return ComputedResults(sizes, payloads, *self._period(np.repeat(slots, sizes), self.table.re))
        lists: list[list[Any]] = found.tolist()
        sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        le, re, values = zip(*chain.from_iterable(lists), strict=True) if sizes.any() else ((), (), ())
        ends = np.array(re, dtype=np.int64)
        order = np.lexsort((ends, np.repeat(np.arange(len(slots)), sizes)))
        return ComputedResults(sizes, nested(payload_table(values))[order], np.array(le, dtype=np.int64)[order], ends[order])

    def _period(self, slots: Rows, ends: Ticks) -> tuple[Ticks, Ticks]:
        """Return the lifetimes of results that have none of their own; their windows end at `ends`, by slot."""
        re = ends[slots]
        if not self._is_at_end:
            return self.table.le[slots], re
        add_time(int(re.max(initial=MIN_TIME)), CHRONON)
        return re, re + CHRONON

    def _exchanged(self, dead: Rows, moved: Rows, computed: Rows, now: ComputedResults, causes: Ticks | None) -> Batch:
        """Return the changes of the results, and record what is then emitted.

        Dropped windows lose their results, moved ones keep theirs with another end. A time-bound module may change nothing before
        the cause.
        """
        others = self._sent(moved)
        if self._is_at_end and len(moved):  # a point cannot be moved: it is retracted, and another one inserted
            sizes = np.bincount(others.slots, minlength=self.table.capacity)[moved]
            le, re = self._period(others.slots, self.table.re)
            payloads = _together([now.payloads, others.payloads])
            now = ComputedResults(np.append(now.sizes, sizes), payloads, np.append(now.le, le), np.append(now.re, re))
            computed, others = np.concatenate([computed, moved]), others.take(_NONE)
        results, out, slots = self.table.results, self._sent(computed), np.repeat(computed, now.sizes)
        kept, stays = self._paired(out, slots, now)
        left, come = all_but(kept, out.size), all_but(stays, len(slots))
        gone = [out.take(left), self._sent(dead)]
        # A new result with the number of a retracted one is a later version of it.
        results.retracted(np.unique(np.concatenate([each.slots for each in gone])))
        versions, ordinals, at = results.versions(slots), np.empty_like(slots), out.size + np.arange(len(slots))
        ordinals[stays], versions[stays], at[stays] = out.ordinals[kept], out.versions[kept], kept
        windows = np.repeat(np.arange(len(computed)), now.sizes)
        ordinals[come] = numbered(now.sizes, windows[stays], ordinals[stays])
        rows = ResultRows(slots, ordinals, versions, _together([out.payloads, now.payloads])[at], now.le, now.re)
        was = np.concatenate([others.re, out.re[kept]])
        moves = _concat([others._replace(re=self.table.re[others.slots]), rows.take(stays)])
        if causes is not None:
            self._check(causes, _concat(gone), moves, was, rows.take(come))
        changes = self._changes(_concat(gone), moves, was, rows.take(come))
        self._note(computed, now.sizes, rows)
        return changes

    def _paired(self, out: ResultRows, slots: Rows, now: ComputedResults) -> tuple[Rows, Rows]:
        """Match emitted results with computed ones."""
        if not out.size:
            return _NONE, _NONE
        among = flatnonzero(self.table.results.is_emitted[slots])
        codes = payload_codes(_together([out.payloads, now.payloads[among]]))
        if self.node.time_sensitive or self._is_at_end:
            codes = distinct_pairs(codes, np.concatenate([out.le, now.le[among]])).index
        kept, stays = paired(np.concatenate([out.slots, slots[among]]), codes, out.size)
        return kept, among[stays]

    def _sent(self, slots: Rows) -> ResultRows:
        """Return the emitted results of windows."""
        results = self.table.results
        slots = slots[results.is_emitted[slots]]
        if not len(slots):
            return ResultRows(slots, _NONE, _NONE, object_column([]), _NONE, _NONE)
        rows, sizes = items_of(parts_of(results.payloads(slots).columns)["rows"])  # type: ignore[arg-type]
        slots = np.repeat(slots, sizes)
        ordinals, versions, payloads, *lifetimes = [field_of_nested(rows, name) for name in self._kept.names]
        le, re = lifetimes or self._period(slots, results.re)
        return ResultRows(slots, ordinals, versions, payloads, le, re)  # type: ignore[arg-type]

    def _note(self, slots: Rows, sizes: Ticks, now: ResultRows) -> None:
        """Record the emitted results of windows."""
        if not len(slots):
            return
        parts = dict(zip(self._kept.names, now[1:], strict=False))
        stops = np.cumsum(sizes)
        rows = DeferredColumn(ListSource(nested(Table(self._kept, with_parts(parts), now.size)), stops - sizes, stops))
        self.table.results.put(slots, Table(_OUT, with_parts({"rows": rows}), len(slots)))

    def _changes(self, gone: ResultRows, moved: ResultRows, was: Ticks, come: ResultRows) -> Batch:
        """Return the changes of results that are retracted, moved and inserted.

        If a number is retracted and inserted, in that order.
        """
        moves = flatnonzero(was != moved.re)
        moved, was = moved.take(moves), was[moves]
        rows = _concat([gone, moved, come])
        if not rows.size:
            return EMPTY
        groups = self.codes.groups(self.table.code[rows.slots])
        window_ids = self._ids(self.table.le[rows.slots], groups)
        ids = ResultIds(self.label, self.key_table, *window_ids.columns, rows.ordinals)
        re_old, re_new = np.concatenate([gone.re, was, come.le]), np.concatenate([gone.le, moved.re, come.re])
        keys = groups if self.is_grouped else None
        return Batch(VersionedIds(ids, rows.versions), rows.le, re_old, re_new, _table(rows.payloads), keys)


class GridApplyOperator(ApplyOperator, GridWindowOperator):
    """The same over hopping and tumbling windows."""

    @property
    def emits_at_window_end(self) -> bool:
        return False

    def _first_held(self) -> int:
        slots = self.frame.begun(self.frame.clock, self.rows)
        first = self._first_result(slots)
        self.table.drop(slots)
        return first


def _concat(parts: Sequence[ResultRows]) -> ResultRows:
    slots, ordinals, versions, payloads, le, re = zip(*parts, strict=True)
    at, numbers, times, starts, ends = (np.concatenate(columns) for columns in (slots, ordinals, versions, le, re))
    return ResultRows(at, numbers, times, _together(payloads), starts, ends)


def _items(lists: AnyColumn) -> tuple[AnyColumn, Ticks]:
    """Return the payloads in lists, one list after the other, and how many each has."""
    if isinstance(lists, DeferredColumn) and list_source(lists) is not None:
        return items_of(lists)
    found: list[list[Any]] = lists.tolist()
    return nested(payload_table(list(chain.from_iterable(found)))), np.fromiter(map(len, found), dtype=np.int64, count=len(found))


def _table(payloads: AnyColumn) -> Table:
    """Return payloads in one column as a table."""
    if is_nested(payloads):
        return rows_in(payloads)
    if payloads.dtype == object:
        return payload_table(payloads.tolist())
    return Table(Schema.scalar(), with_parts({"value": payloads}), len(payloads))


def _together(parts: Sequence[AnyColumn]) -> AnyColumn:
    """Return payloads one after the other."""
    return concat_parts([part for part in parts if len(part)] or parts[:1])
