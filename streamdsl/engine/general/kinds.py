"""Kinds of windows as the general window operator keeps them, one file each."""

from __future__ import annotations

from streamdsl.engine.general.count import CountWindows
from streamdsl.engine.general.grid import GridWindows
from streamdsl.engine.general.group import GroupWindows, Setting
from streamdsl.engine.general.sequence import SequenceWindows
from streamdsl.engine.general.session import SessionWindows
from streamdsl.engine.general.snapshot import SnapshotWindows
from streamdsl.windows import Count, Grid, Sequenced, Session, Windows


def group_windows(windows: Windows, setting: Setting) -> GroupWindows:
    """Return the state of a group that has seen nothing yet."""
    if isinstance(windows, Grid):
        return GridWindows(setting, windows)
    if isinstance(windows, Count):
        return CountWindows(setting, windows)
    if isinstance(windows, Session):
        return SessionWindows(setting, windows)
    if isinstance(windows, Sequenced):
        return SequenceWindows(setting, windows)
    return SnapshotWindows(setting)
