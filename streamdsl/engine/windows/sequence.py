"""Windows of a window sequence of one group: rows in order of position, and the windows that they make from an instant on.

What is seen at an instant depends on the rows with LE <= it alone. So a change at LE = s leaves all before s as it is, and the
windows from s on are gone through again, once for each piece of input.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, NamedTuple

from sortedcontainers import SortedKeyList

from streamdsl.astral.numbers import LAST, At, Batch, batch
from streamdsl.astral.seen import Seen
from streamdsl.engine.index import EventRow, WindowEntry
from streamdsl.engine.windows.group import HiddenWindows, Setting
from streamdsl.temporal.payload import payload_order
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.windows import Sequenced
from streamdsl.windows.sequence import endless


class Rows(Seen):
    """The rows of a group by position; the first `dropped` of them have been forgotten."""

    def __init__(self, windows: Sequenced) -> None:
        self.start = windows.start
        self.by_position = windows.by_position
        self.rows: Any = SortedKeyList(key=self.key)
        self.dropped = 0

    def key(self, row: EventRow) -> tuple[Any, ...]:
        """Return where a row stands among the others: by LE, and by its payload if that can count."""
        return (row.le, payload_order(row.payload)) if self.by_position else (row.le, ())

    @property
    def t0(self) -> int:  # type: ignore[override]
        """Where the query starts."""
        return self.start if self.start is not None else int(self.rows[0].le)

    @property
    def last(self) -> int:
        return self.dropped + len(self.rows) - 1

    def batch_at(self, position: int) -> Batch:
        return (self.rows[position - self.dropped].le, 0)

    def tau_inv(self, at: At) -> int:
        time, number = batch(at)
        first_after = floor(time) + 1 if number >= 0 else ceil(time)
        position: int = self.dropped + self.rows.bisect_key_left((first_after,)) - 1
        return position

    def forget(self, position: int) -> None:
        """Drop the rows before a position, and remember where the query starts."""
        if position > self.dropped:
            self.start = self.t0
            del self.rows[: position - self.dropped]
            self.dropped = position


class By(Seen):
    """The rows that are seen at an instant."""

    def __init__(self, rows: Rows, time: int) -> None:
        self.t0 = rows.t0
        self._rows = rows
        self._last = rows.tau_inv((time, LAST))

    @property
    def last(self) -> int:
        return self._last

    def batch_at(self, position: int) -> Batch:
        return self._rows.batch_at(position)

    def tau_inv(self, at: At) -> int:
        return min(self._rows.tau_inv(at), self._last)


@dataclass(slots=True, eq=False)
class SequenceEntry(WindowEntry):
    """A window with the positions of its first and its last row, and these rows."""

    first: int = 0
    last: int = -1
    ends: tuple[Hashable, ...] = ()


class Found(NamedTuple):
    """A window as it must be."""

    le: int
    re: int
    positions: range


class SequenceWindows(HiddenWindows):
    """`redo` is the instant from which windows are to be gone through again, `changed` the keys of the rows that have changed."""

    def __init__(self, setting: Setting, windows: Sequenced) -> None:
        super().__init__(setting)
        self.spec = windows
        self.sequence = windows.sequence
        self.rows = Rows(windows)
        self.known: dict[tuple[Hashable, int], EventRow] = {}
        self.redo = INFINITY
        self.coming: int | None = None
        self.changed: list[tuple[Any, ...]] = []

    # Changes: a row comes or goes.

    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        if self.spec.start is not None and row.le < self.spec.start:
            return
        if re_old <= row.le:
            self.known[row.id, row.le] = row
            self.rows.rows.add(row)
        elif re_new <= row.le:
            row = self.known.pop((row.id, row.le))
            self.rows.rows.remove(row)
        else:
            return
        self.redo = min(self.redo, row.le)
        self.changed.append(self.rows.key(row))

    # Watermarks: windows are made when they begin.

    def reveal(self, watermark: int) -> None:
        self.watermark = max(self.watermark, watermark)
        if self.coming is not None and self.coming <= self.watermark:
            self.redo = min(self.redo, self.coming)
        if self.redo < INFINITY:
            self._replace(self.redo, list(self._found(self.redo)))
            self.redo = INFINITY
            self.changed.clear()
        super().reveal(watermark)

    def next_reveal(self) -> int | None:
        times = (super().next_reveal(), self.coming)
        return min((time for time in times if time is not None), default=None)

    def _found(self, start: int) -> Iterator[Found]:
        """Yield the windows that must be, from the one that holds just before an instant to those begun by the watermark."""
        self.coming = None
        if not self.rows.rows:
            return
        limit = min(self.watermark, self.setting.gate.until)
        begun, held = self._before(start)
        state, time = self._state(start - 1), start
        while time < INFINITY and (time <= limit or held):
            now = self._state(time)
            if now != state:
                if held:
                    yield Found(begun, time, held)
                if time > limit:
                    break
                state, begun, held = now, time, self._held(time)
            time = self._next(time, bool(held))
        else:
            if held:
                yield Found(begun, INFINITY, held)
        self.coming = time if limit < time < self.setting.gate.until else None

    def _before(self, time: int) -> tuple[int, range]:
        """Return when the last window before an instant has begun, and what it holds."""
        entry = self.windows.before(time)
        if entry is None or entry.re < time:
            return time, range(0)
        assert isinstance(entry, SequenceEntry)
        return entry.le, range(entry.first, entry.last + 1)

    def _state(self, time: int) -> Any:
        """Return which window is the last one at an instant."""
        return self.sequence.state((time, LAST), By(self.rows, time)) if time >= self.rows.t0 else None

    def _held(self, time: int) -> range:
        """Return the positions in the window that is created at an instant."""
        at, seen = (time, LAST), By(self.rows, time)
        rank = self.sequence.rank(at, seen) if time >= self.rows.t0 else None
        return range(0) if rank is None else self.sequence.positions(rank, seen)

    def _next(self, time: int, held: bool) -> int:
        """Return the next instant at which there may be another window; INFINITY if none will be that holds a row."""
        at, seen = (time, LAST), By(self.rows, time)
        coming = self.rows.batch_at(seen.last + 1)[0] if seen.last < self.rows.last else INFINITY
        if not held and self.sequence.is_over(at, seen):
            return int(coming)
        change = self.sequence.next_change(at, seen)
        if change is None:
            return int(coming)
        if coming == INFINITY == self.watermark == self.setting.gate.until and self.sequence.endless:
            raise endless(self.spec, self.rows.rows[-1].id)
        return min(int(coming), ceil(change), INFINITY)

    def _replace(self, start: int, found: list[Found]) -> None:
        """Let the windows from an instant on, and the one that holds just before it, be as they must be."""
        self.changed.sort()
        times = {window.le for window in found}
        for old in self.windows.between(start, INFINITY):
            if old.le not in times:
                self.drop(old)
        for window in found:
            entry = self.windows.get(window.le)
            if entry is None:
                self.touch(self.windows.add(self._filled(SequenceEntry(window.le, window.re), window.positions)))
                continue
            assert isinstance(entry, SequenceEntry)
            if not self._has_the_same(entry, window.positions):
                entry.forget_computed()
                self.touch(entry)
            self._filled(entry, window.positions)
            if entry.re != window.re:
                self.reshape(entry, window.re)

    def _filled(self, entry: SequenceEntry, positions: range) -> SequenceEntry:
        entry.first, entry.last, entry.n_events = positions[0], positions[-1], len(positions)
        entry.ends = (self._row(entry.first), self._row(entry.last))
        return entry

    def _row(self, position: int) -> EventRow:
        row: EventRow = self.rows.rows[position - self.rows.dropped]
        return row

    def _has_the_same(self, entry: SequenceEntry, positions: range) -> bool:
        """Say whether a window's rows are those that it had: so are its ends, and none between has come or gone."""
        first, last = self._row(positions[0]), self._row(positions[-1])
        if entry.ends != (first, last):
            return False
        return bisect_left(self.changed, self.rows.key(first)) == bisect_right(self.changed, self.rows.key(last))

    def members(self, entry: WindowEntry) -> list[EventRow]:
        assert isinstance(entry, SequenceEntry)
        return list(self.rows.rows[entry.first - self.rows.dropped : entry.last + 1 - self.rows.dropped])

    # CTIs: all before one is settled.

    def forget(self, cti: int) -> list[WindowEntry]:
        # A window that ends at the CTI stays: the row that ends it may still go.
        closed = self.close(cti - 1)
        if self.rows.rows and self.rows.t0 < cti:
            needed = self.sequence.first_needed((cti - 1, LAST), By(self.rows, cti - 1))
            kept = [entry.first for entry in self.windows if isinstance(entry, SequenceEntry)]
            self._drop_rows(min([needed, self.rows.tau_inv((cti - 1, LAST)) + 1, *kept]))
        return closed

    def _drop_rows(self, position: int) -> None:
        for row in self.rows.rows[: max(0, position - self.rows.dropped)]:
            del self.known[row.id, row.le]
        self.rows.forget(position)

    @property
    def is_empty(self) -> bool:
        """Say whether nothing is kept: no row, no count of those before, and no start that was found."""
        return not self.rows.rows and (not self.rows.dropped or (self.spec.start is not None and not self.spec.by_position))

    @property
    def n_events(self) -> int:
        return len(self.rows.rows)

    def earliest_start(self, cti: int) -> int:
        return min([cti, *(entry.le for entry in self.windows.between(MIN_TIME, cti))])

    def output_cti(self, cti: int) -> int:
        return cti
