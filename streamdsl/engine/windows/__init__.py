"""Kinds of windows as the general window operator keeps them, one file each."""

from __future__ import annotations

from streamdsl.engine.windows.count import CountWindows
from streamdsl.engine.windows.grid import GridWindows
from streamdsl.engine.windows.group import GroupWindows, Setting
from streamdsl.engine.windows.sequence import SequenceWindows
from streamdsl.engine.windows.session import SessionWindows
from streamdsl.engine.windows.snapshot import SnapshotWindows
from streamdsl.windows import Count, Hopping, Sequenced, Session, Windows

__all__ = [
    "CountWindows",
    "GridWindows",
    "GroupWindows",
    "SequenceWindows",
    "SessionWindows",
    "Setting",
    "SnapshotWindows",
    "group_windows",
]


def group_windows(windows: Windows, setting: Setting) -> GroupWindows:
    """Return the state of a group that has seen nothing yet."""
    if isinstance(windows, Hopping):
        return GridWindows(setting, windows)
    if isinstance(windows, Count):
        return CountWindows(setting, windows)
    if isinstance(windows, Session):
        return SessionWindows(setting, windows)
    if isinstance(windows, Sequenced):
        return SequenceWindows(setting, windows)
    return SnapshotWindows(setting)
