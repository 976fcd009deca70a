"""Input clipping and output timestamping: how windows change lifetimes on the way in and out (paper 001, III.C)."""

from __future__ import annotations

import enum

from streamdsl.errors import QueryError
from streamdsl.temporal.lifetime import Lifetime


class Clip(enum.Enum):
    """How a window cuts the lifetimes of its members before a time-sensitive module sees them. Membership never changes."""

    NONE = "none"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"

    @property
    def left(self) -> bool:
        """Say whether starts are clipped to the window's start."""
        return self in (Clip.LEFT, Clip.FULL)

    @property
    def right(self) -> bool:
        """Say whether ends are clipped to the window's end."""
        return self in (Clip.RIGHT, Clip.FULL)

    def apply(self, life: Lifetime, window: Lifetime) -> Lifetime:
        """Return a member's lifetime as the module sees it.

        >>> Clip.FULL.apply(Lifetime(4, 12), Lifetime(5, 10))
        Lifetime(le=5, re=10)
        """
        return Lifetime(
            max(life.le, window.le) if self.left else life.le,
            min(life.re, window.re) if self.right else life.re,
        )


class Output(enum.Enum):
    """The lifetime that a window's results get."""

    ALIGN = "align"
    """The window's period."""
    UNCHANGED = "unchanged"
    """The timestamps of the time-sensitive module; LE < W.LE is a `TimestampViolation`."""
    CLIP = "clip"
    """The module's timestamps, cut to the window; empty lifetimes are dropped."""
    TIME_BOUND = "time_bound"
    """The module's timestamps; the module declares that a change at time s changes no output before s."""
    POINT_AT_END = "point_at_end"
    """The point `[W.RE, W.RE + 1)`."""

    @property
    def keeps_stamps(self) -> bool:
        """Say whether results keep the module's own timestamps."""
        return self in (Output.UNCHANGED, Output.CLIP, Output.TIME_BOUND)


def check_policies(clip: object, output: object) -> None:
    """Raise `QueryError` for values that are not policies, such as the name of one.

    >>> check_policies("left", Output.ALIGN)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: clip='left' is not an input clipping
    Hint: the choices are: Clip.NONE, Clip.LEFT, Clip.RIGHT, Clip.FULL
    """
    if not isinstance(clip, Clip):
        raise QueryError(f"clip={clip!r} is not an input clipping", hint=f"the choices are: {', '.join(map(str, Clip))}")
    if not isinstance(output, Output):
        raise QueryError(f"output={output!r} is not an output policy", hint=f"the choices are: {', '.join(map(str, Output))}")
