"""Sessions: the long-running form of a query."""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import TypeVar

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.batch import EMPTY
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.egress import FinalEgress
from streamdsl.engine.ingress import Ingress
from streamdsl.engine.input_buffer import InputBuffer
from streamdsl.engine.limits import Limits
from streamdsl.engine.lower import Options, lower
from streamdsl.engine.operator import Piece
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.running_query import Lowered, RunningQuery
from streamdsl.engine.state.parts import Parts
from streamdsl.engine.step_output import StepOutput, output_events
from streamdsl.errors import QueryError, SessionError
from streamdsl.io.binding import Bound, Inserts
from streamdsl.io.libraries import is_frame
from streamdsl.io.readers import read_frame
from streamdsl.plan.explain import tree
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node
from streamdsl.plan.types import Hints, output_types
from streamdsl.temporal import (
    INFINITY,
    MIN_TIME,
    Cti,
    Event,
    LifetimeColumns,
    Rejected,
    Rejections,
    Unit,
    add_time,
    all_rejected,
    check_unit,
    common_unit,
)
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.events import dated
from streamdsl.temporal.html import escape, text
from streamdsl.temporal.integers import whole_number

if TYPE_CHECKING:
    from streamdsl.debugger import EventTrace
    from streamdsl.engine.diagnose import SourceStats
    from streamdsl.engine.subscription import Subscription
    from streamdsl.monitoring.live import Live
    from streamdsl.monitoring.status import Status
    from streamdsl.pictures.timeline_picture import Timeline

T = TypeVar("T", default=Any)


class Session(Displayed, RunningQuery[T]):
    """A running query: events in by `push`, the output that they cause out, CTIs included.

    Made by `query.open(...)`. A push that is refused for its input changes nothing; after an exception of user code, or an
    interrupt (Ctrl-C) that cut a push short, only `stats` and `rejected` are left: the session says that it has failed, and
    `query.restore` goes on from its last checkpoint.

    >>> import streamdsl as sd
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open("final")
    >>> session.push([sd.point("a", 3, 7), sd.Cti(5)])
    [Cti(time=0)]
    >>> session
    <Session open, emit='final': trips 1 in, CTI 5; output 0 out, CTI 0>
    """

    _internal = frozenset(
        (
            "described",
            "end_with",
            "keep_all_rejected",
            "keep_newest",
            "load",
            "loaded",
            "options",
            "parts",
            "release",
            "sources",
            "tables",
            "traced",
            "types",
            "undoes",
            "until",
        )
    )
    undoes: ClassVar[bool] = True
    """Whether a push that would make too many windows is undone."""

    def __init__(
        self,
        plan: Node,
        bindings: Mapping[str, Bound] | None = None,
        emit: EmitMode | Emit = "speculative",
        engine_options: Options | None = None,
        until: int = INFINITY,
        written: Node | None = None,
        lowered: Lowered = lower,
    ) -> None:
        super().__init__(plan, plan if written is None else written, emit, engine_options, until, lowered)
        self.emit: EmitMode | Emit = emit
        self.options: dict[str, Any] = dict(engine_options or {})
        bound = bindings or {}
        self._late: list[Rejected] = []
        self._sources = {
            name: Ingress(source, source.time_unit or (bound[name].unit if name in bound else None))
            for name, source in self._graph.sources.items()
        }
        for name, ingress in self._sources.items():
            ingress.hand_over = self._late.extend
            policy = ingress.source.progress
            if policy is not None and policy.source and policy.source not in self._sources:
                raise QueryError(
                    f"the source {name!r} imports its CTIs from {policy.source!r}, which this query does not read",
                    hint=f"the sources of this query are: {', '.join(self._sources)}",
                )
        live = [ingress for ingress in self._sources.values() if not ingress.source.table]
        self._only = live[0] if len(live) == 1 else None
        self._clocks = [name for name, ingress in self._sources.items() if _kind(ingress) == "wall"]
        self._importers = [name for name, ingress in self._sources.items() if _kind(ingress) == "imported"]
        self._idling = [name for name, ingress in self._sources.items() if ingress.idle is not None]
        self._early: list[StepOutput] = []
        self.subscriptions: list[Subscription[T]] = []
        """The subscriptions, in the order in which they were made."""
        self._take_late: Callable[[list[Rejected]], object] | None = None
        self.until = until
        self.traced: EventTrace | None = None
        """The last recording that was asked for."""
        self.loaded: Mapping[str, Bound] = {}
        """The reference data that was taken in before all else."""
        self._limits = Limits(self)
        self._waiting = InputBuffer(self._graph) if type(self._egress) is FinalEgress else None
        self._wait()

    def push(
        self, events: Iterable[Event[Any]] | Any, source: str | None = None, *, start: str | None = None, end: str | None = None
    ) -> list[Event[T]]:
        """Take a batch (events in order of arrival, or a frame) into a source, and return the output that it causes.

        The batch is cut at its CTIs; each piece's net change, retractions first, comes before the output CTI that its CTI
        causes. `start` and `end` name the columns of a frame's lifetimes, if not those that the source names. Raises
        `EventError`, `CtiViolation` or `SchemaError` for input that is refused, which then has no effect. Where only final
        results go out, rows may wait until a CTI can close their windows: an exception of user code comes then.
        """
        if start is not None or end is not None:
            events = self._named(events, source, start, end)
        out = output_events(self._push(events, source), self._unit_now)
        self._hand_over_late()
        self._is_changing = False; return out  # noqa: E702  # fmt: skip  # no interrupt comes between

    def feed(
        self, events: Iterable[Event[Any]] | Any, source: str | None = None, *, start: str | None = None, end: str | None = None
    ) -> Outgoing[T]:
        """Do as `push` does, and return the output in columns, of which events or frames are made when they are asked for.

        >>> import streamdsl as sd
        >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
        >>> session.feed([sd.point("a", 3, {"fare": 7}), sd.Cti(20)]).to_pandas()[["kind", "le", "re", "n"]]
             kind  le    re     n
        0  insert   0    10     1
        1     cti  20  <NA>  <NA>
        """
        if start is not None or end is not None:
            events = self._named(events, source, start, end)
        out = Outgoing[T](self._push(events, source), self.unit, self.written.schema, lambda: self.types)
        self._hand_over_late()
        self._is_changing = False; return out  # noqa: E702  # fmt: skip  # no interrupt comes between

    def _push(self, events: Iterable[Event[Any]] | Any, source: str | None) -> list[StepOutput]:
        """Take a batch and return its output. The caller resets `_is_changing` when it hands that out."""
        self._check_open()
        ingress = self._ingress(source)
        name, sent = ingress.name, []
        pushed = events if type(events) is list else self._read(events, ingress)
        with self._lock:
            if self._limits.is_small(pushed):
                for piece in self._staged(ingress, pushed):
                    sent.append(self._step({name: piece}))
                if self._clocks:
                    sent += self._tick()
            else:
                sent = self._limits.push(ingress, pushed)
        if not sent or sent[-1].cti is None:
            self._limits.name_cause(len(pushed), sent)
        else:
            self._limits.events_since_cti = 0
        return self._with_early(sent) if self._early else sent

    def _staged(self, ingress: Ingress, events: Sequence[Event[Any]] | Inserts) -> list[Piece]:
        """Return the pieces of a batch, and commit it."""
        pieces = self._opened(ingress, events)
        ingress.commit()
        return pieces

    def _opened(self, ingress: Ingress, events: Sequence[Event[Any]] | Inserts, stays_open: bool = False) -> list[Piece]:
        """Return the pieces of a batch. A failure before the commit is undone; from then on it is one of the session."""
        self._is_changing = True
        try:
            return ingress.stage(events, stays_open)
        except BaseException:
            self._is_changing = not ingress.roll_back()
            raise

    def load(self, tables: Mapping[str, Bound]) -> None:
        """Take reference data in, whole; what comes of it is returned by the next push, or by the close."""
        self.loaded = tables
        for name, bound in tables.items():
            for events in (bound.whole(), [Cti(INFINITY)]):
                self._early = self._push(events, name)
                self._is_changing = False

    def close(self) -> list[Event[T]]:
        """End every source with `Cti(INFINITY)` and return the output that is left; it then ends with that CTI too.

        Raises `UnboundedOutputError` where that would be too much, and the session has then failed: nothing undoes an end.
        """
        return self.end(INFINITY)

    def end(self, time: int) -> list[Event[T]]:
        """End every source with `Cti(time)` and return the output that is left; the session is then closed."""
        return self.end_with({}, time)

    def end_with(self, last: Mapping[str, Iterable[Event[Any]] | Any], time: int) -> list[Event[T]]:
        """Take the last batches of some sources and end every source, all at once as far as can be; see `push` and `end`."""
        self._check_open()
        time = whole_number(time, "a session ends at a time in ticks, which is")
        if not isinstance(last, Mapping):
            raise QueryError(f"the last batches are given by source, not as {last!r}", hint='end_with({"trips": events}, time)')
        with self._lock:
            sent = self._ended_with(last, time)
        out = output_events(self._with_early(sent), self.unit)
        self._hand_over_late()
        self._closed = True
        self._is_changing = False; return out  # noqa: E702  # fmt: skip  # no interrupt comes between

    def _ended_with(self, last: Mapping[str, Iterable[Event[Any]] | Any], time: int) -> list[StepOutput]:
        sent = []
        ends = dict.fromkeys(self._sources, EMPTY)
        for name, events in last.items():
            ingress = self._ingress(name)
            *before, piece = self._staged(ingress, self._read(events, ingress)) or [Piece(EMPTY, ingress.cti)]
            sent += [self._step({name: each}) for each in before]
            ends[name] = piece.batch
        self._is_changing = True
        self._flush()
        self._waiting = None  # the last step must run, whatever its CTI
        self._end()
        for ingress in self._sources.values():
            ingress.table.advance(time, ingress.origin("the end of the session"))
        sent.append(self._step({name: Piece(batch, max(time, self._sources[name].cti)) for name, batch in ends.items()}))
        return sent

    async def stream(self, source: AsyncIterable[Any]) -> AsyncIterator[Event[T]]:
        """Yield the output of an asynchronous source of events, and of the close when it ends."""
        async for event in source:
            for out in self.push([event]):
                yield out
        for out in self.close():
            yield out

    def trace(self, last: int | None = 10_000, *, sample: tuple[float, Any] | None = None) -> EventTrace:
        """Record the events of this session from now on, and return the trace, which says where answers come from.

        It is a ring of the `last` events, input and output together (None: all). `sample=(0.1, "zone")` records the input of a
        tenth of the keys, by a field or a lambda. Nothing is recorded before, and none after `trace.stop()`; until then a push
        costs about a quarter more (docs/debugger.md). Raises `SessionError` for a session that is traced already.

        >>> import streamdsl as sd
        >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
        >>> trace = session.trace()
        >>> answer, = session.push([sd.point("a", 3, 7)])
        >>> print(trace.why(answer))
        [0, 10) n=1  <- window_aggregate_1: [0, 10) 1 row in a window, tumbling(10)
           count over 1 row gave 1
           [3, 4) 7  <- source:trips: insert 'a' [3, 4)
        """
        from streamdsl.debugger import EventTrace

        self._check_open()
        self.traced = EventTrace.of_session(self, last, sample)
        return self.traced

    def subscribe(self, emit: EmitMode | Emit = "final") -> Subscription[T]:
        """Return the output emitted in another way too, from the same state: a live table and an archive of final rows, say.

        LEs, REs, payloads and CTIs are as `emit` says (docs/semantics.md). It begins with the first push: subscribe before.
        Checkpoints keep it, and `restore` gives it back in `subscriptions`. Raises `SessionError` for a session that has been
        pushed to, and `QueryError` for what one state cannot serve: with `"watermark"` inner windows wait too, so it goes with a
        session of `"watermark"` alone, and a session of `"final"` has no more than final rows.

        >>> import streamdsl as sd
        >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
        >>> final = session.subscribe("final")
        >>> _ = session.push([sd.point("a", 3, 7)]), session.push([sd.point("b", 4, 7), sd.Cti(10)])
        >>> final.pull()
        [Insert(id=RowVersion(id=('window_aggregate_1', 0, 0), version=1), le=0, re=10, payload=Record(n=2)), Cti(time=10)]
        """
        from streamdsl.engine.subscription import Subscriber, Subscription, in_ticks_of

        self._check_open()
        live = [each for each in self._sources.values() if not each.source.table]
        if self.output.events_in or any(each.events_in or each.cti > MIN_TIME for each in live):
            raise SessionError(
                "a subscription begins with the output, and this session has had input already",
                hint="subscribe before the first push",
            )
        subscriber = Subscriber(self._egress_of(in_ticks_of(self, emit)))
        self._subscribers.append(subscriber)
        self.subscriptions.append(Subscription(self, emit, subscriber))
        return self.subscriptions[-1]

    def checkpoint(self, path: str | os.PathLike[str], *, types: Iterable[type] = ()) -> None:
        """Save the session as it stands to a file, from which `query.restore(path)` goes on; the session goes on too.

        What is restored gives the same output as what was never stopped, event by event. The file is written whole or not at all.
        Raises `SessionError` for a session that has failed, is closed, or has queries attached to it, and `CheckpointError` for a
        file that cannot be written, and for values that cannot be saved: also of classes that the query does not declare, and
        that are not in `types`, which `restore` must then be given too (docs/checkpoints.md).

        >>> import streamdsl as sd, tempfile
        >>> query = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
        >>> session = query.open()
        >>> session.push([sd.point("a", 3, {"fare": 7})])
        [Insert(id=('window_aggregate_1', 0, 0), le=0, re=10, payload=Record(n=1))]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     session.checkpoint(f"{folder}/trips")
        ...     again = query.restore(f"{folder}/trips")
        >>> again.push([sd.point("b", 4, {"fare": 9})])[0]
        Retract(id=('window_aggregate_1', 0, 0), le=0, re=10, re_new=0, payload=Record(n=1))
        """
        from streamdsl.engine.state.whole_files import write_checkpoint

        write_checkpoint(path, self.snapshot(types))

    def snapshot(self, types: Iterable[type] = (), trust: bool = False) -> bytes:
        """Return what `checkpoint` writes to a file; where it will be restored with `trust`, values of any class."""
        self._check_open()
        if self._attached:
            names = ", ".join(labels(each.written)[id(each.written)] for each in self._attached)
            raise SessionError(
                f"queries are attached to the session, which are not saved: {names}",
                hint="detach them, and attach them again after restore",
            )
        from streamdsl.engine.state.checkpoint import snapshot

        with self._lock, collector_paused():
            self._flush_for_reading()
            for stream in (*self.published.values(), self.output):
                stream.flush()
            return snapshot(self, types, trust)

    def timeline(self) -> Timeline:
        """Return a picture of the events that a trace has recorded: those of each source above the output, on one axis.

        What a retraction has taken away is struck through, CTIs are lines (docs/pictures.md). A session keeps no events unless
        `trace` asks for them: without it this raises `SessionError`.

        >>> import streamdsl as sd
        >>> trips = sd.source("trips")
        >>> session = trips.tumbling_window(10).aggregate(n=sd.count()).open()
        >>> trace = session.trace(last=1_000)
        >>> _ = session.push([sd.interval("a", 1, 4, "A"), sd.edge_start("b", 3, "B"), sd.Cti(10)])
        >>> _ = session.push([sd.edge_end("b", 3, 15), sd.Cti(20)])
        >>> session.timeline()
        time  : 0    5    10   15   20
        trips :
          A   : -[==)
          B   : ---[===========)xxxxxx  # RE inf -> 15
          cti : ----------|---------|
        output:
          n=2 : [=========)
          n=1 : ----------[=========)
          cti : ----------|---------|
        """
        if self.traced is None:
            raise SessionError(
                "this session has kept none of its events, so there is no timeline",
                hint="session.trace() records them from then on",
            )
        return self.traced.timeline()

    def _picture(self) -> Timeline | None:
        from streamdsl.monitoring.status_view import reach_timeline

        return reach_timeline(self.status()) if self.traced is None else self.timeline()

    def _below(self) -> str:
        from streamdsl.monitoring.status_view import reach_table

        why = self.why_no_output()
        below = f"<p>{escape(why)}</p>" if why else ""
        return reach_table(self.status()) + below + text(tree(self.written, self.written))

    def __repr__(self) -> str:
        status = self.status()
        return f"<Session {status.state}, emit={self.emit!r}: {status}>"

    def status(self, *, sizes: bool = False) -> Status:
        """Return the figures of the session as it stands: events, CTIs, lag, late events, windows; with `sizes` bytes too.

        LEs, REs and CTIs stay, and nothing runs; another thread may ask, and waits for a push that is going on. It is cheap
        but for `sizes`, which walks all state as `stats` does. It works for a session that has failed or is closed.

        >>> import streamdsl as sd
        >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
        >>> _ = session.push([sd.point("a", 3, 7), sd.Cti(5), sd.point("b", 12, 7)])
        >>> status = session.status()
        >>> print(status)
        trips 2 in, CTI 5; output 2 out, CTI 0
        >>> status.lag(status.sources[0]), [each.windows for each in status.operators if each.windows]
        (7, [2])
        """
        from streamdsl.engine.session_status import status_of

        with self._lock:
            return status_of(self, sizes)

    def live(self, *, every: float = 0.5, sizes: bool = True) -> Live:
        """Show the status from now on, in the output of a notebook's cell or in the terminal, until the session is closed.

        It shows rates, CTIs and how far they are behind, state, the newest answers by each way to emit, and late events; LEs, REs
        and CTIs stay. It is shown again every so many seconds, whichever thread pushes, and `stop()` ends it. `sizes` measures
        the bytes of the state, for which pushes wait: at most a fiftieth of the time (docs/live.md).

        >>> import streamdsl as sd
        >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
        >>> with session.live():
        ...     _ = session.push([sd.point("a", 3, 7), sd.Cti(5)])
        """
        from streamdsl.monitoring.live import follow_session

        self.keep_newest()
        return follow_session(self, every, sizes)

    @functools.cached_property
    def types(self) -> Hints:
        """The types of the output's fields, as far as the query tells."""
        return output_types(self.written)

    @functools.cached_property
    def parts(self) -> Parts:
        """The parts of the plan, to which saved state refers."""
        return Parts(self.plan)

    @functools.cached_property
    def described(self) -> list[tuple[str, str]]:
        """What each part of the plan is: a session is restored by a query of which it is the same."""
        return self.parts.described()

    def rejected(self, forget: bool = False) -> Rejections:
        """Return the events that the sources have dropped or adjusted, each with the CTI that it broke.

        Its length is their number, and `counts` says how many there were by source and reason; of very many it holds the newest
        10,000. With `forget` the next call returns later ones only.
        """
        parts = [each.table.forget_rejected() if forget else each.rejected for each in self._sources.values()]
        return all_rejected(parts).dated(self.unit)

    def on_late(self, handle: Callable[[list[Rejected]], object]) -> None:
        """Have `handle` called with the events that a push has dropped or adjusted, all of them, before its output is returned.

        Each says which CTI it broke, and where that came from. They are handed over once and not kept, but for the sample of
        `rejected()`; a checkpoint holds none, and a session that is restored is told anew. If the function raises, the
        session has failed. Raises `QueryError` for what cannot be called.

        >>> import streamdsl as sd
        >>> trips = sd.source("trips", progress=sd.Progress.slack(2), on_violation="drop")
        >>> session, late = trips.tumbling_window(10).aggregate(n=sd.count()).open("final"), []
        >>> session.on_late(late.extend)
        >>> session.push([sd.point("a", 13, 7), sd.point("b", 9, 5)])
        [Cti(time=10)]
        >>> print(late[0].event.id, late[0].cti, late[0].origin)
        b 11 Progress.slack(2) of 'trips', push 1
        """
        if not callable(handle):
            raise QueryError(f"late events are handed to a function, not to {handle!r}", hint="session.on_late(late.extend)")
        self._take_late = handle
        for ingress in self._sources.values():
            ingress.table.late.keep_all()

    def _hand_over_late(self) -> None:
        """Hand over the late events of a push to the function that takes them."""
        if self._late:
            late = self._late[:]
            self._late.clear()
            if self._take_late is not None:
                dated([each.event for each in late], self.unit)
                self._take_late(late)

    def release(self) -> None:
        """Let go of what else runs for this session: it is not used any more."""

    def keep_newest(self) -> None:
        """Keep the newest rows that leave from now on, for the status."""
        self._newest = {} if self._newest is None else self._newest

    def keep_all_rejected(self) -> None:
        """Keep every event that is dropped or adjusted from now on, for who takes them with `rejected(forget=True)`."""
        for ingress in self._sources.values():
            ingress.table.keep_all_rejected()

    @property
    def sources(self) -> list[str]:
        """The names of the query's sources."""
        return list(self._sources)

    @property
    def tables(self) -> list[str]:
        """The names of the sources that are reference data."""
        return [name for name, ingress in self._sources.items() if ingress.source.table]

    @property
    def unit(self) -> Unit | None:
        """The unit of time of the sources, None if it is not known."""
        declared = common_unit(*(ingress.unit for ingress in self._sources.values()))
        found = {ingress.reader.found for ingress in self._sources.values()} - {None}
        # Integers are ticks of any unit, so they decide only if there are no dates.
        return declared or next(iter(sorted(found - {"tick"}, key=str)), "tick" if found else None)

    @property
    def _unit_now(self) -> Unit | None:
        """The unit by which events print their times; of a single source found without a look at the others."""
        only = self._only
        if only is None or len(self._sources) > 1:
            return self.unit
        return only.unit if only.unit is not None or not only.reader.has_dates else only.reader.found

    def _with_early(self, sent: list[StepOutput]) -> list[StepOutput]:
        early, self._early = self._early, []
        return [*early, *sent]

    def _feeds(self) -> Mapping[str, SourceStats]:
        return self._sources

    def _step(self, pieces: Mapping[str, Piece]) -> StepOutput:
        if self._importers or self._idling:
            pieces = {**pieces, **self._imported(pieces)}
        if self._waiting is None:
            return super()._step(pieces)
        if not self._attached and self._waiting.take(pieces):
            self._ctis.update({name: piece.cti for name, piece in pieces.items()})
            return StepOutput([], None)
        # Which of several equal keys is shown (1 or 1.0) depends on what is remembered: then all rows must run.
        runs_all = self._attached or any(table.remembered for table in self._graph.key_tables)
        closing = None if runs_all else self._waiting.close(pieces)
        if closing is not None:
            self._graph.keeps_keys = True
            sent = super()._step(dict.fromkeys(pieces, closing))
            self._graph.keeps_keys = False
            self._ctis.update({name: piece.cti for name, piece in pieces.items()})
            if any(table.remembered for table in self._graph.key_tables):
                self._flush()
            return sent
        self._flush()
        sent = super()._step(pieces)
        self._wait()
        return sent

    def _waits(self) -> Sequence[Any]:
        return self._early, self._waiting

    def _wait(self) -> None:
        if self._waiting is not None:
            self._waiting.wait(MIN_TIME if self._egress.n_held else min(self._ctis.values(), default=MIN_TIME))

    def _flush_pending(self) -> None:
        piece = None if self._waiting is None or self._failure is not None else self._waiting.release()
        if piece is not None:
            super()._step(dict.fromkeys(self._ctis, piece))

    def _tick(self) -> list[StepOutput]:
        """Advance the sources that follow a clock, and return the output."""
        pieces = {}
        for name in self._clocks:
            ingress = self._sources[name]
            if (cti := _time_of_day(ingress)) > ingress.cti:
                ingress.advance(cti, ingress.origin(str(ingress.source.progress)))
                pieces[name] = Piece(EMPTY, cti)
        return [self._step(pieces)] if pieces else []

    def _time_of_day(self) -> int:
        """Return the latest CTI that the sources' clocks give now."""
        return max((_time_of_day(self._sources[name]) for name in self._clocks), default=MIN_TIME)

    def _imported(self, pieces: Mapping[str, Piece]) -> dict[str, Piece]:
        """Return the CTIs that sources import from those of others, or follow while they are idle."""
        imported = {}
        for name in self._importers:
            ingress = self._sources[name]
            policy = ingress.source.progress
            if policy is not None and policy.source in pieces and name not in pieces:
                cti = pieces[policy.source].cti
                source, made_by, push = self._sources[policy.source].table.origin
                origin = source, f"{made_by}, by {policy}", push
                ingress.advance(cti if cti in (MIN_TIME, INFINITY) else add_time(cti, -ingress.import_delay), origin)
                imported[name] = Piece(EMPTY, ingress.cti)
        for name in self._idling:
            if name not in pieces:
                imported |= self._followed(name, {**pieces, **imported})
        return imported

    def _followed(self, name: str, pieces: Mapping[str, Piece]) -> dict[str, Piece]:
        """Return the CTI of a source that is too far behind the furthest of the others, if it is."""
        ingress = self._sources[name]
        others = {each: other for each, other in self._sources.items() if each != name and not other.source.table}
        reached = {each: pieces[each].cti if each in pieces else self._ctis[each] for each in others}
        furthest = max((each for each in reached if reached[each] < INFINITY), key=reached.__getitem__, default=None)
        if furthest is None or ingress.idle is None or reached[furthest] <= ingress.cti + ingress.idle:
            return {}
        source, made_by, push = others[furthest].table.origin
        ingress.advance(reached[furthest] - ingress.idle, (source, f"{made_by}, by idle_after of {name!r}", push))
        return {name: Piece(EMPTY, ingress.cti)}

    def _read(self, pushed: Any, ingress: Ingress) -> Sequence[Event[Any]] | Inserts:
        if isinstance(pushed, (list, Inserts)):
            return pushed
        if is_frame(pushed):
            return read_frame(pushed, ingress.schema, check_unit(ingress.unit), ingress.source.lifetime_columns)
        if not isinstance(pushed, Iterable):
            raise QueryError(f"push takes a list of events, or a frame, not a {type(pushed).__name__}", hint="push([event])")
        return list(pushed)

    def _named(self, frame: Any, source: str | None, start: str | None, end: str | None) -> Sequence[Event[Any]] | Inserts:
        """Return the rows of a frame whose columns of lifetimes are named."""
        ingress = self._ingress(source)
        if not is_frame(frame):
            raise QueryError(
                f"start= and end= name columns of a frame, and a {type(frame).__name__} has none", hint="events have their times"
            )
        lives = LifetimeColumns(ingress.source.lifetime_columns.start if start is None else start, end)
        return read_frame(frame, ingress.schema, check_unit(ingress.unit), lives)

    def _ingress(self, source: str | None) -> Ingress:
        if source is None and self._only is not None:
            return self._only
        if not isinstance(source, str) or source not in self._sources:
            what = "the push does not say for which source it is" if source is None else f"there is no source {source!r}"
            raise QueryError(
                f"{what}; the query's sources are: {', '.join(self._sources)}", hint='session.push(events, source="name")'
            )
        return self._sources[source]


def _time_of_day(ingress: Ingress) -> int:
    """Return the CTI that the clock of a source gives now."""
    policy = ingress.source.progress
    return MIN_TIME if policy is None else policy.time_of_day(ingress.unit)


def _kind(ingress: Ingress) -> str | None:
    """Return the kind of a source's progress policy, None if it has none."""
    return None if ingress.source.progress is None else ingress.source.progress.kind
