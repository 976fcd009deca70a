"""Window aggregation by window id, and the buffered way of systems in order (paper 004, 4.1, 5.2 and A.2.2)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator
from operator import attrgetter
from typing import Any

from streamdsl.papers.common.partial_aggregates import PartialAggregate, aggregate_of
from streamdsl.papers.common.row_functions import hashable, reader
from streamdsl.papers.out_of_order.items import Order, Time, Tuple, WindowResult, check_order, check_positive, floor_to
from streamdsl.papers.out_of_order.punctuated_operator import Items, Punctuated, PunctuationSender
from streamdsl.papers.out_of_order.window_numbers import extent, wids
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import payload_order
from streamdsl.temporal.time import INFINITY

_TS = attrgetter("ts")
Group = tuple[Any, Any]
"""A group's key as users see it, and its partial aggregate."""


class WindowAggregate(Punctuated):
    """An aggregate of each window `[(wid + 1) * slide - range, (wid + 1) * slide)` and each key.

    It keeps partial aggregates by window id and key. Punctuation lets the windows that it completes go, by id, then by key; then
    comes punctuation on `"wid"`. `fn` is an aggregate of queries, a module, or a function of the payloads, which are then kept.

    `order="in"` keeps tuples, each until its last window ends, and sends no punctuation.

    >>> from streamdsl.aggregates import count
    >>> from streamdsl.progress import Punctuation
    >>> tumbling = WindowAggregate(60, 60, count())
    >>> for ts in (61, 59): assert tumbling.push(Tuple(ts)) == []
    >>> tumbling.push(Punctuation(60))
    [WindowResult(wid=0, key=None, value=1), Punctuation(value=1, on='wid')]
    """

    def __init__(self, range: Time, slide: Time, fn: Any, key: Any = None, order: Order = "any") -> None:
        check_positive(range, "range")
        check_positive(slide, "slide")
        check_order(order)
        super().__init__()
        self._shape = range, slide
        self._sent = PunctuationSender()
        made, read = aggregate_of(fn, self.name), None if key is None else reader(key, self.name)
        held: PartialTable | WindowBuffer = PartialTable(made, read) if order == "any" else WindowBuffer(made, read)
        self._held = held

    @property
    def buffered(self) -> int:
        return len(self._held)

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        self._held.add(item, wids(item.ts, *self._shape), self._shape)
        return []

    def _on_progress(self, input: int) -> Items:
        open_from = floor_to(self._bounds[0], self._shape[1])
        results = self._held.complete(open_from, self._shape)
        return [*results, *self._sent.to(open_from, "wid")] if isinstance(self._held, PartialTable) else results


class PartialTable:
    """A hash table of partial aggregates by window id, then by key; O(1) per tuple and window."""

    def __init__(self, made: PartialAggregate, key: Any) -> None:
        self._made = made
        self._key = key
        self._windows: dict[int, tuple[Lifetime, dict[Hashable, Group]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, item: Tuple, ids: Iterable[int], shape: tuple[Time, Time]) -> None:
        """Put a tuple into the windows that it belongs to."""
        shown = None if self._key is None else self._key(item.payload)
        key = hashable(shown)
        for wid in ids:
            if wid not in self._windows:
                self._windows[wid] = lifetime(wid, shape), {}
            life, groups = self._windows[wid]
            if key not in groups:
                self._size += 1
                groups[key] = shown, self._made.create()
            known, state = groups[key]
            groups[key] = known, self._made.add(state, item.ts, item.payload, life)

    def complete(self, open_from: int, shape: tuple[Time, Time]) -> list[WindowResult]:
        """Remove and return the windows before the first that is still open."""
        found: list[WindowResult] = []
        for wid in sorted(wid for wid in self._windows if wid < open_from):
            life, by_key = self._windows.pop(wid)
            groups = sorted(by_key.values(), key=lambda group: payload_order(group[0]))
            self._size -= len(groups)
            found += [WindowResult(wid, key, self._made.result(state, life)) for key, state in groups]
        return found


class WindowBuffer:
    """Tuples in order of ts; a window's aggregate is computed from them when it is complete."""

    def __init__(self, made: PartialAggregate, key: Any) -> None:
        self._made = made
        self._key = key
        self._tuples: list[Tuple] = []
        self._open_from = -INFINITY

    def __len__(self) -> int:
        return len(self._tuples)

    def add(self, item: Tuple, ids: Iterable[int], shape: tuple[Time, Time]) -> None:
        """Keep a tuple that is in a window until its last one ends."""
        if not ids:
            return
        if not self._tuples or self._tuples[-1].ts <= item.ts:
            self._tuples.append(item)
        else:
            insort(self._tuples, item, key=_TS)

    def complete(self, open_from: int, shape: tuple[Time, Time]) -> list[WindowResult]:
        """Compute the windows before the first that is still open, and forget the tuples that are in no other one."""
        found = [result for wid in self._ids(open_from, shape) for result in self._window(wid, shape)]
        self._open_from = max(self._open_from, open_from)
        del self._tuples[: self._place(extent(open_from, *shape)[0])]
        return found

    def _ids(self, open_from: int, shape: tuple[Time, Time]) -> Iterator[int]:
        """Yield the ids of the windows that are complete now and have tuples."""
        wid, place = self._open_from, 0
        while place < len(self._tuples):
            wid = max(wid, wids(self._tuples[place].ts, *shape)[0])
            if wid >= open_from:
                return
            yield wid
            wid += 1
            place = self._place(extent(wid, *shape)[0])

    def _window(self, wid: int, shape: tuple[Time, Time]) -> list[WindowResult]:
        first, end = extent(wid, *shape)
        partials = PartialTable(self._made, self._key)
        for item in self._tuples[self._place(first) : self._place(end)]:
            partials.add(item, (wid,), shape)
        return partials.complete(wid + 1, shape)

    def _place(self, ts: Time) -> int:
        return bisect_left(self._tuples, ts, key=_TS)


def lifetime(wid: int, shape: tuple[Time, Time]) -> Lifetime:
    """Return the lifetime of a window, as modules see it."""
    return Lifetime(*extent(wid, *shape))  # type: ignore[arg-type]
