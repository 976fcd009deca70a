"""Gigascope's low level: a small table of partial counts, and how its work is spread over time (paper 004, section 6)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from streamdsl.errors import EventError, QueryError
from streamdsl.progress.items import BEGINNING, Order, Partial, Punctuation, Time, Tuple, check_count, check_order, check_positive
from streamdsl.progress.operator import Items, Operator
from streamdsl.progress.reading import hashable

Flush: TypeAlias = Literal["slow", "lazy", "end"]


@dataclass(slots=True)
class Entry:
    """A slot's content: a group of a window, which is old once a later window has begun."""

    wid: int
    group: Any
    count: int


class LowLevelAggregate(Operator):
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
        check_count(size, "size")
        check_count(every, "every")
        check_count(max_delay, "max_delay", least=0)
        check_order(order)
        _check_flush(flush, order)
        super().__init__()
        self._window = window
        self._flush = flush
        self._every = every
        self._max_delay = max_delay
        self._in_order = order == "in"
        self._next_slot = next_slot
        self._slots: list[Entry | None] = [None] * size
        self._size = self._held = 0
        self._latest: Time = BEGINNING
        self._wid: int | None = None
        self._since = 0
        self._position = size

    @property
    def buffered(self) -> int:
        return self._held

    @property
    def progress(self) -> Time:
        """The least window id that may still come out: of the entries in the table, and of the window that goes on."""
        held = [entry.wid for entry in self._slots if entry is not None]
        return min([*held, *([] if self._wid is None else [self._wid])], default=BEGINNING)

    def close(self) -> list[Partial]:
        """Return what is in the table, which is then empty."""
        return self._evict(lambda entry: True)

    def _check_tuple(self, item: Tuple, input: int) -> None:
        if item.ts < self._latest or item.ts < self._bounds[0]:
            raise EventError(
                item,
                f"its ts {item.ts} is before {max(self._latest, self._bounds[0])}",
                where=self.name,
                hint="the low level reads one ordered stream; put Sort, or a WindowAggregate, where there is none",
            )

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        """Punctuation begins the window that it is in, as a tuple would."""
        if item.on != "ts" or item.value <= self._bounds[0]:
            return []
        self._bounds[0] = item.value
        return self._begin(int(item.value // self._window))

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        self._latest = item.ts
        found = self._begin(int(item.ts // self._window))
        if self._flush == "slow" and self._position < len(self._slots):
            found += self._slowly()
        return found + self._insert(item.payload)

    def _begin(self, wid: int) -> list[Partial]:
        """Begin a window, unless it has: what is too old goes out."""
        if self._wid is not None and wid <= self._wid:
            return []
        before, self._wid = self._wid, wid
        self._since = self._position = 0
        if self._in_order:
            return self._evict(lambda entry: entry.wid != before)
        delay = 0 if self._flush == "end" else self._max_delay
        return self._evict(lambda entry: entry.wid < wid - delay)

    def _slowly(self) -> list[Partial]:
        """Send the next old entry out, if it is time."""
        self._since += 1
        if self._since < self._every:
            return []
        self._since = 0
        slots, size = self._slots, len(self._slots)
        while self._position < size:
            entry = slots[self._position]
            self._position += 1
            if entry is not None and entry.wid != self._wid:
                return [self._out(self._position - 1, entry)]
        return []

    def _insert(self, group: Any) -> list[Partial]:
        at = self._slot(group)
        entry = self._slots[at]
        if self._is(entry, group):
            entry.count += 1  # type: ignore[union-attr]
            return []
        if self._next_slot and entry is not None and entry.wid == self._wid:
            following = (at + 1) % len(self._slots)
            other = self._slots[following]
            if self._is(other, group):
                other.count += 1  # type: ignore[union-attr]
                return []
            if other is None or other.wid != self._wid:
                at, entry = following, other
        found = [] if entry is None else self._displace(at, entry)
        assert self._wid is not None
        self._slots[at] = Entry(self._wid, group, 1)
        self._held += 1
        return found

    def _is(self, entry: Entry | None, group: Any) -> bool:
        """Say whether an entry is that of a group in this window."""
        return entry is not None and entry.wid == self._wid and hashable(entry.group) == hashable(group)

    def _displace(self, at: int, entry: Entry) -> list[Partial]:
        """Send an entry out whose slot is needed; in order only after all older ones."""
        if self._in_order and entry.wid == self._wid:
            return [*self._evict(lambda other: other.wid != self._wid), self._out(at, entry)]
        return [self._out(at, entry)]

    def _evict(self, chosen: Callable[[Entry], bool]) -> list[Partial]:
        """Send the chosen entries out, by window, then by slot."""
        found = [(entry.wid, at) for at, entry in enumerate(self._slots) if entry is not None and chosen(entry)]
        return [self._out(at, self._slots[at]) for _, at in sorted(found)]

    def _out(self, at: int, entry: Entry | None) -> Partial:
        assert entry is not None
        self._slots[at] = None
        self._held -= 1
        return Partial(entry.wid, entry.group, entry.count)

    def _slot(self, group: Any) -> int:
        return (group if type(group) is int else zlib.crc32(repr(hashable(group)).encode())) % len(self._slots)


def _check_flush(flush: object, order: Order) -> None:
    if flush not in ("slow", "lazy", "end"):
        raise QueryError(f'flush is "slow", "lazy", or "end", not {flush!r}')
    if order == "in" and flush != "slow":
        raise QueryError(f'order="in" flushes slowly only, not {flush!r}', hint='leave flush out, or take order="any"')


def roll_up(partials: Iterable[Partial]) -> dict[tuple[int, Any], int]:
    """Return the exact counts, as the high level adds them up from the low level's partial ones.

    >>> roll_up([Partial(0, "a", 2), Partial(0, "b", 1), Partial(0, "a", 3)])
    {(0, 'a'): 5, (0, 'b'): 1}
    """
    counts: dict[tuple[int, Any], int] = {}
    for each in partials:
        counts[each.wid, each.group] = counts.get((each.wid, each.group), 0) + each.count
    return counts
