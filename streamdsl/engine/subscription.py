"""Subscriptions: the output of a running query, emitted in another way than the query's own, from the same state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.engine.egress import FinalEgress, SpeculativeEgress
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.step_output import StepOutput, output_events
from streamdsl.errors import QueryError, UnitError
from streamdsl.plan.units import in_calendar
from streamdsl.temporal import Event
from streamdsl.temporal.completion import Completed

if TYPE_CHECKING:
    from streamdsl.engine.query_session import Session

T = TypeVar("T", default=Any)


class Subscriber:
    """What a subscription holds: the egress that its rows leave by, and the output that nobody has pulled yet."""

    def __init__(self, egress: SpeculativeEgress | FinalEgress) -> None:
        self.egress = egress
        self.waiting: list[StepOutput] = []


class Subscription(Completed, Generic[T]):
    """The output of a session, emitted in a way of its own; made by `session.subscribe(emit)`, read by `pull` or `fetch`.

    >>> import streamdsl as sd
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> final = session.subscribe("final")
    >>> session.push([sd.point("a", 3, 7)])
    [Insert(id=('window_aggregate_1', 0, 0), le=0, re=10, payload=Record(n=1))]
    >>> final.pull()
    []
    >>> _ = session.push([sd.point("b", 4, 7), sd.Cti(10)])
    >>> final.pull()
    [Insert(id=RowVersion(id=('window_aggregate_1', 0, 0), version=1), le=0, re=10, payload=Record(n=2)), Cti(time=10)]
    """

    _internal = frozenset({"subscriber"})

    def __init__(self, session: Session[T], emit: EmitMode | Emit, subscriber: Subscriber) -> None:
        self.emit = emit
        """The way in which its rows are emitted."""
        self.subscriber = subscriber
        self._session = session

    def __repr__(self) -> str:
        waiting, held = sum(map(len, self.subscriber.waiting)), self.subscriber.egress.n_held
        return f"<Subscription emit={self.emit!r}: {waiting:,} events to pull, {held:,} rows held back>"

    def pull(self) -> list[Event[T]]:
        """Return the output since the last call; what is never pulled is kept, in checkpoints too."""
        return output_events(self._taken(), self._session.unit)

    def fetch(self) -> Outgoing[T]:
        """Do as `pull` does, and return the output in columns, as `session.feed` does."""
        session = self._session
        return Outgoing(self._taken(), session.unit, session.written.schema, lambda: session.types)

    def _taken(self) -> list[StepOutput]:
        taken, self.subscriber.waiting = self.subscriber.waiting, []
        return taken


def in_ticks_of(session: Session[Any], emit: EmitMode | Emit) -> EmitMode | Emit:
    """Return a way to emit for a subscription to a session, with durations in its ticks. Raises `QueryError`.

    How far windows open early is decided in the operators, which all subscriptions share: with `"speculative"` they send all,
    with `"watermark"` what the watermark has passed, with `"final"` what is final. Who gets less can be served from more.
    """
    own, mode = mode_of(session.emit), mode_of(emit)
    if own == "final" or mode not in ("final", own):
        why = "send final rows only" if own == "final" else f"{'wait' if own == 'watermark' else 'do not wait'} for the watermark"
        raise QueryError(
            f"a session with emit={session.emit!r} has no subscription with emit={emit!r}: its windows, inner ones too, {why}",
            hint='open("speculative") serves "speculative", Emit(...) and "final"; open("watermark") "watermark" and "final"',
        )
    if not isinstance(emit, Emit):
        return emit
    if in_calendar(session.plan, *emit.durations).unit != session.plan.unit:
        raise UnitError(
            f"the durations of {emit!r} are those of a calendar, and the session counts time in ticks, as far as its sources say",
            hint='say it at the source: sd.source(name, unit="us")',
        )
    return emit.in_ticks(session.plan.unit)
