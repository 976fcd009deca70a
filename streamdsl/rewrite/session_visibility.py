"""Whether a session reveals that rows no longer reach an operator, through the high water, which opens windows and cells."""

from __future__ import annotations

from streamdsl.plan.node import Node, Source, Windowed
from streamdsl.rewrite.rule import Mode
from streamdsl.windows import Sequenced


def shows_the_same(node: Node, mode: Mode) -> bool:
    """Say whether pushes return the same if some rows no longer reach an operator that opens windows or cells.

    Such rows raise the operator's high water, the largest LE or CTI received, which opens the windows of other rows. This makes
    no difference for final results; for speculative results of point events, as each point opens its own windows; and for ordered
    input, in which the CTI is the largest LE. If a module sees ends beyond its window, rows that may still change also hold back
    the CTI, so pushes may differ. Windows of a sequence start after their rows, which therefore open none; but until such a
    window ends, its result holds back the CTI.
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
    """Say whether the CTI is always at least the largest LE: the source is ordered, and all operators move LEs and CTIs alike."""
    if isinstance(node, Source):
        return node.progress is not None and node.progress.kind == "slack" and node.progress.delay == 0
    return node.moves_starts_as_ctis and cti_is_largest_start(node.inputs[0])
