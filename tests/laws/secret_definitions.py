"""Paper 000 as it is printed (with the errata): everything is computed anew from the whole stream at each arrival."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, TypeAlias

from streamdsl.secret import HEARTBEAT, Profile, Report, Scope, Tick, Tuple

Interval: TypeAlias = tuple[int, int]
Reports: TypeAlias = list[tuple[int, int, list[Any]]]


def scopes(t: int, t0: int, size: int, slide: int, kind: Scope) -> dict[int, Interval]:
    """Scope(t), by the number of the window; windows i = 0, 1, ... are (t0 + i * slide, t0 + i * slide + size]."""
    if t < t0:
        return {}
    windows = {i: (t0 + i * slide, t0 + i * slide + size) for i in range(abs(t - t0) // slide + 3)}
    if kind is Scope.ACTIVE:
        n = max(0, ceil(Fraction(t - t0 - size, slide)))
        return {0: (windows[n][0], t)}
    if kind is Scope.LAST_CLOSED:
        closed = [window for window in windows.values() if window[1] <= t]
        return {0: closed[-1]} if closed else {}
    return {i: (o, t) for i, (o, c) in windows.items() if o < t <= c}


def numbered(t: int, tau: int, size: int, slide: int, stream: list[Tuple]) -> Interval:
    """The scope of windows of tuples: the window of the numbers 1, 2, ... that is active at the last number by t."""
    seen = [each for each in stream if each.t_sys < tau]
    last = sum(time(seen, n) <= t for n in range(len(seen)))
    return max(0, ceil(Fraction(last - size, slide))) * slide, last


def time(stream: list[Tuple], n: int) -> int:
    """When a numbered tuple happened; a late one at the highest time before it."""
    return max(each.t_app for each in stream[: n + 1])


def content(interval: Interval | None, tau: int, stream: list[Tuple]) -> list[Tuple]:
    if interval is None:
        return []
    return [each for each in stream if each.t_sys < tau and interval[0] < each.t_app <= interval[1]]


def report(profile: Profile, t: int, tau: int, t0: int, size: int, slide: int, stream: list[Tuple]) -> Reports:
    """Report(t, tau), for each window that is looked at."""
    values = [each for each in stream if each.value is not HEARTBEAT]
    now, before = (scopes(x, t0, size, slide, profile.scope) for x in (t, t - 1))
    highest = max(each.t_app for each in stream if each.t_sys <= tau)
    found = []
    for number, interval in now.items():
        inside = content(interval, tau, values)
        changed = inside != content(before.get(number), tau, values)
        is_full = interval[1] - interval[0] == size and interval[1] == t
        if kept(profile.report, t, inside, changed, is_full and t < highest):
            found.append((tau, t, [each.value for each in inside]))
    return found


def report_numbered(profile: Profile, t: int, tau: int, _: int, size: int, slide: int, stream: list[Tuple]) -> Reports:
    """Report(t, tau) of windows of tuples: a window closes at the time of the tuple that fills it."""
    values = [each for each in stream if each.value is not HEARTBEAT]
    now, before = (numbered(x, tau, size, slide, values) for x in (t, t - 1))
    inside = values[now[0] : now[1]]
    changed = inside != values[before[0] : before[1]]
    closes = len(inside) == size and time(values, now[1] - 1) == t
    return [(tau, t, [each.value for each in inside])] if kept(profile.report, t, inside, changed, closes) else []


def kept(flags: Report, t: int, inside: list[Tuple], changed: bool, closes: bool) -> bool:
    return (
        (not flags.content_change or changed)
        and (not flags.window_close or closes)
        and (not flags.non_empty or inside != [])
        and (flags.periodic is None or t % flags.periodic == 0)
    )


def tick(kind: Tick, tau: int, t0: int, stream: list[Tuple]) -> list[int]:
    """The application times whose Report Tick(tau) invokes, by the mapping functions of 3.2.4."""
    arrived = next(each for each in stream if each.t_sys == tau)
    earlier = [each for each in stream if each.t_sys < tau]
    prev_app = max([t0, *(each.t_app for each in earlier)])
    prev_batch = max([0, *(each.bid for each in earlier)])
    prev_tick = next((max(t0, each.t_app) for each in reversed(earlier) if tick(kind, each.t_sys, t0, stream)), t0)
    app, gap = arrived.t_app, list(range(prev_tick, arrived.t_app))
    if kind is Tick.TUPLE:
        return [app] if app == prev_tick else gap
    if kind is Tick.TIME:
        return gap if app > prev_app else []
    if arrived.bid <= prev_batch:
        return []
    return [app] if app == prev_tick else gap


def simulate(profile: Profile, size: int, slide: int, stream: list[Tuple], t0: int | None = None, by: str = "time") -> Reports:
    if not stream:
        return []
    start = profile.start(stream[0].t_app, size, slide) if t0 is None else t0
    one = report_numbered if by == "tuples" else report
    return [
        found
        for each in stream
        for t in tick(profile.tick, each.t_sys, start, stream)
        for found in one(profile, t, each.t_sys, start, size, slide, stream)
    ]


def join(profile: Profile, sides: tuple[tuple[list[Tuple], int, int], ...], both: bool) -> list[Any]:
    """Two windows, asked together at each tick of the two streams as one."""
    stream = sorted((each for tuples, _, _ in sides for each in tuples), key=lambda each: each.t_sys)
    if not stream:
        return []
    starts = [profile.start(stream[0].t_app, size, slide) for _, size, slide in sides]
    found = []
    for arrived in stream:
        tau, highest = arrived.t_sys, max(each.t_app for each in stream if each.t_sys <= arrived.t_sys)
        for t in tick(profile.tick, tau, min(starts), stream):
            now, before = (
                [
                    content(scopes(x, t0, size, slide, Scope.ACTIVE).get(0), tau, tuples)
                    for (tuples, size, slide), t0 in zip(sides, starts, strict=True)
                ]
                for x in (t, t - 1)
            )
            closing = [
                t >= t0 and (lambda s: s[1] - s[0] == size)(scopes(t, t0, size, slide, Scope.ACTIVE)[0])
                for (_, size, slide), t0 in zip(sides, starts, strict=True)
            ]
            closes = (all(closing) if both else any(closing)) and t < highest
            full: list[Any] = now if all(now) else []
            if kept(profile.report, t, full, now != before, closes):
                found.append((tau, t, *([each.value for each in side] for side in now)))
    return found
