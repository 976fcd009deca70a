"""Liveliness: the largest CTI that a window operator may send after input CTI c, so that no output before it changes later.

Each kind of windows defines it in `Windows.settled`, a slow, obvious function of the input's lifetimes (semantics, section 2,
liveliness). The engine maintains the same value incrementally, and tests compare the two. A rule must be *sound*: no legal change
after Cti(c) changes output before its result, provided that the operator sends minimal changes. "Reads RE" means time-sensitive
without right clipping: the module sees ends beyond its window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.windows.policies import Clip, Output
from streamdsl.windows.spec import Windows, closed

__all__ = ["closed", "output_cti", "unrestricted_cti"]


def output_cti(
    windows: Windows, clip: Clip, output: Output, time_sensitive: bool, lifetimes: Iterable[Lifetime], c: int
) -> int | None:
    """Return the output CTI after the input CTI `c`, given the lifetimes of the input's rows; None if no CTI can be sent yet.

    >>> from streamdsl.windows import Hopping
    >>> output_cti(Hopping(10, 10), Clip.NONE, Output.ALIGN, False, [Lifetime(3, INFINITY)], 17)
    10
    """
    if c == INFINITY:
        return c
    lives = [life for life in lifetimes if not life.is_empty]
    reads_re = time_sensitive and not clip.right
    if output is Output.TIME_BOUND:
        found = c
    elif output is Output.POINT_AT_END:
        found = _of_points_at_end(windows, reads_re, lives, c)
    else:
        found = windows.settled(lives, c, time_sensitive, reads_re)
    return found if found > MIN_TIME else None


def _of_points_at_end(windows: Windows, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    """Return the smallest W.RE of a non-empty window that is not closed, at most c."""
    return min((w.re for w in windows.over(lives, until=c) if not closed(windows, w, lives, reads_re, c)), default=c)


def unrestricted_cti(c: int) -> int | None:
    """Return the output CTI of a module that may set any timestamps: None until the end of the input.

    >>> unrestricted_cti(17) is None
    True
    """
    return c if c == INFINITY else None
