"""Plans as text: per operator its expressions, columns and shape, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from streamdsl.expr import describe
from streamdsl.expr.nodes import is_opaque
from streamdsl.plan.labels import labels
from streamdsl.plan.node import (
    AlterLifetime,
    AsofJoin,
    Calendar,
    Chop,
    ClipDuration,
    ClipInterval,
    Extend,
    Group,
    GroupApply,
    Join,
    Match,
    Matching,
    Node,
    Quantize,
    Scan,
    Select,
    SelectMany,
    Shift,
    ToEdges,
    TwoInputs,
    Where,
    WindowAggregate,
    WindowApply,
    Windowed,
)
from streamdsl.plan.pattern import PatternStep
from streamdsl.plan.properties import constant_duration, expressions, points_only
from streamdsl.temporal import INFINITY, format_time
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.incremental import describe_state
from streamdsl.udm.window_lambda import OpaqueWindow
from streamdsl.windows import Clip, Output

RUNS: Final[dict[str, Callable[[Node], Mapping[str, str]]]] = {}
"""What says, for an engine by its name, what runs each operator of a plan, by its label: who knows the engines enters it."""


def explain(plan: Node, engine: str = "local") -> str:
    """Return the plan as a tree, the output first, with what runs each operator on an engine; what is read again is named only.

    >>> from streamdsl.plan.node import Source, Union
    >>> shifted = Shift(Source("trips"), 5)
    >>> print(explain(Union((shifted, Shift(shifted, 5)))))
    union_1  <union (columnar)>
    ├─ shift_1 by 5  <shift (columnar)>
    │  └─ source:trips
    └─ shift_2 by 5  <shift (columnar)>
       └─ shift_1 (above)
    """
    return drawn(plan, RUNS[engine](plan))


def drawn(plan: Node, runs: Mapping[str, str]) -> str:
    """Return the plan as a tree, with what runs each operator, by its label.

    >>> from streamdsl.plan.node import Source
    >>> print(drawn(Shift(Source("trips"), 5), {"shift_1": "native"}))
    shift_1 by 5  <native>
    └─ source:trips
    """
    return "\n".join(_lines(plan, labels(plan), runs, set()))


def tree(part: Node, plan: Node) -> str:
    """Return a part of a plan as a tree, with the labels that its operators have in the plan, without what runs them.

    >>> from streamdsl.plan.node import Source
    >>> twice = Shift(Shift(Source("trips"), 5), 7)
    >>> print(tree(twice, twice))
    shift_2 by 7
    └─ shift_1 by 5
       └─ source:trips
    """
    return "\n".join(_lines(part, labels(plan), {}, set()))


def _lines(node: Node, names: dict[int, str], runs: Mapping[str, str], shown: set[int]) -> Iterator[str]:
    """Yield the lines of a tree. A part that several nodes read is drawn once: drawn for each path it could have no end."""
    if id(node) in shown and node.inputs:
        yield f"{names[id(node)]} (above)"
        return
    shown.add(id(node))
    yield _line(node, names, runs)
    below = [*node.inputs, node.body] if isinstance(node, GroupApply) else list(node.inputs)
    for position, child in enumerate(below):
        first, rest = ("└─ ", "   ") if position == len(below) - 1 else ("├─ ", "│  ")
        for line in _lines(child, names, runs, shown):
            yield first + line
            first = rest


def _line(node: Node, names: dict[int, str], runs: Mapping[str, str]) -> str:
    if isinstance(node, Group):
        return f"the rows of one group{_columns(node)}"
    parts = [names[id(node)], describe_node(node), *_facts(node)]
    by = runs.get(names[id(node)])
    return " ".join(part for part in parts if part) + _columns(node) + (f"  <{by}>" if by else "")


def _columns(node: Node) -> str:
    return f"  ({', '.join(node.schema.names)})" if node.schema is not None and node.schema.names else ""


def _facts(node: Node) -> list[str]:
    facts = []
    if points_only(node):
        facts.append("[points]")
    elif (duration := constant_duration(node)) is not None:
        facts.append(f"[duration {duration}]")
    if isinstance(node, GroupApply):
        facts.append(f"[grouped by {describe(node.key)}]")
    if _opaque(node):
        facts.append("[opaque]")
    return facts


def _opaque(node: Node) -> bool:
    aggregates = node.aggregates if isinstance(node, WindowAggregate) else ()
    return any(map(is_opaque, expressions(node))) or any(isinstance(agg.function, OpaqueWindow) for agg in aggregates)


def describe_node(node: Node) -> str:
    """Return what a node does, without its inputs.

    >>> from streamdsl.plan.node import Source
    >>> describe_node(Shift(Source("trips"), 5))
    'by 5'
    """
    if isinstance(node, Where):
        return describe(node.predicate)
    if isinstance(node, (Select, SelectMany)):
        return describe(node.projection if isinstance(node, Select) else node.items)
    if isinstance(node, AlterLifetime):
        start = f"start {describe(node.start)}, " if node.start is not None else ""
        return f"{start}duration {describe(node.duration)}"
    if isinstance(node, (Shift, Extend)):
        return f"by {node.duration}"
    if isinstance(node, ClipDuration):
        return f"to {node.duration}"
    if isinstance(node, Quantize):
        return f"size {node.size}, period {node.period}" + (f", offset {node.offset}" if node.offset else "")
    if isinstance(node, Chop):
        return f"at {node.cells.describe()}"
    if isinstance(node, Scan):
        return node.module.label
    if isinstance(node, Calendar):
        start = "the first LE" if node.start is None else format_time(node.start)
        return f"from {start} to {format_time(node.end)}"
    if isinstance(node, Match):
        return _describe_match(node)
    if isinstance(node, ToEdges):
        return f"per {describe(node.key)}" if node.key is not None else ""
    if isinstance(node, ClipInterval):
        return f"to [{node.lo}, {node.hi})"
    if isinstance(node, TwoInputs):
        return _describe_matching(node)
    return _describe_windowed(node) if isinstance(node, Windowed) else ""


def _describe_match(node: Match) -> str:
    parts = [f"{' then '.join(map(_describe_step, node.steps))} within {node.within}"]
    if node.unless:
        parts.append(f"unless {' or '.join(map(_describe_step, node.unless))}")
    if node.key is not None:
        parts.append(f"per {describe(node.key)}")
    return ", ".join([*parts, "overlapping"] if node.overlapping else parts)


def _describe_step(step: PatternStep) -> str:
    tests = [describe(test, ("e", "m")) for test in (*step.tests, *step.over)]
    return f"{step}[{', '.join(tests)}]" if tests else str(step)


def _describe_matching(node: TwoInputs) -> str:
    left, right, where = node.matching.left_key, node.matching.right_key, node.matching.where
    parts = ["cross join"] if isinstance(node, Join) and node.matching == Matching() else []
    if left is not None and right is not None:
        parts.append(f"on {describe(left)} == {describe(right)}")
    if where is not None:
        parts.append(f"where {describe(where)}")
    if isinstance(node, (Join, AsofJoin)) and node.projection is not None:
        parts.append(f"select {describe(node.projection)}")
    if isinstance(node, AsofJoin):
        parts.append(_describe_near(node))
    return ", ".join(parts)


def _describe_near(node: AsofJoin) -> str:
    within = "" if node.near.tolerance == INFINITY else f" within {node.near.tolerance}"
    return f"{node.near.direction}{within}" + (" or alone" if node.outer else "")


def _describe_windowed(node: Windowed) -> str:
    parts = [node.windows.describe()]
    if node.clip is not Clip.NONE:
        parts.append(f"clip {node.clip.value}")
    if node.output is not Output.ALIGN:
        parts.append(f"output {node.output.value}")
    if isinstance(node, WindowAggregate):
        parts += [_describe_aggregate(f"a{i}", agg) for i, agg in enumerate(node.aggregates)]
        parts.append(f"-> {describe(node.projection)}")
    if isinstance(node, WindowApply):
        argument = describe(node.argument) if node.argument is not None else ""
        parts.append(f"{node.module.label}({argument}){describe_state(node.module)}")
        if node.time_sensitive and not node.output.keeps_stamps:
            parts.append("the module's own timestamps are replaced")
    return ", ".join(parts)


def _describe_aggregate(name: str, agg: BoundAgg) -> str:
    argument = describe(agg.argument) if agg.argument is not None else ""
    where = f" where {describe(agg.where)}" if agg.where is not None else ""
    return f"{name} = {agg.function.label}({argument}){where}{describe_state(agg.function)}"
