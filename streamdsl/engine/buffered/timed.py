"""Aggregates and operators that read the lifetimes of a window's members (paper 001, IV.A.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from streamdsl.engine.buffered.members import Members, Values
from streamdsl.engine.buffered.modules import (
    AggregatedWindows,
    ExtremumAggregate,
    InsertedRow,
    MemberAggregate,
    ReportedErrors,
    Sees,
    StateAggregate,
    WindowPeriods,
)
from streamdsl.engine.buffered.ranked import RankedAggregate
from streamdsl.engine.buffered.runs import Order
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.accumulators import SumAccumulator
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.engine.pairs import spread
from streamdsl.expr.table import Column, Rows, column_of, flatnonzero
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, Ticks
from streamdsl.udm.bases import IntervalEvent, WindowDescriptor
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Max, Min, TimeWeightedAvg
from streamdsl.udm.incremental import Held, detached, keeps_state
from streamdsl.udm.invoke import as_result, computed, empty_result, results_of, seen_clip, stamped
from streamdsl.udm.top_k import TopK
from streamdsl.windows import Clip, Output

_EXACT: Final = 2**53
"""Integers up to it are doubles."""
_ROOM: Final = 2**62


class TimedAggregate(MemberAggregate):
    """A time-sensitive module: it gets the members' lifetimes, clipped to the window as the query says.

    Results of an operator have lifetimes of their own, as the query's policy says.
    """

    def __init__(self, number: int, agg: BoundAgg, argument: int, where: int | None, clip: Clip, output: Output) -> None:
        super().__init__(number, agg, argument, where)
        self._clip = seen_clip([agg.function], clip)
        self._output = output

    def results(self, requested: AggregatedWindows) -> Column:
        if type(self.function) is TimeWeightedAvg:
            values, le, re = self._seen(requested, Order.ANY)
            found = weighted(values, le, re, *requested.periods())
            if found is not None:
                return found
        return self._of_each_window(*self._seen(requested, self.order), requested)

    def _seen(self, requested: AggregatedWindows, order: Order) -> tuple[Values, Ticks, Ticks]:
        """Return the values of windows, and the lifetimes of their rows."""
        values = self.values(requested.rows, requested.members(order))
        return values, requested.rows.le[values.members.places], requested.rows.re[values.members.places]

    def _events(
        self, values: Values, le: Ticks, re: Ticks, requested: AggregatedWindows
    ) -> tuple[list[IntervalEvent[Any]], list[tuple[int, int]]]:
        """Return the events of windows as the module gets them, and the range of each window."""
        at, lo, hi = values.members.ranges
        windows, among = spread(lo, hi)
        at = at[among]
        le, re = self._clipped(le[at], re[at], windows, requested)
        events = list(map(IntervalEvent, le.tolist(), re.tolist(), values.column[at].tolist()))
        stops = np.cumsum(hi - lo).tolist()
        return events, list(zip([0, *stops], stops, strict=False))

    def _of_each_window(self, values: Values, le: Ticks, re: Ticks, requested: AggregatedWindows) -> Column:
        function, found = self.function, list[Any]()
        events, spans = self._events(values, le, re, requested)
        with ReportedErrors(self, requested, found):
            for number, (start, stop) in enumerate(spans):
                if start < stop:
                    window = requested.period(number)
                    found.append(self._result(computed(function, events[start:stop], window), window))
                else:
                    found.append(empty_result(function))
        return column_of(found)

    def _result(self, found: Any, window: Lifetime) -> Any:
        """Return a module's value for a window as the result."""
        if not self.function.returns_many:
            return as_result(found)
        return stamped(self.function, results_of(self.function, found), window, self._output)

    def _clipped(self, le: Ticks, re: Ticks, windows: Rows, requested: AggregatedWindows) -> tuple[Ticks, Ticks]:
        """Return lifetimes in windows as the module gets them."""
        window_le, window_re = requested.periods()
        if self._clip.left:
            le = np.maximum(le, window_le[windows])
        if self._clip.right:
            re = np.minimum(re, window_re[windows])
        return le, re


class TimedStates(TimedAggregate, StateAggregate):
    """A time-sensitive module with states: a member that reads differently leaves as it was, and enters as it is."""

    def __init__(self, number: int, agg: BoundAgg, argument: int, where: int | None, clip: Clip, output: Output) -> None:
        super().__init__(number, agg, argument, where, clip, output)
        self.sees = Sees.INSIDE if self._clip.right else Sees.ENDS

    def advanced(self, requested: AggregatedWindows, states: Sequence[Held | None], gone: Members, come: Members) -> list[Held]:
        return self._changed(requested, states, gone, come)

    def _seen_in_windows(
        self, requested: AggregatedWindows, members: Members
    ) -> tuple[Callable[[int, int], Any], list[tuple[int, int]]]:
        values = self.values(requested.rows, members)
        places = values.members.places
        events, spans = self._events(values, requested.rows.le[places], requested.rows.re[places], requested)
        return lambda lo, hi: events[lo:hi], spans

    def _period(self, requested: WindowPeriods, window: int) -> tuple[WindowDescriptor, ...]:
        return (WindowDescriptor(*requested.period(window)),)

    def _finished(self, requested: WindowPeriods, window: int, held: Held) -> Any:
        module, period = self.function, requested.period(window)
        found = module.compute_result(held.state, WindowDescriptor(*period))
        return self._result(list(map(detached, results_of(module, found))) if module.returns_many else detached(found), period)

    def _with(self, state: Any, row: InsertedRow, requested: WindowPeriods, window: int) -> Any:
        period = requested.period(window)
        life = self._clip.apply(Lifetime(row.le, row.re), period)
        event = IntervalEvent(*life, row.arguments[self._argument])
        return self.function.add_events_to_state(state, [event], WindowDescriptor(*period))


def member_aggregate(number: int, agg: BoundAgg, argument: int, where: int | None, clip: Clip, output: Output) -> MemberAggregate:
    """Return how an aggregate is computed; its argument and which rows its `where` has chosen are columns with these numbers."""
    keeps = keeps_state(agg.function)
    if agg.function.time_sensitive:
        return (TimedStates if keeps else TimedAggregate)(number, agg, argument, where, clip, output)
    if keeps:
        return StateAggregate(number, agg, argument, where)
    if type(agg.function) in (Min, Max):
        return ExtremumAggregate(number, agg, argument, where)
    if isinstance(agg.function, TopK):
        return RankedAggregate(number, agg, argument, where)
    return MemberAggregate(number, agg, argument, where)


def weighted(values: Values, le: Ticks, re: Ticks, window_le: Ticks, window_re: Ticks) -> Column | None:
    """Return the time-weighted averages of windows; None if the values cannot be processed in columns."""
    (column, members), lengths = values, window_re - window_le
    if column.dtype.kind not in "if" or not members.sizes.all() or window_re.max() == INFINITY:
        return None
    first, last, rows, spans = _clipped_spans(members, le, re, window_le, window_re)
    column = column[rows]
    if column.dtype.kind == "i" and max(-int(column.min()), int(column.max())) * int(spans.max()) >= _ROOM:
        return None
    accumulator, terms = SumAccumulator(0), Terms(len(column), [Part(ROWS, None, None, 1)])
    with np.errstate(over="ignore", invalid="ignore"):
        accumulator.add_terms(column * spans, None, terms)
    sums = accumulator.results(AccumulatorColumns.of_spans(first, last, members.n_windows, terms))
    if sums.dtype == object or (sums.dtype.kind == "i" and max(-int(sums.min()), int(sums.max())) > _EXACT):
        return column_of([total / length for total, length in zip(sums.tolist(), lengths.tolist(), strict=True)])
    averages: Column = sums / lengths
    return averages


def _clipped_spans(members: Members, le: Ticks, re: Ticks, window_le: Ticks, window_re: Ticks) -> tuple[Rows, Rows, Rows, Ticks]:
    """Return spans of windows, the row that each is of, and how long that is there in each of the windows.

    In all windows that it does not reach out of a row is as long as it lives, and these stand together.
    """
    begins = _first_at_least(window_re, re, members.first, members.last)
    ends = np.maximum(_first_at_least(window_le, le + 1, members.first, members.last), begins)
    inside = flatnonzero(begins < ends)
    first, last = np.concatenate([members.first, ends]), np.concatenate([begins, members.last])
    windows, rows = spread(first, last)[::-1]
    rows %= len(le)
    spans = np.minimum(re[rows], window_re[windows]) - np.maximum(le[rows], window_le[windows])
    first, last = np.concatenate([begins[inside], windows]), np.concatenate([ends[inside], windows + 1])
    return first, last, np.concatenate([inside, rows]), np.concatenate([(re - le)[inside], spans])


def _first_at_least(numbers: Ticks, least: Ticks, lo: Rows, hi: Rows) -> Rows:
    """Return for each row the first place from `lo` on of a number that is not too small, `hi` if there is none before."""
    lo, hi = lo.copy(), hi.copy()
    for _ in range(int((hi - lo).max(initial=0)).bit_length()):
        middle = (lo + hi) // 2
        is_less = (lo < hi) & (numbers.take(middle, mode="clip") < least)
        lo, hi = np.where(is_less, middle + 1, lo), np.where(is_less, hi, middle)
    return lo
