"""Aggregates that need the members of a window, or a state of it: they are called once for each window that a step changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np

from streamdsl.engine.buffered.holistic import HOLISTIC
from streamdsl.engine.buffered.members import Members, Values
from streamdsl.engine.buffered.row_table import RowTable
from streamdsl.engine.buffered.runs import Order
from streamdsl.engine.sorting import sorted_integers
from streamdsl.errors import StreamDslError
from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.deferred import DeferredColumn as HeldColumn
from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.table import Column, Rows, column_of, flatnonzero, object_column
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import PLAIN
from streamdsl.temporal.time import Ticks
from streamdsl.udm.bases import WindowDescriptor
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Builtin, Collect
from streamdsl.udm.incremental import Held, copied, detached, keeps_state, merge
from streamdsl.udm.invoke import as_result, empty_result, payloads_of, results_of

LONG: Final = 64
"""Windows with this many rows are not read again if their results follow from what has changed."""


class Sees(Enum):
    """Which ends of members a module reads."""

    NOTHING = "who is in it"
    INSIDE = "ends up to its own"
    ENDS = "all ends"


class WindowPeriods(Protocol):
    """Windows by their numbers."""

    def period(self, window: int) -> Lifetime:
        """Return one of them."""


class InsertedRow(NamedTuple):
    """A single inserted row: the arguments of the aggregates, and its lifetime."""

    arguments: Sequence[Any]
    le: int
    re: int


class AggregatedWindows(WindowPeriods, Protocol):
    """Windows whose aggregates are requested: their members, and how an error in one of them is reported."""

    @property
    def rows(self) -> RowTable:
        """The rows that members are places of."""

    def members(self, order: Order) -> Members:
        """Return the members, in the order that a module needs."""

    def periods(self) -> tuple[Ticks, Ticks]:
        """Return where each begins and ends."""

    def error(self, window: int, error: Exception, members: Sequence[Any]) -> Exception:
        """Return what a user sees of an exception in one of them, of what its members give."""


class ReportedErrors:
    """A context that raises an exception of user code as the error of the next window, after those of which results are `found`.

    It is no generator, which would let a StopIteration of user code pass as it is.
    """

    def __init__(
        self, aggregate: MemberAggregate, requested: AggregatedWindows, found: Sequence[Any], windows: Rows | None = None
    ) -> None:
        self.aggregate = aggregate
        self.requested = requested
        self.found = found
        self.windows = windows

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StreamDslError):
            number = len(self.found)
            window = number if self.windows is None else int(self.windows[number])
            raise self.requested.error(window, error, self.aggregate.given_in(self.requested, window)) from error


class NotPlainError(ArithmeticError):
    """The result of a module is not plain, so columns must compute it, and all later ones."""


class MemberAggregate:
    """An aggregate that is computed from the members of windows."""

    keeps_parts: ClassVar[bool] = False
    """Whether it wants payloads among its arguments as columns, not as Python's values."""

    def __init__(self, number: int, agg: BoundAgg, argument: int, where: int | None) -> None:
        self.number = number
        self.function: Any = agg.function
        self.order = order_of(agg.function)
        self._argument = argument
        self._where = where

    def values(self, rows: RowTable, members: Members) -> Values:
        """Return what the module is given of windows."""
        if self._where is not None:
            members = members.only(flatnonzero(rows.argument(self._where)[members.places]))
        return Values(rows.argument(self._argument)[members.places], members)

    def given_in(self, requested: AggregatedWindows, window: int) -> list[Any]:
        """Return what the module is given of one window, for the message of an error."""
        members = requested.members(self.order).at(np.array([window]))
        column, _ = self.values(requested.rows, members).in_windows()
        found: list[Any] = column.tolist()
        return found

    def results(self, requested: AggregatedWindows) -> AnyColumn:
        """Return the results of windows. An exception of user code is raised as it is to be shown."""
        values = self.values(requested.rows, requested.members(self.order))
        if isinstance(self.function, Builtin):
            found = self._of_columns(values)
            if found is not None:
                return found
        return column_of(self._of_each(values, requested))

    # Row by row

    @property
    def tells_rows(self) -> bool:
        """Whether the result of a single window is found row by row."""
        function = self.function
        return not (function.returns_many or function.time_sensitive or isinstance(function, Collect))

    def of_one(self, rows: RowTable, places: Rows) -> Any:
        """Return the result of a window with these members. Raises `ArithmeticError` if columns must compute it."""
        if self._where is not None:
            places = places[flatnonzero(rows.argument(self._where)[places])]
        function, column = self.function, rows.argument(self._argument)[places]
        compute = partial(_computed, function) if function.incremental else function.compute_result
        found = (
            _as_payloads(function, compute(_given(function, column)(0, len(places)))) if len(places) else empty_result(function)
        )
        if type(found) not in PLAIN:
            raise NotPlainError("it is no plain value")
        return found

    # Columns

    def _of_columns(self, values: Values) -> AnyColumn | None:
        """Return a built-in aggregate of all windows at once, None if it must be computed window by window."""
        together = HOLISTIC.get(type(self.function))
        if together is None:
            return None
        if values.column.dtype == object:
            values = _known(values)
        column, members = values
        filled = flatnonzero(members.sizes)
        if not len(filled):
            return self._of_none(members.n_windows)
        found = together(self.function, Values(column, members.at(filled)))
        if found is None or len(filled) == members.n_windows:
            return found
        if isinstance(found, HeldColumn):
            found = found.column
        results = self._of_none(members.n_windows)
        if results.dtype == found.dtype != object:
            results[filled] = found
            return results
        results = results.astype(object)
        results[filled] = found
        return column_of(results.tolist())

    def _of_none(self, count: int) -> Column:
        """Return the results of so many windows without values; what may be changed is made for each."""
        empty = empty_result(self.function)
        if type(empty) in IMMUTABLE:
            return np.repeat(column_of([empty]), count)
        return object_column([empty_result(self.function) for _ in range(count)])

    def _of_each(self, values: Values, requested: AggregatedWindows) -> list[Any]:
        function, found = self.function, list[Any]()
        column, spans = values.in_windows()
        given = _given(function, column)
        compute = partial(_computed, function) if function.incremental else function.compute_result
        with ReportedErrors(self, requested, found):
            for lo, hi in spans:
                found.append(_as_payloads(function, compute(given(lo, hi))) if lo < hi else empty_result(function))
        return found


class StateAggregate(MemberAggregate):
    """An incremental module: each window has a state, which is updated by the members that enter and leave."""

    least_rows: int = 0
    """Windows with fewer rows have no state: they are computed from their members."""
    sees = Sees.NOTHING
    """What it sees of where members end."""

    def advanced(self, requested: AggregatedWindows, states: Sequence[Held | None], gone: Members, come: Members) -> list[Held]:
        """Return the states of windows after a change; a window without a state gets a new one."""
        if self.function.mergeable:
            values = self.values(requested.rows, come)
            shared = _shared(values.members)
            if shared is not None:
                held = self._changed(requested, states, gone, come.only(come.places[:0]))
                return self._merged(requested, held, values.only(shared.order), shared.stops)
        return self._changed(requested, states, gone, come)

    def _changed(self, requested: AggregatedWindows, states: Sequence[Held | None], gone: Members, come: Members) -> list[Held]:
        """Return the states of windows after removing the members that have left, and adding those that have entered."""
        module, after = self.function, list[Held]()
        (taken, less), (given, more) = self._seen_in_windows(requested, gone), self._seen_in_windows(requested, come)
        with ReportedErrors(self, requested, after):
            for number, (held, (a, b), (lo, hi)) in enumerate(zip(states, less, more, strict=True)):
                state, size = held or (module.create_state(), 0)
                period = self._period(requested, number)
                if a < b:
                    state = module.remove_events_from_state(state, taken(a, b), *period)
                if lo < hi:
                    state = module.add_events_to_state(state, given(lo, hi), *period)
                after.append(Held(state, size + hi - lo - (b - a)))
        return after

    def _seen_in_windows(
        self, requested: AggregatedWindows, members: Members
    ) -> tuple[Callable[[int, int], Any], list[tuple[int, int]]]:
        """Return what gives the module some members of windows as it sees them, and from where to where each window's are."""
        column, spans = self.values(requested.rows, members).in_windows()
        return _given(self.function, column), spans

    def _period(self, requested: WindowPeriods, window: int) -> tuple[WindowDescriptor, ...]:
        """Return what the module is given of a window besides its members."""
        return ()

    def _finished(self, requested: WindowPeriods, window: int, held: Held) -> Any:
        """Return the result of a window from its state."""
        return _as_payloads(self.function, self.function.compute_result(held.state), detached)

    def _merged(self, requested: AggregatedWindows, states: list[Held], come: Values, stops: Rows) -> list[Held]:
        """Return the states of windows with new members:

        those that enter the same windows form one state, which is merged into these.
        """
        module, given = self.function, _given(self.function, come.column)
        ends = stops.tolist()
        firsts, lasts = (column[stops - 1].tolist() for column in (come.members.first, come.members.last))
        for start, stop, first, last in zip([0, *ends], ends, firsts, lasts, strict=False):
            merged: list[Held] = []
            with ReportedErrors(self, requested, merged, np.arange(first, last)):
                part = Held(module.add_events_to_state(module.create_state(), given(start, stop)), stop - start)
                for held in states[first:last]:
                    merged.append(merge(module, held, part))
            states[first:last] = merged
        return states

    def copied(self, states: Column, requested: AggregatedWindows, windows: Rows) -> Column:
        """Return copies of states, for windows that start with the members of others."""
        found: list[Held] = []
        with ReportedErrors(self, requested, found, windows):
            for held in states.tolist():
                found.append(copied(self.function, held))
        return object_column(found)

    def shown(self, requested: AggregatedWindows, states: Sequence[Held]) -> Column:
        """Return the results of windows from their states."""
        found: list[Any] = []
        with ReportedErrors(self, requested, found):
            for held in states:
                found.append(self._finished(requested, len(found), held) if held.n_members else empty_result(self.function))
        return column_of(found)

    # Row by row: None is a state that is not known, which is then made of all members, and raises what there is to raise.

    @property
    def tells_rows(self) -> bool:
        return True

    def nothing(self) -> Any:
        """Return the state of a window without rows."""
        try:
            return Held(self.function.create_state(), 0)
        except Exception:
            return None

    def with_row(self, state: Any, row: InsertedRow, requested: WindowPeriods, window: int) -> Any:
        """Return the state of a window with a row more."""
        if state is None or not (self._where is None or row.arguments[self._where]):
            return state
        try:
            return Held(self._with(state.state, row, requested, window), state.n_members + 1)
        except Exception:
            return None

    def _with(self, state: Any, row: InsertedRow, requested: WindowPeriods, window: int) -> Any:
        module, value = self.function, row.arguments[self._argument]
        return module.add_events_to_state(state, column_of([value]) if module.vectorized else [value])

    def copy(self, state: Any) -> Any:
        """Return a copy of a state, for a window that starts with the members of another."""
        try:
            return None if state is None else copied(self.function, state)
        except Exception:
            return None

    def merged(self, one: Any, other: Any) -> Any:
        """Return the state of the members of two windows."""
        return None

    def shown_one(self, state: Any, requested: WindowPeriods, window: int) -> Any:
        """Return the result of a window from its state. Raises `ArithmeticError` if columns must compute it."""
        found = self._finished(requested, window, state) if state.n_members else empty_result(self.function)
        if type(found) not in PLAIN:
            raise ArithmeticError("it holds other values")
        return found


class NoValue(Enum):
    """Stands for the extremum of no values."""

    YET = "no value"


class ExtremumAggregate(StateAggregate):
    """The smallest or the largest value. It is its own state: if a long window only grows, only new members are read."""

    least_rows = LONG
    NOTHING: Final = NoValue.YET
    """The state of a window in which there are no values."""

    def advanced(self, requested: AggregatedWindows, states: Sequence[Any], gone: Members, come: Members) -> list[Any]:
        values = self.values(requested.rows, come)
        found = self._of_columns(values)
        best = self._of_each(values, requested) if found is None else found.tolist()
        after: list[Any] = []
        with ReportedErrors(self, requested, after):  # what came and what was there may have no order
            for held, come_best in zip(states, best, strict=True):
                came = self.NOTHING if come_best is None else come_best
                after.append(came if held is None else self._better(held, came))
        return after

    def _better(self, one: Any, other: Any) -> Any:
        if one is self.NOTHING or other is self.NOTHING:
            return other if one is self.NOTHING else one
        return self.function.of_values([one, other])

    def copied(self, states: Column, requested: AggregatedWindows, windows: Rows) -> Column:
        return states

    def shown(self, requested: AggregatedWindows, states: Sequence[Any]) -> Column:
        return column_of([self._shown(state) for state in states])

    def nothing(self) -> Any:
        return self.NOTHING

    def with_row(self, state: Any, row: InsertedRow, requested: WindowPeriods, window: int) -> Any:
        value = row.arguments[self._argument] if self._where is None or row.arguments[self._where] else None
        return state if value is None else self.merged(state, value)

    def copy(self, state: Any) -> Any:
        return state

    def merged(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return None
        try:
            return self._better(one, other)
        except Exception:  # they have no order
            return None

    def shown_one(self, state: Any, requested: WindowPeriods, window: int) -> Any:
        return self._shown(state)

    def _shown(self, state: Any) -> Any:
        return empty_result(self.function) if state is self.NOTHING else state


def order_of(module: Any) -> Order:
    """Return the order in which a module's members must stand."""
    if not module.order_insensitive:
        return Order.PAYLOAD
    return Order.ANY if isinstance(module, Builtin) or keeps_state(module) else Order.END


def _as_payloads(module: Any, found: Any, own: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return what a module has returned as a payload, or of an operator as payloads; `own` makes one that shares no state."""
    if module.returns_many:
        return [_payload(item, own) for item in results_of(module, found)]
    return _payload(found, own)


def _payload(value: Any, own: Callable[[Any], Any]) -> Any:
    return value if type(value) in IMMUTABLE else as_result(own(value))


def _computed(function: Any, members: Any) -> Any:
    return function.compute_result(function.add_events_to_state(function.create_state(), members))


class _Shared(NamedTuple):
    """An order of members in which those of the same windows stand together, and where each such part ends."""

    order: Rows
    stops: Rows


def _shared(members: Members) -> _Shared | None:
    """Return which members windows share; None where to add each part once and to merge it takes no fewer calls of a module."""
    if not len(members.places):
        return None
    order, spans = sorted_integers(members.first * (members.n_windows + 1) + members.last)
    stops = np.append(flatnonzero(spans[1:] != spans[:-1]) + 1, len(spans))
    merges = int((members.last - members.first)[order[stops - 1]].sum())
    return _Shared(order, stops) if len(order) + merges < members.n_pairs else None


def _known(values: Values) -> Values:
    """Return the values that are not None."""
    items = values.column.tolist()
    if type(None) in set(map(type, items)):
        values = values.only(flatnonzero(np.array([item is not None for item in items])))
        items = values.column.tolist()
    return values._replace(column=column_of(items))


def _given(module: Any, column: Column) -> Callable[[int, int], Any]:
    """Return what gives a module the values between two places: views of an array that it cannot change, or lists."""
    if module.vectorized and column.dtype != object:
        column.flags.writeable = False
        return lambda lo, hi: column[lo:hi]
    items = column.tolist()
    return lambda lo, hi: payloads_of(module, items[lo:hi]) if module.vectorized else items[lo:hi]
