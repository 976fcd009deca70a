"""How far output CTIs may go: after input CTI c, the largest time before which a window operator's output can no longer change.

Each rule is a slow, obvious function of the input's lifetimes (semantics, section 2, liveliness); the engine keeps the same
numbers in its indexes, and tests compare the two. A rule is *sound*: no legal change after Cti(c) changes output before it, if
the operator sends minimal changes. "Reads RE" below means time-sensitive without right clipping: the module sees ends beyond
its window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.windows.count import Count
from streamdsl.windows.hopping import Hopping
from streamdsl.windows.policies import Clip, Output
from streamdsl.windows.sequence import Sequenced
from streamdsl.windows.session import Session
from streamdsl.windows.snapshot import Snapshot
from streamdsl.windows.spec import Windows


def output_cti(
    windows: Windows, clip: Clip, output: Output, time_sensitive: bool, lifetimes: Iterable[Lifetime], c: int
) -> int | None:
    """Return the output CTI after the input CTI `c`, the input's rows having these lifetimes; None: nothing can be promised yet.

    >>> output_cti(Hopping(10, 10), Clip.NONE, Output.ALIGN, False, [Lifetime(3, INFINITY)], 17)
    10
    """
    if c == INFINITY:
        return c
    lives = [life for life in lifetimes if not life.is_empty]
    reads_re = time_sensitive and not clip.right
    found = _promise(windows, output, time_sensitive, reads_re, lives, c)
    return found if found > MIN_TIME else None


def _promise(windows: Windows, output: Output, time_sensitive: bool, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    if output is Output.TIME_BOUND:
        return c
    if output is Output.POINT_AT_END:
        return point_at_end_cti(windows, reads_re, lives, c)
    if isinstance(windows, Hopping):
        return hopping_cti(windows, reads_re, lives, c)
    if isinstance(windows, Snapshot):
        return snapshot_cti(windows, time_sensitive, reads_re, lives, c)
    if isinstance(windows, Count):
        return count_cti(windows, reads_re, lives, c)
    if isinstance(windows, Sequenced):
        return c
    if isinstance(windows, Session):
        return session_cti(windows, reads_re, lives, c)
    raise TypeError(f"{windows.describe()} has no rule for output CTIs; add one to windows/liveliness.py")


def closed(windows: Windows, window: Lifetime, lifetimes: Iterable[Lifetime], reads_re: bool, c: int) -> bool:
    """Say whether nothing after Cti(c) changes a window's result: W.RE <= c and, if the module reads REs, every member's RE < c.

    >>> closed(Hopping(10, 10), Lifetime(0, 10), [Lifetime(3, 17)], True, 17)
    False
    """
    return window.re <= c and not (reads_re and any(life.re >= c for life in lifetimes if windows.belongs(life, window)))


def point_at_end_cti(windows: Windows, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    """Return the smallest W.RE of a non-empty window that is not closed, at most c."""
    return min((w.re for w in windows.over(lives, until=c) if not closed(windows, w, lives, reads_re, c)), default=c)


def hopping_cti(windows: Hopping, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    """Return the smallest W.LE over all windows of the grid, empty ones too, that are not closed; at most c."""
    ending_later = windows.start(windows.first_ending_after(c))
    open_earlier = [w.le for w in windows.over(lives, until=c) if not closed(windows, w, lives, reads_re, c)]
    return min(c, ending_later, *open_earlier)


def snapshot_cti(windows: Snapshot, time_sensitive: bool, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    """Return c for a time-insensitive module, else the last endpoint before c, where a snapshot may still be cut.

    If the module reads REs: also no later than the first snapshot with a member that may still change its end.
    """
    if not time_sensitive:
        return c
    last_endpoint = max((time for life in lives for time in life if time < c), default=c)
    return min(last_endpoint, _first_with_open_end(windows, lives, c)) if reads_re else last_endpoint


def count_cti(windows: Count, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    """Return the (N-1)-th largest distinct start (end) before c, the smallest if there are fewer, c if none or N = 1.

    A window that starts there still waits for its last point. Counted by start, if the module reads REs: also no later than the
    first window with a member that may still change its end.
    """
    points = sorted({p for life in lives if (p := windows.position(life)) is not None and p < c})
    waiting = points[-(windows.n - 1) :] if windows.n > 1 else []
    first_waiting = waiting[0] if waiting else c
    if reads_re and windows.by == "start":
        return min(first_waiting, _first_with_open_end(windows, lives, c))
    return first_waiting


def session_cti(windows: Session, reads_re: bool, lives: Sequence[Lifetime], c: int) -> int:
    """Return the smallest W.LE over all windows of the sessions, empty ones too, that are not closed; at most c.

    A session that reaches beyond c keeps its start and may still get an event at c, so its window that contains c is open.
    """
    going_on = [session for session in windows.sessions(lives) if session.le < c < session.re]
    around_c = [windows.window(session, windows.number(session, c)).le for session in going_on]
    open_earlier = [w.le for w in windows.over(lives, until=c) if not closed(windows, w, lives, reads_re, c)]
    return min([c, *around_c, *open_earlier])


def unrestricted_cti(c: int) -> int | None:
    """Return the output CTI of a module that may stamp its output anywhere: never any (but at the end of the input).

    >>> unrestricted_cti(17) is None
    True
    """
    return c if c == INFINITY else None


def _first_with_open_end(windows: Windows, lives: Sequence[Lifetime], c: int) -> int:
    open_lives = [life for life in lives if life.re >= c]
    return min((w.le for w in windows.over(lives) if any(windows.belongs(life, w) for life in open_lives)), default=c)
