"""Ingress: a push into a source becomes net changes, cut at its CTIs. All of it is checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch, ChangeRow, PointBatch
from streamdsl.engine.ids import Incarnations
from streamdsl.engine.numbering import RowNumbers
from streamdsl.engine.operator import Piece, figures, piece_of
from streamdsl.engine.row_batch import RowBatch
from streamdsl.errors import EventError, SchemaError
from streamdsl.expr.row_program import plain_values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, flatnonzero, largest, least, object_column
from streamdsl.io.binding import Inserts
from streamdsl.io.payloads import schema_for, table_of
from streamdsl.plan.node import Source
from streamdsl.temporal import (
    INFINITY,
    MIN_TIME,
    Cti,
    Event,
    EventReader,
    EventTable,
    Insert,
    ProgressGenerator,
    Rejected,
    Rejections,
    Retract,
    Unit,
    plain,
    plains,
    sync_time,
    to_duration,
)
from streamdsl.temporal.events import dated
from streamdsl.temporal.rejected import LE_MOVED, TOO_LATE, CtiOrigin
from streamdsl.temporal.time import Ticks, format_time
from streamdsl.temporal.value_arrays import distinct

_FEW: Final = 16
"""Up to this many changes pass as a row batch, more in columns."""


class NetChange:
    """The net effect of a piece's events on one row."""

    __slots__ = ("id", "le", "payload", "re_new", "re_old", "re_seen")

    def __init__(self, id: Hashable, le: int, re_old: int, re_new: int, payload: Any) -> None:
        self.id = id
        self.le = le
        self.re_old = re_old
        self.re_new = re_new
        self.re_seen = re_new
        self.payload = payload


class Ingress:
    """One source of a session: the ids that can still change, its progress policy, its schema.

    A push is staged (`stage`), and then either kept (`commit`) or undone (`roll_back`), so a refused push has no effect.
    """

    def __init__(self, source: Source, unit: Unit | None) -> None:
        self.source = source
        self.name = source.source
        self.unit = unit
        self.reader = EventReader(unit)
        self.schema = source.payload
        self.table = EventTable(source.source, source.on_violation)
        policy = source.progress
        self.progress = None if policy is None or policy.kind in ("imported", "wall") else policy.generator(unit)
        self._policy = str(policy)
        self._is_plain = self.progress is None or self.progress.kind == "slack"
        self.import_delay = to_duration(policy.delay, unit) if policy else 0
        self.idle = policy.idleness(unit) if policy else None
        self.numbers = RowNumbers()
        self._before: tuple[ProgressGenerator | None, EventReader, Schema | None, RowNumbers] | None = None
        self._staged = (0, 0, 0)
        self._is_taken = False
        self.hand_over: Callable[[list[Rejected]], None] | None = None
        """Where the late events of a push go when it is kept."""
        self.pushes = 0
        self.events_in = 0
        self.retractions_in = 0
        self.changes_out = 0

    def origin(self, made_by: str = "a Cti") -> tuple[str | None, str, int]:
        """Return where a CTI comes from that this push brings, or that holds after it."""
        return self.name, made_by, self.pushes

    @property
    def cti(self) -> int:
        """The CTI that the source has reached."""
        return self.table.cti

    @property
    def rejected(self) -> Rejections:
        """The events that the source has dropped or adjusted."""
        return self.table.rejected

    def stage(self, pushed: Sequence[Event[Any]] | Inserts, stays_open: bool = False) -> list[Piece]:
        """Return the pieces of a push, or raise if it is refused. `commit` keeps it, `roll_back` undoes it.

        A push of a single insertion may be kept at once, unless `stays_open`.
        """
        self.pushes += 1
        alone = self._single_insertion(pushed) if len(pushed) == 1 and not stays_open else None
        if alone is not None:
            return [alone]
        self._before = (self.progress and self.progress.copy(), self.reader.copy(), self.schema, self.numbers.copy())
        pieces = self._columns(pushed) if isinstance(pushed, Inserts) else self._pieces(pushed)
        kinds = [] if isinstance(pushed, Inserts) else list(map(type, pushed))
        came, gone = len(pushed) - kinds.count(Cti), kinds.count(Retract)
        self._staged = came, gone, sum(len(piece.batch) for piece in pieces)
        return pieces

    def commit(self) -> None:
        """Keep the push that is staged."""
        if self._is_taken:
            self._is_taken = False
            return
        if self.hand_over is not None and len(self.table.late):
            self.hand_over(list(self.table.late))
        self.table.commit()
        self.numbers.forget(self.table.knows, len(self.table))
        came, gone, changes = self._staged
        self._staged = (0, 0, 0)
        self.events_in += came
        self.retractions_in += gone
        self.changes_out += changes
        self._before = None

    def roll_back(self) -> bool:
        """Undo the push that is staged, and say whether that was possible: a single insertion may have been kept in part."""
        if self._is_taken:
            return False
        self.pushes -= 1
        self.table.rollback()
        self._staged = (0, 0, 0)
        if self._before is not None:
            self.progress, self.reader, self.schema, self.numbers = self._before
            self._before = None
        return True

    def advance(self, cti: int, origin: tuple[str | None, str, int]) -> None:
        """Advance the CTI, though no event has brought it. If a push is staged, it becomes part of that."""
        take = self.table.advance if self._before is None else self.table.promise
        take(cti, origin)

    def stats(self) -> dict[str, int]:
        """Return the source's figures for `session.stats()`. Its events are the ids that can still change."""
        return figures(self.events_in, self.changes_out, self.cti, self.cti, len(self.table))

    def _pieces(self, events: Sequence[Event[Any]]) -> list[Piece]:
        """Return events as pieces, cut at CTIs. A piece of plain insertions is processed in columns, any other event by event."""
        if not self._is_plain:
            return self._events(events)
        pieces: list[Piece] = []
        for piece in _cut(events):
            taken = self._insertions(piece)
            pieces += self._events(piece) if taken is None else [taken]
        return pieces

    def _single_insertion(self, pushed: Sequence[Event[Any]] | Inserts) -> Piece | None:
        """Process a push of a single insertion; None, with no effect, unless it is a plain one."""
        if type(pushed) is not list or type(event := pushed[0]) is not Insert or not self._is_plain:
            return None
        id, le, re, payload = event.id, event.le, event.re, event.payload
        if type(le) is not int or type(re) is not int or le == MIN_TIME:
            return None
        if type(id) is int and self.numbers.is_given(id):
            return None
        if self.progress is not None and self.progress.is_jump(le, self.table.cti):
            return None
        schema = self.schema
        values = None if schema is None or le == re else plain_values(payload, schema)
        batch: Batch | None
        if schema is not None and values is not None:
            batch = RowBatch(((id, 0, le, le, re),), (values,), schema)
        else:
            batch = self._in_columns([id], np.array([le]), np.array([re]), [payload := plain(payload)])
        if batch is None:
            return None
        self._is_taken = True  # what follows cannot be undone
        if not self.table.admit_alone(id, le, re, payload):
            self._is_taken = False
            return None
        if type(id) is int:
            self.numbers.is_clear(id)
        if schema is None:
            self.schema = batch.table.schema
        self.reader.saw_integer()
        if self.progress is not None:
            self.table.advance(self.progress.after(le), self.origin(self._policy))
        self.events_in += 1
        self.changes_out += 1
        return piece_of((batch, self.table.cti))

    def _row_batch(self, rows: Sequence[ChangeRow]) -> Batch | None:
        """Return changes as a row batch; None if they are many, or if one is not plain."""
        if self.schema is None or len(rows) > _FEW:
            return None
        found = []
        for _, _, re_old, re_new, payload in rows:
            values = plain_values(payload, self.schema)
            if values is None or re_old == re_new:
                return None
            found.append(values)
        return RowBatch([(id, 0, le, re_old, re_new) for id, le, re_old, re_new, _ in rows], found, self.schema)

    def _in_columns(self, ids: Sequence[Hashable], le: Ticks, re: Ticks, payloads: Sequence[Any]) -> Batch | None:
        """Return insertions in columns; None if a payload does not fit the schema."""
        table = self._table(payloads)
        return None if table is None else Batch(Incarnations(object_column(ids), le), le, le, re, table)

    def _insertions(self, piece: Sequence[Event[Any]]) -> Piece | None:
        """Process insertions, and the CTI after them if there is one; None, with no effect, unless all are plain."""
        last = piece[-1]
        inserts: Sequence[Any] = piece[:-1] if isinstance(last, Cti) else piece
        if distinct(map(type, inserts)) != {Insert}:
            return None
        cti = self.reader.event(last) if isinstance(last, Cti) else None
        ids, payloads = [event.id for event in inserts], plains([event.payload for event in inserts])
        le, re = self.reader.ticks([event.le for event in inserts]), self.reader.ticks([event.re for event in inserts])
        if le is None or re is None or self._late(le) is not None or self._jumps(le) or not self.numbers.are_clear(ids):
            return None
        row_batch = (
            None
            if len(ids) > _FEW
            else self._row_batch([*zip(ids, le.tolist(), le.tolist(), re.tolist(), payloads, strict=True)])
        )
        batch = self._in_columns(ids, le, re, payloads) if row_batch is None else row_batch
        if batch is None or not self.table.admit_all(ids, le, re, payloads):
            return None
        self.schema = self.schema or batch.table.schema
        self._progress_with(le)
        if cti is not None:
            self.table.promise(sync_time(cti), self.origin())
        return Piece(batch, self.table.cti)

    def _table(self, payloads: Sequence[Any]) -> Table | None:
        """Return payloads as columns; None if one does not fit the schema."""
        try:
            return table_of(payloads, self.schema)
        except SchemaError:
            return None

    def _events(self, events: Iterable[Event[Any]], is_numbered: bool = False) -> list[Piece]:
        """Process events one by one. Rows that were numbered here have ids that no sender uses again."""
        pieces: list[Piece] = []
        net: dict[Hashable, NetChange] = {}
        by_policy = self.origin(self._policy)
        for raw in events:
            event = self.reader.event(raw)
            if isinstance(event, Cti):
                self.table.promise(event.time, self.origin())
                pieces.append(self._piece(net, is_numbered))
                net = {}
                continue
            is_jump = self.progress is not None and isinstance(event, Insert) and self.progress.is_jump(event.le, self.table.cti)
            is_again = self.progress is not None and isinstance(event, Insert) and self.table.knows(event.id)
            try:
                admitted = self.table.admit(event, is_numbered, is_jump)
            except EventError as error:
                dated([event], self.reader.found)
                raise error.with_times(partial(format_time, unit=self.reader.found)) from None
            if is_again and admitted is not None:
                # The progress policy's CTI has freed the id: the plan must get that CTI before the id is used again.
                pieces.append(self._piece(net, is_numbered))
                net = {}
            if admitted is not None:
                self._take(admitted, net, is_numbered)
            if self.progress is not None and not is_jump:
                self.table.promise(self.progress.after(event.le if isinstance(event, Insert) else None), by_policy)
        if net or self.progress is not None:
            pieces.append(self._piece(net, is_numbered))
        return pieces

    def _take(self, event: Insert[Any] | Retract, net: dict[Hashable, NetChange], is_numbered: bool) -> None:
        """Add an admitted event to the net changes."""
        if isinstance(event, Insert):
            self.schema = schema_for(self.schema, event.id, event.payload, self.source.source)
            id = event.id if is_numbered else self.numbers.called(event.id)
            net[event.id] = NetChange(id, event.le, event.le, event.re, event.payload)
        elif event.id in net:
            net[event.id].re_new = event.re_new
        else:
            net[event.id] = NetChange(self.numbers.name(event.id), event.le, event.re, event.re_new, event.payload)

    def _piece(self, net: dict[Hashable, NetChange], is_numbered: bool) -> Piece:
        if not net:
            return Piece(EMPTY, self.table.cti)
        changes = list(net.values())
        for change in changes:
            if change.re_old == change.re_new:
                change.re_old = change.re_new = change.re_seen
        row_batch = self._row_batch([(each.id, each.le, each.re_old, each.re_new, each.payload) for each in changes])
        if row_batch is not None:
            return Piece(row_batch, self.table.cti)
        le = _ticks(change.le for change in changes)
        ids = [change.id for change in changes]
        batch = Batch(
            np.array(ids, dtype=np.int64) if is_numbered else Incarnations(object_column(ids), le),
            le,
            _ticks(change.re_old for change in changes),
            _ticks(change.re_new for change in changes),
            Table.from_payloads([change.payload for change in changes], self.schema),
        )
        return Piece(batch, self.table.cti)

    def _columns(self, inserts: Inserts) -> list[Piece]:
        """Process insertions that are in columns already; event by event if they need checks that columns cannot do."""
        if not len(inserts):
            return []
        if inserts.ids is not None or not self._is_plain:
            return self._numbered(inserts)
        if self.schema is not None and inserts.table.schema != self.schema:
            return self._numbered(inserts)
        if not _are_lifetimes(inserts) or self._jumps(inserts.le):
            return self._numbered(inserts)
        ctis = self._late(inserts.le)
        if ctis is not None and self.source.on_violation == "error":
            return self._numbered(inserts)
        first = self.numbers.give(len(inserts))
        batch = self._batch(inserts, first) if ctis is None else self._admitted(inserts, first, ctis)
        if len(batch):
            self.schema = self.schema or inserts.table.schema
        self._progress_with(inserts.le)
        return [Piece(batch, self.table.cti)]

    def _batch(self, inserts: Inserts, first: int) -> Batch:
        """Return rows as changes, numbered from the first."""
        if inserts.ends is None:
            return PointBatch(first, inserts.le, inserts.table)
        ids = np.arange(first, first + len(inserts), dtype=np.int64)
        return Batch(ids, inserts.le, inserts.le, inserts.ends, inserts.table)

    def _admitted(self, inserts: Inserts, first: int, ctis: Ticks) -> Batch:
        """Return the rows that are not dropped as late, some with a later LE. The CTI given for each row is the one before it."""
        le, re = inserts.le, inserts.re
        is_late = le < ctis
        moved = is_late & (re > ctis) if self.source.on_violation == "adjust" else np.zeros(len(le), dtype=np.bool_)
        late = flatnonzero(is_late)
        counts = {TOO_LATE: len(late) - int(np.count_nonzero(moved)), LE_MOVED: int(np.count_nonzero(moved))}
        newest = late if (kept := self.table.late.kept) is None else late[-kept:]
        reasons = [LE_MOVED if each else TOO_LATE for each in moved[newest].tolist()]
        events = self._batch(inserts, first).take(newest)
        columns = (events.ids.tolist(), events.le.tolist(), events.re_new.tolist(), events.table.payloads())
        before, by_policy = CtiOrigin(*self.table.origin), CtiOrigin(*self.origin(self._policy))
        broken = ctis[newest].tolist()
        origins = [by_policy if cti > self.table.cti else before for cti in broken]
        rejected = map(Rejected, map(Insert, *columns), broken, reasons, origins)
        self.table.reject(list(rejected), {reason: number for reason, number in counts.items() if number})
        rows = flatnonzero(~is_late | moved)
        starts = np.where(moved, ctis, le)[rows]
        return Batch(first + rows, starts, starts, re[rows], inserts.table.take(rows))

    def _late(self, le: Ticks) -> Ticks | None:
        """Return the CTI before each of some insertions, if one of them is late; else None."""
        cti = self.table.cti
        if self.progress is None or len(le) == 1:
            return np.full(len(le), cti) if cti > MIN_TIME and least(le) < cti else None
        if least(le) >= cti and le.item(0) >= self.progress.largest and (le[1:] >= le[:-1]).all():
            return None
        known = np.maximum.accumulate(np.concatenate([[self.progress.largest], le[:-1]]))
        ctis = np.maximum(known, MIN_TIME + self.progress.delay) - self.progress.delay
        ctis = np.maximum(np.where(known == MIN_TIME, MIN_TIME, ctis), cti)
        return ctis if (le < ctis).any() else None

    def _jumps(self, le: Ticks) -> bool:
        """Say whether one of some insertions starts too far ahead of those before it."""
        if self.progress is None or self.progress.max_jump == INFINITY or not len(le):
            return False
        known = np.maximum.accumulate(np.concatenate([[max(self.progress.largest, self.table.cti)], le[:-1]]))
        most = np.where(known > INFINITY - self.progress.max_jump, INFINITY, known + self.progress.max_jump)
        return bool(((le > most) & (known > MIN_TIME)).any())

    def _progress_with(self, le: Ticks) -> None:
        """Advance the progress policy by insertions, none of which is late."""
        if self.progress is not None:
            self.progress.seen += len(le) - 1
            self.table.promise(self.progress.after(largest(le)), self.origin(self._policy))

    def _numbered(self, inserts: Inserts) -> list[Piece]:
        if inserts.ids is not None:
            return self._events(list(inserts.events()))
        return self._events(list(inserts.events(self.numbers.give(len(inserts)))), is_numbered=True)


def _are_lifetimes(inserts: Inserts) -> bool:
    """Say whether every row has LE < RE. Points do, and their REs need not be made for that."""
    return inserts.ends is None or not ((inserts.le > inserts.ends).any() or (inserts.le == INFINITY).any())


def _cut(events: Sequence[Event[Any]]) -> Iterator[Sequence[Event[Any]]]:
    """Yield the events up to each CTI, and those after the last."""
    first = 0
    for place, event in enumerate(events):
        if isinstance(event, Cti):
            yield events[first : place + 1]
            first = place + 1
    if first < len(events):
        yield events[first:]


def _ticks(values: Iterable[int]) -> Ticks:
    return np.fromiter(values, dtype=np.int64)
