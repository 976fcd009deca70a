"""Traces: a recording, and the questions that it answers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamdsl.debugger.absence import WhyNot, why_not
from streamdsl.debugger.answers import Effects, InputCause, OperatorEffect, Why, row_text
from streamdsl.debugger.choosing import distinct, matching, the_only
from streamdsl.debugger.input_rows import InputRow, ticked
from streamdsl.debugger.lineage import Rows, copies, same
from streamdsl.debugger.moment import Moment
from streamdsl.debugger.pushes import Push, Recording, Sample
from streamdsl.debugger.recorder import Recorder, record_run
from streamdsl.debugger.searching import smallest
from streamdsl.emit import EmitMode
from streamdsl.errors import QueryError, shortened
from streamdsl.expr.schema import as_payload
from streamdsl.io.binding import Bound
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source
from streamdsl.temporal import CHT, INFINITY, CHTRow, Cti, Event, EventReader, Insert, Retract, plain
from streamdsl.temporal.cht import dated_row
from streamdsl.temporal.completion import Completed
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.events import dated

if TYPE_CHECKING:
    from streamdsl.engine.query_session import Session
    from streamdsl.pictures.timeline_picture import Timeline


class Arrival(NamedTuple):
    """An event that has come in, and its source."""

    source: str
    event: Event[Any]


class EventTrace(Completed, Displayed):
    """A recorded run: its physical events in and out, and where answers come from.

    Made by `query.trace(inputs)`, `session.trace()` and `load`. Each question runs the query again, on parts of what was
    recorded, so it costs time when it is asked, and none before.

    >>> import streamdsl as sd
    >>> query = sd.source("trips").where(lambda e: e > 5).tumbling_window(10).aggregate(n=sd.count())
    >>> trace = query.trace({"trips": [sd.point("a", 3, 7), sd.point("b", 4, 2), sd.Cti(20)]})
    >>> trace
    EventTrace: 3 events in, 3 out
    >>> trace.output[0]
    Insert(id=('window_aggregate_1', 0, 0), le=0, re=10, payload=Record(n=1))
    """

    _internal = frozenset({"of_run", "of_session", "recording"})

    def __init__(self, recording: Recording, recorder: Recorder | None = None) -> None:
        self.recording = recording
        self._recorder = recorder
        self._moments: list[Moment] = []

    @classmethod
    def of_run(
        cls,
        plan: Node,
        bindings: Mapping[str, Bound],
        until: int = INFINITY,
        options: Mapping[str, Any] | None = None,
        last: int | None = None,
        sample: tuple[float, Any] | None = None,
        emit: EmitMode = "speculative",
    ) -> EventTrace:
        """Run a plan over its bounded inputs, and return what was recorded."""
        return cls(record_run(plan, bindings, until, options, last, _sample(sample, last), emit))

    @classmethod
    def of_session(cls, session: Session[Any], last: int | None, sample: tuple[float, Any] | None) -> EventTrace:
        """Record a session from now on."""
        recorder = Recorder(session, last, _sample(sample, last))
        return cls(recorder.recording, recorder)

    @property
    def input(self) -> list[Arrival]:
        """The events that have come in, in order of arrival, with times in ticks."""
        unit = self.recording.unit
        batches = [batch for push in self.recording.pushes for batch in push.batches]
        return [Arrival(source, event) for source, events in batches for event in ticked(events, unit)]

    @property
    def output(self) -> list[Event[Any]]:
        """The events that have gone out, in order."""
        return dated([event for push in self.recording.pushes for event in push.output], self.recording.unit)

    @property
    def left_out(self) -> list[str]:
        """What the recording does not have, in words; empty if it is whole."""
        return list(self.recording.limits())

    def cht(self) -> CHT[Any]:
        """Return what the output means; of a ring what its part of the output does."""
        rows: dict[Hashable, CHTRow[Any]] = {}
        for event in self.output:
            if isinstance(event, Insert):
                rows[event.id, event.le] = CHTRow(event.le, event.re, event.payload)
            elif isinstance(event, Retract):
                rows[event.id, event.le] = CHTRow(event.le, event.re_new, event.payload)
        return CHT(rows.values(), self.recording.unit)

    def stop(self) -> None:
        """End the recording of a live session; what was recorded stays."""
        if self._recorder is not None:
            self._recorder.stop()

    def replay(self) -> list[Event[Any]]:
        """Run the recording again, push by push, and return the output: of a whole recording the same events.

        Raises `QueryError` for a recording that lacks events.
        """
        from streamdsl.debugger.replaying import replay

        return replay(self.recording)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file of JSON; `load` reads it. Nothing is pickled.

        Raises `QueryError` for payloads that cannot be written: of other classes than dataclasses and named tuples.
        """
        from streamdsl.debugger.trace_files import write

        write(self.recording, path)

    def timeline(self) -> Timeline:
        """Return a picture of the recorded events, input above output: text, and SVG in Jupyter (docs/pictures.md)."""
        from streamdsl.debugger.trace_timeline import timeline

        return timeline(self.recording)

    def to_html(
        self, path: str | os.PathLike[str], why: Iterable[Event[Any]] | None = None, refresh: float | None = None
    ) -> None:
        """Write the trace to one page of HTML that needs no network (docs/debugger.md).

        It is stepped through, searched and asked: it shows the plan, the events in order, timelines up to any of them, what is at
        each operator then, and of an event that is clicked its causes and effects. `why` are the answers, as events of
        `trace.output`, of which the page knows which causes are necessary; by default the newest, as many as are asked in a
        few seconds. With `refresh` the page reads its file again, every so many seconds, and keeps its place: for a session
        that goes on, and writes it again. Raises `QueryError` for events that are not in the output, and for a refresh that is
        no number above 0, `OSError` for a file that cannot be written.

        >>> import streamdsl as sd, tempfile
        >>> trace = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).trace({"trips": [(1, 4, "A")]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.to_html(f"{folder}/trips.html", why=trace.output[-5:])
        """
        from streamdsl.debugger.trace_page import page

        target = Path(path)
        if refresh is None:
            target.write_text(page(self, why), encoding="utf-8")
            return
        if type(refresh) not in (int, float) or not 0 < refresh < float("inf"):
            raise QueryError(f"refresh is a number of seconds, not {shortened(refresh)}", hint="to_html(path, refresh=2)")
        new = target.with_name(f".{target.name}.new")
        new.write_text(page(self, why, refresh), encoding="utf-8")
        os.replace(new, target)

    def why(self, answer: Event[Any] | tuple[Any, Any, Any] | Callable[..., object]) -> Why:
        """Return where an answer comes from: an event of the output, a row `(le, re, payload)`, or the one row for which
        a predicate of the payload (and the lifetime) holds.

        Of an event it is said as of the push that gave it; of a retraction also which input changed it. Of a row as of now, or,
        if it is not there any more, of the last push after which it was; a predicate chooses among the rows of now, then among
        all that ever were. Raises `QueryError` for what the output never had, and where a predicate holds for several rows.

        >>> import streamdsl as sd
        >>> query = sd.source("trips").where(lambda e: e > 5).tumbling_window(10).aggregate(n=sd.count())
        >>> trace = query.trace({"trips": [sd.point("a", 3, 7), sd.point("b", 4, 2), sd.Cti(20)]})
        >>> print(trace.why(trace.output[0]))
        [0, 10) n=1  <- window_aggregate_1: [0, 10) 1 row in a window, tumbling(10)
           count over 1 row gave 1
           [3, 4) 7  <- where_1: e > 5
              [3, 4) 7  <- source:trips: insert 'a' [3, 4)
        >>> trace.why(lambda e: e.n == 1).row
        CHTRow(le=0, re=10, payload=Record(n=1))
        """
        if callable(answer):
            answer = self._chosen(answer)
        if isinstance(answer, Cti):
            raise QueryError("a CTI has no lineage", hint="why(row or event); session.why_no_output() is about CTIs")
        if isinstance(answer, Retract):
            return self._why_changed(answer)
        if isinstance(answer, Insert):
            return self._around(answer)[1].why(CHTRow(answer.le, answer.re, answer.payload))
        row = self._as_row(answer)
        return self._moment(self._last_with(row)).why(row)

    def effects(self, event: Event[Any] | Arrival | Callable[..., object]) -> Effects:
        """Return what an input event has changed: the rows of each operator with it, and without it.

        The event is one of `trace.input`, or the one insertion for which a predicate of the payload (and the lifetime, as it
        counts now) holds. An insertion is taken away with its retractions; a retraction with those after it of
        the same row. What it gave to a result that is the same without it is no effect; `why` has that as a possible cause.
        Raises `QueryError` for an event that did not come in, and where a predicate holds for several.

        >>> import streamdsl as sd
        >>> query = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
        >>> trace = query.trace({"trips": [sd.point("a", 3, 7), sd.point("b", 4, 2), sd.Cti(20)]})
        >>> print(trace.effects(trace.input[0].event))
        insert 'a' [3, 4)
           source:trips
              + [3, 4) 7
           window_aggregate_1
              + [0, 10) n=2
              - [0, 10) n=1
        """
        if callable(event):
            event = self._chosen_input(event)
        if isinstance(event, Arrival):
            event = event.event
        if isinstance(event, Cti):
            raise QueryError("a CTI changes no row", hint="why(row).needed_ctis names the CTIs that have let a final row out")
        moment = self._moment()
        row, without = self._without(moment, event)
        late = "; ".join(each.reason for each in row.rejected if each.event == event)
        with_it, without_it = _everywhere(moment, moment.rows), _everywhere(moment, without)
        names = labels(moment.plan)
        effects = [_effect(names[key], with_it[key], without_it[key]) for key in with_it]
        output = _effect("output", moment.output().rows, moment.output(without).rows)
        return Effects(event, tuple(e for e in effects if e.made or e.prevented), output, self.recording.unit, late)

    def why_not(self, expected: Callable[..., object] | tuple[Any, Any, Any]) -> WhyNot:
        """Return why an answer is missing: `expected` is a row `(le, re, payload)`, or a predicate of the payload
        (and the lifetime).

        It says what would have to be different: late events that were dropped, CTIs that have not come (`session.trace()`),
        filters and joins that let rows not pass, input rows that are in the way. Each remedy was tried: with all of it together
        the answer is there, with less it is not. Raises `QueryError` if the answer is not missing.

        >>> import streamdsl as sd
        >>> query = sd.source("trips").where(lambda e: e > 5)
        >>> trace = query.trace({"trips": [sd.point("a", 3, 7), sd.point("b", 4, 2), sd.Cti(20)]})
        >>> print(trace.why_not(lambda e: e == 2))
        it would be there if
           where_1 let [4, 5) 2 pass: e > 5
        then: [4, 5) 2
        """
        wanted = expected if callable(expected) else self._as_row(expected)
        return why_not(self._moment(), wanted)

    def _below(self) -> str:
        from streamdsl.debugger.trace_page import frame

        return frame(self)

    def __repr__(self) -> str:
        n_in, n_out = sum(push.n_in for push in self.recording.pushes), sum(len(push.output) for push in self.recording.pushes)
        return "; ".join([f"EventTrace: {n_in} events in, {n_out} out", *self.recording.limits()])

    def _moment(self, n_pushes: int | None = None, *last: Push) -> Moment:
        """Return the recording after some pushes; the newest ones are remembered for the next question."""
        pushes = [*islice(self.recording.pushes, n_pushes), *last]
        found = next((each for each in self._moments if each.pushes == pushes), None)
        if found is None:
            found = Moment(self.recording, pushes)
            self._moments = [found, *self._moments[:3]]
        return found

    def _around(self, event: Event[Any]) -> tuple[Moment, Moment]:
        """Return the recording before, and after, the step that gave an event of the output."""
        pushes = list(enumerate(self.recording.pushes))
        places = [(number, push, place) for number, push in pushes for place, each in enumerate(push.output) if each is event]
        # An event that was made anew, or read from a file, is the first that equals it.
        equal = ((number, push, place) for number, push in pushes for place, each in enumerate(push.output) if each == event)
        for number, push, place in places or equal:
            before, after = push.until(place)
            return self._moment(number, before), self._moment(number, after)
        raise QueryError(f"{shortened(event)} is not in the output", hint="give an event of trace.output")

    def _chosen(self, wanted: Callable[..., object]) -> CHTRow[Any]:
        """Return the row of the output for which a predicate holds: one of now, or else one that was there."""
        holds = matching(wanted, "why")
        found = distinct(filter(holds, self.cht()))
        if not found:
            ever = (row for push in self.recording.pushes for row, n in _changes(push) if n > 0 and row.le < row.re)
            found = distinct(filter(holds, ever))
        hint = "trace.why_not(predicate) says why an answer is missing"
        return the_only(found, lambda row: row, self.recording.unit, "output row", hint)

    def _chosen_input(self, wanted: Callable[..., object]) -> Event[Any]:
        """Return the insertion for whose row a predicate holds."""
        holds = matching(wanted, "effects")
        found = [row for row in self._moment().rows if holds(row.row)]
        hint = "trace.input has the events that came in"
        return the_only(found, lambda row: row.row, self.recording.unit, "input row", hint).events[0]

    def _as_row(self, row: tuple[Any, Any, Any]) -> CHTRow[Any]:
        try:
            le, re, payload = row
        except (TypeError, ValueError):
            hint = "(le, re, payload), as in trace.cht(), an event of trace.output, or a predicate: lambda e: e.n == 2"
            raise QueryError(f"{shortened(row)} is no row", hint=hint) from None
        unit = self.recording.unit
        return dated_row(CHTRow(*EventReader(unit).lifetime(0, le, re), as_payload(plain(payload))), unit)

    def _last_with(self, row: CHTRow[Any]) -> int:
        """Return after how many pushes a row was in the output for the last time."""
        there = last = 0
        for number, push in enumerate(self.recording.pushes, 1):
            there += sum(n for each, n in _changes(push) if same(each) == same(row))
            last = number if there > 0 else last
        if not last and self.recording.is_whole:
            raise self._never_had(row)
        return last or len(self.recording.pushes)

    def _never_had(self, row: CHTRow[Any]) -> QueryError:
        """Return the error for a row that the output never had, with the rows of its lifetime that it had."""
        unit = self.recording.unit
        rows = (each for push in self.recording.pushes for each, n in _changes(push) if n > 0)
        alike = dict.fromkeys(row_text(each, unit) for each in rows if each[:2] == row[:2])
        had = f"with its lifetime it had {'; '.join(islice(alike, 3))}; " if alike else ""
        hint = f"{had}trace.why_not(row) says why an answer is missing"
        return QueryError(f"the output has never had the row {row_text(row, unit)}", hint=hint)

    def _why_changed(self, event: Retract) -> Why:
        """Return what took a row back, and where what has taken its place comes from."""
        before, after = self._around(event)
        old = CHTRow(event.le, event.re, event.payload)
        new = CHTRow(event.le, event.re_new, event.payload)
        known = {row.number: row for row in before.rows}
        changes = [row for row in after.rows if row.number not in known or row.row != known[row.number].row]

        n_before = copies(before.output(), old)

        def changed(part: Iterable[InputRow]) -> bool:
            rows = {**known, **{row.number: row for row in part}}
            return copies(after.output([rows[number] for number in sorted(rows)]), old) < n_before

        is_gone = changed(changes)
        by = smallest(changes, changed) if is_gone else []
        # Where an equal row has come in the same step, that is what is there in its place.
        why = after.why(new if is_gone else old) if new.le < new.re or not is_gone else None
        return Why(
            why.row if why else new,
            why.tree if why else None,
            why.inputs if why else (),
            why is None or why.is_complete,
            len(after.pushes) - 1,
            after.inputs.ctis,
            self.recording.unit,
            old,
            tuple(self._change(after, old, row) for row in by),
            tuple(self.recording.limits()),
        )

    @staticmethod
    def _change(moment: Moment, old: CHTRow[Any], row: InputRow) -> InputCause:
        """Return an input row as what took another row back: necessary if that would be there without it."""
        cause = moment.cause(old, row, is_context=False)
        return replace(cause, _stays=lambda: not moment.gives(old, moment.without({row.number})))

    def _without(self, moment: Moment, event: Event[Any]) -> tuple[InputRow, list[InputRow]]:
        """Return the row of an input event, and all rows as they would be without the event."""
        row = next((row for row in moment.rows if any(each is event for each in row.events)), None) or next(
            (row for row in moment.rows if event in row.events), None
        )
        if row is None:
            raise QueryError(f"{shortened(event)} did not come in", hint="give an event of trace.input")
        if isinstance(event, Insert):
            return row, moment.without({row.number})
        return row, [row.before(event) if each is row else each for each in moment.rows]


def load(path: str | os.PathLike[str], query: Any = None, types: Iterable[type] = ()) -> EventTrace:
    """Read a trace that `save` has written; `types` are the classes of its payloads that the query does not declare.

    `query` is the query of the trace, for one that has no JSON form, as opaque lambdas have none; else the file has it. Nothing
    is unpickled or imported. Raises `QueryError` for a file that is no trace.

    >>> import streamdsl as sd, tempfile
    >>> query = sd.source("trips").where(lambda e: e > 5)
    >>> trace = query.trace({"trips": [sd.point("a", 3, 7)]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trace.save(f"{folder}/trips.trace")
    ...     again = load(f"{folder}/trips.trace")
    >>> again.replay() == trace.output
    True
    """
    from streamdsl.debugger.trace_files import read

    return EventTrace(read(path, None if query is None else query.plan(), types))


def _sample(sample: tuple[float, Any] | None, last: int | None) -> Sample | None:
    if sample is None:
        return None
    share, by = sample if isinstance(sample, tuple) and len(sample) == 2 else (None, None)
    if type(share) not in (int, float) or not (isinstance(by, str) or callable(by)):
        raise QueryError(
            f"a sample is a share of the keys, and the key, not {shortened(sample)}",
            hint='sample=(0.1, "zone"), or with a lambda',
        )
    return Sample(share, by, last)


def _changes(push: Push) -> Iterator[tuple[CHTRow[Any], int]]:
    """Yield the rows that a push has added to the output (1), and taken from it (-1)."""
    for event in push.output:
        if isinstance(event, Insert):
            yield CHTRow(event.le, event.re, event.payload), 1
        elif isinstance(event, Retract):
            yield CHTRow(event.le, event.re, event.payload), -1
            yield CHTRow(event.le, event.re_new, event.payload), 1


def _everywhere(moment: Moment, rows: list[InputRow]) -> dict[int, Rows]:
    """Return the rows at each source and operator, along the flow."""
    made = moment.at_operators(rows)
    found: dict[int, Rows] = {}
    for node in moment.plan.walk():
        of_source = [row.row for row in rows if isinstance(node, Source) and row.source == node.source and row.le < row.re]
        found[id(node)] = of_source if isinstance(node, Source) else made[id(node)]
    return found


def _effect(operator: str, with_it: Rows, without_it: Rows) -> OperatorEffect:
    return OperatorEffect(operator, tuple(_beyond(with_it, without_it)), tuple(_beyond(without_it, with_it)))


def _beyond(rows: Rows, others: Rows) -> Iterator[CHTRow[Any]]:
    """Yield the rows that are not among others, of equal ones those that are too many."""
    left = Counter(map(same, others))
    for row in rows:
        if left[same(row)]:
            left[same(row)] -= 1
        else:
            yield row
