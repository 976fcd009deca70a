"""One window of a module as an engine maintains it: members come and go, and an incremental module's state follows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from streamdsl.expr.row_evaluator import to_plain_value
from streamdsl.expr.schema import as_payload
from streamdsl.temporal import CHTRow, Lifetime, payload_key, payload_order
from streamdsl.udm.bases import AnyModule, AnyUDA, WindowDescriptor, can_remove
from streamdsl.udm.invoke import MemberRow, aggregate, computed, member_order, operate, results_of, seen, stamp, stamped
from streamdsl.udm.stream_operator import AnyUDSO, processed
from streamdsl.windows import Clip, Output

T = TypeVar("T")


def member(row: CHTRow[Any]) -> MemberRow:
    """Return a row as the member of a window; the module is given its payload."""
    return MemberRow(row.le, row.re, row.payload, (row.payload,))


def deep_copy(value: T) -> T:
    """Return a deep copy, or the value itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # whatever a foreign class raises: a lock, a generator
        return value


def equal_copy(member: MemberRow) -> MemberRow:
    """Return an equal member whose payload is another object, if it compares by value at all.

    >>> first = member(CHTRow(0, 1, [1, 2]))
    >>> equal_copy(first) == first, equal_copy(first).payload is first.payload
    (True, False)
    """
    payload = deep_copy(member.payload)
    return MemberRow(member.le, member.re, payload, (payload,)) if _is_same(member, member._replace(payload=payload)) else member


def compute_rows(
    module: AnyModule, members: Sequence[MemberRow], window: Lifetime, clip: Clip, output: Output
) -> list[CHTRow[Any]]:
    """Return a module's result rows for all members of a window at once; they are sorted unless it is order-insensitive.

    >>> from streamdsl.udm.builtin import Count
    >>> compute_rows(Count(), [member(CHTRow(1, 2, "a"))], Lifetime(0, 10), Clip.NONE, Output.ALIGN)
    [CHTRow(le=0, re=10, payload=1)]
    """
    given = list(members) if module.order_insensitive else sorted(members, key=member_order)
    if isinstance(module, AnyUDA):
        return [CHTRow(*stamp(window, output), aggregate(module, 0, given, window, clip))]
    return [CHTRow(*row) for row in operate(module, given, window, clip, output)]


def returned_events(module: AnyModule, members: Sequence[MemberRow], window: Lifetime, clip: Clip) -> list[CHTRow[Any]]:
    """Return a time-sensitive module's results for all members of a window, with the timestamps that it gave them."""
    if isinstance(module, AnyUDA):
        return compute_rows(module, members, window, clip, Output.ALIGN)
    results = results_of(module, computed(module, seen(module, members, 0, window, clip), window))
    return [CHTRow(result.start_time, result.end_time, as_payload(to_plain_value(result.payload))) for result in results]


def process_rows(module: AnyUDSO, state: Any, rows: Iterable[MemberRow]) -> tuple[Any, list[CHTRow[Any]]]:
    """Return a stream operator's state after some rows in order, and their results."""
    found: list[CHTRow[Any]] = []
    for row in rows:
        state, results = processed(module, state, row.payload, row.le)
        found += [CHTRow(row.le, row.re, result) for result in results]
    return state, found


def row_order(row: CHTRow[Any]) -> tuple[Any, ...]:
    """Return the sort key in which a stream operator sees rows."""
    return (row.le, payload_order(row.payload), row.re)


class LiveWindow:
    """One window of an incremental module, with its members and their state.

    Without `remove_event_from_state` a removal recomputes the state from the remaining members.
    """

    def __init__(self, module: Any, window: Lifetime, clip: Clip, output: Output = Output.ALIGN) -> None:
        self.module = module
        self.window = window
        self.clip = clip
        self.output = output
        self.members: list[MemberRow] = []
        self.state = module.create_state()

    @property
    def period(self) -> tuple[WindowDescriptor, ...]:
        """The last argument of the module's methods."""
        return period_of(self.module, self.window)

    def seen(self, members: Iterable[MemberRow]) -> Any:
        """Return members as the module sees them."""
        return seen(self.module, list(members), 0, self.window, self.clip)

    def add(self, *members: MemberRow) -> None:
        """Add a set of members."""
        self.members += members
        self.state = self.module.add_events_to_state(self.state, self.seen(members), *self.period)

    def remove(self, *members: MemberRow) -> None:
        """Remove a set of members."""
        for gone in members:
            del self.members[next(i for i, kept in enumerate(self.members) if _is_same(kept, gone))]
        if can_remove(self.module):
            self.state = self.module.remove_events_from_state(self.state, self.seen(members), *self.period)
        else:
            kept, self.members, self.state = self.members, [], self.module.create_state()
            self.add(*kept)

    def result(self) -> list[CHTRow[Any]]:
        """Return the window's rows, as they are computed from the state."""
        return result_rows(self.module, self.module.compute_result(self.state, *self.period), self.window, self.output)

    def with_state(self, state: Any) -> LiveWindow:
        """Return another window with the same members and this state."""
        other = object.__new__(LiveWindow)
        other.__dict__ |= {**self.__dict__, "members": list(self.members), "state": state}
        return other


def period_of(module: AnyModule, window: Lifetime) -> tuple[WindowDescriptor, ...]:
    """Return the last argument of a module's methods: the window, if it is time-sensitive."""
    return (WindowDescriptor(*window),) if module.time_sensitive else ()


def result_rows(module: AnyModule, result: Any, window: Lifetime, output: Output) -> list[CHTRow[Any]]:
    """Return the result of `compute_result` as rows."""
    if isinstance(module, AnyUDA):
        return [CHTRow(*stamp(window, output), as_payload(to_plain_value(result)))]
    return [CHTRow(*row) for row in stamped(module, results_of(module, result), window, output)]


def _is_same(a: MemberRow, b: MemberRow) -> bool:
    return a.le == b.le and a.re == b.re and payload_key(a.payload) == payload_key(b.payload)
