"""Why-not: what would have to be different for an answer that is missing to be there, each remedy tried by a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal, TypeAlias

from streamdsl.debugger.answers import Explanation, event_text, listed, row_text
from streamdsl.debugger.choosing import matching
from streamdsl.debugger.input_rows import InputRow
from streamdsl.debugger.lineage import copies
from streamdsl.debugger.moment import Moment
from streamdsl.debugger.searching import smallest
from streamdsl.denote import evaluate
from streamdsl.denote.environment import Environment, holds
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import reads_lifetime
from streamdsl.plan.labels import labels
from streamdsl.plan.node import GroupApply, Node, Where, Windowed, sources
from streamdsl.temporal import INFINITY, CHTRow, Event, Lifetime, Rejected, Unit, format_time
from streamdsl.windows import Output

Wanted: TypeAlias = Callable[..., object] | CHTRow[Any]
Kind: TypeAlias = Literal["late", "cti", "operator", "input"]
_MOST_INPUTS: Final = 500
"""The most input rows that are left out one by one."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that would have to be different.

    `kind` is "late" (an event that the source `name` dropped or adjusted counts as it was sent: `rejected` has the CTI that it
    broke), "cti" (the source `name`, which is at `cti`, ends), "operator" (the operator `name` lets the `rows` of its input
    pass), or "input" (an input row of the source `name`, with its `events`, does not come).
    """

    kind: Kind
    name: str
    rows: tuple[CHTRow[Any], ...] = ()
    events: tuple[Event[Any], ...] = ()
    rejected: tuple[Rejected, ...] = ()
    cti: int | None = None
    says: str = ""

    def text(self, unit: Unit | None) -> str:
        """Return the remedy as people read it."""
        if self.kind == "late":
            broke = "; ".join(
                f"{event_text(r.event, unit)} broke the CTI {format_time(r.cti, unit)}, {r.reason}" for r in self.rejected
            )
            return f"source:{self.name} had taken {row_text(self.rows[0], unit)} as it was sent: {broke}"
        if self.kind == "cti":
            at = "has sent no CTI" if self.cti is None else f"is at the CTI {format_time(self.cti, unit)}"
            return f"the CTI of {self.name!r} went on: it {at}"
        if self.kind == "operator":
            rows = ", ".join(listed([row_text(row, unit) for row in self.rows]))
            return f"{self.name} let {rows or 'its rows'} pass{f': {self.says}' if self.says else ''}"
        events = "; ".join(event_text(event, unit) for event in self.events)
        return f"source:{self.name} had not sent {row_text(self.rows[0], unit)}: {events}"


@dataclass(frozen=True, slots=True, repr=False)
class WhyNot(Explanation):
    """Why an answer is missing: with all `remedies` together it would be there, `rows`; with less of them it would not.

    Without remedies nothing that was tried gives it; `says` then tells what was tried, or why no input could give it.
    """

    remedies: tuple[Remedy, ...]
    rows: tuple[CHTRow[Any], ...]
    says: str
    unit: Unit | None

    def __repr__(self) -> str:
        return f"WhyNot({', '.join(f'{each.kind} {each.name}' for each in self.remedies) or 'no remedy'})"

    def __str__(self) -> str:
        if not self.remedies:
            return self.says
        rows = ", ".join(listed([row_text(row, self.unit) for row in self.rows]))
        return "\n".join(["it would be there if", *(f"   {each.text(self.unit)}" for each in self.remedies), f"then: {rows}"])


Change: TypeAlias = tuple[Kind, Any]
"""A remedy while it is searched: the number of an input row, the name of a source, or the label of an operator."""


class Search:
    """The search for remedies at one moment of a recording."""

    def __init__(self, moment: Moment, wanted: Wanted) -> None:
        self.moment = moment
        self.wants = matching(wanted, "why_not") if callable(wanted) else lambda row: copies([row], wanted) > 0
        self.names = labels(moment.plan)
        self.lets_pass = {self.names[id(node)]: node for node in moment.plan.walk_all() if node.removes is not None}

    def changes(self, kind: Kind) -> list[Change]:
        """Return the changes of a kind that there are."""
        if kind == "late":
            return [("late", row.number) for row in self.moment.rows if row.rejected]
        if kind == "cti":
            ended = {name for name, cti in self.moment.inputs.ctis.items() if cti == INFINITY}
            return [] if self.moment.end is not None else [("cti", name) for name in self._sources() if name not in ended]
        if kind == "operator":
            return [("operator", name) for name in self.lets_pass]
        return [("input", row.number) for row in self.moment.rows if row.le < row.re]

    def answers(self, changes: Iterable[Change]) -> list[CHTRow[Any]]:
        """Return the rows that are wanted, of the run with some changes."""
        plan, rows, ended = self.changed(changes)
        try:
            found = self.moment.output(rows, plan, ended=ended)
        except StreamDslError:  # what is let pass may be what the query's code cannot take
            return []
        return [row for row in found if self.wants(row)]

    def changed(self, changes: Iterable[Change]) -> tuple[Node, list[InputRow], list[str]]:
        """Return plan, rows and sources that have ended, with some changes."""
        chosen = set(changes)
        open_ = {id(node) for name, node in self.lets_pass.items() if ("operator", name) in chosen}
        plan = without_operators(self.moment.plan, open_)[id(self.moment.plan)]
        rows = [row.as_sent if ("late", row.number) in chosen else row for row in self.moment.without(_numbers(chosen))]
        return plan, rows, [name for name in self._sources() if ("cti", name) in chosen]

    def holds(self, changes: Iterable[Change]) -> bool:
        """Say whether the answer is there with some changes."""
        return bool(self.answers(changes))

    def found(self) -> list[Change] | None:
        """Return changes that give the answer and of which each is needed; None if none is found."""
        kinds: list[list[Change]] = [self.changes("late"), self.changes("cti"), self.changes("operator")]
        kinds = [each for each in kinds if each]
        for size in range(1, len(kinds) + 1):
            for chosen in combinations(kinds, size):
                together = [change for kind in chosen for change in kind]
                if self.holds(together):
                    return smallest(together, self.holds)
                if size == 1 and (alone := next((c for c in together if self.holds([c])), None)) is not None:
                    return [alone]
        pairs = combinations(self.changes("operator"), 2)
        return next((list(pair) for pair in pairs if self.holds(pair)), None)

    def by_inputs(self) -> list[Change] | None:
        """Return input rows without which the answer is there: one, or a few; None if there are none."""
        inputs = self.changes("input")[:_MOST_INPUTS]
        alone = next((change for change in inputs if self.holds([change])), None)
        if alone is not None:
            return [alone]
        # Rows that are in the way together are mostly of one time, or of one payload.
        for part in _parts(inputs, {row.number: row for row in self.moment.rows}):
            if self.holds(part):
                return smallest(part, self.holds)
        return None

    def are_blocked(self, changes: Sequence[Change]) -> bool:
        """Say whether operators stop rows for the sake of other rows: then these are the cause, if they can be named."""
        return all(kind == "operator" and self.lets_pass[what].removes == "rows with others" for kind, what in changes)

    def remedies(self, changes: Sequence[Change]) -> tuple[Remedy, ...]:
        """Return what changes mean."""
        rows = {row.number: row for row in self.moment.rows}
        passing = self._passing(changes)
        return tuple(self._remedy(kind, what, rows, passing) for kind, what in changes)

    def _remedy(self, kind: Kind, what: Any, rows: dict[int, InputRow], passing: dict[str, list[CHTRow[Any]]]) -> Remedy:
        if kind == "late":
            row = rows[what]
            return Remedy("late", row.source, (row.as_sent.row,), tuple(row.events), tuple(row.rejected))
        if kind == "cti":
            return Remedy("cti", what, cti=self.moment.inputs.ctis.get(what))
        if kind == "operator":
            return Remedy("operator", what, tuple(passing.get(what, ())), says=self.lets_pass[what].describe())
        return Remedy("input", rows[what].source, (rows[what].row,), tuple(rows[what].events))

    def _passing(self, changes: Sequence[Change]) -> dict[str, list[CHTRow[Any]]]:
        """Return the rows that operators must let pass: those in the lineage of the answer that do not pass as it is."""
        opened = {name: self.lets_pass[name] for kind, name in changes if kind == "operator"}
        if not opened:
            return {}
        _, rows, ended = self.changed(changes)
        become = without_operators(self.moment.plan, {id(node) for node in opened.values()})
        plan = become[id(self.moment.plan)]
        found: dict[str, list[CHTRow[Any]]] = {}
        lineage = self.moment.lineage_of(plan, rows, ended)
        at = next((n for n, row in enumerate(lineage.rows[id(plan)]) if self.wants(row)), None)
        if at is None:
            return {}
        inside = {id(become[id(node)]): (name, node) for name, node in opened.items()}
        for cause in lineage.of(plan, at).walk():
            name, node = inside.get(id(cause.node), ("", None))
            if node is not None and not (isinstance(node, Where) and self._passes(node, cause)):
                found.setdefault(name, []).append(cause.row)
        return found

    def _passes(self, node: Where, cause: Any) -> bool:
        scope = Environment(evaluate, {}, names=self.names, key=cause.key)
        try:
            return holds(node, scope, node.predicate, cause.row)
        except StreamDslError:
            return False

    def _sources(self) -> list[str]:
        return list(sources(self.moment.plan))


def _numbers(changes: Iterable[Change]) -> set[int]:
    return {what for kind, what in changes if kind == "input"}


def _parts(inputs: list[Change], rows: dict[int, InputRow]) -> Iterator[list[Change]]:
    """Yield groups of input rows that may be in the way together: of one source, and of one source with one payload."""
    for key in (lambda row: (row.source, repr(row.payload)), lambda row: row.source):
        groups: dict[Any, list[Change]] = {}
        for change in inputs:
            groups.setdefault(key(rows[change[1]]), []).append(change)
        yield from groups.values()


def without_operators(plan: Node, opened: set[int]) -> dict[int, Node]:
    """Return what each node of a plan becomes if some operators let all rows of their first input pass as they are."""
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            made = node.map_below(visit)
            done[id(node)] = made.inputs[0] if id(node) in opened else made
        return done[id(node)]

    visit(plan)
    return done


def why_not(moment: Moment, wanted: Wanted) -> WhyNot:
    """Return why an answer is missing."""
    search, unit = Search(moment, wanted), moment.recording.unit
    there = search.answers([])
    if there:
        raise QueryError(f"the answer is not missing: {row_text(there[0], unit)}", hint="trace.why(row) says where it comes from")
    changes = search.found()
    if changes is None or search.are_blocked(changes):
        changes = search.by_inputs() or changes
    if changes is not None:
        return WhyNot(search.remedies(changes), tuple(search.answers(changes)), "", unit)
    return WhyNot((), (), _nothing(search, wanted), unit)


def _nothing(search: Search, wanted: Wanted) -> str:
    """Return what is said where no remedy is found."""
    if not callable(wanted):
        refusing, windows = refused_by(search.moment.plan, wanted), without_window(search.moment.plan, wanted)
        if refusing is not None:
            name = search.names[id(refusing)]
            return f"no input could give it: {name} lets no such row pass: {describe(refusing.predicate)}"
        if windows is not None:
            shown = windows.windows.describe(windows.unit)
            return f"no input could give it: {search.names[id(windows)]} has no such window: {shown}"
    late, ctis, operators = (len(search.changes(kind)) for kind in ("late", "cti", "operator"))
    inputs = min(len(search.changes("input")), _MOST_INPUTS)
    tried = {"late rows as they were sent": late, "sources at their ends": ctis, "filters and joins open": operators}
    lines = [f"   {what}: {n}" for what, n in {**tried, "input rows left out": inputs}.items() if n]
    return "\n".join(["no recorded input gives it, whatever was changed", *lines])


def refused_by(plan: Node, row: CHTRow[Any]) -> Where | None:
    """Return a filter between the output and the first operator that changes payloads that lets no row with this payload pass."""
    node, scope = plan, Environment(evaluate, {})
    while node.passes_payload and len(node.inputs) == 1:
        if isinstance(node, Where) and not reads_lifetime(node.predicate):
            try:
                if not holds(node, scope, node.predicate, row):
                    return node
            except StreamDslError:
                return node
        node = node.inputs[0]
    return None


def without_window(plan: Node, row: CHTRow[Any]) -> Windowed | None:
    """Return the operator that gives the output its lifetimes, if these are windows of a grid, of which the row's is none."""
    node = plan
    while isinstance(node, GroupApply) or node.passes_lifetime:
        node = node.body if isinstance(node, GroupApply) else node.inputs[0]
    if not isinstance(node, Windowed) or not node.windows.by_clock or node.output is not Output.ALIGN:
        return None
    life = Lifetime(row.le, row.re)
    try:
        return None if life in node.windows.over([life]) else node
    except StreamDslError:
        return node
