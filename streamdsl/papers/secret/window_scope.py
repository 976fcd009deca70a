"""Scope: the interval in which a query looks at an application time (paper 000, 3.2.1)."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal.integers import whole_number

Interval: TypeAlias = tuple[int, int]
"""(o, c], open on its left; it is empty where o >= c."""


class Scope(Enum):
    """Which windows are looked at: the earliest open one (SECRET's own), the last closed one, or each open one."""

    ACTIVE = "active"
    LAST_CLOSED = "last closed"
    ALL_OPEN = "all open"

    @classmethod
    def _missing_(cls, value: object) -> Scope:
        raise QueryError(f"there is no scope {value!r}; there are: {', '.join(map(repr, [each.value for each in cls]))}")

    @property
    def words(self) -> str:
        """The windows that are in scope, in words.

        >>> Scope.ALL_OPEN.words
        'all open windows'
        """
        return f"{self.value} windows" if self is Scope.ALL_OPEN else f"the {self.value} window"


def scope(t: int, t0: int, size: int, slide: int) -> Interval | None:
    """Return the scope (o, t] of the active window at time t as `(o, t)`, None before t0.

    Between windows (slide > size) o is not below t: then the scope is empty.

    >>> scope(34, 30, 5, 2), scope(29, 30, 5, 2)
    ((30, 34), None)
    """
    check_window(size, slide)
    return None if t < t0 else (opening(t, t0, size, slide), t)


def scopes(t: int, t0: int, size: int, slide: int, kind: Scope = Scope.ACTIVE) -> list[Interval]:
    """Return the intervals in scope, in order of start.

    A window (o, c] is open at o < t <= c, and the last closed one is the latest with c <= t.

    >>> scopes(34, 30, 4, 2, Scope.ALL_OPEN), scopes(37, 30, 4, 2, Scope.LAST_CLOSED)
    ([(30, 34), (32, 34)], [(32, 36)])
    """
    check_window(size, slide)
    return intervals(t, t0, size, slide, Scope(kind))


def intervals(t: int, t0: int, size: int, slide: int, kind: Scope) -> list[Interval]:
    """Return `scopes` of a window that has been checked."""
    if t < t0:
        return []
    if kind is Scope.ACTIVE:
        return [(opening(t, t0, size, slide), t)]
    if kind is Scope.LAST_CLOSED:
        last = (t - t0 - size) // slide
        return [(t0 + last * slide, t0 + last * slide + size)] if last >= 0 else []
    return [(start, t) for start in range(opening(t, t0, size, slide), t, slide)]


def opening(t: int, t0: int, size: int, slide: int) -> int:
    """Return the start of the active window at a time that is not before t0.

    >>> opening(36, 24, 5, 1)
    31
    """
    return t0 + max(0, -((t0 + size - t) // slide)) * slide


def closes(t: int, t0: int, size: int, slide: int) -> bool:
    """Say whether a window closes at t, that is |Scope(t)| = size.

    >>> closes(35, 30, 5, 2), closes(36, 30, 5, 2)
    (True, False)
    """
    return t >= t0 + size and (t - t0 - size) % slide == 0


def lifetime(t_app: int, t0: int, size: int, slide: int) -> tuple[int, int] | None:
    """Return `[LE, RE)`: the instants at whose active window a tuple is; None if it is in none.

    So Scope and Content are those of the temporal algebra: Content(t), of all tuples, is the snapshot at t of these lifetimes.

    >>> lifetime(31, 24, 5, 1), lifetime(33, 30, 2, 5)
    ((31, 36), None)
    """
    check_window(size, slide)
    end = leaving(t_app, t0, size, slide)
    return (t_app, end) if t_app > t0 and opening(t_app, t0, size, slide) < t_app < end else None


def leaving(t_app: int, t0: int, size: int, slide: int) -> int:
    """Return the first instant whose active window starts at `t_app` or later.

    >>> leaving(31, 24, 5, 2)
    36
    """
    return t0 + (-((t0 - t_app) // slide) - 1) * slide + size + 1


def check_window(size: object, slide: object) -> None:
    """Raise `QueryError` for what is no size or no slide."""
    whole_number(size, "a window's size is", 1)
    whole_number(slide, "a window's slide is", 1)
