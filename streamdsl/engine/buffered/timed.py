"""Aggregates that see the lifetimes of a window's members (paper 001, IV.A.1)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamdsl.engine.buffered.members import Members
from streamdsl.engine.buffered.modules import ExtremumAggregate, MemberAggregate, StateAggregate, Values, Windows
from streamdsl.engine.buffered.runs import spread
from streamdsl.engine.columnar.accumulators import SumAccumulator
from streamdsl.engine.columnar.lanes import Lanes
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.errors import StreamDslError
from streamdsl.expr.table import Column, column_of, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.bases import IntervalEvent
from streamdsl.udm.builtin import Max, Min, TimeWeightedAvg
from streamdsl.udm.incremental import keeps_state
from streamdsl.udm.invoke import as_result, computed, empty_result, seen_clip
from streamdsl.windows import Clip

_EXACT: Final = 2**53
"""Integers up to it are doubles."""
_ROOM: Final = 2**62


class TimedAggregate(MemberAggregate):
    """A time-sensitive module: it is given the members' lifetimes, clipped to the window as the query says."""

    def __init__(self, number: int, agg: BoundAgg, argument: int, where: int | None, clip: Clip) -> None:
        super().__init__(number, agg, argument, where)
        self._clip = seen_clip([agg.function], clip)

    def results(self, asked: Windows) -> Column:
        members = self._chosen(asked.rows, _apart(asked.members(self.order)))
        values = Values(asked.rows.argument(self._argument)[members.places], members.lo, members.hi)
        le, re = asked.rows.le[members.places], asked.rows.re[members.places]
        window_le, window_re = asked.periods()
        sizes = members.hi - members.lo
        if self._clip.left:
            le = np.maximum(le, np.repeat(window_le, sizes))
        if self._clip.right:
            re = np.minimum(re, np.repeat(window_re, sizes))
        found = weighted(values, le, re, window_le, window_re) if type(self.function) is TimeWeightedAvg else None
        return self._of_each_window(values, le, re, asked) if found is None else found

    def _chosen(self, rows: Any, members: Members) -> Members:
        if self._where is None:
            return members
        chosen = flatnonzero(rows.argument(self._where)[members.places])
        return Members(members.places[chosen], np.searchsorted(chosen, members.lo), np.searchsorted(chosen, members.hi))

    def _of_each_window(self, values: Values, le: Ticks, re: Ticks, asked: Windows) -> Column:
        function, found = self.function, list[Any]()
        events = list(map(IntervalEvent, le.tolist(), re.tolist(), values.column.tolist()))
        try:
            for number, (lo, hi) in enumerate(values.spans()):
                some = as_result(computed(function, events[lo:hi], asked.period(number))) if lo < hi else empty_result(function)
                found.append(some)
        except StreamDslError:
            raise
        except Exception as error:
            raise asked.error(len(found), error) from error
        return column_of(found)


def member_aggregate(number: int, agg: BoundAgg, argument: int, where: int | None, clip: Clip) -> MemberAggregate:
    """Return how an aggregate is computed; its argument and which rows its `where` has chosen are columns with these numbers."""
    if keeps_state(agg.function):
        return StateAggregate(number, agg, argument, where)
    if agg.function.time_sensitive:
        return TimedAggregate(number, agg, argument, where, clip)
    if type(agg.function) in (Min, Max):
        return ExtremumAggregate(number, agg, argument, where)
    return MemberAggregate(number, agg, argument, where)


def _apart(members: Members) -> Members:
    """Return members each window's by themselves: clipped to it, a row looks otherwise in each."""
    places = members.places[spread(members.lo, members.hi)[1]]
    stops = np.cumsum(members.hi - members.lo)
    return Members(places, np.concatenate([[0], stops[:-1]]), stops)


def weighted(values: Values, le: Ticks, re: Ticks, window_le: Ticks, window_re: Ticks) -> Column | None:
    """Return the time-weighted averages of windows, whose members are in order; None where these values are not for columns."""
    column, sizes = values.column, values.hi - values.lo
    if column.dtype.kind not in "if" or not sizes.all() or window_re.max() == INFINITY:
        return None
    spans, lengths = re - le, window_re - window_le
    if column.dtype.kind == "i" and max(-int(column.min()), int(column.max())) * int(spans.max()) >= _ROOM:
        return None
    lanes, accumulator = Lanes(len(sizes)), SumAccumulator(0)
    terms = Terms(len(column), [Part(ROWS, None, None, 1)])
    with np.errstate(over="ignore", invalid="ignore"):
        accumulator.add_terms(column * spans, None, terms)
    lanes.add(np.repeat(np.arange(len(sizes)), sizes), terms)
    sums = accumulator.results(lanes)
    if sums.dtype == object or (sums.dtype.kind == "i" and max(-int(sums.min()), int(sums.max())) > _EXACT):
        return column_of([total / length for total, length in zip(sums.tolist(), lengths.tolist(), strict=True)])
    averages: Column = sums / lengths
    return averages
