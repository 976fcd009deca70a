"""Gigascope's low level: a small table of partial counts, and how its work is spread over time (paper 004, section 6)."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable
from typing import Any, Literal, TypeAlias

from streamdsl.errors import EventError, QueryError
from streamdsl.expr.schema import as_payload
from streamdsl.papers.common.row_functions import hashable
from streamdsl.papers.out_of_order.items import (
    BEGINNING,
    Item,
    Order,
    Partial,
    Punctuation,
    Time,
    Tuple,
    check_order,
    check_positive,
    floor_to,
)
from streamdsl.papers.out_of_order.punctuated_operator import Items, Punctuated, check_time
from streamdsl.temporal.integers import whole_number
from streamdsl.temporal.time import INFINITY

Flush: TypeAlias = Literal["slow", "lazy", "end"]


class LowLevelAggregate(Punctuated):
    """Counts per window of `window` time and per group, in a table of `size` slots; it is fed with `Tuple(ts, group)` in order.

    A group has the slot `group % size` (other than whole numbers: by their text). A tuple whose slot another group or window has
    drives that entry out, as a `Partial`; `roll_up` adds the partial counts. When a window begins, all entries are old:

    - `flush="end"` sends them out at once; so do all ways for what is more than `max_delay` windows behind.
    - `"slow"` sends the next one, in order of slots, after every `every` tuples of the window.
    - `"lazy"` leaves them until their slots are needed.

    `order="in"` is slow, and keeps the order of windows: before an entry of this window is driven out, and before the next window
    begins, all old ones go; `max_delay` does not count. `next_slot=True` is the better replacement of the paper's footnote: a
    group whose slot another one of this window has takes the next slot, if that is free, old, or its own.

    >>> table = LowLevelAggregate(10, 2, flush="lazy", max_delay=1)
    >>> for ts, group in ((1, 0), (2, 0), (3, 1)): assert table.push(Tuple(ts, group)) == []
    >>> table.push(Tuple(11, 0)), table.push(Tuple(12, 2)), table.buffered
    ([Partial(wid=0, group=0, count=2)], [Partial(wid=1, group=0, count=1)], 2)
    """

    def __init__(
        self,
        window: Time,
        size: int,
        flush: Flush = "slow",
        every: int = 1,
        max_delay: int = 0,
        order: Order = "any",
        next_slot: bool = False,
    ) -> None:
        check_positive(window, "window")
        check_order(order)
        _check_flush(flush, order)
        super().__init__()
        self._window = window
        self._flush = flush
        self._every = whole_number(every, "every is", 1)
        self._max_delay = whole_number(max_delay, "max_delay is", 0)
        self._in_order = order == "in"
        self._next_slot = next_slot
        self._table = PartialCountTable(whole_number(size, "size is", 1))
        self._latest: Time = -INFINITY
        self._wid: int | None = None
        self._since = 0
        self._position = self._table.size

    @property
    def buffered(self) -> int:
        return self._table.held

    @property
    def progress(self) -> Time:
        """The least window id that may still come out: of the entries in the table, and of the window that goes on."""
        held = self._table.least
        return BEGINNING if self._wid is None else self._wid if held is None else min(held, self._wid)

    def close(self) -> list[Partial]:
        """Return what is in the table, which is then empty."""
        return self._table.before(INFINITY)

    def push(self, item: Item, input: int = 0) -> Items:
        try:
            if type(item) is Tuple and not input and self._latest <= item.ts <= INFINITY:
                self._latest = item.ts
                return self._on_tuple(item, input)
        except TypeError:
            pass
        return super().push(item, input)

    def _check_tuple(self, item: Tuple, input: int) -> None:
        check_time(item, item.ts, self.name)
        raise EventError(
            item,
            f"its ts {item.ts} is before {self._latest}",
            where=self.name,
            hint="the low level reads one ordered stream: sort it first with Sort",
        )

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        """Punctuation begins the window that it is in, as a tuple would."""
        if item.on != "ts" or item.value <= self._latest:
            return []
        self._latest = item.value
        return self._begin(floor_to(item.value, self._window))

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        wid = int(item.ts // self._window)
        found: list[Partial] = [] if wid == self._wid else self._begin(wid)
        if self._flush == "slow" and self._position < self._table.size:
            self._since += 1
            if self._since == self._every:
                found += self._next_old()
        group = item.payload
        key = group if type(group) is int else hashable(group)
        at = (group if type(group) is int else zlib.crc32(repr(key).encode())) % self._table.size
        if not self._table.count(at, wid, key):
            found += self._insert(at, wid, key, group)
        return found

    def _begin(self, wid: int) -> list[Partial]:
        """Begin a window: what is too old goes out."""
        before, self._wid = self._wid, wid
        self._since = self._position = 0
        if self._in_order:
            return [] if before is None else self._table.before(before)
        return self._table.before(wid - (0 if self._flush == "end" else self._max_delay))

    def _next_old(self) -> list[Partial]:
        """Send out the next old entry in order of slots."""
        self._since = 0
        wids = self._table.wids
        for at in range(self._position, len(wids)):
            if wids[at] is not None and wids[at] != self._wid:
                self._position = at + 1
                return [self._table.out(at)]
        self._position = len(wids)
        return []

    def _insert(self, at: int, wid: int, key: Hashable, group: Any) -> list[Partial]:
        """Give a group a slot, and send out what was there."""
        table = self._table
        if self._next_slot and table.wids[at] == wid:
            following = (at + 1) % table.size
            if table.count(following, wid, key):
                return []
            if table.wids[following] != wid:
                at = following
        found = []
        if table.wids[at] is not None:
            if self._in_order and table.wids[at] == wid:
                found = table.before(wid)
            found.append(table.out(at))
        table.put(at, wid, key, group)
        return found


class PartialCountTable:
    """The slots: each is empty, or has a group of a window and its count so far.

    >>> table = PartialCountTable(4)
    >>> table.put(1, 0, "a", "a")
    >>> table.count(1, 0, "a"), table.count(1, 0, "b"), table.before(1), table.held
    (True, False, [Partial(wid=0, group='a', count=2)], 0)
    """

    __slots__ = ("_by_wid", "_counts", "_groups", "_keys", "held", "size", "wids")

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self.wids: list[int | None] = [None] * size
        self._keys: list[Hashable] = [None] * size
        self._groups: list[Any] = [None] * size
        self._counts = [0] * size
        self._by_wid: dict[int, int] = {}

    @property
    def least(self) -> int | None:
        """The first window with entries."""
        return min(self._by_wid, default=None)

    def count(self, at: int, wid: int, key: Hashable) -> bool:
        """Count a tuple if its group has the slot in this window; say whether it does."""
        if self.wids[at] != wid or self._keys[at] != key:
            return False
        self._counts[at] += 1
        return True

    def put(self, at: int, wid: int, key: Hashable, group: Any) -> None:
        """Give an empty slot to a group."""
        self.wids[at], self._keys[at], self._groups[at], self._counts[at] = wid, key, group, 1
        self._by_wid[wid] = self._by_wid.get(wid, 0) + 1
        self.held += 1

    def out(self, at: int) -> Partial:
        """Empty a slot."""
        wid = self.wids[at]
        assert wid is not None
        found = Partial(wid, self._groups[at], self._counts[at])
        self.wids[at] = self._keys[at] = self._groups[at] = None
        self.held -= 1
        self._by_wid[wid] -= 1
        if not self._by_wid[wid]:
            del self._by_wid[wid]
        return found

    def before(self, wid: int) -> list[Partial]:
        """Empty the slots of earlier windows, by window, then by slot."""
        if not any(each < wid for each in self._by_wid):
            return []
        found = [(each, at) for at, each in enumerate(self.wids) if each is not None and each < wid]
        return [self.out(at) for _, at in sorted(found)]


def _check_flush(flush: object, order: Order) -> None:
    if flush not in ("slow", "lazy", "end"):
        raise QueryError(f'flush is "slow", "lazy", or "end", not {flush!r}')
    if order == "in" and flush != "slow":
        raise QueryError(f'order="in" flushes slowly only, not {flush!r}', hint='leave flush out, or take order="any"')


def roll_up(partials: Iterable[Partial]) -> dict[tuple[int, Any], int]:
    """Return the exact counts by window and group, as the high level adds them up from the low level's partial ones.

    >>> roll_up([Partial(0, "a", 2), Partial(0, "b", 1), Partial(0, "a", 3)])
    {(0, 'a'): 5, (0, 'b'): 1}
    """
    counts: dict[tuple[int, Hashable], int] = {}
    groups: dict[Hashable, Any] = {}
    for each in partials:
        key = hashable(each.group)
        groups.setdefault(key, as_payload(each.group))
        counts[each.wid, key] = counts.get((each.wid, key), 0) + each.count
    return {(wid, groups[key] if isinstance(groups[key], Hashable) else key): n for (wid, key), n in counts.items()}
