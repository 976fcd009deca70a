"""Lineage: from a row of an operator's output to the rows of its inputs that made it, by the operator's definition.

One rule for each family of operators; an operator without a rule of its own is asked which of its input rows it needs
(`searched`). What a rule names is checked against the definition of the operator on these rows alone, and completed where
that does not give the row; so a new operator has a lineage before it has a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from streamdsl.debugger.answers import Cause, ModuleCall, rows_text
from streamdsl.debugger.input_rows import InputRow
from streamdsl.debugger.searching import smallest
from streamdsl.denote import DENOTATIONS
from streamdsl.denote.environment import Environment, project
from streamdsl.denote.grouping import groups
from streamdsl.denote.windowed import arguments, results
from streamdsl.errors import StreamDslError, UnboundedOutputError, shortened
from streamdsl.plan.node import Group, GroupApply, Node, Source, WindowAggregate, WindowApply
from streamdsl.temporal import CHT, INFINITY, CHTRow, Lifetime, Unit, fields_of, payload_key
from streamdsl.udm.invoke import EXCLUDED, MemberRow, aggregate, seen
from streamdsl.windows import Clip, Output, Windows

T = TypeVar("T")
Place: TypeAlias = tuple[int, int]
"""A row of an operator's inputs: which input, and which of its rows."""
Rows: TypeAlias = Sequence[CHTRow[Any]]
_NEAR, _ALL = range(2)


def same(row: CHTRow[Any]) -> tuple[Any, ...]:
    """Return what two rows have in common if they are equal."""
    return row.le, row.re, payload_key(row.payload)


def copies(rows: Iterable[CHTRow[Any]], row: CHTRow[Any]) -> int:
    """Return how often a row is among others."""
    near = [each for each in rows if each.le == row.le and each.re == row.re]
    return sum(payload_key(each.payload) == payload_key(row.payload) for each in near) if near else 0


_Members: TypeAlias = tuple[list[CHTRow[Any]], list[int], Any]


class IndexedRow(NamedTuple):
    """A row of an input with its place, so that windows hand it on."""

    le: int
    re: int
    payload: Any
    place: int


@dataclass(slots=True)
class Made:
    """How an operator made a row: of which rows, and what it did."""

    places: list[Place]
    did: str = ""
    window: Lifetime | None = None
    calls: tuple[ModuleCall, ...] = ()


@dataclass(slots=True)
class RowQuestion:
    """The `nth` of equal rows in an operator's output, from 0, and all rows of its inputs."""

    node: Any
    scope: Environment
    row: CHTRow[Any]
    nth: int
    inputs: Sequence[Rows]
    unit: Unit | None

    def made_of(self, places: Iterable[Place]) -> int:
        """Return how often the operator makes the row of some rows alone; 0 if its code fails on them."""
        parts: list[list[CHTRow[Any]]] = [[] for _ in self.inputs]
        for input, index in places:
            parts[input].append(self.inputs[input][index])
        try:
            found = self.bounded(
                lambda scope: DENOTATIONS[type(self.node)](self.node, scope, *(CHT(part, self.unit) for part in parts))
            )
        except StreamDslError:
            return 0
        return copies(found, self.row)

    def suffices(self, places: Iterable[Place]) -> bool:
        """Say whether some rows alone give the row."""
        return self.made_of(places) > self.nth

    def bounded(self, ask: Callable[[Environment], T]) -> T:
        """Return what a definition says; where rows without end make windows without end, of windows up to the row's end."""
        try:
            return ask(self.scope)
        except UnboundedOutputError:
            ends = [row.le for rows in self.inputs for row in rows] + [self.row.le, self.row.re]
            last = max(end for end in ends if end < INFINITY) + 1
            return ask(replace(self.scope, until=last))

    def places(self, reach: int) -> list[Place]:
        """Return the rows that live while the row does, or meet it; or all."""
        le, re = self.row.le, self.row.re
        return [
            (input, index)
            for input, rows in enumerate(self.inputs)
            for index, row in enumerate(rows)
            if reach == _ALL or (row.le <= re and le <= row.re)
        ]

    def completed(self, known: Sequence[Place]) -> list[Place] | None:
        """Return some rows with as few others as are needed to give the row; None if all together do not."""
        if self.suffices(known):
            return list(known)
        for reach in (_NEAR, _ALL):
            taken = set(known)
            more = [place for place in self.places(reach) if place not in taken]
            if self.suffices([*known, *more]):
                return [*known, *smallest(more, lambda part: self.suffices([*known, *part]))]
        return None


def searched(asked: RowQuestion) -> Made | None:
    """The fewest rows that an operator needs to make the row, first among those that live at its time."""
    found = asked.completed([])
    return None if found is None else Made(found, asked.node.describe())


def row_wise(asked: RowQuestion) -> Made | None:
    """The one row of which the operator makes it."""
    life, before = (asked.row.le, asked.row.re), 0
    # Those of the same lifetime first, then those that live while it does: most are not even looked for.
    places = (at for far in range(3) for at in asked.places(_ALL) if _distance(asked.inputs[at[0]][at[1]], life) == far)
    for place in places:
        before += asked.made_of([place])
        if before > asked.nth:
            came = f"input {place[0] + 1}" if len(asked.inputs) > 1 else asked.node.describe()
            return Made([place], came)
    return None


def _distance(row: CHTRow[Any], life: tuple[int, int]) -> int:
    return 0 if (row.le, row.re) == life else 1 if row.le <= life[1] and life[0] <= row.re else 2


def windowed(asked: RowQuestion) -> Made | None:
    """The members of the window whose result it is, and the rows that make the window one."""
    node: WindowAggregate | WindowApply = asked.node
    rows = [IndexedRow(*row, index) for index, row in enumerate(asked.inputs[0])]
    if node.windows.by_clock:
        first, last = asked.row.le - node.windows.longest, asked.row.re + node.windows.longest
        rows = [row for row in rows if row.le <= last and first <= row.re]
    before = 0
    for window, members in asked.bounded(lambda scope: _candidates(node, rows, asked.row, scope.until)):
        given = [MemberRow(*row[:3], arguments(node, asked.scope, CHTRow(*row[:3]))) for row in members]
        found = results(node, asked.scope, window, given)
        before += copies((CHTRow(*each) for each in found), asked.row)
        if before > asked.nth:
            places = replace(asked, nth=0).completed([(0, row.place) for row in members])
            did = ", ".join([f"{rows_text(len(members))} in a window", node.windows.describe(node.unit), *_policies(node)])
            return None if places is None else Made(places, did, window, _calls(node, window, given, len(found)))
    return None


def _candidates(
    node: WindowAggregate | WindowApply, rows: list[IndexedRow], row: CHTRow[Any], until: int
) -> list[tuple[Lifetime, list[IndexedRow]]]:
    """Return the windows that may have given a row, with their members: of these windows alone, if their kind allows it."""
    windows = node.windows
    if type(windows).divide is not Windows.divide:
        return [(window, members) for window, members in windows.divide(rows, until) if _may_give(node, window, row)]
    lives = [Lifetime(each.le, each.re) for each in rows]
    # A result that is aligned to its window says which window that is.
    periods = [Lifetime(row.le, row.re)] if node.output is Output.ALIGN else windows.over(lives, until)
    chosen = [window for window in periods if _may_give(node, window, row)]
    return [(w, [each for each, life in zip(rows, lives, strict=True) if windows.belongs(life, w)]) for w in chosen]


def _policies(node: WindowAggregate | WindowApply) -> list[str]:
    """Return the policies of windows that are not the usual ones, as text."""
    clip = [] if node.clip is Clip.NONE else [f"clip {node.clip.value}"]
    return clip if node.output is Output.ALIGN else [*clip, f"output {node.output.value}"]


def _may_give(node: WindowAggregate | WindowApply, window: Lifetime, row: CHTRow[Any]) -> bool:
    if node.output is Output.ALIGN:
        return tuple(window) == (row.le, row.re)
    return window.re == row.le if node.output is Output.POINT_AT_END else window.le <= row.le or node.output is Output.CLIP


def _calls(node: WindowAggregate | WindowApply, window: Lifetime, given: list[MemberRow], n: int) -> tuple[ModuleCall, ...]:
    """Return the calls of modules, with what they were given and what they gave."""
    calls = []
    for i, agg in enumerate(node.aggregates):
        members = [member for member in given if member.arguments[i] is not EXCLUDED]
        sensitive = agg.function.time_sensitive
        of = seen(agg.function, members, i, window, node.clip) if sensitive else [member.arguments[i] for member in members]
        gave = f"{n} results" if isinstance(node, WindowApply) else aggregate(agg.function, i, given, window, node.clip)
        calls.append(ModuleCall(agg.function.label, tuple(of), gave))
    return tuple(calls)


RULES: Mapping[type[Node], Callable[[RowQuestion], Made | None]] = {WindowAggregate: windowed, WindowApply: windowed}
"""The rules of single operators. Row-wise operators share `row_wise`, all others `searched`."""


def made(asked: RowQuestion) -> Made | None:
    """Return how an operator made a row, None if its definition does not."""
    rule = RULES.get(type(asked.node)) or (row_wise if asked.node.row_wise else searched)
    return rule(asked)


@dataclass(slots=True)
class Lineage:
    """The rows at each operator of a plan, and how each came to be there.

    In the body of a group-apply `outside` is the lineage around it, and `members` are the places of the group's rows.
    """

    scope: Environment
    rows: Mapping[int, Rows]
    unit: Unit | None
    sources: Mapping[str, Sequence[InputRow]]
    outside: Lineage | None = None
    group: tuple[Node, Sequence[int]] | None = None
    _known: dict[tuple[int, int], Cause] = field(default_factory=dict)
    _groups: dict[int, list[_Members]] = field(default_factory=dict)
    _bodies: dict[tuple[int, int], dict[int, Rows] | None] = field(default_factory=dict)

    def of(self, node: Node, index: int) -> Cause:
        """Return the cause that a row of an operator's output is."""
        if self.outside is not None and id(node) in self.outside.rows:
            return self.outside.of(node, index)
        if isinstance(node, Group):
            return self._around(node, index)
        if (id(node), index) not in self._known:
            self._known[id(node), index] = self._found(node, index)
        return self._known[id(node), index]

    def _around(self, node: Group, index: int) -> Cause:
        """Return the cause of a row of the enclosing group, or of one around it."""
        assert self.outside is not None
        assert self.group is not None
        input, members = self.group
        if node.level < max(self.scope.groups):
            return self.outside._around(node, index)
        return self.outside.of(input, members[index])

    def _found(self, node: Node, index: int) -> Cause:
        row, label = self.rows[id(node)][index], self.scope.label(node)
        if isinstance(node, Source):
            return Cause(label, node, row, "", input=self.sources[node.source][index])
        nth = copies(self.rows[id(node)][:index], row)
        inputs = [self._rows_of(below) for below in node.inputs]
        if isinstance(node, GroupApply):
            return self._of_group(node, row, nth, inputs[0]) or self._of_all(node, row, inputs)
        how = made(RowQuestion(node, self.scope, row, nth, inputs, self.unit))
        if how is None:
            return self._of_all(node, row, inputs)
        below = tuple(self.of(node.inputs[input], at) for input, at in how.places)
        return Cause(label, node, row, how.did, below, how.window, self.scope.key, how.calls)

    def _rows_of(self, node: Node) -> Rows:
        """Return the rows at an operator, here or around."""
        found: Lineage | None = self
        while found is not None and id(node) not in found.rows:
            found = found.outside
        assert found is not None
        return found.rows[id(node)]

    def _of_all(self, node: Node, row: CHTRow[Any], inputs: Sequence[Rows]) -> Cause:
        """Return the cause of a row that the definition does not give of these rows: then all of them may be."""
        below = tuple(self.of(node.inputs[input], at) for input, rows in enumerate(inputs) for at in range(len(rows)))
        return Cause(self.scope.label(node), node, row, "of all its rows, as far as is known", below)

    def _of_group(self, node: GroupApply, row: CHTRow[Any], nth: int, rows: Rows) -> Cause | None:
        """Return the cause of a row of a group: that of the group's own row, in the body."""
        level, before = node.input.level + 1, 0
        found, shown = self._groups_of(node, rows), {payload_key(value) for _, value in fields_of(row.payload)}
        # A row that shows the key of a group is looked for there first.
        for number, (members, places, _) in sorted(enumerate(found), key=lambda each: each[1][2] not in shown):
            scope = self.scope.inside(level, project(node, self.scope, node.key, members[0]), CHT(members, self.unit))
            known = self._in_group(node, number, scope, row)
            if known is None:
                continue
            for index, inner in enumerate(known[id(node.body)]):
                if (inner.le, inner.re) != (row.le, row.re):
                    continue
                before += copies([inner._replace(payload=project(node, scope, node.projection, inner))], row)
                if before > nth:
                    inside = Lineage(scope, known, self.unit, self.sources, self, (node.input, places))
                    did = f"in the group {shortened(scope.key)}"
                    return Cause(self.scope.label(node), node, row, did, (inside.of(node.body, index),), key=scope.key)
        return None

    def _groups_of(self, node: GroupApply, rows: Rows) -> list[_Members]:
        """Return the rows of each group, their places among all, and the group's key."""
        if id(node) not in self._groups:
            history = CHT(rows, self.unit)  # in the same order, but the rows may be other objects
            place = {id(each): index for index, each in enumerate(history)}
            found = groups(node, self.scope, history) if rows else []
            self._groups[id(node)] = [
                (members, [place[id(each)] for each in members], payload_key(project(node, self.scope, node.key, members[0])))
                for members in found
            ]
        return self._groups[id(node)]

    def _in_group(self, node: GroupApply, number: int, scope: Environment, row: CHTRow[Any]) -> dict[int, Rows] | None:
        """Return the rows at each operator of a group's body: once for all its rows, if they have ends."""
        key = id(node), number
        if key not in self._bodies:
            try:
                self._bodies[key] = self._evaluated(node.body, scope, None)
            except UnboundedOutputError:
                return self._evaluated(node.body, scope, row)
        return self._bodies[key]

    def _evaluated(self, body: Node, scope: Environment, row: CHTRow[Any] | None) -> dict[int, Rows] | None:
        """Return the rows at each operator of a body, for one group; None if its definition fails.

        Where rows without end make windows without end it is up to a row, and without one raises `UnboundedOutputError`.
        """
        found: dict[int, CHT[Any]] = {}
        for node in body.walk():
            outer = self._outer(node)
            inputs = [found[id(below)] for below in node.inputs]
            if outer is not None:
                found[id(node)] = CHT(outer, self.unit)
                continue

            def ask(within: Environment, node: Node = node, inputs: Sequence[CHT[Any]] = inputs) -> CHT[Any]:
                return DENOTATIONS[type(node)](node, within, *inputs)

            try:
                if row is None:
                    found[id(node)] = ask(scope)
                else:
                    asked = RowQuestion(node, scope, row, 0, [each.rows for each in inputs], self.unit)
                    found[id(node)] = asked.bounded(ask)
            except UnboundedOutputError:
                if row is None:
                    raise
                return None
            except StreamDslError:
                return None
        return {key: rows.rows for key, rows in found.items()}

    def _outer(self, node: Node) -> Rows | None:
        found: Lineage | None = self
        while found is not None:
            if id(node) in found.rows:
                return found.rows[id(node)]
            found = found.outside
        return None
