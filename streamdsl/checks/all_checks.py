"""Checks of a query as it is written: nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeAlias

from streamdsl.checks.cost import every_row_with_every_other, filters_above_modules, opaque_lambdas
from streamdsl.checks.finding import Finding
from streamdsl.checks.plans import Checked
from streamdsl.checks.state import (
    last_samples,
    no_cti_passes,
    rows_of_sequences,
    rows_that_never_end,
    sources_that_may_have_edges,
    states_of_groups,
    unbounded_reach,
    windows_that_hold_the_cti,
)
from streamdsl.plan.node import Node, Source

Check: TypeAlias = Callable[[Node, Checked], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    sources_that_may_have_edges,
    rows_that_never_end,
    rows_of_sequences,
    windows_that_hold_the_cti,
    no_cti_passes,
    last_samples,
    unbounded_reach,
    states_of_groups,
    every_row_with_every_other,
    opaque_lambdas,
    filters_above_modules,
)
"""What is looked for at each operator, in this order."""


def findings(plan: Node, bounded: Collection[str] = ()) -> list[Finding]:
    """Return what is found at the operators of a plan, inputs before their readers; nothing is said of bounded sources.

    >>> from streamdsl.plan.node import Source, shift
    >>> findings(shift(Source("trips"), 5))
    []
    """
    checked = Checked(plan)
    nodes = [node for node in checked.nodes() if not (isinstance(node, Source) and node.source in bounded)]
    everything = [found for node in nodes for check in CHECKS for found in check(node, checked)]
    # A source may be several equal nodes.
    return list({(found.operator, found.what): found for found in reversed(everything)}.values())[::-1]
