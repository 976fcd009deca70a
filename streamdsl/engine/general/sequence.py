"""Windows of a window sequence of one group: rows in order of position, and the windows that they make from an instant on.

What is seen at an instant depends on the rows with LE <= it alone. So a change at LE = s leaves all before s as it is, and the
windows from s on are gone through again, once for each piece of input.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamdsl.engine.frames.instants import OrderedRows, created
from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import HiddenWindows, Setting
from streamdsl.engine.general.window_index import WindowEntry
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.temporal.payload import payload_order
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.windows import Sequenced
from streamdsl.windows.sequences.numbers import LAST, Batch


class GroupRows(OrderedRows):
    """The rows of a group by position; the first `dropped` of them have been forgotten."""

    def __init__(self, windows: Sequenced) -> None:
        self.start = windows.start
        self.by_position = windows.by_position
        self.rows: list[EventRow] = []
        self.keys: list[tuple[Any, ...]] = []
        self.dropped = 0

    def add(self, row: EventRow) -> None:
        """Put a row in its place, behind those that stand with it."""
        place = bisect_right(self.keys, key := self.key(row))
        self.keys.insert(place, key)
        self.rows.insert(place, row)

    def remove(self, row: EventRow) -> None:
        """Take a row out."""
        place = self.index(row)
        del self.keys[place], self.rows[place]

    def index(self, row: EventRow) -> int:
        """Return where a row is among those that are there."""
        return self.rows.index(row, bisect_left(self.keys, self.key(row)))

    def key(self, row: EventRow) -> tuple[Any, ...]:
        """Return where a row stands among the others: by LE, and by its payload if that can count."""
        return (row.le, payload_order(row.payload)) if self.by_position else (row.le, ())

    @property
    def t0(self) -> int:  # type: ignore[override]
        """Where the query starts."""
        return self.start if self.start is not None else self.rows[0].le

    @property
    def last(self) -> int:
        return self.dropped + len(self.rows) - 1

    def batch_at(self, position: int) -> Batch:
        return (self.rows[position - self.dropped].le, 0)

    @property
    def last_id(self) -> Hashable:
        return self.rows[-1].id

    def position_from(self, time: int) -> int:
        place: int = bisect_left(self.keys, (time,))
        return self.dropped + place

    def forget(self, position: int) -> None:
        """Drop the rows before a position, and remember where the query starts."""
        if position > self.dropped:
            self.start = self.t0
            del self.rows[: position - self.dropped], self.keys[: position - self.dropped]
            self.dropped = position


@dataclass(slots=True, eq=False)
class SequenceEntry(WindowEntry):
    """A window with its first and its last row; with all of them, once rows are forgotten while its result waits to be shown."""

    ends: tuple[EventRow, ...] = ()
    rows: list[EventRow] | None = None


class FoundWindow(NamedTuple):
    """A window as it must be; without positions it is there, and its rows stay."""

    le: int
    re: int
    positions: range | None


class SequenceWindows(HiddenWindows):
    """The windows that begin by `made` are there, and the next one may begin at `coming`.

    `redo` is the instant from which they are to be gone through again, `changed` the keys of the rows that have changed.
    """

    def __init__(self, setting: Setting, windows: Sequenced) -> None:
        super().__init__(setting, windows)
        self.spec = windows
        self.sequence = windows.sequence
        self.rows = GroupRows(windows)
        self.known: dict[tuple[Hashable, int], EventRow] = {}
        self.made = MIN_TIME
        self.coming = INFINITY
        self.redo = INFINITY
        self.changed: list[tuple[Any, ...]] = []
        self.origin: int | None = None

    # Changes: a row comes or goes.

    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        if self.spec.start is not None and row.le < self.spec.start:
            return
        if re_old <= row.le:
            self.known[row.id, row.le] = row
            self.rows.add(row)
        elif re_new <= row.le:
            row = self.known.pop((row.id, row.le))
            self.rows.remove(row)
        else:
            return
        self.redo = min(self.redo, row.le)
        self.changed.append(self.rows.key(row))

    # Watermarks: windows are made when they begin.

    @property
    def limit(self) -> int:
        """Return the last instant at which windows that are made begin."""
        return min(self.high_water, self.setting.emit_policy.until, INFINITY - 1)

    def reveal(self, high_water: int) -> None:
        self.high_water = max(self.high_water, high_water)
        if self.redo < INFINITY:
            self.changed.sort()
            self._remake(min(self.redo, self.coming) if self._is_due() else self.redo)
            self.redo = INFINITY
            self.changed.clear()
            self.origin = self.rows.t0 if self.rows.rows else None
        if self._is_due():
            self._remake(self.coming)
        super().reveal(high_water)

    def _is_due(self) -> bool:
        """Say whether there may be a window to be made that begins after all that are there."""
        return self.coming <= self.limit

    def next_reveal(self) -> int | None:
        opens = super().next_reveal()
        return self.coming if self.coming < INFINITY and (opens is None or self.coming < opens) else opens

    def _remake(self, start: int) -> None:
        """Let the windows from an instant on, and the one that holds just before it, be as they must be."""
        try:
            found, end = self._find(start)
        except StreamDslError:
            raise
        except Exception as error:  # of a bound that is a function
            raise UserCodeError(error, operator=self.setting.label) from error
        times = {window.le for window in found}
        for old in self.windows.between(start, end):
            if old.le not in times:
                self.drop(old)
        for window in found:
            self._put(window)

    def _find(self, start: int) -> tuple[list[FoundWindow], int]:
        """Return the windows that must be from an instant on, and the instant from which those that are there may stay."""
        found: list[FoundWindow] = []
        entry = self._before(start)
        begun, held = (start, range(0)) if entry is None else (entry.le, None)
        # Of no rows there are no windows: those of a window that may end are kept.
        for time, positions in created(self.spec, self.rows, start, entry is not None, self.limit) if self.rows.rows else ():
            self.setting.budget.take(1)
            if held is None or held:
                found.append(FoundWindow(begun, time, held))
            if time > self.limit:
                self._set_made(time)
                return found, INFINITY
            if self._may_stay(time):
                return found, time
            begun, held = time, positions
        if held is None or held:
            found.append(FoundWindow(begun, INFINITY, held))
        self._set_made(INFINITY)
        return found, INFINITY

    def _set_made(self, coming: int) -> None:
        self.made = self.limit
        self.coming = coming if coming < self.setting.emit_policy.until else INFINITY

    def _before(self, time: int) -> WindowEntry | None:
        """Return the window that holds just before an instant, None if that is empty."""
        entry = self.windows.before(time)
        return entry if entry is not None and entry.re >= time else None

    def _may_stay(self, time: int) -> bool:
        """Say whether the windows that are there from an instant on are as they must be: none looks back to a changed row."""
        if not self.changed or time > self.made or self.origin != self.rows.t0:
            return False
        at = (time - 1, LAST)
        horizon = self.sequence.horizon(at, self.rows.by(time - 1))
        return horizon is not None and bool(horizon > self.changed[-1][0])

    def _put(self, window: FoundWindow) -> None:
        """Let a window be there, with these rows and this end."""
        entry = self.windows.get(window.le)
        if entry is None:
            entry = self.windows.add(SequenceEntry(window.le, window.re))
        if window.positions is not None:
            self._fill(entry, window.positions)
        if entry.re != window.re:
            self.reshape(entry, window.re)

    def _fill(self, entry: WindowEntry, positions: range) -> None:
        """Let a window have the rows at these positions."""
        assert isinstance(entry, SequenceEntry)
        ends = (self._row(positions[0]), self._row(positions[-1]))
        if entry.ends != ends or self._has_changed(*ends):
            entry.forget_computed()
            entry.ends, entry.n_events = ends, len(positions)
            self.touch(entry)

    def _has_changed(self, first: EventRow, last: EventRow) -> bool:
        """Say whether a row has come or gone between two others."""
        return bisect_left(self.changed, self.rows.key(first)) < bisect_right(self.changed, self.rows.key(last))

    # Rows by position.

    def _row(self, position: int) -> EventRow:
        return self.rows.rows[position - self.rows.dropped]

    def members(self, entry: WindowEntry) -> list[EventRow]:
        assert isinstance(entry, SequenceEntry)
        if entry.rows is not None:
            return entry.rows
        first = self.rows.index(entry.ends[0])
        return self.rows.rows[first : first + entry.n_events]

    # CTIs: all before one is settled.

    def forget(self, cti: int) -> list[WindowEntry]:
        # A window that ends at the CTI stays: the row that ends it may still go.
        closed = self.close(cti - 1)
        if self.rows.rows and self.rows.t0 < cti:
            seen = self.rows.by(cti - 1)
            self._drop_rows(min(self.sequence.first_needed((cti - 1, LAST), seen), seen.last + 1), cti)
        return closed

    def _drop_rows(self, position: int, cti: int) -> None:
        """Drop the rows before a position: windows that begin at the CTI or later look at none, others that wait keep theirs."""
        dropped = self.rows.rows[: max(0, position - self.rows.dropped)]
        for entry in self.windows.between(MIN_TIME, cti) if dropped else ():
            assert isinstance(entry, SequenceEntry)
            entry.rows = self.members(entry) if entry.results is None else None
        for row in dropped:
            del self.known[row.id, row.le]
        self.rows.forget(position)

    @property
    def is_empty(self) -> bool:
        """Say whether nothing is kept: no row, no count of those before, and no start that was found."""
        forgets = self.spec.start is not None and not self.spec.by_position
        return not self.rows.rows and not self.windows and (forgets or not self.rows.dropped)

    @property
    def n_events(self) -> int:
        return len(self.rows.rows)

    def earliest_start(self, cti: int) -> int:
        return min([cti, *(entry.le for entry in self.windows.between(MIN_TIME, cti))])

    def output_cti(self, cti: int) -> int:
        return cti
