"""`check_source` and `check_sink`: whether a source or a sink keeps what its protocol promises."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from streamdsl.errors import ConnectorViolation, EventError, StreamDslError, without_hint
from streamdsl.extras import need_pyarrow
from streamdsl.monitoring.progress_meter import tracked
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, Insert, Retract, sync_time

if TYPE_CHECKING:
    from streamdsl.connect import OpenSource, Sink, Source


_OF_EACH_SOURCE: Final = ("positions are plain data", "polls return in time", "an end is for ever", "CTIs are kept")
_OF_SOURCES: Final = (*_OF_EACH_SOURCE, "the same when read again", "the same from each position")
_OF_SINKS: Final[dict[str, tuple[str, ...]]] = {
    "exactly_once": ("holds the history", "the same when written again", "refuses gaps", "refuses other streams"),
    "idempotent": ("holds the history", "the same when written again"),
    "at_least_once": ("lacks nothing",),
}
"""What a sink is held to, by its promise."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What a source was seen to give: its records, and in how many batches; and at how many positions it was restarted.

    `laws` has what it was held to, in words, and `seconds` how long that took.

    >>> print(SourceReport(25, 1, 3, 0, ("CTIs are kept",), 0.25))
    25 records and 1 bad one in 3 batches, 0 restarts, 0.25 s: CTIs are kept
    """

    records: int
    bad_records: int
    batches: int
    restarts: int
    laws: tuple[str, ...] = field(default=(), repr=False, compare=False)
    seconds: float = field(default=0.0, repr=False, compare=False)

    @property
    def promise(self) -> str:
        """What a restart gives: `gives again` what comes after the position, or `goes on` with what comes then."""
        return "gives again" if _OF_SOURCES[-1] in self.laws else "goes on"

    @property
    def cases(self) -> str:
        """What was tried, in words."""
        bad = f" and {_counted(self.bad_records, 'bad one')}" if self.bad_records else ""
        restarts = _counted(self.restarts, "restart")
        return f"{_counted(self.records, 'record')}{bad} in {_counted(self.batches, 'batch', 'es')}, {restarts}"

    def __str__(self) -> str:
        return f"{self.cases}, {self.seconds:.2f} s: {'; '.join(self.laws)}"


@dataclass(frozen=True, slots=True)
class SinkReport:
    """What a sink has promised and kept, and how many micro-batches it was given how often.

    `laws` has what it was held to, in words, and `seconds` how long that took.

    >>> print(SinkReport("idempotent", 5, 15, ("holds the history",), 0.25))
    idempotent: 15 writes of 5 micro-batches, 0.25 s: holds the history
    """

    promise: str
    micro_batches: int
    writes: int
    laws: tuple[str, ...] = field(default=(), repr=False, compare=False)
    seconds: float = field(default=0.0, repr=False, compare=False)

    @property
    def cases(self) -> str:
        """What was tried, in words."""
        return f"{_counted(self.writes, 'write')} of {_counted(self.micro_batches, 'micro-batch', 'es')}"

    def __str__(self) -> str:
        return f"{self.promise}: {self.cases}, {self.seconds:.2f} s: {'; '.join(self.laws)}"


def _counted(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"


@dataclass(slots=True)
class _Reading:
    """What a source has given from a position on: records as text, and for each batch its position and the records before it."""

    records: list[str]
    bad: list[str]
    steps: list[tuple[Any, int, int]]


def check_source(
    make_source: Callable[[], Source], patience: float = 0.05, *, gives_again: bool = True, slack: float = 1.0
) -> SourceReport:
    """Check that a source gives the same records in the same order from the begin, and from each of its positions.

    `make_source` makes the source anew, as a process does that is started again, over input that stays as it is. One that never
    ends is read until nothing has come for `patience` seconds. Held are: positions are plain data; a poll returns in time,
    within `slack` seconds more, of which a store far away or a busy machine needs some; after `END` there is `END`; a restart at
    each position loses nothing and repeats nothing, also if the source waited between two polls; no event breaks a CTI of the
    source. A source that says of itself that it gives nothing again, as a pipe, is read once with `gives_again=False`, and held
    to the others. Raises `ConnectorViolation`, which says which of these is broken.

    >>> from streamdsl.connect import iterable
    >>> from streamdsl.testing import check_source
    >>> check_source(lambda: iterable([(1, 5, "x"), (2, 4, "y"), (3, 9, "z")], at_once=2))
    SourceReport(records=3, bad_records=0, batches=2, restarts=2)
    """
    begun = time.monotonic()
    first = _read(make_source(), None, patience, slack)
    counts = len(first.records), len(first.bad), len(first.steps)
    if not gives_again:
        return SourceReport(*counts, 0, _OF_EACH_SOURCE, time.monotonic() - begun)
    again = _read(make_source(), None, patience, slack, pauses=True)
    _same(first.records, again.records, "read a second time, from the begin, it gives other records")
    _same(first.bad, again.bad, "read a second time, from the begin, it gives other bad records")
    for number, (position, records, bad) in enumerate(tracked(first.steps, "restarts of the source")):
        rest = _read(make_source(), json.loads(json.dumps(position)), patience, slack)
        where = f"restarted at the position {position!r}, after batch {number}, it gives other records"
        _same(first.records[records:], rest.records, where)
        _same(first.bad[bad:], rest.bad, where)
    return SourceReport(*counts, len(first.steps), _OF_SOURCES, time.monotonic() - begun)


def _read(source: Source, position: Any, patience: float, slack: float, pauses: bool = False) -> _Reading:
    from streamdsl.connect import END, Batch

    found, cti, reader = _Reading([], [], []), MIN_TIME, source.open(position)
    try:
        while True:
            polled = _polled(reader, 0 if pauses else patience, slack)
            if polled is None and pauses:
                polled = _polled(reader, patience, slack)
            if polled is None or polled is END:
                break
            if not isinstance(polled, Batch):
                raise ConnectorViolation(f"poll gave a {type(polled).__name__}", hint="it returns a Batch, None or END")
            _check_position(polled.position)
            for record in _records(polled.data):
                cti = _next_cti(record, cti)
                found.records.append(repr(record))
            found.bad += map(repr, polled.bad)
            found.steps.append((polled.position, len(found.records), len(found.bad)))
            reader.committed(polled.position)
            if pauses:
                time.sleep(0.001)
        if polled is END and reader.poll(0) is not END:
            raise ConnectorViolation("after END it gave something else", hint="a source that has ended answers END for ever")
    finally:
        reader.close()
    return found


def _polled(reader: OpenSource, timeout: float, slack: float) -> Any:
    begun = time.monotonic()
    polled = reader.poll(timeout)
    if (took := time.monotonic() - begun) > timeout + slack:
        raise ConnectorViolation(
            f"poll({timeout}) took {took:.1f} s", hint="it returns None when nothing has come within the timeout, in seconds"
        )
    return polled


def _check_position(position: Any) -> None:
    try:
        same = json.loads(json.dumps(position, allow_nan=False))
    except (TypeError, ValueError) as error:
        same = error
    if same != position:
        raise ConnectorViolation(
            f"the position {position!r:.200} is not what JSON makes of it: {same!r:.200}",
            hint="a position is made of None, numbers, texts, lists, and dicts with texts as keys",
        )


def _records(data: Any) -> Sequence[Any]:
    if isinstance(data, list):
        return data
    if hasattr(data, "iloc"):
        return list(data.to_dict("records"))
    return list(data.to_dicts() if hasattr(data, "to_dicts") else data.to_pylist())


def _next_cti(record: Any, cti: int) -> int:
    """Return the CTI after a record. Raises `ConnectorViolation` for an event that breaks the one before."""
    if not isinstance(record, (Insert, Retract, Cti)):
        return cti
    time = record.time if isinstance(record, Cti) else sync_time(record)
    if type(time) is int and time < cti:
        raise ConnectorViolation(f"{record!r} breaks the CTI {cti} that the source has given before")
    return time if isinstance(record, Cti) and type(time) is int else cti


def _same(expected: list[str], found: list[str], what: str) -> None:
    if expected == found:
        return
    place = next(
        (n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), min(len(expected), len(found))
    )
    was, now = (each[place] if place < len(each) else "(no more)" for each in (expected, found))
    raise ConnectorViolation(f"{what}: record {place} was {was:.200}, and is now {now:.200}")


_MICRO_BATCHES: Final[list[list[tuple[Any, ...]]]] = [
    [("insert", "a", 1, 9, None, 10), ("insert", "b", 2, 5, None, 20), ("cti", None, 1, None, None, None)],
    [("retract", "a", 1, 9, 4, 10), ("insert", "c", 3, None, None, 30)],
    [],
    [
        ("retract", "c", 3, None, 3, 30),
        ("insert", "d", 6, 7, None, 40),
        ("retract", "b", 2, 5, 8, 20),
        ("cti", None, 6, None, None, None),
    ],
    [("insert", "a", 8, 12, None, 50), ("cti", None, 20, None, None, None)],
]
"""Insertions, retractions, CTIs, nothing at all, and an id that is used again: kind, id, LE, RE, new RE and the field `n`."""


def check_sink(make_sink: Callable[[], Sink], read: Callable[[], Iterable[Any]]) -> SinkReport:
    """Check that a sink holds what it was given, and that it keeps its promise where a micro-batch is written again.

    `make_sink` makes the sink anew, at the same place, which is empty at the begin. `read` returns what is there: rows as dicts
    with `le`, `re` (None: INFINITY) and the field `n`, or physical events. After each micro-batch it must be the history of all;
    where each is written again, by the same sink and by a new one, it must stay so, for `at_least_once` hold it at least. For
    `exactly_once` a micro-batch that cannot be the next, and one of another stream, are refused with `SinkError`, and change
    nothing; `has`, if there is one, tells what is there. Raises `ConnectorViolation`, which says what is broken.

    >>> from streamdsl.connect import calling
    >>> from streamdsl.testing import check_sink
    >>> found = []
    >>> check_sink(lambda: calling(found.extend), lambda: found)
    SinkReport(promise='at_least_once', micro_batches=5, writes=15)
    """
    need_pyarrow("the micro-batches that sinks take")
    begun = time.monotonic()
    promise = make_sink().promise
    if promise not in _OF_SINKS:
        raise ConnectorViolation(f"the promise is {promise!r}", hint=f"it is one of {', '.join(_OF_SINKS)}")
    events: list[tuple[Any, ...]] = []
    for batch, rows in enumerate(tracked(_MICRO_BATCHES, "micro-batches of the sink")):
        events += rows
        sink = make_sink()
        _check_has(sink, batch, batch - 1)
        for each, what in ((sink, "once"), (sink, "again"), (make_sink(), "again, by a sink that was made anew")):
            each.write(_table(rows), batch, "check")
            _check_holds(read(), events, promise, f"after micro-batch {batch} was written {what}")
            _check_has(each, batch, batch)
            _close(each)
        if promise == "exactly_once":
            _check_refuses(make_sink(), _table(rows), batch + 2, "check", "one whose predecessor is missing")
            _check_refuses(make_sink(), _table(rows), batch + 1, "another", "one of another stream")
            _check_holds(read(), events, promise, f"after micro-batch {batch}, and others that were refused")
    number = len(_MICRO_BATCHES)
    return SinkReport(promise, number, 3 * number, _OF_SINKS[promise], time.monotonic() - begun)


def _table(rows: Sequence[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    fields = [("kind", pa.string()), ("id", pa.string()), *((name, pa.int64()) for name in ("le", "re", "re_new", "n"))]
    return pa.Table.from_pylist([dict(zip([name for name, _ in fields], row, strict=True)) for row in rows], pa.schema(fields))


def _check_holds(found: Iterable[Any], events: Sequence[tuple[Any, ...]], promise: str, when: str) -> None:
    listed = list(found)
    if promise == "at_least_once":
        given = Counter((kind, le) for kind, _, le, *_ in events)
        missing = given - Counter((_kind(each), _start(each)) for each in listed)
        if missing:
            raise ConnectorViolation(f"{when} it lacks {dict(missing)}")
        return
    expected = _history(_events(events))
    try:
        now = _history(listed)
    except EventError as error:
        raise ConnectorViolation(f"{when} it holds events that mean nothing: {without_hint(error)}") from error
    if expected != now:
        raise ConnectorViolation(f"{when} it holds {now}, and should hold {expected} (LE, RE, n)")


def _events(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [_event(*row) for row in rows]


def _event(kind: str, id: str, le: int, re: int | None, re_new: int | None, n: int) -> Any:
    if kind == "cti":
        return Cti(le)
    return Insert(id, le, _end(re), {"n": n}) if kind == "insert" else Retract(id, le, _end(re), _end(re_new), {"n": n})


def _history(found: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Return the rows that a sink holds, or that its events mean, in order."""
    if any(isinstance(each, (Insert, Retract, Cti)) for each in found):
        return sorted((row.le, row.re, _n(row.payload)) for row in CHT.from_events(found))
    return sorted((each["le"], _end(each["re"]), each["n"]) for each in found)


def _n(payload: Any) -> int:
    return int(payload["n"] if isinstance(payload, Mapping) else payload.n)


def _end(re: int | None) -> int:
    return INFINITY if re is None else re


def _kind(each: Any) -> str:
    return {Insert: "insert", Retract: "retract", Cti: "cti"}.get(type(each), "insert")


def _start(each: Any) -> Any:
    return each.time if isinstance(each, Cti) else each.le if isinstance(each, (Insert, Retract)) else each["le"]


def _check_has(sink: Any, batch: int, last: int) -> None:
    """Check that a sink says of a micro-batch, and of the next, whether it holds them, `last` being the last that it holds."""
    if (has := getattr(sink, "has", None)) is None:
        return
    for number in (batch, last + 1):
        if bool(has(number, "check")) != (number <= last):
            raise ConnectorViolation(f"has({number}) is {not number <= last}, and the last micro-batch is {last}")


def _check_refuses(sink: Sink, table: Any, batch: int, stream: str, what: str) -> None:
    try:
        sink.write(table, batch, stream)
    except StreamDslError:
        return
    raise ConnectorViolation(
        f"it takes the micro-batch {batch} of the stream {stream!r}, {what}",
        hint="keep the number of the last micro-batch, and the id of its stream, with the rows",
    )


def _close(sink: Any) -> None:
    if (close := getattr(sink, "close", None)) is not None:
        close()
