"""Running queries: pieces of the sources in, events of the output out, and on to the queries that are attached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic

from typing_extensions import TypeVar

from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.egress import FinalEgress, HoldingEgress, SmoothEgress, SpeculativeEgress
from streamdsl.engine.lower import Options, lower
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.operator import EmitPolicy, Piece, figures
from streamdsl.engine.operators.group_apply import GroupEnterOperator
from streamdsl.engine.published import Published
from streamdsl.engine.row_batch import size_of
from streamdsl.engine.step_output import StepOutput
from streamdsl.errors import QueryError, SessionError, TimestampViolation, UnboundedOutputError, UserCodeError, reason
from streamdsl.plan.node import Node
from streamdsl.temporal import INFINITY, MIN_TIME, Event, Insert, Unit, to_duration
from streamdsl.temporal.completion import Completed
from streamdsl.temporal.time import format_time

if TYPE_CHECKING:
    from streamdsl.engine.attached import Attached
    from streamdsl.engine.diagnose import SourceStats
    from streamdsl.engine.subscription import Subscriber
    from streamdsl.stream import Stream

OUTPUT: Final = "(output)"
"""The name of the output among figures, and of the source that reads it in a query that is attached."""
NEWEST: Final = 5
"""The number of rows that are kept of each egress for who looks at them."""
T = TypeVar("T", default=Any)
U = TypeVar("U")


class RunningQuery(Completed, ABC, Generic[T]):
    """A plan that runs. Its sources and its output may be published: then other queries are attached to them, and leave again.

    `plan` runs, `written` is the plan before it was rewritten; `published` (the sources, by name) and `output` hold what is live
    if so, and their `stats()` say how much that is.
    """

    _internal = frozenset({"written"})

    def __init__(
        self, plan: Node, written: Node, emit: EmitMode | Emit, options: Options | None = None, until: int = INFINITY
    ) -> None:
        mode = mode_of(emit)
        self._graph = lower(plan, EmitPolicy(by_end=mode == "watermark", until=until, final=mode == "final"), options)
        self.plan = plan
        self._egress = self._egress_of(emit)
        self._ctis = dict.fromkeys(self._graph.sources, MIN_TIME)
        self._now = MIN_TIME
        self._failure: BaseException | None = None
        self._is_changing = False
        self._closed = False
        self.written = written
        self.published = {name: Published() for name in self._graph.sources}
        self.output = Published()
        self._publishes = _publishes(options or {})
        self._attached: list[Attached[Any]] = []
        self._subscribers: list[Subscriber] = []
        self._newest: dict[int, deque[Insert[Any]]] | None = None
        """The newest rows that have left by each egress, where somebody looks."""

    def attach(
        self, query: Stream[U], emit: EmitMode | Emit = "speculative", *, engine_options: Mapping[str, Any] | None = None
    ) -> Attached[U]:
        """Start another query on the streams of this one as they stand, and return it.

        Its sources are this query's, by name; a part of it that equals this query reads this query's output. Each stream begins
        at its current CTI, with its live rows (RE >= CTI) as insertions; LEs and REs stay. Raises `SessionError` where this
        query was not opened with `engine_options={"attach": "on"}` (what it keeps for others costs something), `QueryError` or
        `SchemaError` for a source that is not here or declares something else, `UnitError` for another unit of time
        (docs/composition.md).

        >>> import streamdsl as sd
        >>> trips = sd.source("trips")
        >>> session = trips.where(lambda e: e.fare > 5).open(engine_options={"attach": "on"})
        >>> _ = session.push([sd.interval("a", 1, 4, {"fare": 7}), sd.interval("b", 2, 9, {"fare": 12}), sd.Cti(5)])
        >>> dear = session.attach(trips.where(lambda e: e.fare > 10))
        >>> dear.pull()
        [Insert(id='b', le=2, re=9, payload=Record(fare=12)), Cti(time=5)]
        >>> session.push([sd.interval("c", 6, 8, {"fare": 20})])
        [Insert(id='c', le=6, re=8, payload=Record(fare=20))]
        >>> session.detach(dear)
        [Insert(id='c', le=6, re=8, payload=Record(fare=20))]
        """
        from streamdsl.engine.attached import attached

        self._check_open()
        self._flush()
        if not self._publishes:
            raise SessionError(
                "this session keeps nothing for other queries, so none can be attached to it",
                hint='open it with engine_options={"attach": "on"}',
            )
        new = attached(self, query, emit, engine_options)
        self._attached.append(new)
        return new

    def detach(self, attached: Attached[U]) -> list[Event[U]]:
        """Stop a query that is attached to this one, and return the output that it has left; no CTI ends it.

        Raises `SessionError` for a query that is not attached here.
        """
        if attached not in self._attached:
            raise SessionError("this query is not attached here", hint="detach what attach(query) has returned, and once")
        self._attached.remove(attached)
        return attached.leave()

    def stats(self) -> dict[str, dict[str, int]]:
        """Return the figures of each source, of each operator by its label in `explain()`, and of the output.

        `state_bytes` is what each holds in memory, found by walking it (large collections in samples): the ids that a source
        knows and the events that it has rejected, what modules keep, and for the output what waits to be sent. What two hold is
        counted where it comes first.
        """
        if not self._is_changing:
            self._flush_for_reading()
        with collector_paused():
            return self._figures(MemoryMeter([*self._graph.operators, *self._graph.key_tables]))

    def _figures(self, held: MemoryMeter | None) -> dict[str, dict[str, int]]:
        """Return the figures, with bytes if there is a meter."""

        def sized(found: dict[str, int], *parts: Any) -> dict[str, int]:
            return found if held is None else {**found, "state_bytes": held.bytes_of(parts)}

        figures = {}
        for name, feed in self._feeds().items():
            figures[f"source:{name}"] = sized(feed.stats(), feed, self.published[name])
        for operator in self._graph.operators:
            inside = [vars(operator.inside)] if isinstance(operator, GroupEnterOperator) else []
            found = sized(operator.stats(), vars(operator), *inside)
            figures[operator.label] = _together(figures.get(operator.label), found)
        return {**figures, OUTPUT: sized(self._output_stats(), self._egress, self.output, *self._subscribers, *self._waits())}

    def _output_stats(self) -> dict[str, int]:
        """Return the figures of the output. Its events are the rows that wait to be emitted."""
        cti, count = min(self._ctis.values(), default=MIN_TIME), self.output.events_in
        return figures(count, count, cti, self._egress.cti, self._egress.n_held)

    def _waits(self) -> Sequence[Any]:
        """Return the input that is buffered here, outside of operators and output."""
        return ()

    def why_no_output(self) -> str | None:
        """Return what holds the output back, None if nothing does: an input whose CTI is behind, an operator, or `emit`.

        It names rows that are held back, then the operator nearest to the output whose CTI is behind its input's, or the source
        that is behind the others; and the filter that has let nothing pass. Nothing runs.

        >>> import streamdsl as sd
        >>> session = sd.source("x").union(sd.source("y")).open()
        >>> session.push([sd.point("a", 7, "A"), sd.Cti(9)], source="x")
        [Insert(id=(0, 'a'), le=7, re=8, payload='A')]
        >>> session.why_no_output()
        "source 'y' has sent no CTI yet; give it one, or a progress policy (progress=sd.Progress.slack(...))"
        >>> session.push([sd.Cti(9)], source="y")
        [Cti(time=9)]
        >>> session.why_no_output() is None
        True
        """
        if not self._ctis or self._closed or self._failure is not None or self._is_changing:
            return None
        self._flush()
        return self._why()

    def _why(self) -> str | None:
        from streamdsl.engine.diagnose import Diagnosis

        return str(Diagnosis(self._graph, self._egress, self._feeds(), self._ctis, self.unit)) or None

    @property
    def ctis(self) -> Mapping[str, int]:
        """How far each source has come."""
        return self._ctis

    @property
    @abstractmethod
    def unit(self) -> Unit | None:
        """The unit of time of the sources, None if it is not known."""

    @abstractmethod
    def _feeds(self) -> Mapping[str, SourceStats]:
        """Return the figures of the sources, by name."""

    def _egress_of(self, emit: EmitMode | Emit) -> SpeculativeEgress | FinalEgress:
        """Return the egress of a way to emit."""
        if isinstance(emit, Emit):
            emit = emit.in_ticks(self.plan.unit)
            if emit.every is not None:
                return SmoothEgress(emit.every, to_duration(emit.max_delay))
            if mode_of(emit) != "final":
                return HoldingEgress(to_duration(emit.hold))
        if mode_of(emit) == "final":
            return FinalEgress()
        return SpeculativeEgress(self._lets_ids_go(), not any(each.brings_rows_back for each in self._graph.operators))

    def _lets_ids_go(self) -> bool:
        """Say whether the output forgets an id whenever the source does: its CTI always is the source's, and no RE moves."""
        sources = self._graph.sources.values()
        is_obeyed = all(source.on_violation == "error" for source in sources)  # else a row may end later than its sender said
        return len(sources) == 1 and is_obeyed and all(operator.passes_ctis for operator in self._graph.operators)

    def _step(self, pieces: Mapping[str, Piece]) -> StepOutput:
        """Run one piece of some sources through the plan, and return the output."""
        for name, (_, cti) in pieces.items():
            self._ctis[name] = cti
        try:
            return self._sent(pieces, self._graph.step(pieces, self._ctis))
        except (UserCodeError, TimestampViolation) as error:
            self._failure = error.with_times(partial(format_time, unit=self.unit))
            raise self._failure.with_traceback(error.__traceback__) from error.__cause__
        except UnboundedOutputError as error:
            self._failure = error.in_unit(self.unit)
            raise self._failure.with_traceback(error.__traceback__) from error.__cause__
        except BaseException as error:
            self._failure = error
            raise

    def _flush(self) -> None:
        """Run the buffered input: something is about to read the query."""
        was, self._is_changing = self._is_changing, True
        self._flush_pending()
        self._is_changing = was

    def _flush_for_reading(self) -> None:
        """Do what `_flush` does, and bring the operators' state into its columnar form, so that reading it changes nothing."""
        was, self._is_changing = self._is_changing, True
        self._flush_pending()
        for operator in self._graph.operators:
            operator.flush_deferred()
        self._is_changing = was

    def _flush_pending(self) -> None:
        """Run the input that waits, where a subclass lets it wait."""

    def _sent(self, pieces: Mapping[str, Piece], outputs: Sequence[Piece]) -> StepOutput:
        """Publish a step, and return its output."""
        (out,) = outputs
        self._publish(pieces, out)
        for each in self._subscribers:
            if len(sent := self._through(each.egress, out, pieces)):
                each.waiting.append(sent)
        return self._through(self._egress, out, pieces)

    def _through(self, egress: SpeculativeEgress | FinalEgress, out: Piece, pieces: Mapping[str, Piece]) -> StepOutput:
        """Return what leaves by an egress, which counts it."""
        batch, cti = out
        if isinstance(egress, SpeculativeEgress):
            sent = egress.send(batch, cti)
        else:
            final = self._final_frontier(egress)
            seen = self._seen(pieces) if egress.sees_input else ()
            sent = egress.send(batch, cti, final, *seen)
        if rows := len(sent.rows):
            egress.events_out += rows
            egress.retractions_out += sent.retractions()
            if self._newest is not None:
                kept = self._newest.setdefault(id(egress), deque(maxlen=NEWEST))
                kept.extend(sent.last_insertions(NEWEST))
        return sent

    def _final_frontier(self, egress: FinalEgress) -> int:
        """Return the RE up to which rows of the output are final. It depends on the CTIs of the sources only."""
        ctis = list(self._ctis.values())
        if ctis == egress.final_at:
            return egress.final
        egress.final_at = ctis
        return self._graph.final_frontier(self._ctis)

    def _seen(self, pieces: Mapping[str, Piece]) -> tuple[int, int]:
        """Return the high water of the input, and the number of its changes."""
        for batch, cti in pieces.values():
            self._now = max(self._now, cti, batch.high_water)
        return self._now, sum([size_of(batch) for batch, _ in pieces.values()])

    def _publish(self, pieces: Mapping[str, Piece], out: Piece) -> None:
        """Keep the step for queries that are attached later, and hand it to those that are attached; else count it only."""
        if not self._publishes:
            for name, piece in pieces.items():
                self.published[name].count(piece)
            self.output.count(out)
            return
        for name, piece in pieces.items():
            self.published[name].take(piece)
        self.output.take(out)
        for attached in self._attached:
            attached.take(pieces, out)

    def _end(self) -> None:
        """Tell every operator that the next step is the last, those of attached queries too."""
        for operator in self._graph.operators:
            operator.ending = True
        for attached in self._attached:
            attached._end()
            attached._closed = True

    def _check_open(self) -> None:
        if self._failure is not None or self._is_changing:
            why = reason(self._failure) if self._failure else "a call was interrupted, or is not at its end yet"
            hint = "go on from its last checkpoint with query.restore(path), or open a new one; rejected() and stats() still work"
            raise SessionError(f"the session has failed: {why}", hint=hint)
        if self._closed:
            raise SessionError("the session is closed")


def _publishes(options: Options) -> bool:
    """Say whether a query keeps what queries that are attached later need."""
    if (chosen := options.get("attach", "off")) not in ("on", "off"):
        raise QueryError(
            f'engine_options["attach"] is "on" or "off", not {chosen!r}', hint="leave it out for a session of its own"
        )
    return chosen == "on"


def _together(entered: dict[str, int] | None, left: dict[str, int]) -> dict[str, int]:
    """Return the figures of a group-apply, which runs as two operators: one where rows enter it, one where they leave."""
    if entered is None:
        return left
    added = {"windows", "events", "state_bytes", "udm_calls"} & entered.keys()
    sizes = {name: entered[name] + left[name] for name in added}
    return {**entered, **sizes, "out": left["out"], "output_cti": left["output_cti"]}
