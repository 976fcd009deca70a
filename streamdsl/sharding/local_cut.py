"""How a plan is cut for local workers: which stages run in the session's own process, and which plans cannot be cut."""

from __future__ import annotations

from streamdsl.engine.operators.columnar_windows import adds_up
from streamdsl.errors import QueryError
from streamdsl.expr.nodes import is_opaque
from streamdsl.plan.labels import labels
from streamdsl.plan.node import GroupApply, Node, WindowAggregate
from streamdsl.plan.properties import expressions
from streamdsl.sharding.plan_stages import PlanStage, cut_into_stages, sharding, stage_lines
from streamdsl.windows import Grid


def runs_here(stage: PlanStage) -> bool:
    """Say whether a stage runs in the session's process: all rows have to be together, or it costs less than to send them."""
    return not stage.is_sharded or is_cheap(stage)


def is_cheap(stage: PlanStage) -> bool:
    """Say whether a stage is no more than totals of windows of a grid: they cost less for a row than to send it."""
    nodes = [node for node in stage.plan.walk_all() if node.inputs and not isinstance(node, GroupApply)]
    windows = [node for node in nodes if not node.row_wise]
    return bool(windows) and all(map(_is_total, windows)) and not any(map(_is_python, nodes))


def _is_total(node: Node) -> bool:
    return isinstance(node, WindowAggregate) and isinstance(node.windows, Grid) and adds_up(node)


def _is_python(node: Node) -> bool:
    return any(map(is_opaque, expressions(node)))


def uses_workers(plan: Node) -> bool:
    """Say whether a stage of a plan runs in workers; raises `QueryError` where the plan cannot be cut.

    Where none does, since all are cheap, an ordinary session is faster.
    """
    stages = cut_into_stages(plan, True).all()
    if not any(stage.is_sharded for stage in stages):
        why = sharding(stages[-1], labels(plan)).partition(": ")[2]
        raise QueryError(
            f"the query cannot be cut for workers: {why}",
            hint="group by a key, or join on one: rows of different keys then run in different workers; or leave out workers=",
        )
    return not all(map(runs_here, stages))


def explain_workers(plan: Node) -> str:
    """Return how a plan is cut for local workers, as text: for each stage where it runs, and why."""
    named = labels(plan)
    return "\n".join(stage_lines(cut_into_stages(plan, True).all(), lambda stage: _where(stage, named)))


def _where(stage: PlanStage, named: dict[int, str]) -> str:
    how = sharding(stage, named)
    if not stage.is_sharded:
        return f"in this process, {how}"
    if is_cheap(stage):
        return "in this process: totals of windows cost less than to send the rows"
    return f"in workers, {how}"
