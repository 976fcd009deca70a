"""What a session does about excessive pushes: they are undone, and output that is held back without end is warned of early."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from streamdsl.engine.egress import FinalEgress
from streamdsl.engine.ingress import Ingress
from streamdsl.engine.lower import Graph
from streamdsl.engine.operator import Operator, Piece, RowOperator
from streamdsl.engine.step_output import StepOutput
from streamdsl.engine.window_budget import PER_ROW, Arrivals, Backup, most_windows
from streamdsl.errors import HeldOutputWarning, UnboundedOutputError
from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Insert

if TYPE_CHECKING:
    from streamdsl.engine.query_session import Session

_FEW: Final = 16
"""Up to this many events are looked at one by one."""
_ENDLESS_ROW: Final = Arrivals(1, 0, INFINITY)
"""A row without end: an operator that makes many windows of it is limited."""
_LOOK: Final = 1024
"""After this many events their reach is computed again."""
WARN: Final = 100_000
"""A session warns once when so many rows and windows are held, after as many events that came since the output CTI advanced."""


class Limits:
    """The operators of a session whose number of windows grows with the durations of rows."""

    def __init__(self, session: Session[Any]) -> None:
        self._session = session
        self._most = most_windows(session.options)
        makers = [each for each in session._graph.operators if each.max_new_windows(_ENDLESS_ROW)]
        self._makers = makers if session.undoes else []
        self._sources = {id(each): _source_of(session._graph, each) for each in makers}
        self._latest = MIN_TIME
        self._reach = self._left = -1
        self.events_since_cti = 0
        """The number of events since the output CTI advanced."""
        self._counts_from = WARN
        """The number of such events from which on it is counted what is held. That takes long, so it doubles each time."""
        self._is_named = False

    def is_small(self, pushed: Any) -> bool:
        """Say whether a push certainly makes no more windows than allowed."""
        if not self._makers:
            return True
        if type(pushed) is not list or len(pushed) > _FEW or len(pushed) > self._left:
            return False
        reach = self._reach
        latest = limit = self._latest
        limit += reach
        if self._session._clocks:
            latest = max(latest, self._session._time_of_day())
            if latest > limit:
                return False
        for event in pushed:
            if type(event) is Insert:
                time = event.le
                if type(time) is not int or type(event.re) is not int or event.re - time > reach:
                    return False
            elif type(event) is Cti:
                time = event.time
            else:
                return False
            if type(time) is not int or time > limit:
                return False
            if time > latest:
                latest = time
        self._latest = latest
        self._left -= len(pushed)
        return True

    def push(self, ingress: Ingress, pushed: Any) -> list[StepOutput]:
        """Run a push that may make many windows, and the clocks after it. It is undone if it raises `UnboundedOutputError`."""
        session = self._session
        pieces = session._opened(ingress, pushed, stays_open=True)
        ctis = [ingress.cti, session._time_of_day(), *(piece.cti for piece in pieces)]
        arrivals = Arrivals.of([piece.batch for piece in pieces], max(ctis))
        if not arrivals.rows:  # windows that waited for this time may open
            arrivals.start = min([arrivals.end, *session._ctis.values()])
        if self._could_make(arrivals, ingress.name) > max(self._most, PER_ROW * arrivals.rows):
            return self._carefully(ingress, pieces)
        ingress.commit()
        self._extrapolate(arrivals.end)
        return [*(session._step({ingress.name: piece}) for piece in pieces), *session._tick()]

    def _could_make(self, arrivals: Arrivals, source: str | None) -> float:
        """Return an upper bound of the windows that an operator makes. If it is behind others, its input is not known."""
        other = Arrivals(1, arrivals.start, arrivals.end)
        return max(
            each.max_new_windows(arrivals if self._sources[id(each)] in (source, None) else other) for each in self._makers
        )

    def _extrapolate(self, time: int) -> None:
        """Compute how far the next events may reach without a closer look at them."""
        self._latest = max(self._latest, time)
        self._left, self._reach = _LOOK, 2**40
        while self._reach:
            if self._could_make(Arrivals(_LOOK, self._latest - self._reach, self._latest + self._reach), None) <= self._most:
                return
            self._reach //= 4

    def _carefully(self, ingress: Ingress, pieces: Sequence[Piece]) -> list[StepOutput]:
        """Run pieces that may make too many windows."""
        session = self._session
        session._flush()
        before = self._before(ingress)
        try:
            sent = [*(session._step({ingress.name: piece}) for piece in pieces), *session._tick()]
            session._flush()  # buffered input must not fail later
        except UnboundedOutputError as error:
            if before is None:
                ingress.commit()
                raise
            before.back()
            session._failure = None
            session._is_changing = not ingress.roll_back()
            error.add_note("The push is undone, and the session goes on.")
            raise
        except BaseException:
            ingress.commit()
            raise
        ingress.commit()
        self._left = -1
        return sent

    def _before(self, ingress: Ingress) -> Backup | None:
        """Return a backup of the session; None if it cannot be copied, or if attached queries would have read the push."""
        session, graph = self._session, self._session._graph
        if session._attached:
            return None
        objects: list[Any] = [*graph.key_tables, *graph.operators]
        objects += [*session.published.values(), session.output, session._egress, *session._subscribers]
        objects += [each for each in session._sources.values() if each is not ingress]
        objects += [] if session._waiting is None else [session._waiting]
        own = {name: getattr(session, name) for name in ("_ctis", "_now", "_early")}
        try:
            return Backup(objects, [session.plan, *session.parts.all], session, own)
        except Exception:
            return None

    def name_cause(self, came: int, sent: Sequence[StepOutput]) -> None:
        """Warn, once, if much has arrived and is held, and the output CTI does not advance."""
        if any(each.cti is not None for each in sent):
            self.events_since_cti = 0
            return
        self.events_since_cti += came
        if self.events_since_cti < self._counts_from or self._is_named:
            return
        self._counts_from = 2 * self.events_since_cti
        session = self._session
        session._flush()
        held = _held(session._graph, session._egress)
        why = session._why() if held >= WARN else None
        if why is not None:
            self._is_named = True
            warnings.warn(f"{held} rows and windows are held in memory: {why}", HeldOutputWarning, stacklevel=4)


def _held(graph: Graph, egress: Any) -> int:
    rows = egress.n_held if isinstance(egress, FinalEgress) else 0
    return int(rows) + sum(operator.state()["windows"] for operator in graph.operators)


def _source_of(graph: Graph, operator: Operator) -> str | None:
    """Return the source that an operator reads directly, an empty name if there is none."""
    (at,) = next(stage.inputs for stage in graph.stages if stage.operator is operator)
    while isinstance(graph.stages[at].operator, RowOperator):
        (at,) = graph.stages[at].inputs
    return graph.stages[at].source
