"""The two stories of paper 002 on generated data: cars on Linear Road (2.2), and who scans the network (section 7).

The expected answers are worked out here by loops over the tuples, with none of the package's code.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from random import Random
from typing import Any, TypeAlias

import pytest

import streamdsl as sd
from streamdsl import cql

Tuple: TypeAlias = tuple[dict[str, Any], int]
SECONDS = 600
FAILED, ATTEMPTS = 3, 5
"""A scanner alert is more than FAILED failures among the last ATTEMPTS connections of a source."""


def cars(seed: int) -> list[Tuple]:
    """Position reports: each car reports every few seconds, more slowly the fuller the road is."""
    rng = Random(seed)
    reports = []
    for t in range(1, 120):
        for car in rng.sample(range(30), rng.choice([0, 3, 10, 20])):
            reports.append(({"VID": car, "Spd": rng.randint(20, 70)}, t))
    return reports


def connections(seed: int) -> list[Tuple]:
    """Connection attempts, many at once: some sources scan for a while, and fail mostly."""
    rng = Random(seed)
    found: list[Tuple] = []
    scans = {f"10.0.0.{n}": (start := rng.randrange(SECONDS), start + rng.randint(30, 200)) for n in range(6)}
    for t in range(1, SECONDS):
        for source, (first, last) in scans.items():
            for _ in range(rng.choice([0, 0, 1, 3])):
                failed = rng.random() < (0.8 if first <= t < last else 0.2)
                connection = {"srcIP": source, "status": "FAILURE" if failed else "SUCCESS", "arrival_number": len(found)}
                found.append((connection, t))
    return found


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def by_time(tuples: list[Tuple]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for payload, t in tuples:
        found[t].append(payload)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_slow_and_crowded_seconds_on_linear_road(seed: int) -> None:
    """P1, P2 and Q of 2.2: the mean speed and the number of cars of each second, and both where it is slow and crowded."""
    reports = cars(seed)
    g = cql.stream_group(S=reports)
    p1 = g.S.range(1).aggregate(speed=sd.avg(lambda e: e.Spd)).istream()
    p2 = g.S.range(1).aggregate(cars=sd.count_distinct(lambda e: e.VID)).istream()
    q = cql.stream_group(P1=p1, P2=p2)
    slow = q.P1.range(1).join(
        q.P2.range(1), where=lambda s, n: (s.speed < 45) & (n.cars >= 10), select=lambda s, n: (s.speed, n.cars)
    )
    seconds = by_time(reports)
    expected = {t: (mean([e["Spd"] for e in rows]), len({e["VID"] for e in rows})) for t, rows in seconds.items()}
    assert [(t, row.speed) for (t, _), row in p1.events()] == [(t, pytest.approx(speed)) for t, (speed, _) in expected.items()]
    assert [(t, row.cars) for (t, _), row in p2.events()] == [(t, n) for t, (_, n) in expected.items()]
    found = {t: row for (t, _), row in slow.istream().events()}
    assert found == {t: (pytest.approx(speed), n) for t, (speed, n) in expected.items() if speed < 45 and n >= 10}
    assert found


@pytest.mark.parametrize("seed", range(3))
def test_every_report_is_answered_once_simultaneity_is_broken(seed: int) -> None:
    """The mean speed of the last two cars, and of the second so far, as of each report: no tuple evaporates."""
    reports = cars(seed)
    tuples = [({**payload, "rank": n}, t) for n, (payload, t) in enumerate(reports)]
    g = cql.spread(cql.stream_group(S=tuples), ["S"], on="rank")
    last = g.S.rows(2).aggregate(speed=sd.avg(lambda e: e.Spd)).istream().events()
    so_far = g.S.range(1).aggregate(speed=sd.avg(lambda e: e.Spd)).istream().events()
    speeds = [payload["Spd"] for payload, _ in reports]
    times = [t for _, t in reports]
    assert [row.speed for _, row in last] == [mean(speeds[max(n - 1, 0) : n + 1]) for n in range(len(speeds))]
    expected = [mean(speeds[times.index(t) : n + 1]) for n, t in enumerate(times)]
    # An empty second takes the last one's cars away, and gives no row: each row is a report's.
    assert [row.speed for _, row in so_far] == [pytest.approx(speed) for speed in expected]


def scanner_alerts(g: cql.StreamGroup) -> cql.Relation:
    """ISTREAM of it is ScannerAlertStream."""
    last = g.C.partition_by("srcIP").rows(ATTEMPTS).where(lambda e: e.status == "FAILURE")
    return (
        last.group_by("srcIP")
        .aggregate(failures=sd.count())
        .having(lambda e: e.failures > FAILED)
        .select(srcIP=lambda e: e.srcIP)
    )


def rising(g: cql.StreamGroup) -> cql.Relation:
    """ISTREAM of it is AlertStream: sources with more alerts in the last minute than in the one before."""
    minute = g.A.range(60, slide=60).group_by("srcIP").aggregate(min_count=sd.count())
    two = g.A.range(120, slide=60).group_by("srcIP").aggregate(two_min_count=sd.count())
    return minute.join(
        two, on="srcIP", where=lambda m, t: 2 * m.min_count > t.two_min_count, select=lambda m, t: {"srcIP": m.srcIP}
    )


def alerts_by_hand(tuples: list[Tuple]) -> list[tuple[int, str]]:
    """An alert each time that the failures among a source's last attempts change, and are many."""
    last: dict[str, deque[tuple[int, bool]]] = defaultdict(lambda: deque(maxlen=ATTEMPTS))
    found = []
    for n, (connection, t) in enumerate(tuples):
        mine = last[connection["srcIP"]]
        before = {m for m, failed in mine if failed}
        mine.append((n, connection["status"] == "FAILURE"))
        now = {m for m, failed in mine if failed}
        if len(now) > FAILED and now != before:
            found.append((t, connection["srcIP"]))
    return found


def rising_by_hand(alerts: list[tuple[int, str]]) -> list[tuple[int, str]]:
    minutes = Counter((-(-t // 60) * 60, source) for t, source in alerts)
    ends = range(60, SECONDS + 1, 60)
    return sorted((t, s) for t in ends for s in {s for _, s in alerts} if minutes[t, s] > minutes[t - 60, s])


@pytest.mark.parametrize("seed", range(3))
def test_the_sources_whose_scanner_alerts_become_more(seed: int) -> None:
    tuples = connections(seed)
    ordered = cql.spread(cql.stream_group(C=tuples, span=(0, SECONDS)), ["C"], on="arrival_number")
    alerts = scanner_alerts(ordered).istream()
    expected = alerts_by_hand(tuples)
    assert [(t, row.srcIP) for (t, _), row in alerts.events()] == expected
    together = cql.spread(cql.stream_group(A=alerts), ["A"], on="t", all=True)
    assert {i for _, i in together.A.batches} == {1}
    found = rising(together).istream()
    assert [(t, row.srcIP) for (t, _), row in found.events()] == rising_by_hand(expected)
    assert len(found.events()) > 5


def test_the_same_queries_run_on_traffic_that_comes_second_by_second() -> None:
    """SPREAD, a session, SPREAD ALL, a session: each is released by the CTI of the one before."""
    tuples = connections(0)
    order, scanners = cql.RunningSpread(on="arrival_number"), scanner_alerts(cql.stream_group(C=[])).open()
    together, risers = cql.RunningSpread(on="t", all=True), rising(cql.stream_group(A=[])).open()
    traffic, found = by_time(tuples), []
    risers.advance(0)
    for t in range(1, SECONDS + 1):
        seen = traffic[t]
        Random(t).shuffle(seen)
        order.push([("C", connection, t) for connection in seen])
        alerts = scanners.push(order.advance(t + 1)).istream
        together.push([("A", alert, at) for (at, _), alert in alerts])
        found += risers.push(together.advance(t + 1)).istream + risers.advance(t + 1).istream
        assert order.held == together.held == 0
    assert sorted((t, row.srcIP) for (t, _), row in found) == rising_by_hand(alerts_by_hand(tuples))
