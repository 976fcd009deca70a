"""Frames: which windows the rows of each partition make, and who is in them, one file for each kind of window."""

from __future__ import annotations

from streamdsl.engine.frames.count import CountFrame
from streamdsl.engine.frames.cut_session import CutSessionFrame
from streamdsl.engine.frames.frame import Frame, Policy
from streamdsl.engine.frames.grid import GridFrame
from streamdsl.engine.frames.sequence import SequenceFrame
from streamdsl.engine.frames.session import SessionFrame
from streamdsl.engine.frames.snapshot import SnapshotFrame
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.window_budget import WindowBudget
from streamdsl.windows import Count, Grid, Sequenced, Session, Snapshot, Windows

__all__ = ["frame_of"]


def frame_of(windows: Windows, policy: Policy, emit_policy: EmitPolicy, budget: WindowBudget) -> Frame:
    """Return a frame that has seen nothing yet; `budget` says how many windows may begin at once."""
    if isinstance(windows, Grid):
        return GridFrame(policy, windows, emit_policy, budget)
    if isinstance(windows, Count):
        return CountFrame(policy, windows)
    if isinstance(windows, Session) and windows.max_duration is not None:
        return CutSessionFrame(policy, windows, emit_policy, budget)
    if isinstance(windows, Session):
        return SessionFrame(policy, windows)
    if isinstance(windows, Sequenced):
        return SequenceFrame(policy, windows, emit_policy, budget)
    if isinstance(windows, Snapshot):
        return SnapshotFrame(policy)
    raise TypeError(f"windows of the kind {type(windows).__name__} have no frame; give them one here")
