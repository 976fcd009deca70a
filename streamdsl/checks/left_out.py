"""Checks of rows that no result can show."""

from __future__ import annotations

from collections.abc import Iterator

from streamdsl.checks.finding import Finding
from streamdsl.checks.plans import PlanView
from streamdsl.plan.node import Node, Windowed
from streamdsl.windows.grid import Grid


def rows_between_windows(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find windows with gaps between them: a row that lives there is in none."""
    if isinstance(node, Windowed) and isinstance(node.windows, Grid) and node.windows.has_gaps:
        what = f"leaves out the rows that live between two of its windows, {node.windows.describe(node.unit)}"
        yield plan.finding(node, "warning", what, "a size of at least the hop, which covers all times")
