"""Attached queries: a query that starts on the streams of another while that is running (paper 001, section I)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeVar

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.ingress import Ingress
from streamdsl.engine.opened_plan import OpenedPlan
from streamdsl.engine.operator import Piece
from streamdsl.engine.running_query import OUTPUT, RunningQuery
from streamdsl.engine.step_output import StepOutput, output_events
from streamdsl.errors import QueryError, SchemaError, SessionError, UnitError, reason
from streamdsl.plan.node import Group, Node, Source, sources
from streamdsl.plan.parameters import settled, with_sources
from streamdsl.plan.units import in_calendar, in_unit
from streamdsl.rewrite import with_equal_parts
from streamdsl.temporal import INFINITY, Event, Unit, common_unit

if TYPE_CHECKING:
    from streamdsl.engine.diagnose import SourceStats
    from streamdsl.io.binding import Bound
    from streamdsl.stream import Stream

T = TypeVar("T", default=Any)


class Attached(RunningQuery[T]):
    """A query that was attached to a running one: `pull()` gives its output.

    Made by `session.attach(query)`. An error of its own ends it alone; when the query that it is attached to closes, so does it.
    """

    _internal = frozenset({"leave", "take"})

    def __init__(self, opened: OpenedPlan, unit: Unit | None, replay: Mapping[str, Piece]) -> None:
        super().__init__(opened.plan, opened.written, opened.emit, opened.options)
        self._unit = unit
        self._waiting: list[StepOutput] = [self._step({name: replay[name] for name in self.published})]

    def pull(self) -> list[Event[T]]:
        """Return the output since the last pull, first what came of the rows that were live at the beginning.

        Output that is never pulled is kept. Raises `SessionError` after the last output where the query has failed.
        """
        out = output_events(self._waiting, self.unit)
        if not out and self._failure is not None:
            raise SessionError(
                f"the attached query has failed: {reason(self._failure)}", hint="detach it; the others go on"
            ) from self._failure
        self._waiting = []; return out  # noqa: E702  # fmt: skip  # no interrupt comes between

    def take(self, pieces: Mapping[str, Piece], output: Piece) -> None:
        """Take a step of the query that this one is attached to: pieces of its sources, and of its output."""
        mine = {name: piece for name, piece in {**pieces, OUTPUT: output}.items() if name in self.published}
        if not mine or self._failure is not None:
            return
        try:
            sent = self._step(mine)
        except Exception:
            return  # `pull` raises it: the query that feeds this one, and the others, go on
        if len(sent):
            self._waiting.append(sent)

    def leave(self) -> list[Event[T]]:
        """Be stopped, and return the output that has not been pulled."""
        self._closed = True
        out, self._waiting = output_events(self._waiting, self.unit), []
        return out

    @property
    def unit(self) -> Unit | None:
        """The unit of time of the sources, None if it was not known when the query was attached."""
        return self._unit

    def _lets_ids_go(self) -> bool:
        return False  # the output of another query may have an id twice

    def _feeds(self) -> Mapping[str, SourceStats]:
        return self.published


def attached(host: RunningQuery[Any], query: Stream[T], emit: EmitMode | Emit, options: Mapping[str, Any] | None) -> Attached[T]:
    """Return a query on the streams of a running one as they stand."""
    written = settled(_plan_of(query))
    unit = _common_unit(host, in_calendar(written, *emit.durations) if isinstance(emit, Emit) else written)
    theirs = sources(in_unit(host.written, unit))
    plan = _reading_output(written, host.written, unit)
    tables = {name: _read(node, query._bindings[name]) for name, node in _tables(plan, theirs, query._bindings).items()}
    opened = OpenedPlan.of(with_sources(plan, theirs), emit, options)._replace(written=written)
    published = {name: stream.replay() for name, stream in host.published.items()}
    return Attached(opened, unit, {**tables, **published, OUTPUT: host.output.replay()})


def _reading_output(plan: Node, part: Node, unit: Unit | None) -> Node:
    """Return a plan that reads the output of a running query where it has that as a part, the same or an equal one."""
    output = Source(OUTPUT, part.schema, part.unit)
    return with_equal_parts(in_unit(with_equal_parts(plan, part, output), unit), in_unit(part, unit), in_unit(output, unit))


def _tables(plan: Node, theirs: Mapping[str, Source], own: Mapping[str, Bound]) -> dict[str, Source]:
    """Return the tables that the query alone reads; raise for a source that it cannot have."""
    tables = {}
    for node in plan.walk():
        if not isinstance(node, Source) or node.source == OUTPUT:
            continue
        if node.source in theirs:
            _check_fits(node, theirs[node.source])
        elif node.table and node.source in own:
            tables[node.source] = node
        else:
            raise QueryError(
                f"the query that is to be attached reads {node.source!r}, which does not run here; "
                f"there are: {', '.join(theirs)}, and the output of the running query",
                hint="open a session of a query that reads both, or bind the source: query.bind(name=other_query)",
            )
    return tables


def _plan_of(query: Stream[Any]) -> Node:
    plan = getattr(query, "_node", None)
    if not isinstance(plan, Node):
        raise QueryError(f"attach takes a query, not {query!r}", hint="for example session.attach(trips.where(...))")
    if any(isinstance(node, Group) for node in plan.walk()):
        raise QueryError("this query is the inside of group_by(...).apply(...), and runs only as a part of it")
    return plan


def _common_unit(host: RunningQuery[Any], plan: Node) -> Unit | None:
    if host.unit is None and plan.unit is not None:
        raise UnitError(
            f"the query counts time in {plan.unit}, and nothing has said yet in which unit the running one does",
            hint=f'say it at the source: sd.source(name, unit="{plan.unit}")',
        )
    return common_unit(host.unit, plan.unit)


def _check_fits(source: Source, theirs: Source) -> None:
    """Raise where a source declares something else than the running one of its name."""
    if source.payload not in (None, theirs.payload):
        shown = "no payload" if theirs.payload is None else f"the payload {theirs.payload!r}"
        raise SchemaError(f"the source {source.source!r} has payloads of {source.payload!r}; where it runs it declares {shown}")
    if source.progress not in (None, theirs.progress) or source.on_violation not in ("error", theirs.on_violation):
        raise QueryError(
            f"the source {source.source!r} runs already, with progress={theirs.progress!r}, on_violation={theirs.on_violation!r}",
            hint="leave both out of the query that is attached",
        )


def _read(table: Source, bound: Bound) -> Piece:
    """Return reference data that the attached query alone reads."""
    (piece,) = Ingress(table, table.time_unit or bound.unit).stage(bound.whole())
    return Piece(piece.batch, INFINITY)
