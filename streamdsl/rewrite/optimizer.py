"""The optimizer's loop: rules are applied until a fixpoint, each step replacing one node by an equivalent one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node
from streamdsl.rewrite.clip_right import clip_right
from streamdsl.rewrite.fuse_filters import fuse_filters
from streamdsl.rewrite.fuse_selects import fuse_selects
from streamdsl.rewrite.narrow_to_reads import narrow_to_reads
from streamdsl.rewrite.prune_columns import prune_columns
from streamdsl.rewrite.push_filter_below_groups import push_filter_below_groups
from streamdsl.rewrite.push_filter_below_join import push_filter_below_join
from streamdsl.rewrite.push_filter_below_lifetimes import push_filter_below_lifetimes
from streamdsl.rewrite.push_filter_below_module import push_filter_below_module
from streamdsl.rewrite.push_filter_below_select import push_filter_below_select
from streamdsl.rewrite.push_filter_below_union import push_filter_below_union
from streamdsl.rewrite.rule import Mode, Rule, RuleContext
from streamdsl.rewrite.share_equals import share_equals
from streamdsl.rewrite.share_panes import share_panes
from streamdsl.rewrite.share_transposed import share_transposed

PHASES: tuple[tuple[Rule, ...], ...] = (
    (
        push_filter_below_module,
        push_filter_below_groups,
        push_filter_below_join,
        push_filter_below_union,
        push_filter_below_lifetimes,
        push_filter_below_select,
        fuse_selects,
        fuse_filters,
        clip_right,
    ),
    (narrow_to_reads, prune_columns),
    (share_equals, share_transposed),
    (share_panes,),
)
"""The rules by phase. The rules of a phase are tried in this order on each node, inputs before their readers; a phase is tried
only when no rule of an earlier phase fires."""

RULES: Final[tuple[Rule, ...]] = tuple(rule for phase in PHASES for rule in phase)

MOST_STEPS: Final = 10
"""The most steps per node of the plan as written: a bound in case rules undo one another."""


class RewriteStep(NamedTuple):
    """One application of a rule: the old and the new node, and the whole plan before and after."""

    rule: Rule
    old: Node
    new: Node
    before: Node
    after: Node

    @property
    def label(self) -> str:
        """The label of the replaced operator in the plan before the step."""
        return labels(self.before)[id(self.old)]


class Rewriting(NamedTuple):
    """A rewritten plan, and the steps that lead to it, in order."""

    plan: Node
    steps: tuple[RewriteStep, ...]

    @property
    def fired(self) -> tuple[Rule, ...]:
        """The rules that have fired, in order."""
        return tuple(step.rule for step in self.steps)


def optimize(plan: Node, mode: Mode = "run", names: Collection[str] | None = None, engine: str = "local") -> Node:
    """Return an equivalent plan in which no rule fires any more; unchanged parts are shared with the given plan.

    >>> from streamdsl.plan.node import Source, shift
    >>> plan = shift(Source("trips"), 5)
    >>> optimize(plan) is plan
    True
    """
    return rewriting(plan, mode, names, engine).plan


def rewriting(plan: Node, mode: Mode = "run", names: Collection[str] | None = None, engine: str = "local") -> Rewriting:
    """Return the plan rewritten for an engine by the rules with these names (None: all), with the steps.

    >>> from streamdsl.plan.node import Source
    >>> rewriting(Source("trips")).fired
    ()
    """
    phases = [[rule for rule in phase if names is None or rule.__name__ in names] for phase in PHASES]
    steps: list[RewriteStep] = []
    for _ in range(MOST_STEPS * len(list(plan.walk_all()))):
        step = _step(plan, RuleContext.of(plan, mode, engine), phases)
        if step is None:
            break
        steps.append(step)
        plan = step.after
    return Rewriting(plan, tuple(steps))


def _step(plan: Node, setting: RuleContext, phases: list[list[Rule]]) -> RewriteStep | None:
    """Return the step of the first rule that fires, None if none does."""
    for phase in phases:
        for node in plan.walk_all():
            for rule in phase:
                new = rule(node, setting)
                if new is not None:
                    return RewriteStep(rule, node, new, plan, plan.replaced(node, new))
    return None
