"""One case of the law: a source, payload, operator, sink, fault, way to emit and to take late events, and data drawn for them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.query_session import Session
from streamdsl.engine.starting import restored
from streamdsl.engine.state.classes import name_of
from streamdsl.errors import CheckpointError, SessionError, SinkError, StreamDslError, UserCodeError
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Retract, fields_of
from tests.laws.doors.covering import Choice, covering, legal_pairs, part
from tests.laws.doors.faults import FAULTS, OF_TABLES, Forgetful, Interrupt, full_disk, traced
from tests.laws.doors.fold import Fold, Refused
from tests.laws.doors.history import Draw, Rules, late_of, pushes
from tests.laws.doors.payloads import NAMES, Kind, drawn
from tests.laws.doors.queries import IN_TICKS, OPERATORS, query
from tests.laws.doors.sinks import SINKS, Sink, difference, sink
from tests.laws.doors.sources import EPOCH, FILES, FIRST, SOURCES, Door, has_ids
from tests.laws.expected import sources_of
from tests.unit.engine.state.crafted import Apart

DIMENSIONS = {
    "source": list(SOURCES),
    "payload": NAMES,
    "operator": list(OPERATORS),
    "sink": list(SINKS),
    "fault": list(FAULTS),
    "emit": ["speculative", "watermark", "final"],
    "late": ["none", "error", "drop", "adjust"],
    "ids": ["rows", "once", "corrected", "again", "edges"],
}
NO_COLUMNS = ("None", "Enum", "tuple", "nested")
"""Payloads that no column holds as they are."""
NOWHERE: Any = None
UNBOUNDED = [f"{name} of identity" for name in ("tumbling", "grouped hopping", "chop")]
"""Queries that would make very much of one long row."""


def legal(one: Choice, other: Choice) -> bool:
    """Say whether two choices may go together; what may not is no more than what cannot be said."""
    return _legal(*one, *other) and _legal(*other, *one)


def _legal(name: str, value: str, other: str, choice: str) -> bool:
    if (name, other) == ("source", "ids"):
        if value == "frames and objects":
            return choice in ("once", "corrected", "again")
        return (choice == "edges") == (value == "edges") and (choice == "rows") == (not has_ids(value))
    if (name, other) == ("source", "payload"):
        if value in ("objects", "edges", "tuples"):
            return True
        if choice in NO_COLUMNS:
            return False
        form = FILES.get(value.partition(", ")[0])
        return form is None or choice not in form.lacks
    if other == "fault" and choice in OF_TABLES and (name, value) in (("sink", "events"), ("payload", "Enum")):
        return False
    # What has an enumeration in it is no column of a table.
    return not (name == "payload" and value == "Enum" and other == "sink" and choice != "events")


ROWS = covering(DIMENSIONS, legal, begun=covering({**DIMENSIONS, "source": FIRST}, legal))
FEW = 150


def often(name: str, other: str) -> bool:
    """Say whether the pairs of two dimensions are so few that each of them is run often."""
    return len(DIMENSIONS[name]) * len(DIMENSIONS[other]) <= FEW


SOME = part(ROWS, {pair for pair in legal_pairs(DIMENSIONS, legal) if often(*(name for name, _ in pair))})
"""Rows that are run often; all are where more is asked for."""


class Theirs:
    """A class that is loaded, and that no query declares."""


def naming(checkpoint: bytes, cls: type) -> bytes:
    """Return a checkpoint, under a right checksum, that names a class."""
    apart = Apart(checkpoint)
    apart.texts["session"]["root"]["_now"] = ["class", [name_of(cls)]]
    return apart.whole()


@dataclass
class Input:
    """A source of the query, what it is sent, and what that means."""

    name: str
    door: Door
    fold: Fold
    pushes: list[list[Event[Any]]]


class Case:
    """A running case."""

    def __init__(self, row: Mapping[str, str], draw: Draw, folder: Path, note: Callable[[str], None]) -> None:
        self.row, self.draw, self.folder, self.note = row, draw, folder, note
        self.kind = drawn(draw, row["payload"], row["source"] not in ("objects", "edges", "tuples"))
        self.dates = row["operator"] not in IN_TICKS and draw(st.integers(0, 3)) == 3
        bounded = OPERATORS[row["operator"]].bounded
        ids = row["ids"]
        self.rules = Rules(ids, row["late"], bounded, row["source"] == "frames and objects")
        streams = [self.stream(f"s{number}") for number in range(OPERATORS[row["operator"]].inputs)]
        self.predicate = Forgetful()
        read = [stream.where(self.predicate) if row["fault"] == "no answer" else stream for stream, _ in streams]
        self.made, self.query = query(draw, row["operator"], self.kind, read[0], read[-1])
        self.plan = self.query.plan()
        names = sources_of(self.plan)
        self.inputs = [self.input(f"s{n}", *stream) for n, stream in enumerate(streams) if f"s{n}" in names]
        note(f"{dict(row)}\n{self.made}; dates: {self.dates}")
        self.session: Session[Any] = self.query.open(emit=row["emit"])  # type: ignore[arg-type]
        self.sink: Sink = sink(row["sink"], folder, self.dates)
        self.output = Fold()
        self.batch = 0

    def stream(self, name: str) -> tuple[sd.Stream[Any], Fold]:
        """Return a source and its fold, which have a progress policy where nothing else would make rows late."""
        needed = self.rules.ids == "rows" and self.row["late"] != "none"
        policy = self.draw(st.integers(0 if not needed else 1, 2))
        fold = Fold(late_of(self.row["late"]))
        progress = None
        if policy == 1:
            fold.slack = self.draw(st.integers(0, 3))
            progress = sd.Progress.slack(fold.slack)
        elif policy == 2:
            fold.every = (self.draw(st.integers(1, 3)), self.draw(st.integers(0, 2)))
            progress = sd.Progress.every(fold.every[0], delay=fold.every[1])
        unit: Any = "s" if self.dates else None
        made = sd.source(name, self.kind.declared, unit=unit, progress=progress, on_violation=fold.late)
        return made, fold

    def input(self, name: str, stream: sd.Stream[Any], fold: Fold) -> Input:
        written = pushes(self.draw, self.rules, self.kind.values, fold, EPOCH if self.dates else 0)
        door = Door(self.row["source"], self.kind, stream, self.dates, self.folder, self.draw(st.integers(0, 5)))
        return Input(name, door, fold, written)

    def run(self) -> None:
        """Push everything, with what happens between, end the inputs, and compare."""
        left = [input for input in self.inputs if input.pushes]
        places = dict.fromkeys([input.name for input in self.inputs], 0)
        while left:
            input = self.draw(st.sampled_from(left)) if len(left) > 1 else left[0]
            self.push(input, input.pushes[places[input.name]])
            places[input.name] += 1
            left = [each for each in left if places[each.name] < len(each.pushes)]
        for input in self.inputs:
            self.send(input, lambda: [Cti(INFINITY)])
        self.compare()

    def push(self, input: Input, events: Sequence[Event[Any]]) -> None:
        """Push events, which are refused if the fold says so."""
        self.note(f"{input.name}> {', '.join(map(str, events))}")
        if self.happens("refused"):
            self.refused(input, [*events, *self.not_taken(input, events)])
        try:
            input.fold.take_all(events)
        except Refused:
            self.refused(input, events)
        else:
            if self.happens("null time"):
                id = 10**9 if self.rules.numbered else "odd"
                row = Insert(id, NOWHERE, self.after(input, events), self.draw(self.kind.values))
                self.refused(input, [*events, row], "start is null|None is no time|LE .*None")
            self.send(input, lambda: input.door.value(events))

    def happens(self, fault: str) -> bool:
        """Say whether this is the case's fault, and its time has come, as it mostly has."""
        return self.row["fault"] == fault and self.draw(st.integers(0, 3)) < 3

    def after(self, input: Input, events: Sequence[Event[Any]]) -> int:
        """Return a time after these events and all that came before."""
        return max([input.fold.cti, EPOCH if self.dates else 0, *(e.le for e in events if not isinstance(e, Cti))]) + 100

    def not_taken(self, input: Input, events: Sequence[Event[Any]]) -> list[Event[Any]]:
        """Return what is refused after these events, whatever the policy: one more, or a row of which too much would come."""
        time, payload = self.after(input, events), self.draw(self.kind.values)
        if self.made in UNBOUNDED and self.row["source"] in ("objects", "edges") and self.draw(st.integers(0, 1)) == 0:
            return [Insert("long", time, time + 10**8, payload), Cti(time + 10**8)]
        return [self.malformed(input, events, time, payload)]

    def malformed(self, input: Input, events: Sequence[Event[Any]], time: int, payload: Any) -> Event[Any]:
        """Return an event that is refused after these, whatever the policy."""
        if self.rules.ids == "rows" or self.row["source"] == "frames and objects":
            return Insert(10**9, time, time - 1, payload)
        inserted = [event for event in events if isinstance(event, Insert)]
        last = events[-1]
        wrong: list[Event[Any]] = [
            Insert("odd", time, time - 1, payload),
            Retract("nobody", time, time + 5, time + 2),
        ]
        if inserted and last is inserted[-1] and not isinstance(last, Cti) and last.le >= input.fold.cti:
            wrong.append(Retract(last.id, last.le, last.re, last.le - 1))
        found: Event[Any] = self.draw(st.sampled_from(wrong))
        return found

    def refused(self, input: Input, events: Sequence[Event[Any]], why: str = ".") -> None:
        """Push what is refused: it raises an error of ours, which says why, and nothing changes."""
        before = self.session.snapshot()
        with pytest.raises(StreamDslError, match=why) as caught:
            self.session.feed(input.door.value(events), input.name)
        assert self.session.snapshot() == before, f"a push that was refused has changed the session: {caught.value}"

    def send(self, input: Input, value: Callable[[], Any]) -> None:
        """Push what is taken, and write what comes of it."""
        path = self.folder / "checkpoint"
        if self.row["fault"] in ("restart", "forged checkpoint") and self.draw(st.integers(0, 1)) == 0:
            self.session.checkpoint(path)
            if self.row["fault"] == "forged checkpoint":
                self.forged(path, self.folder / "forged")
            self.session = self.query.restore(path)
        if self.happens("no answer"):
            self.unanswered(input, value)
        out = self.interrupted(input, value) if self.happens("interrupt") else self.session.feed(value(), input.name)
        self.check(out.events())
        self.write(out)

    def forged(self, path: Path, copy: Path) -> None:
        """See that a checkpoint is refused that somebody has changed so that it names a class of theirs."""
        copy.write_bytes(naming(path.read_bytes(), Theirs))
        with pytest.raises(CheckpointError, match="which the query does not declare"):
            self.query.restore(copy)

    def unanswered(self, input: Input, value: Callable[[], Any]) -> None:
        """Push while the predicate forgets to return: if it is asked that is an error; and go on from before."""
        saved, asked, failed = self.session.snapshot(), self.predicate.asked, False
        self.predicate.forgets = True
        try:
            self.session.feed(value(), input.name)
        except UserCodeError:
            failed = True
        self.predicate.forgets = False
        assert failed == (self.predicate.asked > asked), "a row got through a predicate that has returned nothing"
        self.session = restored(self.query.plan(), None, saved)

    def interrupted(self, input: Input, value: Callable[[], Any]) -> Outgoing[Any]:
        """Push, be interrupted at some line, and push again: into the session, or if that has failed into one restored."""
        saved = self.session.snapshot()
        for _ in range(2):  # what is kept for the next time is kept now
            twin, same = restored(self.query.plan(), None, saved), value()
            lines = traced(lambda: twin.feed(same, input.name))  # noqa: B023
        stop = 1 + self.draw(st.integers(0, 10**6)) % lines
        pushed = value()
        try:
            outs: list[Any] = []
            traced(lambda: outs.append(self.session.feed(pushed, input.name)), stop)
            return outs[0]  # type: ignore[no-any-return]
        except Interrupt:
            self.note(f"  interrupted at line {stop} of {lines}")
        try:
            return self.session.feed(value(), input.name)
        except SessionError:
            self.session = restored(self.query.plan(), None, saved)
            return self.session.feed(value(), input.name)

    def check(self, events: Sequence[Event[Any]]) -> None:
        """Check that events of the output may come: ids, the current RE and payload, and earlier CTIs."""
        for event in events:
            if isinstance(event, Cti):
                assert event.time > self.output.cti, f"{event} does not rise above {self.output.cti}"
            assert self.row["emit"] != "final" or not isinstance(event, Retract), f"final has sent {event}"
            try:
                self.output.take(event)
            except Refused:
                raise AssertionError(f"the output has an event that nobody can take: {event}, CTI {self.output.cti}") from None

    def write(self, out: Outgoing[Any]) -> None:
        if self.happens("cut off"):
            self.sink.cut(out, self.batch, self.draw(st.integers(0, 59)))
        if self.happens("full disk"):
            with full_disk(self.draw(st.sampled_from([0, 100, 5_000]))), suppress(SinkError):
                self.sink.write(out, self.batch)
        for _ in range(2 if self.happens("written twice") else 1):
            self.sink.write(out, self.batch)
        self.batch += 1

    def compare(self) -> None:
        """Compare what the sink holds, and what the events mean, with the reference."""
        meant = denote(self.plan, {input.name: input.fold.rows() for input in self.inputs})
        wanted = self.sink.meant(meant)
        found = self.sink.rows(dict.fromkeys(name for row in meant for name, _ in fields_of(row.payload)))
        assert found == wanted, f"the sink holds something else:\n{difference(found, wanted)}"
        sent, told = self.sink.meant(self.output.rows()), self.sink.meant(meant)
        assert sent == told, f"the events mean something else:\n{difference(sent, told)}"
        rejected = sum(input.fold.rejected for input in self.inputs)
        assert len(self.session.rejected()) == rejected, f"{len(self.session.rejected())} rejected, {rejected} were to be"


def run(row: Mapping[str, str], draw: Draw, note: Callable[[str], None]) -> None:
    """Run a case with drawn data."""
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        Case(row, draw, Path(folder), note).run()


__all__ = ["DIMENSIONS", "ROWS", "Kind", "legal", "run"]
