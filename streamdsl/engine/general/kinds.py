"""The kinds of windows that the published algorithm keeps, one file each. Others it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamdsl.engine.general.count import CountWindows
from streamdsl.engine.general.grid import GridWindows
from streamdsl.engine.general.group import GroupWindows, Setting
from streamdsl.engine.general.sequence import SequenceWindows
from streamdsl.engine.general.session import SessionWindows
from streamdsl.engine.general.snapshot import SnapshotWindows
from streamdsl.errors import QueryError
from streamdsl.windows import Windows

KINDS: Final[Mapping[str, Callable[[Setting, Any], GroupWindows]]] = {
    "grid": GridWindows,
    "count": CountWindows,
    "session": SessionWindows,
    "cut_session": SessionWindows,
    "sequence": SequenceWindows,
    "snapshot": SnapshotWindows,
}
"""What keeps the windows of a group, by their kind."""


def group_windows(windows: Windows, setting: Setting) -> GroupWindows:
    """Return the state of a group that has seen nothing yet; raises `QueryError` for a kind that is not kept."""
    if windows.kind not in KINDS:
        raise QueryError(
            f"the general window operator has no windows of the kind {windows.kind}; available: {', '.join(KINDS)}",
            hint='run the query without engine_options={"window": "general"}',
        )
    return KINDS[windows.kind](setting, windows)
