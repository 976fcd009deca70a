"""The kinds of windows, each with an oracle that shares no code with it: the definitions, tick by tick (paper 001, III.B).

The oracles know lifetimes as sets of ticks, and find windows by looking at every tick in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import streamdsl as sd
from streamdsl import astral
from streamdsl.windows import CalendarPeriods, Count, Hopping, Sequenced, Session, Snapshot
from tests.laws.modules import Latest, Through
from tests.operators.entry import Divided, Kind, Life

FIRST, LAST = -40, 80


def overlapping(windows: Iterable[Life], lives: Sequence[Life]) -> Divided:
    """Return the windows that share a tick with some life, with the numbers of those lives."""
    found = []
    for start, end in windows:
        members = [number for number, (le, re) in enumerate(lives) if set(range(le, re)) & set(range(start, end))]
        if members:
            found.append(((start, end), members))
    return found


def grid(size: int, hop: int, offset: int) -> Callable[[Sequence[Life]], Divided]:
    """A window starts at every tick that is a multiple of the hop away from the offset."""
    starts = [tick for tick in range(FIRST, LAST) if (tick - offset) % hop == 0]
    return lambda lives: overlapping([(start, start + size) for start in starts], lives)


def snapshots(lives: Sequence[Life]) -> Divided:
    """A window goes on from tick to tick until some life starts or ends."""
    found: list[Life] = []
    start = FIRST
    for tick in range(FIRST + 1, LAST + 1):
        if any(tick in life for life in lives if life[0] < life[1]) or tick == LAST:
            found.append((start, tick))
            start = tick
    return overlapping(found, lives)


def sessions(gap: int, longest: int | None = None) -> Callable[[Sequence[Life]], Divided]:
    """Two ticks next to each other are of one session if some life, with the gap after it, has both."""

    def divided(lives: Sequence[Life]) -> Divided:
        covered = [set(range(le, re + gap)) for le, re in lives if le < re]
        windows: list[Life] = []
        for tick in range(FIRST, LAST):
            if not any(tick in ticks for ticks in covered):
                continue
            goes_on = any({tick - 1, tick} <= ticks for ticks in covered)
            if goes_on and windows:
                windows[-1] = windows[-1][0], tick + 1
            else:
                windows.append((tick, tick + 1))
        return overlapping([piece for window in windows for piece in cut(window, longest)], lives)

    return divided


def cut(window: Life, longest: int | None) -> list[Life]:
    pieces = [window]
    while longest is not None and pieces[-1][1] - pieces[-1][0] > longest:
        start, end = pieces.pop()
        pieces += [(start, start + longest), (start + longest, end)]
    return pieces


def counted(n: int, by_end: bool) -> Callable[[Sequence[Life]], Divided]:
    """A window starts at every tick at which some life starts, if n - 1 later ones follow, and ends after the last of these."""

    def divided(lives: Sequence[Life]) -> Divided:
        points = [life[by_end] if life[0] < life[1] else None for life in lives]
        ticks = [tick for tick in range(FIRST, LAST) if tick in points]
        found: Divided = []
        for place, start in enumerate(ticks):
            if place + n <= len(ticks):
                inside = ticks[place : place + n]
                found.append(((start, inside[-1] + 1), [number for number, point in enumerate(points) if point in inside]))
        return found

    return divided


KINDS = [
    Kind(
        "tumbling",
        variants=[lambda s, **p: s.tumbling_window(5, **p), lambda s, **p: s.tumbling_window(7, offset=3, **p)],
        time_bound=Through(),
        instances={"tumbling": (Hopping(6, 6, 1), grid(6, 6, 1))},
    ),
    Kind(
        "hopping",
        meaning="""
            **Hopping**(size, hop, offset): `[offset + k * hop, + size)` for every integer k, negative too. Tumbling: hop =
            size.
        """,
        variants=[
            lambda s, **p: s.hopping_window(10, 5, **p),
            lambda s, **p: s.hopping_window(7, 3, offset=-2, **p),
            lambda s, **p: s.hopping_window(3, 8, offset=1, **p),
        ],
        time_bound=Through(),
        instances={
            "hopping": (Hopping(9, 4, 3), grid(9, 4, 3)),
            "hopping with gaps": (Hopping(3, 7), grid(3, 7, 0)),
        },
        spark={"tumbling, hopping, trailing": lambda s: s.hopping_window(6, 2).aggregate(n=sd.count())},
    ),
    Kind(
        "calendar",
        meaning="""
            **Calendar**(period, every, zone): the date of an instant is the latest that clocks of the zone have shown until
            then, and W goes from the first instant with a date of the period, or of a later one, to that of the next period.
            [choice] So windows are a partition of time, whatever clocks do: a day may have 23 or 25 hours; where midnight
            does not exist it begins when clocks go on; where clocks go back over midnight the new day has begun and goes on;
            a date that a place has left out (Apia, 2011-12-30) is no window, and one that it has lived twice is one. Weeks
            begin on Monday, a quarter is three months; `every` n counts days and months from 1970-01-01, weeks from the one
            of that day. Offsets are those of the zone's file in the IANA database, to the second: before the first change the
            one that it begins with, after the last one by the rule that it ends with, for ever; dates are those of the
            proleptic Gregorian calendar. A window that leaves the range of times is a `TimeOverflow`, as one of any grid. On
            plain ticks they are a `UnitError`.
        """,
        tick=21_000,
        instances={"calendar": (CalendarPeriods("day", unit="s"), None)},
        spark={"calendar": lambda s: s.calendar_window("month", tz="Europe/Berlin").aggregate(n=sd.count())},
    ),
    Kind(
        "snapshot",
        meaning="""
            **Snapshot**: between consecutive distinct endpoints; INFINITY is one.
        """,
        ctis={
            "snapshot, time-insensitive": "c",
            "snapshot, time-sensitive": """
                the last endpoint < c; unclipped also no later than the first LE of an event with RE >= c
            """,
        },
        may_grow=True,
        variants=[lambda s, **p: s.snapshot_window(**p)],
        time_bound=Through(),
        instances={"snapshot": (Snapshot(), snapshots)},
        spark={"snapshot": lambda s: s.snapshot_window().aggregate(n=sd.count())},
    ),
    Kind(
        "count by start",
        meaning="""
            **Count**(N, by start): for N consecutive *distinct* starts s_1..s_N the window `[s_1, s_N + 1)`; its members are
            the events whose start is inside. By end: the same over distinct finite ends. [erratum] The paper adds this test
            to overlap, but an event that ends where a window starts does not overlap it, so the endpoint test replaces
            overlap.
        """,
        ctis={
            "count": "the (N-1)-th largest distinct start (end) < c; with fewer, the smallest; c if there is none, or N = 1",
        },
        variants=[
            lambda s, **p: s.count_window(1, **p),
            lambda s, **p: s.count_window(2, **p),
            lambda s, **p: s.count_window(3, **p),
        ],
        time_bound=Latest(),
        instances={
            "count by start": (Count(2), counted(2, by_end=False)),
            "count of one": (Count(1), counted(1, by_end=False)),
        },
        spark={"count": lambda s: s.count_window(3).aggregate(n=sd.count())},
    ),
    Kind(
        "count by end",
        variants=[lambda s, **p: s.count_window(1, by="end", **p), lambda s, **p: s.count_window(2, by="end", **p)],
        instances={"count by end": (Count(3, "end"), counted(3, by_end=True))},
    ),
    Kind(
        "session",
        meaning="""
            **Session**(gap, max_duration): in order of LE, an event joins the session before it if its LE < end + gap, where
            end is the largest RE so far. W = `[first LE, end + gap)`. With a max_duration W is cut at every first LE + k *
            max_duration, wherever the gaps are; an event is in each piece that it overlaps. No two windows of sessions
            overlap. [choice]
        """,
        ctis={
            "session": """
                min(c, LE of the first window, empty pieces too, that is not closed): an event at c may still join a session
                with c < end + gap
            """,
        },
        variants=[
            lambda s, **p: s.session_window(1, **p),
            lambda s, **p: s.session_window(3, **p),
            lambda s, **p: s.session_window(8, **p),
        ],
        time_bound=Through(),
        instances={"session": (Session(3), sessions(3))},
        spark={"session": lambda s: s.session_window(3).aggregate(n=sd.count())},
    ),
    Kind(
        "cut session",
        variants=[
            lambda s, **p: s.session_window(1, 4, **p),
            lambda s, **p: s.session_window(3, 5, **p),
            lambda s, **p: s.session_window(2, 11, **p),
            lambda s, **p: s.session_window(9, 2, **p),
        ],
        time_bound=Through(),
        instances={
            "session, cut": (Session(4, 6), sessions(4, 6)),
            "session, cut more often than its gap": (Session(6, 2), sessions(6, 2)),
        },
        spark={"session with `max_duration`": lambda s: s.session_window(3, 9).aggregate(n=sd.count())},
    ),
    Kind(
        "sequence",
        meaning="""
            **Sequence** (`windows(ws, start)`, paper 003): a row is a tuple at t = LE, simultaneous rows are one batch `(LE,
            0)`, positions go by (LE, payload), and where rows end does not count. [choice] The query starts at t0 = `start`,
            by default at the first LE (in a group: of its key), and sees rows from then on. gamma is taken at every tick,
            after the rows of it. W is the time for which window j is the last one: from the first tick at which gamma is j to
            the first at which it is not, INFINITY if there is none; its members are what the view at W.LE has between the
            bounds of j. `RANGE x` without a slide is another window when a row comes or grows too old. [choice] Members lie
            before W, so only time-insensitive modules and `Output.ALIGN` have a meaning; `to_points()` gives the ticks at
            which windows are created.
        """,
        ctis={
            "sequence": """
                c: which window is the last one at a tick, and what is in it, depends on rows with LE up to that tick alone
            """,
        },
        may_grow=True,
        instances={
            "sequence by time": (Sequenced(astral.range_slide(7, 3)), None),
            "sequence by position": (Sequenced(astral.rows_slide(3, 2)), None),
        },
        spark={"sequences (`windows`)": lambda s: s.windows(astral.range_slide(6, 6)).aggregate(n=sd.count())},
    ),
]
"""Calendar windows have their oracle, and more laws, in tests/laws/test_calendar_windows.py.

Of sequences the laws have variants of their own, `SEQUENCES` of tests/laws/operators.py, and tests/laws/test_sequences.py."""
