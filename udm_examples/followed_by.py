"""The pattern "A followed by B" as a user-defined operator: events in, events stamped by the module out.

It is the pattern operator of paper 001, III.C.1. Which pairs there are, and for how long, follows the operator SEQUENCE of CEDR
(R. Barga, J. Goldstein, M. Ali, M. Hong, "Consistent Streaming Through Time: A Vision for Event Stream Processing", CIDR 2007).

Order is the order of starts, and ends do not count. Hence input clipping matters on one side only:

- *left clipping changes the answer*: an A and a B that both started before the window start together once they are clipped, so
  the pair is lost; an A that is clipped alone seems to have started later than it did, so the pair lives too long;
- *right clipping changes nothing*, as the module promises: the optimizer clips, so that no event that outlives its window holds
  back the output CTI.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import streamdsl as sd
from udm_examples.settings import ticks

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Pair(Generic[P]):
    """Two payloads: an A, and a B that starts after it."""

    first: P
    then: P


class FollowedBy(sd.TimeSensitiveUDO[P, Pair[P]]):
    """Every A with every B that starts after it, less than `within` ticks later.

    A and B are told by two predicates on the payload; one event may be both, but it does not follow itself. A pair lives from the
    start of B until `within` after the start of A, and never before its window: a pair that was complete earlier is reported from
    the start of the window on. So a window holds the pairs of its members for as long as they are fresh. Pairs of one key each
    are had with `group_by`.

    Time-bound: an event that starts at s is in no pair that lives before s. Not so over count windows, whose bounds depend on
    later events.

    Raises `QueryError` if `within`, in ticks, is not a positive whole number.

    >>> def bought(what: str) -> bool:
    ...     return what == "buy"
    >>> def sold(what: str) -> bool:
    ...     return what == "sell"
    >>> churn = FollowedBy(bought, sold, within=8)
    >>> orders = [sd.IntervalEvent(1, 2, "buy"), sd.IntervalEvent(3, 4, "sell"), sd.IntervalEvent(9, 10, "sell")]
    >>> list(churn.compute_result(orders, sd.WindowDescriptor(0, 10)))
    [IntervalEvent(start_time=3, end_time=9, payload=Pair(first='buy', then='sell'))]

    In a query, where orders stay open for a while and belong to each window that they reach into:

    >>> orders = sd.from_rows([(7, 14, "buy"), (9, 12, "sell")])
    >>> windows = orders.tumbling_window(10, clip=sd.Clip.RIGHT, output=sd.Output.CLIP)
    >>> for le, re, pair in windows.apply(churn).run():
    ...     print(le, re, pair.first, pair.then)
    9 10 buy sell
    10 15 buy sell

    Left clipping makes both orders of the second window start at 10, so that neither follows the other:

    >>> windows = orders.tumbling_window(10, clip=sd.Clip.LEFT, output=sd.Output.CLIP)
    >>> for le, re, pair in windows.apply(churn).run():
    ...     print(le, re, pair.first, pair.then)
    9 10 buy sell
    """

    time_bound: ClassVar[bool] = True
    ignores_ends_beyond_window: ClassVar[bool] = True

    def __init__(self, first: Callable[[P], bool], then: Callable[[P], bool], within: int) -> None:
        self.first = first
        self.then = then
        self.within = ticks("within", within)

    def compute_result(
        self, events: Sequence[sd.IntervalEvent[P]], window: sd.WindowDescriptor
    ) -> Iterator[sd.IntervalEvent[Pair[P]]]:
        """Yield the pairs that live inside the window or after it."""
        firsts = sorted((event for event in events if self.first(event.payload)), key=lambda event: event.start_time)
        starts = [event.start_time for event in firsts]
        for event in events:
            if self.then(event.payload):
                since = max(event.start_time, window.start_time)
                before = range(bisect_right(starts, since - self.within), bisect_left(starts, event.start_time))
                for a in (firsts[i] for i in before):
                    yield sd.IntervalEvent(since, a.start_time + self.within, Pair(a.payload, event.payload))
