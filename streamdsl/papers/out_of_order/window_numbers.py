"""Window ids: which windows a time belongs to, and where a window is (paper 004, A.2.2, and semantics)."""

from __future__ import annotations

import builtins

from streamdsl.papers.out_of_order.items import Time, check_positive


def wids(ts: Time, range: Time, slide: Time) -> builtins.range:
    """Return the ids of the windows that a time belongs to.

    >>> wids(61, 60, 60), wids(61, 120, 60)
    (range(1, 2), range(1, 3))
    """
    _check(range, slide)
    return builtins.range(int(ts // slide), int((ts + range) // slide))


def extent(wid: int, range: Time, slide: Time) -> tuple[Time, Time]:
    """Return where a window begins and ends: `[(wid + 1) * slide - range, (wid + 1) * slide)`.

    >>> extent(1, 120, 60)
    (0, 120)
    """
    _check(range, slide)
    end = (wid + 1) * slide
    return end - range, end


def _check(range: Time, slide: Time) -> None:
    check_positive(range, "range")
    check_positive(slide, "slide")
