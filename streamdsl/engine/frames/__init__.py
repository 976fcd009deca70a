"""Frames: which windows the rows of each partition make, and who is in them, one file for each kind of window."""

from __future__ import annotations

from streamdsl.engine.frames.count import CountFrame
from streamdsl.engine.frames.frame import Frame, Policy
from streamdsl.engine.frames.session import SessionFrame
from streamdsl.engine.frames.snapshot import SnapshotFrame
from streamdsl.windows import Count, Session, Snapshot, Windows

__all__ = ["frame_of"]


def frame_of(windows: Windows, policy: Policy) -> Frame:
    """Return a frame that has seen nothing yet."""
    if isinstance(windows, Count):
        return CountFrame(policy, windows)
    if isinstance(windows, Session):
        return SessionFrame(policy, windows)
    assert isinstance(windows, Snapshot)
    return SnapshotFrame(policy)
