"""Running one module on one window, or a stream operator on rows in order, with no engine and no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, TypeVar, overload

from streamdsl.errors import QueryError
from streamdsl.expr.schema import as_payload
from streamdsl.temporal import CHT, CHTRow, Cti, Insert, Lifetime
from streamdsl.testing.history import History, arrivals_of, rows_of
from streamdsl.testing.live_window import LiveWindow, compute_rows, member, process_rows, row_order
from streamdsl.udm.bases import AnyUDA, AnyUDO
from streamdsl.udm.stream_operator import UDSO, AnyUDSO
from streamdsl.windows import Clip, Output

O = TypeVar("O")  # noqa: E741


@overload
def run_udm(udm: UDSO[Any, Any, O], events: History) -> list[CHTRow[O]]: ...
@overload
def run_udm(
    udm: AnyUDA[Any, Any] | AnyUDO[Any, Any],
    events: History,
    window: tuple[int, int],
    *,
    clip: Clip = Clip.NONE,
    output: Output = Output.ALIGN,
    seed: int = 0,
) -> Any: ...
def run_udm(
    udm: AnyUDA[Any, Any] | AnyUDO[Any, Any] | AnyUDSO,
    events: History,
    window: tuple[int, int] | None = None,
    *,
    clip: Clip = Clip.NONE,
    output: Output = Output.ALIGN,
    seed: int = 0,
) -> Any:
    """Return what a module makes of the events that overlap one window: an aggregate's value, an operator's rows.

    Rows come to the module in a random order, as no order is promised. An incremental module is given one member after the
    other; if the events are physical it follows them as they arrive: a retraction takes a member out of its state, and puts it
    back with its new lifetime. A window without events has no result: None, or no rows.

    A stream operator has no window. Its rows come in order of (LE, payload, RE), whatever their order of arrival. Raises
    `QueryError` for a window where there is none, and for none where there is one.

    >>> from streamdsl.udm.builtin import TimeWeightedAvg
    >>> run_udm(TimeWeightedAvg(), [(0, 3, 4.0), (2, 12, 8.0), (10, 11, 99.0)], (0, 10))
    7.6
    >>> from streamdsl.udm.stream_operator import UDSO
    >>> class Rise(UDSO[int, int, int]):
    ...     def create_state(self) -> int:
    ...         return 0
    ...     def process(self, state: int, payload: int, le: int) -> tuple[int, list[int]]:
    ...         return payload, [payload - state] if payload > state else []
    >>> run_udm(Rise(), [(8, 9, 6), (1, 5, 4), (3, 4, 2)])
    [CHTRow(le=1, re=5, payload=4), CHTRow(le=8, re=9, payload=4)]
    """
    if isinstance(udm, UDSO):
        if (window, clip, output) != (None, Clip.NONE, Output.ALIGN):
            raise QueryError(f"{udm.label} is a stream operator, and has no windows", hint=f"run_udm({udm.label}(...), events)")
        rows = sorted((row for row in rows_of(events) if row.le < row.re), key=row_order)
        return process_rows(udm, udm.create_state(), map(member, rows))[1]
    if window is None:
        raise QueryError(f"{udm.label} computes windows, and is given none", hint="run_udm(module, events, window=(le, re))")
    given = events if isinstance(events, (str, CHT)) else list(events)
    period = Lifetime(*window)
    if udm.incremental and udm.order_insensitive:
        rows = _as_they_arrive(LiveWindow(udm, period, clip, output), given, seed)
    else:
        members = [member(row) for row in _shuffled(given, seed) if _belongs(row, period)]
        rows = compute_rows(udm, members, period, clip, output) if members else []
    if isinstance(udm, AnyUDA):
        return rows[0].payload if rows else None
    return rows


def _as_they_arrive(window: LiveWindow, events: History, seed: int) -> list[CHTRow[Any]]:
    for before, after in _changes(events, seed):
        if before is not None and _belongs(before, window.window):
            window.remove(member(before))
        if _belongs(after, window.window):
            window.add(member(after))
    return window.result() if window.members else []


def _changes(events: History, seed: int) -> Iterator[tuple[CHTRow[Any] | None, CHTRow[Any]]]:
    """Yield each row as it was and as it is now: of physical events in order of arrival, of rows in a random order."""
    arrivals = arrivals_of(events)
    if arrivals is None:
        yield from ((None, row) for row in _shuffled(events, seed))
        return
    CHT.from_events(arrivals)  # refuses what is malformed
    known: dict[Any, CHTRow[Any]] = {}
    for event in arrivals:
        if isinstance(event, Cti):
            continue
        if isinstance(event, Insert):
            before, after = None, CHTRow(event.le, event.re, as_payload(event.payload))
        else:
            before = known[event.id]
            after = before._replace(re=event.re_new)
        known[event.id] = after
        yield before, after


def _shuffled(events: History, seed: int) -> list[CHTRow[Any]]:
    rows = rows_of(events)
    Random(seed).shuffle(rows)
    return rows


def _belongs(row: CHTRow[Any], window: Lifetime) -> bool:
    return Lifetime(row.le, row.re).overlaps(window)
