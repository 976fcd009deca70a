"""Recording of a bounded run, event by event, or of a live session from now on; a session without a recorder knows of none."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamdsl.debugger.pushes import Push, Recording, Sample
from streamdsl.emit import EmitMode
from streamdsl.engine.opened_plan import OpenedPlan
from streamdsl.engine.step_output import StepOutput, output_events
from streamdsl.errors import SessionError
from streamdsl.io.binding import Bound, Inserts
from streamdsl.plan.node import Node
from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Event, Rejected, sync_time

if TYPE_CHECKING:
    from streamdsl.engine.query_session import Session


class Recorder:
    """Records a session: its own methods for pushes and ends hide those of the session's class, until `stop`."""

    def __init__(self, session: Session[Any], last: int | None, sample: Sample | None) -> None:
        self.session = session
        came = sum(ingress.events_in for ingress in session._sources.values())
        tables = {name: bound.whole() for name, bound in session.loaded.items()}
        self.recording = Recording(
            session.written,
            session.emit,
            {**session.options},
            session.until,
            session.unit,
            last,
            sample,
            before=came - sum(map(len, tables.values())),
        )
        for place, (name, rows) in enumerate(tables.items(), 1):
            early = output_events(session._early) if place == len(tables) else []
            self._add([(name, [*(rows.events() if isinstance(rows, Inserts) else rows), Cti(INFINITY)])], early)
        if "_push" in vars(session):
            raise SessionError("the session is traced already", hint="trace.stop() ends it")
        self._seen = self._rejections()
        vars(session).update(_push=self._push, end_with=self._end_with)

    def stop(self) -> None:
        """Let the session run as if it had never been recorded."""
        for name in ("_push", "end_with"):
            vars(self.session).pop(name, None)

    def _push(self, events: Iterable[Event[Any]] | Any, source: str | None) -> list[StepOutput]:
        session, cls = self.session, type(self.session)
        session._check_open()
        ingress = session._ingress(source)
        given = _events(session._read(events, ingress))
        early = len(session._early)
        sent = cls._push(session, given, ingress.name)
        self._add([(ingress.name, given)], output_events(sent[early:]), steps=tuple(map(len, sent[early:])))
        return sent

    def _end_with(self, last: Mapping[str, Iterable[Event[Any]] | Any], time: int) -> list[Event[Any]]:
        session, cls = self.session, type(self.session)
        given = {name: _events(session._read(events, session._ingress(name))) for name, events in last.items()}
        out = cls.end_with(session, given, time)
        self._add([*given.items()], out, time)
        self.stop()
        return out

    def _add(
        self,
        batches: Sequence[tuple[str, Sequence[Event[Any]]]],
        out: Sequence[Event[Any]],
        end: int | None = None,
        steps: tuple[int, ...] = (),
    ) -> None:
        session = self.session
        ctis = {name: ingress.cti for name, ingress in session._sources.items() if ingress.cti > MIN_TIME}
        kept = tuple((source, tuple(events)) for source, events in batches)
        self.recording.unit = session.unit
        self.recording.add(Push(kept, tuple(out), ctis, self._new_rejections(), end, steps))

    def _rejections(self) -> dict[str, int]:
        return {name: len(ingress.rejected) for name, ingress in self.session._sources.items()}

    def _new_rejections(self) -> tuple[tuple[str, Rejected], ...]:
        """Return what the sources have rejected since the last push."""
        before, self._seen = getattr(self, "_seen", {}), self._rejections()
        new = {name: n - before.get(name, 0) if n >= before.get(name, 0) else n for name, n in self._seen.items()}
        sources = self.session._sources
        return tuple((name, each) for name, n in new.items() if n for each in list(sources[name].rejected)[-n:])


def _events(given: Any) -> list[Event[Any]]:
    """Return events as a list; rows of frames are named by their numbers."""
    if isinstance(given, Inserts):
        return [replace(event, id=("row", event.id)) if given.ids is None else event for event in given.events()]
    return list(given)


def record_run(
    plan: Node,
    bindings: Mapping[str, Bound],
    until: int,
    options: Mapping[str, Any] | None,
    last: int | None,
    sample: Sample | None,
    emit: EmitMode,
) -> Recording:
    """Run a plan over its bounded inputs, event by event in order of their times, and return the recording, ended at `until`.

    Sources that follow a clock, or another source, have no CTIs of their own in a bounded run.
    """
    from streamdsl.debugger.reruns import without_clocks
    from streamdsl.engine.query_session import Session

    opened = OpenedPlan.of(without_clocks(plan)[0], emit, options)
    session: Session[Any] = Session(opened.plan, bindings, emit, opened.options, until, opened.written)
    session.options = dict(options or {})
    recorder = Recorder(session, last, sample)
    for name in session.tables:
        session.push([*bindings[name].events(), Cti(INFINITY)], name)
    live = {name: bindings[name] for name in session.sources if name not in session.tables}
    for name, event in _merged(live):
        session.push([event], name)
    session.end(until)
    return recorder.recording


def _merged(bindings: Mapping[str, Bound]) -> Iterator[tuple[str, Event[Any]]]:
    """Yield the events of all inputs, each in its order, of their next events the one with the least sync time first."""
    readers = {name: iter(bound.events()) for name, bound in bindings.items()}
    waiting: list[tuple[int, int, str, Event[Any]]] = []

    def wait(place: int, name: str) -> None:
        event = next(readers[name], None)
        if event is not None:
            heapq.heappush(waiting, (sync_time(event), place, name, event))

    for place, name in enumerate(readers):
        wait(place, name)
    while waiting:
        _, place, name, event = heapq.heappop(waiting)
        yield name, event
        wait(place, name)
