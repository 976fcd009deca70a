"""A fluent windowed query under a profile: its source's rows are the tuples, its aggregation the output of each report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from streamdsl.denote import denote
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.io.binding import Bound
from streamdsl.papers.secret.profile import Profile
from streamdsl.papers.secret.profile_trace import Trace
from streamdsl.papers.secret.simulation import Reported, Simulation, fed
from streamdsl.papers.secret.tuples import HEARTBEAT, Tuple, check_order, read
from streamdsl.plan.node import Group, GroupApply, Node, Select, Source, Where, WindowAggregate
from streamdsl.running import Times, under
from streamdsl.temporal import CHT, INFINITY, CHTRow, Cti, Insert
from streamdsl.temporal.payload import fields_of
from streamdsl.windows import Hopping


@under.register(Profile)
def run_as_of(profile: Profile, plan: Node, bindings: Mapping[str, Bound], times: Times) -> Trace:
    """Run a plan under a profile; raises `QueryError` for what is no aggregation over hopping windows of a source's rows.

    The window is one of all rows; where these are grouped, it is what a report holds that is divided.
    """
    windows, rows, source = _parts(plan)
    size, slide = windows.size, windows.hop
    tuples = fed(profile, read(_tuples(rows, source, bindings[source.source], times)))
    running = Simulation(profile, size, slide)
    placed = [report for each in tuples for report in running.push(_placed(each))]
    outputs = [_output(plan, windows, rows, report) for report in placed]
    reports = [report._replace(values=[row.payload for row in report.values]) for report in placed]
    return Trace(profile, size, slide, running.t0, tuples, reports, outputs)


def _parts(plan: Node) -> tuple[Hopping, Node, Source]:
    """Return the windows, what is in them, and its source."""
    node = plan
    while isinstance(node, Select):
        node = node.input
    made = node.body if isinstance(node, GroupApply) else node
    if not isinstance(made, WindowAggregate) or not isinstance(made.windows, Hopping):
        raise QueryError(
            f"under a profile runs an aggregation over hopping or tumbling windows of time, not {_kind(made)}",
            hint="query = stream.where(...).hopping_window(size, hop).aggregate(...), then query.as_of(profile)",
        )
    below = rows = node.input if isinstance(node, GroupApply) and isinstance(made.input, Group) else made.input
    while isinstance(below, (Where, Select)):
        below = below.input
    if not isinstance(below, Source):
        raise QueryError(f"under a profile the windows read where and select of a source, not {below.name}", hint="run it before")
    return made.windows, rows, below


def _kind(node: Node) -> str:
    return f"one over {node.windows!r}" if isinstance(node, WindowAggregate) else node.name


def _tuples(rows: Node, source: Source, bound: Bound, columns: Times) -> Iterator[Tuple]:
    """Yield the tuples in order of arrival: what the query's `where` leaves; a CTI is a heartbeat."""
    last: int | None = None
    for number, event in enumerate(bound.events(), 1):
        if isinstance(event, Cti):
            if event.time != INFINITY and not any(columns):
                yield Tuple(HEARTBEAT, event.time, number, number)
            continue
        if not isinstance(event, Insert):
            raise QueryError(f"the engines of SECRET know no retractions, but one came: {event!r}", hint="as_of wants insertions")
        found = _times(event, number, columns)
        if last is not None:
            check_order(last, found)
        last = found.t_sys
        for row in denote(rows, {source.source: CHT([CHTRow(event.le, event.re, event.payload)])}):
            yield found._replace(value=row.payload)


def _times(event: Insert[Any], number: int, columns: Times) -> Tuple:
    """Return an event as a tuple without a value; without columns it has its LE, its number, and a batch of its own."""
    fields = dict(fields_of(event.payload))
    for name in columns:
        if name is not None and name not in fields:
            raise FieldNotFound(name, fields)
    t_app, t_sys, bid = columns
    arrival = number if t_sys is None else fields[t_sys]
    return Tuple(None, event.le if t_app is None else fields[t_app], arrival, arrival if bid is None else fields[bid])


def _placed(tuple: Tuple) -> Tuple:
    """Return a tuple whose value is a row: a point at its application time."""
    if tuple.value is HEARTBEAT:
        return tuple
    return tuple._replace(value=CHTRow(tuple.t_app, tuple.t_app + 1, tuple.value))


def _output(plan: Node, windows: Hopping, rows: Node, report: Reported) -> Any:
    """Return the result of a query for the rows of a report, in a window that ends at its time; of groups a list.

    Of no rows it makes None, or no group.
    """
    start = min([report.t + 1 - windows.size, *(row.le for row in report.values)])
    size = report.t + 1 - start
    source = Source("reported", rows.schema, plan.unit)
    changed, grouped = _replaced(plan, source, Hopping(size, size, start))
    found = [row.payload for row in denote(changed, {source.source: CHT(report.values)})]
    return found if grouped else found[0] if found else None


def _replaced(plan: Node, source: Source, windows: Hopping) -> tuple[Node, bool]:
    """Return a plan over other rows and windows, and whether it groups them."""
    if isinstance(plan, GroupApply):
        assert isinstance(plan.body, WindowAggregate)
        return replace(plan, input=source, body=replace(plan.body, windows=windows)), True
    if isinstance(plan, WindowAggregate):
        return replace(plan, input=source, windows=windows), False
    assert isinstance(plan, Select)
    below, grouped = _replaced(plan.input, source, windows)
    return replace(plan, input=below), grouped
