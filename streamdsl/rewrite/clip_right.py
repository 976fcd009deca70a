"""Right clipping for windows whose modules ignore ends beyond the window, so that windows close at their own end."""

from __future__ import annotations

from dataclasses import replace

from streamdsl.plan.node import Node, Windowed
from streamdsl.rewrite.rule import RuleContext
from streamdsl.windows import Clip


def clip_right(node: Node, setting: RuleContext) -> Node | None:
    """Clip the members of a window to the right if its modules declare that they ignore ends beyond the window.

    Lifetimes and ids stay. In sessions CTIs come earlier, as windows no longer wait for the ends of their members, and with them
    state is freed, rows become final, and windows above open. Until the CTI of a push, it returns the same rows as without the
    rule. Paper 001, III.C.1 and V.F.1.

    Law: `apply(M)(w(s)) == apply(M)(w(s, clip=RIGHT))` for windows `w` of any kind and a module `M` that declares it.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Waited(sd.TimeSensitiveUDA[object, int]):
    ...     ignores_ends_beyond_window = True
    ...     def compute_result(self, events, window):
    ...         return sum(event.end_time < window.end_time for event in events)
    >>> calls = sd.source("calls")
    >>> before = calls.tumbling_window(10).aggregate(Waited).plan()
    >>> print(explain(before, "reference"))
    window_aggregate_1 tumbling(10), a0 = Waited(), -> e.a0 [duration 10]  <denotation>
    └─ source:calls  <denotation>
    >>> print(explain(clip_right(before, RuleContext()), "reference"))
    window_aggregate_1 tumbling(10), clip right, a0 = Waited(), -> e.a0 [duration 10]  <denotation>
    └─ source:calls  <denotation>

    Must not fire: if one of the modules does not declare it, such as one that uses whole durations.

    >>> class Lasting(sd.TimeSensitiveUDA[object, int]):
    ...     def compute_result(self, events, window):
    ...         return sum(event.end_time - event.start_time for event in events)
    >>> both = calls.tumbling_window(10).aggregate(lambda w: (w.udm(Waited()), w.udm(Lasting())))
    >>> clip_right(both.plan(), RuleContext())
    """
    if not isinstance(node, Windowed) or not may_clip_right(node):
        return None
    return replace(node, clip=Clip.FULL if node.clip.left else Clip.RIGHT)


def may_clip_right(node: Windowed) -> bool:
    """Say whether the modules of a window see ends beyond it, and all of them declare that they ignore those.

    >>> import streamdsl as sd
    >>> @sd.uda(ignores_ends_beyond_window=True)
    ... def latest(events, window):
    ...     return max(event.start_time for event in events)
    >>> calls = sd.source("calls")
    >>> windows = (calls.tumbling_window(10), calls.tumbling_window(10, clip=sd.Clip.RIGHT))
    >>> [may_clip_right(windowed.aggregate(latest).plan()) for windowed in windows]
    [True, False]
    """
    sensitive = [module for module in node.modules if module.time_sensitive]
    return node.sees_ends and all(module.ignores_ends_beyond_window and module.deterministic for module in sensitive)
