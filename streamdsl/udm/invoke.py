"""Invoking modules: from the members of one window to results with lifetimes (paper 001, V.A), for all engines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from streamdsl.errors import TIME, StreamDslError, TimestampViolation, UnitError, UserCodeError, shortened
from streamdsl.expr.row_evaluator import to_plain_value
from streamdsl.expr.schema import Schema, Shape, as_payload
from streamdsl.expr.table import column_of
from streamdsl.temporal import CHRONON, INFINITY, MIN_TIME, Lifetime, add_time, fields_of, payload_order, to_ticks
from streamdsl.temporal.cht import Row
from streamdsl.udm.bases import UDM, AnyModule, AnyUDA, AnyUDO, IntervalEvent, WindowDescriptor
from streamdsl.windows import Clip, Output

R = TypeVar("R")


class _Excluded:
    __slots__ = ()

    def __repr__(self) -> str:
        return "EXCLUDED"


EXCLUDED: Final = _Excluded()
"""The argument of a row that an aggregate's `where=` excludes."""


class Member(Row, Protocol):
    """A member of a window: its lifetime, its payload, and the values of all modules' arguments."""

    @property
    def arguments(self) -> Sequence[Any]: ...


class MemberRow(NamedTuple):
    """A member as a tuple."""

    le: int
    re: int
    payload: Any
    arguments: Sequence[Any]


class Stamped(NamedTuple):
    """One result of a window with its lifetime."""

    le: int
    re: int
    payload: Any


def member_order(member: Member) -> tuple[Any, ...]:
    """Return the sort key of members, in whose order modules get them: original LE, RE, payload."""
    return (member.le, member.re, payload_order(member.payload))


def aggregate(function: AnyUDA[Any, Any], position: int, members: Sequence[Member], window: Lifetime, clip: Clip) -> Any:
    """Return an aggregate of a window's members, in `member_order`; `position` is the index of its argument in each member."""
    chosen = [member for member in members if member.arguments[position] is not EXCLUDED]
    if not chosen:
        return empty_result(function)
    return as_result(computed(function, seen(function, chosen, position, window, clip), window))


def empty_result(function: AnyUDA[Any, Any]) -> Any:
    """Return an aggregate's value for a window all of whose rows are excluded.

    >>> from streamdsl.udm.builtin import Count
    >>> empty_result(Count())
    0
    """
    value = function.empty_result
    return as_result(value() if callable(value) else copy.copy(value))


def seen(module: AnyModule, members: Sequence[Member], position: int, window: Lifetime, clip: Clip) -> Any:
    """Return members in the form that a module takes: payloads, or events with clipped lifetimes.

    For a module that needs order they are sorted by original (LE, payload), without RE, which time-insensitive modules must not
    depend on.
    """
    if not module.order_insensitive:
        members = sorted(members, key=lambda member: (member.le, payload_order(member.payload)))
    if module.time_sensitive:
        return _events(members, position, window, seen_clip([module], clip))
    return payloads_of(module, [member.arguments[position] for member in members])


def seen_clip(modules: Iterable[AnyModule], clip: Clip) -> Clip:
    """Return the clipping that time-sensitive modules see: full if all are always clipped, as `time_weighted_avg` is.

    >>> from streamdsl.udm.builtin import Count, TimeWeightedAvg
    >>> seen_clip([Count(), TimeWeightedAvg()], Clip.NONE)
    <Clip.FULL: 'full'>
    """
    sensitive = [module for module in modules if module.time_sensitive]
    return Clip.FULL if sensitive and all(getattr(module, "always_clipped", False) for module in sensitive) else clip


def operate(module: AnyUDO[Any, Any], members: Sequence[Member], window: Lifetime, clip: Clip, output: Output) -> list[Stamped]:
    """Return a UDO's results for the members of a window, with lifetimes by the output policy."""
    return stamped(module, results_of(module, computed(module, seen(module, members, 0, window, clip), window)), window, output)


def results_of(module: UDM, found: Any) -> list[Any]:
    """Return the results of a UDO as a list; raises `TypeError` for a single payload, or another value that is not an iterable.

    >>> from streamdsl.udm.function_modules import udo
    >>> results_of(udo(sorted), ("a", "b"))
    ['a', 'b']
    >>> results_of(udo(sorted), {"zone": "A"})
    Traceback (most recent call last):
        ...
    TypeError: sorted returned a value of type dict; an operator returns an iterable of results, for one of them a list of it
    """
    # A frame is iterable too, but over its column names.
    is_payload = isinstance(found, (str, bytes, Mapping)) or hasattr(found, "_fields") or hasattr(found, "columns")
    if is_payload or not isinstance(found, Iterable):
        raise TypeError(
            f"{module.label} returned a value of type {type(found).__name__}; "
            "an operator returns an iterable of results, for one of them a list of it"
        )
    return list(found)


def stamped(module: AnyUDO[Any, Any], events: Sequence[Any], window: Lifetime, output: Output) -> list[Stamped]:
    """Return results of a UDO with lifetimes by the output policy, after checking the module's own timestamps."""
    if not module.time_sensitive:
        return [Stamped(*stamp(window, output), as_result(payload)) for payload in events]
    stamps = [_own_stamp(module, event, window) for event in events]
    if not output.keeps_stamps:
        return [Stamped(*stamp(window, output), as_result(event.payload)) for event in events]
    rows = []
    for life, event in zip(stamps, events, strict=True):
        if output is Output.CLIP:
            life = life.intersect(window)
        elif life.le < window.le:
            raise TimestampViolation(
                f"{module.label} stamped an output event [{TIME}, {TIME}) before the start of its window [{TIME}, {TIME})",
                times=(*life, *window),
                hint="an output may not start before its window; use Output.CLIP to cut it, or Output.ALIGN",
            )
        if not life.is_empty:
            rows.append(Stamped(life.le, life.re, as_result(event.payload)))
    return rows


def stamp(window: Lifetime, output: Output) -> Lifetime:
    """Return the lifetime of results without timestamps of their own.

    >>> stamp(Lifetime(0, 10), Output.POINT_AT_END)
    Lifetime(le=10, re=11)
    """
    if output is not Output.POINT_AT_END:
        return window
    return Lifetime(window.re, add_time(window.re, CHRONON))


def guarded(operator: str, window: Lifetime, compute: Callable[[], R], members: Sequence[Any] = ()) -> R:
    """Return the result of `compute`; an exception of user code becomes a `UserCodeError` with operator, window and members."""
    try:
        return compute()
    except StreamDslError:
        raise
    except Exception as error:
        raise UserCodeError(error, operator=operator, window=window, members=members) from error


def computed(module: Any, members: Any, window: Lifetime) -> Any:
    """Return a module's result for members as `seen` returns them; for an incremental module from a new state.

    >>> from streamdsl.udm.builtin import Count
    >>> computed(Count(), ["a", "b"], Lifetime(0, 10))
    2
    """
    period = (WindowDescriptor(*window),) if module.time_sensitive else ()
    if module.incremental:
        members = module.add_events_to_state(module.create_state(), members, *period)
    return module.compute_result(members, *period)


def payloads_of(module: Any, values: list[Any]) -> Any:
    """Return payloads in the form that a time-insensitive module takes: a list, or arrays if it is vectorized."""
    if not module.vectorized:
        return values
    if values and Schema.of_payload(values[0]).shape is not Shape.SCALAR:
        names = [name for name, _ in fields_of(values[0])]
        columns = zip(*([item for _, item in fields_of(value)] for value in values), strict=True)
        return {name: column_of(list(column)) for name, column in zip(names, columns, strict=True)}
    return column_of(values)


def _events(members: Iterable[Member], position: int, window: Lifetime, clip: Clip) -> list[IntervalEvent[Any]]:
    first, last = window.le if clip.left else MIN_TIME, window.re if clip.right else INFINITY
    return [IntervalEvent(max(member.le, first), min(member.re, last), member.arguments[position]) for member in members]


def _own_stamp(module: Any, event: Any, window: Lifetime) -> Lifetime:
    if not isinstance(event, IntervalEvent):
        raise TimestampViolation(
            f"{module.label} is time-sensitive, so it returns IntervalEvents, not {shortened(event)} (window [{TIME}, {TIME}))",
            times=tuple(window),
        )
    life = Lifetime(_tick(module, event.start_time, window), _tick(module, event.end_time, window))
    if life.le > life.re:
        raise TimestampViolation(
            f"{module.label} stamped an output event [{TIME}, {TIME}) that ends before it starts (window [{TIME}, {TIME}))",
            times=(*life, *window),
        )
    return life


def _tick(module: Any, time: object, window: Lifetime) -> int:
    if isinstance(time, (int, np.integer)) and not isinstance(time, (bool, np.timedelta64)):
        return to_ticks(time)
    raise UnitError(f"{module.label} stamped an output event with {time!r}, which is no int in ticks (window {window})")


def as_result(value: Any) -> Any:
    """Return a module's result as a payload of plain Python values."""
    return as_payload(to_plain_value(value))
