"""Whether an input can hold back the CTI of a window operator for ever, and which settings let it advance.

A *situation* is a family of inputs of any length. The checks apply the rules of liveliness to two long inputs of a situation: an
operator is held back if its CTI is the same after both, and a changed setting is a remedy if with it the CTI advances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from streamdsl.plan.node import Windowed
from streamdsl.temporal import INFINITY, Lifetime
from streamdsl.windows import Clip, Output, Windows
from streamdsl.windows.liveliness import output_cti

Situation: TypeAlias = Callable[[int, int], list[Lifetime]]
"""A function from a time and a step, which is long for the windows, to the input's rows until that time."""

_FAR: Final = INFINITY // 64


def idle(until: int, step: int) -> list[Lifetime]:
    """Return a single short row: no row follows."""
    return [Lifetime(0, 1)]


def unending(until: int, step: int) -> list[Lifetime]:
    """Return a single row that never ends."""
    return [Lifetime(0, INFINITY)]


def busy(until: int, step: int) -> list[Lifetime]:
    """Return rows that end, and follow one another without a pause."""
    return [Lifetime(time, time + step) for time in range(0, 2 * until, step)]


@dataclass(frozen=True, slots=True)
class WindowSetting:
    """The settings of a window operator on which its CTI depends."""

    windows: Windows
    clip: Clip
    output: Output
    time_sensitive: bool

    def is_held(self, situation: Situation) -> bool:
        """Say whether the CTI does not advance in a situation."""
        windows = self.windows.fewest()
        near = _far(windows)
        ctis = {self._cti(windows, situation, until, near // 8) for until in (near, 2 * near)}
        return len(ctis) == 1

    def _cti(self, windows: Windows, situation: Situation, until: int, step: int) -> int | None:
        return output_cti(windows, self.clip, self.output, self.time_sensitive, situation(until, step), until)


def _far(windows: Windows) -> int:
    """Return a time that is long for these windows."""
    return min(_FAR, 8 * (1 + windows.horizon))


def needs_later_rows(windows: Windows) -> bool:
    """Say whether a row that ended long ago may still be a member of a new window, so that its group's state is not dropped.

    >>> from streamdsl.windows import Count, Hopping
    >>> needs_later_rows(Count(3)), needs_later_rows(Hopping(10, 10))
    (True, False)
    """
    few = windows.fewest()
    past, far = Lifetime(0, 1), _far(few)
    return any(far < window.re and few.belongs(past, window) for window in few.over([past, Lifetime(far, far + 1)]))


def frame_of(node: Windowed, time_sensitive: bool, sees_ends: bool) -> WindowSetting:
    """Return the settings of a node; if its modules do not see ends beyond the window, as if they were clipped."""
    clip = node.clip if sees_ends or not time_sensitive or node.clip.right else Clip.FULL
    return WindowSetting(node.windows, clip, node.output, time_sensitive)


def remedies(frame: WindowSetting, situation: Situation) -> list[str]:
    """Return the changes of a window's settings, as a query writes them, with which its CTI advances.

    >>> from streamdsl.windows import Count, Hopping
    >>> remedies(WindowSetting(Count(3), Clip.NONE, Output.ALIGN, False), idle)
    ['output=sd.Output.POINT_AT_END']
    >>> remedies(WindowSetting(Hopping(10, 10), Clip.NONE, Output.ALIGN, True), unending)
    ['clip=sd.Clip.RIGHT']
    """
    return [text for text, changed in _changes(frame) if not changed.is_held(situation)]


def _changes(frame: WindowSetting) -> Iterator[tuple[str, WindowSetting]]:
    windows = frame.windows
    for setting, bounded in windows.bounded():
        yield setting, replace(frame, windows=bounded)
    if frame.time_sensitive and not frame.clip.right:
        clip = Clip.FULL if frame.clip.left else Clip.RIGHT
        yield f"clip=sd.{clip}", replace(frame, clip=clip)
    if windows.completed_by_rows and frame.output is not Output.POINT_AT_END:
        yield "output=sd.Output.POINT_AT_END", replace(frame, output=Output.POINT_AT_END)
