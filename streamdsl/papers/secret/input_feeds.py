"""Feeds: transformations of the input that engines make, or that experiments make to test them (paper 000, B.1)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import groupby, pairwise
from typing import Literal

from streamdsl.papers.secret.tuples import HEARTBEAT, Given, Tuple, read
from streamdsl.temporal.integers import whole_number


def restamp(tuples: Iterable[Given], first: int) -> list[Tuple]:
    """Return tuples with application times shifted so that the first one has `first`, as StreamBase does at each start.

    >>> [t.t_app for t in restamp([("a", 1), ("b", 3)], 11)]
    [11, 13]
    """
    found, first = read(tuples), whole_number(first, "the first tuple's new time is")
    return [each._replace(t_app=each.t_app - found[0].t_app + first) for each in found]


def bundle(tuples: Iterable[Given], by: Literal["tuple", "time"] | int) -> list[Tuple]:
    """Return tuples in new batches, as Coral8's atomic bundles are: each alone, all simultaneous ones, or so many of these.

    >>> [t.bid for t in bundle([("a", 3), ("b", 5), ("c", 5), ("d", 5)], by=2)]
    [1, 2, 2, 3]
    """
    wanted = 'a bundle is by "tuple", by "time", or by'
    most = {"tuple": 1, "time": None}[by] if by in ("tuple", "time") else whole_number(by, wanted, 1)
    found: list[Tuple] = []
    bid, size = 0, 0
    for each in read(tuples):
        if not found or each.t_app != found[-1].t_app or size == most:
            bid, size = bid + 1, 0
        size += 1
        found.append(each._replace(bid=bid))
    return found


def system_time(tuples: Iterable[Given]) -> list[Tuple]:
    """Return tuples whose application time is that of their arrival, for windows of system time (paper 000, B.1.1).

    >>> [t.t_app for t in system_time([("a", 3, 10, 1), ("b", 3, 14, 2)])]
    [10, 14]
    """
    return [each._replace(t_app=each.t_sys) for each in read(tuples)]


def in_order(tuples: Iterable[Given]) -> list[Tuple]:
    """Return tuples in order of application time, as a query over a table sees them, which has no order of arrival.

    >>> [t.value for t in in_order([("b", 2), ("a", 1), ("late", 0)])]
    ['late', 'a', 'b']
    """
    return _placed(sorted(read(tuples), key=lambda each: each.t_app))


def at_batch_ends(tuples: Iterable[Given], behind: int = 0) -> list[Tuple]:
    """Return tuples for an engine that is driven by batches, and looks when one is over: at its latest time, or one before.

    Those of a batch are in order of application time, and cause no Report; a heartbeat after them does, if time goes on: to the
    latest time of the batch, or of the one that is so many `behind`; after the last batch to all that are left.

    >>> [(t.value, t.t_app, t.bid) for t in at_batch_ends([("b", 7, 1, 1), ("a", 5, 2, 1), ("c", 9, 3, 2)])]
    [('a', 5, 0), ('b', 7, 0), (HEARTBEAT, 7, 1), ('c', 9, 1), (HEARTBEAT, 9, 2)]
    >>> [(t.value, t.t_app) for t in at_batch_ends([("a", 5), ("b", 7), ("c", 9)], behind=1)]
    [('a', 5), ('b', 7), (HEARTBEAT, 5), ('c', 9), (HEARTBEAT, 7), (HEARTBEAT, 9)]
    """
    behind = whole_number(behind, "batches behind are", 0)
    found: list[Tuple] = []
    reached: list[int] = []
    beats = 0

    def beat(number: int) -> None:
        nonlocal beats
        if number == 0 or (number > 0 and reached[number] > reached[number - 1]):
            beats += 1
            found.append(Tuple(HEARTBEAT, reached[number], 0, beats))

    for _, batch in groupby(read(tuples), key=lambda each: each.bid):
        inside = sorted(batch, key=lambda each: each.t_app)
        found += [each._replace(bid=beats) for each in inside]
        reached.append(max([*reached[-1:], inside[-1].t_app]))
        beat(len(reached) - 1 - behind)
    for number in range(max(0, len(reached) - behind), len(reached)):
        beat(number)
    return [each._replace(t_sys=place) for place, each in enumerate(found, 1)]


def slack(tuples: Iterable[Given], delay: int) -> list[Tuple]:
    """Return tuples in order of application time; one that is more than `delay` behind is lost (paper 000, B.1.3).

    A tuple waits until one has come whose time is more than `delay` later. What leaves is numbered anew: system time and batch-id
    are its place, as for tuples given without them.

    >>> [t.value for t in slack([("a", 1), ("c", 4), ("b", 2), ("d", 9), ("lost", 3)], delay=3)]
    ['a', 'b', 'c', 'd']
    """
    delay = whole_number(delay, "a slack is", 0)
    waiting: list[tuple[int, int, Tuple]] = []
    found: list[Tuple] = []
    highest: int | None = None
    for each in read(tuples):
        highest = each.t_app if highest is None else max(highest, each.t_app)
        if each.t_app >= highest - delay:
            heappush(waiting, (each.t_app, each.t_sys, each))
        while waiting and waiting[0][0] < highest - delay:
            found.append(heappop(waiting)[2])
    found.extend(each for _, _, each in sorted(waiting, key=lambda each: each[:2]))
    return _placed(found)


def max_delay(tuples: Iterable[Given], delay: int) -> list[Tuple]:
    """Return tuples with heartbeats where none arrives for so long: application time goes on as system time does (B.1.2).

    It goes on from the latest time, of a tuple or a heartbeat. A tuple that comes with an earlier one is late: it causes no
    Report, later ones see it.

    >>> [(t.value, t.t_app, t.t_sys) for t in max_delay([("a", 1, 10, 1), ("b", 9, 17, 2)], 3)]
    [('a', 1, 10), (HEARTBEAT, 4, 13), (HEARTBEAT, 7, 16), ('b', 9, 17)]
    """
    delay, found = whole_number(delay, "a delay is", 1), read(tuples)
    if not found:
        return []
    latest, beaten = found[0], found[:1]
    for before, after in pairwise(found):
        for time in range(before.t_sys + delay, after.t_sys, delay):
            latest = Tuple(HEARTBEAT, latest.t_app + time - latest.t_sys, time, before.bid)
            beaten.append(latest)
        beaten.append(after)
        latest = max(latest, after, key=lambda each: (each.t_app, each.t_sys))
    return _numbered(beaten)


def until(tuples: Iterable[Given], time: int) -> list[Tuple]:
    """Return tuples and then a heartbeat at a time, so that what has closed before it is reported.

    >>> until([("a", 1)], 9)[1]
    Tuple(value=HEARTBEAT, t_app=9, t_sys=2, bid=2)
    """
    found, time = read(tuples), whole_number(time, "a heartbeat's time is")
    last = found[-1] if found else Tuple(None, time, 0, 0)
    return [*found, Tuple(HEARTBEAT, time, last.t_sys + 1, last.bid + 1)]


def _placed(tuples: list[Tuple]) -> list[Tuple]:
    """Number tuples anew: system time and batch-id are their place."""
    return [each._replace(t_sys=place, bid=place) for place, each in enumerate(tuples, 1)]


def _numbered(tuples: list[Tuple]) -> list[Tuple]:
    """Give each heartbeat a batch of its own; the tuples' stay apart as they were."""
    found: list[Tuple] = []
    beats = 0
    for each in tuples:
        beats += each.value is HEARTBEAT
        found.append(each._replace(bid=each.bid + beats))
    return found
