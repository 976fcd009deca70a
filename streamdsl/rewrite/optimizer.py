"""Plans rewritten to a fixpoint of rules: each step replaces one node by another that means the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from streamdsl.plan.node import GroupApply, Node
from streamdsl.rewrite.narrow_to_reads import narrow_to_reads
from streamdsl.rewrite.push_filter_below_module import push_filter_below_module
from streamdsl.rewrite.rule import Mode, Rule, Setting

RULES: Final[tuple[Rule, ...]] = (push_filter_below_module, narrow_to_reads)
"""The rules, each in a file of its own, tried in this order on each node, inputs before their readers."""

MOST_STEPS: Final = 10
"""Steps per node of the plan as written, after which rewriting ends: rules that undo one another would go on for ever."""


class Rewriting(NamedTuple):
    """A rewritten plan, and the rules that have fired, in order."""

    plan: Node
    fired: tuple[Rule, ...]


def optimize(plan: Node, mode: Mode = "run") -> Node:
    """Return a plan with the same meaning in which no rule fires any more; it shares what it has not changed.

    >>> from streamdsl.plan.node import Shift, Source
    >>> plan = Shift(Source("trips"), 5)
    >>> optimize(plan) is plan
    True
    """
    return rewriting(plan, mode).plan


def rewriting(plan: Node, mode: Mode = "run") -> Rewriting:
    """Return the rewritten plan with the rules that have fired.

    >>> from streamdsl.plan.node import Source
    >>> rewriting(Source("trips")).fired
    ()
    """
    fired: list[Rule] = []
    for _ in range(MOST_STEPS * len(list(nodes(plan)))):
        step = _step(plan, mode)
        if step is None:
            break
        plan, rule = step
        fired.append(rule)
    return Rewriting(plan, tuple(fired))


def nodes(plan: Node) -> Iterator[Node]:
    """Yield the nodes of a plan, those of the bodies of groups too, inputs before their readers.

    >>> from streamdsl.plan.node import Shift, Source
    >>> [node.name for node in nodes(Shift(Source("trips"), 5))]
    ['Source', 'Shift']
    """
    for node in plan.walk():
        if isinstance(node, GroupApply):
            yield from nodes(node.body)
        yield node


def _step(plan: Node, mode: Mode) -> tuple[Node, Rule] | None:
    """Return the plan after the first rule that fires, and that rule."""
    setting = Setting(mode, Counter(id(below) for node in nodes(plan) for below in _below(node)))
    for node in nodes(plan):
        for rule in RULES:
            new = rule(node, setting)
            if new is not None:
                return replaced(plan, node, new), rule
    return None


def _below(node: Node) -> tuple[Node, ...]:
    return (*node.inputs, node.body) if isinstance(node, GroupApply) else node.inputs


def replaced(plan: Node, old: Node, new: Node) -> Node:
    """Return a plan with one node replaced, for all that read it.

    >>> from streamdsl.plan.node import Shift, Source
    >>> trips = Source("trips")
    >>> replaced(Shift(trips, 5), trips, Source("rides"))
    Shift(input=Source(source='rides', payload=None, time_unit=None, progress=None, on_violation='error'), duration=5)
    """
    done: dict[int, Node] = {id(old): new}

    def change(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = _over(node, change)
        return done[id(node)]

    return change(plan)


def _over(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node over changed inputs, and of a changed body."""
    changed = node.map_inputs(change)
    if isinstance(changed, GroupApply) and (body := change(changed.body)) is not changed.body:
        return replace(changed, body=body)
    return changed
