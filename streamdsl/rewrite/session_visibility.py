"""What a session can show of rows that no longer reach an operator: it depends on its high water."""

from __future__ import annotations

from streamdsl.plan.node import Node, Source, Windowed
from streamdsl.rewrite.rule import Mode
from streamdsl.windows import Sequenced


def shows_the_same(node: Node, mode: Mode) -> bool:
    """Say whether a session cannot show that some rows no longer reach an operator that opens windows or cells.

    They raise its high water, the largest LE or CTI received, which opens windows. Final results do not depend on it. Nor do
    point events: each opens its windows itself. Nor does an ordered input: its CTI is the largest LE. And rows that may still
    change hold back the CTI of a module that sees ends beyond its window. The windows of a sequence come after their rows, which
    so open none, and until they have ended their results hold back the CTI.
    """
    if mode == "run":
        return True
    if isinstance(node, Windowed) and node.sees_ends:
        return False
    if isinstance(node, Windowed) and isinstance(node.windows, Sequenced):
        return mode == "final" or (mode == "speculative" and cti_is_largest_start(node.input))
    (rows,) = node.inputs
    return mode == "final" or cti_is_largest_start(rows) or (mode == "speculative" and rows.fixed_duration == 1)


def cti_is_largest_start(node: Node) -> bool:
    """Say whether the CTI is never behind a row's LE: the source is ordered, and what follows treats both alike."""
    if isinstance(node, Source):
        return node.progress is not None and node.progress.kind == "slack" and node.progress.delay == 0
    return node.moves_starts_as_ctis and cti_is_largest_start(node.inputs[0])
