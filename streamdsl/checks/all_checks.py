"""The list of all checks, and running them on a plan as it is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeAlias

from streamdsl.checks.cost import every_row_with_every_other, filters_above_modules, opaque_lambdas
from streamdsl.checks.finding import Finding
from streamdsl.checks.kept_state import (
    last_samples,
    no_cti_passes,
    rows_of_sequences,
    rows_that_never_end,
    sources_that_may_have_edges,
    states_of_groups,
    unbounded_reach,
    windows_that_hold_the_cti,
)
from streamdsl.checks.left_out import rows_between_windows
from streamdsl.checks.plans import PlanView
from streamdsl.plan.node import Node, Source

Check: TypeAlias = Callable[[Node, PlanView], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    sources_that_may_have_edges,
    rows_that_never_end,
    rows_of_sequences,
    windows_that_hold_the_cti,
    no_cti_passes,
    last_samples,
    unbounded_reach,
    states_of_groups,
    rows_between_windows,
    every_row_with_every_other,
    opaque_lambdas,
    filters_above_modules,
)
"""The checks, which are applied to each operator in this order."""


def findings(plan: Node, bounded: Collection[str] = ()) -> list[Finding]:
    """Return the findings of all checks, inputs before their readers. Sources named in `bounded` are not checked.

    >>> from streamdsl.plan.node import Source, shift
    >>> findings(shift(Source("trips"), 5))
    []
    """
    checked = PlanView(plan)
    nodes = [node for node in checked.nodes() if not (isinstance(node, Source) and node.source in bounded)]
    everything = [found for node in nodes for check in CHECKS for found in check(node, checked)]
    # A source that is read several times is several equal nodes, each with the same findings.
    return list({(found.operator, found.what): found for found in reversed(everything)}.values())[::-1]
