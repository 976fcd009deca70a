"""The indexes against plain lists: weighted random actors with a seed, the invariants checked after every step."""

from __future__ import annotations

import random

import pytest

from streamdsl.engine.general.event_index import EventIndex, EventRow
from streamdsl.engine.general.point_index import PointIndex
from streamdsl.engine.general.window_index import WindowEntry, WindowIndex
from streamdsl.temporal import INFINITY


def _random_row(rng: random.Random, id: int) -> EventRow:
    le = rng.randint(-50, 50)
    re = INFINITY if rng.random() < 0.15 else le + rng.choice([1, 2, 3, 7, 20, 64, 500])
    return EventRow(id, le, re)


@pytest.mark.parametrize("seed", range(5))
def test_event_index_holds_what_a_list_holds(seed: int) -> None:
    rng = random.Random(seed)
    index, rows = EventIndex(), dict[int, EventRow]()
    for step in range(600):
        action = rng.choices(["add", "remove", "overlapping", "ending", "forget"], [5, 3, 4, 1, 0.3])[0]
        if action == "add":
            rows[step] = _random_row(rng, step)
            index.add(rows[step])
        elif action == "remove" and rows:
            id = rng.choice(list(rows))
            assert index.remove(id, rows[id].le) is rows.pop(id)
        elif action == "overlapping":
            lo = rng.randint(-60, 60)
            hi = lo + rng.randint(-1, 30)
            expected = {id for id, row in rows.items() if lo < hi and row.le < hi and row.re > lo}
            assert {row.id for row in index.overlapping(lo, hi)} == expected
        elif action == "ending":
            time = rng.randint(-60, 80)
            assert {row.id for row in index.ending_from(time)} == {id for id, row in rows.items() if row.re >= time}
        elif action == "forget":
            before = rng.randint(-60, 0)
            dead = {row.id for row in index.forget(before)}
            assert dead == {id for id, row in rows.items() if row.re < before}
            rows = {id: row for id, row in rows.items() if id not in dead}
        index._check()
        assert len(index) == len(rows)
        assert index.latest_end() == max((row.re for row in rows.values()), default=None)


@pytest.mark.parametrize("seed", range(5))
def test_window_index_holds_what_a_list_holds(seed: int) -> None:
    rng = random.Random(seed)
    index, entries = WindowIndex(), dict[int, WindowEntry]()
    for _ in range(600):
        action = rng.choices(["add", "remove", "look", "forget"], [5, 2, 5, 0.3])[0]
        le = rng.randint(-60, 60)
        if action == "add" and le not in entries:
            entries[le] = index.add(WindowEntry(le, le + 10))
        elif action == "remove" and entries:
            le = rng.choice(list(entries))
            assert index.remove(le) is entries.pop(le)
        elif action == "look":
            _look(index, entries, le)
        elif action == "forget":
            closed = [entry.le for entry in index.forget(le)]
            assert closed == sorted(start for start in entries if start + 10 <= le)
            entries = {start: entry for start, entry in entries.items() if start not in closed}
        index._check()
        assert [entry.le for entry in index] == sorted(entries)


def _look(index: WindowIndex, entries: dict[int, WindowEntry], time: int) -> None:
    starts = sorted(entries)
    assert index.get(time) is entries.get(time)
    assert index.covering(time) is entries.get(max((s for s in starts if s <= time), default=10**9))
    assert index.before(time) is entries.get(max((s for s in starts if s < time), default=10**9))
    assert index.after(time) is entries.get(min((s for s in starts if s > time), default=10**9))
    assert [entry.le for entry in index.between(time, time + 9)] == [s for s in starts if time <= s < time + 9]


@pytest.mark.parametrize("seed", range(5))
def test_point_index_holds_what_a_list_holds(seed: int) -> None:
    rng = random.Random(seed)
    index, rows = PointIndex(), dict[int, tuple[int, EventRow]]()
    for step in range(600):
        action = rng.choices(["add", "remove", "look", "forget"], [5, 3, 5, 0.2])[0]
        point = rng.randint(-40, 40)
        if action == "add":
            row = _random_row(rng, step)
            assert index.add(point, row) is (point not in {p for p, _ in rows.values()})
            rows[step] = point, row
        elif action == "remove" and rows:
            id = rng.choice(list(rows))
            point, row = rows.pop(id)
            assert index.remove(point, id) == (row, point not in {p for p, _ in rows.values()})
        elif action == "look":
            _look_at_points(index, rows, point, rng.randint(0, 4))
        elif action == "forget":
            index.forget(point)
            rows = {id: (p, row) for id, (p, row) in rows.items() if p >= point}
        index._check()
        assert index.n_events == len(rows)


def _look_at_points(index: PointIndex, rows: dict[int, tuple[int, EventRow]], point: int, n: int) -> None:
    points = sorted({p for p, _ in rows.values()})
    earlier, later = [p for p in points if p < point], [p for p in points if p >= point]
    assert len(index) == len(points)
    assert index.first() == min(points, default=None)
    assert index.last(n, before=point) == (earlier[-n:] if n else [])
    if point in points:
        assert index.following(point, n) == (later[n] if n < len(later) else None)
    inside = {id for id, (p, _) in rows.items() if point <= p < point + 9}
    assert {row.id for row in index.between(point, point + 9)} == inside
    assert all(index.get(p, id) is row for id, (p, row) in rows.items())


def test_short_events_are_found_without_looking_at_long_ones_ends() -> None:
    index = EventIndex()
    for n in range(1000):
        index.add(EventRow(n, n, n + 2))
    index.add(EventRow("long", 0, 10**6))
    assert {row.id for row in index.overlapping(500, 501)} == {499, 500, "long"}
