"""Transposition: a query over a window sequence reuses the results of one with an earlier start (paper 003, property 4)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import ceil
from typing import TypeAlias

from streamdsl.expr.nodes import Binary, Constant, Life
from streamdsl.plan.node import Node, Where, WindowAggregate, WindowApply
from streamdsl.rewrite.rule import RuleContext
from streamdsl.rewrite.share_equals import EqualParts
from streamdsl.windows import Sequenced
from streamdsl.windows.sequences.named import Linear
from streamdsl.windows.sequences.transposing import synchronous

Over: TypeAlias = WindowAggregate | WindowApply


def share_transposed(node: Node, setting: RuleContext) -> Node | None:
    """Replace the later of two window sequences by time, which differ only in their start, by a filter of the earlier one.

    Both must have the same windows from the later query's first window on, by property 4 as corrected, and no window of the later
    query may be cut at its start, as a cut window has fewer rows. Both must be below the same union or join. Lifetimes and CTIs
    stay; results have other ids. The rule does not fire in sessions with emit="watermark", in which results that are held back
    hold back the CTI.

    Law: `w(start=t1)(s) == where(le >= the first end)(w(start=t0)(s))` for transposable sequences.

    Before and after:

    >>> import streamdsl as sd
    >>> def counts(start):
    ...     return sd.source("trips").windows(sd.astral.range_slide(4, 2, partial=False), start=start).aggregate(n=sd.count())
    >>> before = counts(0).join(counts(10), on="n").plan()
    >>> [node.name for node in before.walk()]
    ['Source', 'WindowAggregate', 'Source', 'WindowAggregate', 'Join']
    >>> after = share_transposed(before, RuleContext())
    >>> [node.name for node in after.walk()], after.right.predicate
    (['Source', 'WindowAggregate', 'Where', 'Join'], Binary(op='>=', left=Life(end='le', side=0), right=Constant(value=14)))

    Must not fire: if the windows differ, or if the later query's first windows are cut.

    >>> def cut(start):
    ...     return sd.source("trips").windows(sd.astral.range_slide(4, 2), start=start).aggregate(n=sd.count())
    >>> [share_transposed(query.plan(), RuleContext()) for query in (counts(0).union(counts(11)), cut(0).union(cut(10)))]
    [None, None]
    """
    if len(node.inputs) < 2 or setting.mode == "watermark":
        return None
    windowed = [each for each in node.walk() if isinstance(each, (WindowAggregate, WindowApply))]
    for earlier, later in permutations([each for each in windowed if isinstance(each.windows, Sequenced)], 2):
        first = _first_shared(earlier, later)
        if first is not None:
            return node.replaced(later, Where(earlier, Binary(">=", Life("le"), Constant(first))))
    return None


def _first_shared(earlier: Over, later: Over) -> int | None:
    """Return the LE from which on both queries have the same results, None if there is none."""
    windows, shifted = earlier.windows, later.windows
    if not isinstance(windows, Sequenced) or not isinstance(shifted, Sequenced) or windows == shifted:
        return None
    first = _first_end(windows, shifted)
    if first is None:
        return None
    sharing = EqualParts()
    return first if sharing.visit(earlier) is sharing.visit(replace(later, windows=windows)) else None


def _first_end(windows: Sequenced, shifted: Sequenced) -> int | None:
    """Return the end of the first window of `shifted` if all its windows are uncut windows of the earlier sequence, else None."""
    starts = windows.start, shifted.start
    if starts[0] is None or starts[1] is None or starts[0] > starts[1]:
        return None
    if not isinstance(windows.sequence, Linear) or not isinstance(shifted.sequence, Linear):
        return None
    one, other = windows.sequence.absolute(starts[0]), shifted.sequence.absolute(starts[1])
    if one.domain != "time" or other.domain != "time" or one.rate is None or one.rate != other.rate:
        return None
    same_slopes = one.start[0] == other.start[0] and one.end[0] == other.end[0]
    if not same_slopes or other.start[1] < starts[1] or not synchronous(one, other, 0, starts[1]):
        return None
    return ceil(other.end[1]) if other.start[0] or one.start[1] == other.start[1] else None
