"""Checks of state that no CTI frees, and of CTIs that are held back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamdsl.checks.finding import Finding
from streamdsl.checks.holding import WindowSetting, busy, frame_of, idle, needs_later_rows, remedies, unending
from streamdsl.checks.plans import PlanView
from streamdsl.expr.describe import describe
from streamdsl.plan.facts import Open
from streamdsl.plan.node import AlterLifetime, AsofJoin, Node, Scan, Select, Source, ToEdges, Where, Windowed
from streamdsl.plan.properties import reads_re
from streamdsl.rewrite.clip_right import may_clip_right
from streamdsl.temporal import INFINITY
from streamdsl.windows import Sequenced

TOLERANCE = "give a tolerance"
PROMISE = "if ends beyond the window change nothing, promise it on the module: ignores_ends_beyond_window = True"
END_ROWS = "end the rows below it: clip_duration(d), or to_points() where only starts count"


def rows_that_never_end(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find operators that keep rows which never end, whatever the data, because an operator below removes their ends."""
    certain = [open for open in _kept(node, plan) if not open.depends_on_data]
    if certain:
        origins = " and ".join(sorted({plan.name(open.origin) for open in certain}))
        yield plan.finding(node, "warning", f"keeps the rows of {origins} that never end until the input is closed", END_ROWS)


def sources_that_may_have_edges(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find sources whose rows, if the data have no ends, stay in the state of some operator."""
    if isinstance(node, Source) and not node.table:
        keepers = [plan.name(other) for other in plan.nodes() if Open(node, depends_on_data=True) in _kept(other, plan)]
        if keepers:
            what = (
                f"may have rows without end; {_and(keepers)} {'keeps' if len(keepers) == 1 else 'keep'} each until its end comes"
            )
            yield plan.finding(node, "note", what, "where ends may fail to come, clip_duration(d) after the source")


def _kept(node: Node, plan: PlanView) -> list[Open]:
    """Return the open rows that an operator keeps in its state for as long as they live."""
    kept = node.kept_inputs
    if isinstance(node, Windowed) and (node.windows.ends_count or _sees_ends(node)):
        kept = node.inputs
    return [found for each in kept if (found := plan.open_rows(each))]


def rows_of_sequences(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find window sequences that keep all rows, and those that keep a value per key for ever."""
    if not isinstance(node, Windowed) or not isinstance(node.windows, Sequenced):
        return
    windows = node.windows
    if windows.sequence.looks_back:
        what = f"keeps more and more rows until the input is closed: the windows of {windows.describe()} look back ever further"
        yield plan.finding(node, "warning", what, "a lower bound that rises by the rate: range_slide, rows_slide, last_n_every")
    elif id(node) in plan.inside and (windows.by_position or windows.start is None):
        kept = "how many rows have come" if windows.by_position else "the first LE"
        remedy = "windows by time with a start: windows(range_slide(...), start=...)"
        yield plan.finding(node, "note", f"keeps {kept} of every key for ever, also of keys that get no more rows", remedy)


def windows_that_hold_the_cti(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find window operators whose CTI may stop advancing while the input's CTI advances."""
    if not isinstance(node, Windowed):
        return
    frame = frame_of(node, node.time_sensitive, _sees_ends(node))
    windows = node.windows.describe(node.unit)
    grouped = id(node) in plan.inside
    if frame.is_held(idle) and (not grouped or needs_later_rows(node.windows)):
        who = "a group that gets no more rows holds back the CTI of all groups" if grouped else "after the last row the CTI stays"
        what = f"waits for its windows, {windows}, to be cut by a later row: {who}"
        yield plan.finding(node, "warning" if grouped else "note", what, _any(remedies(frame, idle)))
        return
    if frame.is_held(busy):
        what = f"has windows without a bound, {windows}: its CTI and its rows wait as long as a session goes on"
        yield plan.finding(node, "warning", what, _any(remedies(frame, busy)))
    yield from _held_by_open_rows(node, frame, plan)


def _held_by_open_rows(node: Windowed, frame: WindowSetting, plan: PlanView) -> Iterator[Finding]:
    rows = plan.open_rows(node.input)
    found = remedies(frame, unending)
    if rows is None or not frame.is_held(unending) or (frame.is_held(busy) and set(found) & set(remedies(frame, busy))):
        return
    origin = plan.name(rows.origin)
    if rows.depends_on_data:
        what = f"may wait for the ends of rows of {origin}: a row without end holds its CTI back at the row's first window"
    else:
        what = f"waits for the ends of the rows of {origin}, which never come: its CTI stays at their first window"
    promise = []
    if _sees_ends(node):
        what += ", because its module sees ends beyond the window"
        promise = [PROMISE]
    yield plan.finding(node, "note" if rows.depends_on_data else "warning", what, _any(found, *promise, END_ROWS))


def _sees_ends(node: Windowed) -> bool:
    """Say whether modules see ends beyond the window even after the optimizer's rule `clip_right`."""
    return node.sees_ends and not may_clip_right(node)


def no_cti_passes(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find operators that hold back all CTIs but the last: those that compute LEs, or read REs, which may still change."""
    if isinstance(node, AlterLifetime) and node.starts_computed:
        starts = _and(list(map(describe, node.starts_computed)))
        what = f"computes starts, {starts}, so that no CTI passes it before the last, and all above it waits"
        yield plan.finding(node, "warning", what, "move by a constant, shift(d), or keep LE: alter_duration(...)")
    elif isinstance(node, AlterLifetime) and node.ends_computed:
        durations = _and(list(map(describe, node.ends_computed)))
        what = f"computes durations from RE, {durations}, so that no CTI passes it before the last"
        yield plan.finding(
            node, "warning", what, "extend(d), clip_duration(d), to_points_at_end(), or a duration without life.re"
        )
    elif isinstance(node, (Where, Select)) and reads_re(node):
        what = "reads RE, which may still change, so that no CTI passes it before the last, and all above it waits"
        yield plan.finding(node, "warning", what, "read life.le alone; after to_points_at_end() it is the end")


def last_samples(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find `to_edges` by key, which keeps the last row of each key for ever."""
    if isinstance(node, ToEdges) and (node.key is not None or id(node) in plan.inside):
        what = "keeps the last row of every key for ever, also of keys that get no more rows"
        yield plan.finding(node, "note", what, "where keys come and go, end rows after a time instead: alter_duration(d)")


def unbounded_reach(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find as-of joins without a tolerance that keep rows, or wait, for ever."""
    if not isinstance(node, AsofJoin) or node.near.tolerance < INFINITY:
        return
    if node.near.direction != "back":
        what = f"looks {node.near.direction}: a left row for which no right row comes holds its CTI back"
        yield plan.finding(node, "warning", what, TOLERANCE)
    if node.near.direction != "forward" and node.matching.where is not None:
        what = f"keeps every right row for ever: a later left row may want any of them, {describe(node.matching.where)}"
        yield plan.finding(node, "warning", what, f"{TOLERANCE}, or on=... without where")
    elif node.near.direction != "forward":
        yield plan.finding(node, "note", "keeps the last right row of every key for ever", TOLERANCE)


def states_of_groups(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find stream operators that keep the state of each group for ever."""
    if isinstance(node, Scan) and node.module.keeps_states and id(node) in plan.inside:
        what = f"keeps the state of {node.module.label} of every group for ever"
        yield plan.finding(node, "note", what, f"where groups come and go, {node.module.for_kept_states}")


def _any(settings: Sequence[str], *others: str) -> str:
    return ", or ".join([*(f"give the window {setting}" for setting in settings), *others])


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
