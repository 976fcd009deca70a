from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, assert_law, random_rows
from udm_examples.geofence import EARTH_RADIUS, Circle, Crossing, Fence, Geofence, Polygon, Position, distance

YARD = Polygon("yard", ((0, 0), (4, 0), (4, 4), (2, 1), (0, 4)))
TOWER = Circle("tower", lon=5, lat=5, radius=300_000)
FENCES: list[Fence] = [YARD, TOWER]


def position(rng: Random) -> Position:
    return Position(rng.choice(["van", "bus"]), rng.randint(-1, 7), rng.randint(-1, 7))


def is_inside(corners: tuple[tuple[int, int], ...], x: int, y: int) -> bool:
    """Say whether a point of a small grid is on the border, or a ray that meets no other point of it crosses an odd number."""
    crossings = 0
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (x2 - x1) * (y - y1) == (y2 - y1) * (x - x1) and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2):
            return True
        # The ray is (x, y) + s * (1009, 1), the edge (x1, y1) + r * (x2 - x1, y2 - y1).
        determinant = (x2 - x1) - 1009 * (y2 - y1)
        if determinant:
            r = Fraction(1009 * (y1 - y) - (x1 - x), determinant)
            s = Fraction((x2 - x1) * (y1 - y) - (y2 - y1) * (x1 - x), determinant)
            crossings += 0 < r < 1 and s > 0
    return crossings % 2 == 1


@examples(72)
@given(SEEDS)
def test_a_polygon_holds_what_a_ray_leaves_an_odd_number_of_times(seed: int) -> None:
    rng = Random(seed)
    corners = tuple((rng.randint(-4, 4), rng.randint(-4, 4)) for _ in range(rng.randint(3, 7)))
    polygon = Polygon("p", corners)
    for x in range(-5, 6):
        for y in range(-5, 6):
            assert polygon.holds(x, y) == is_inside(corners, x, y), (corners, x, y)


def unit_vector(lon: float, lat: float) -> tuple[float, float, float]:
    a, b = math.radians(lon), math.radians(lat)
    return math.cos(b) * math.cos(a), math.cos(b) * math.sin(a), math.sin(b)


@examples(90)
@given(SEEDS)
def test_distances_are_those_of_the_chord(seed: int) -> None:
    rng = Random(seed)
    here, there = ((rng.uniform(-200, 200), rng.uniform(-90, 90)) for _ in range(2))
    chord = math.dist(unit_vector(*here), unit_vector(*there))
    assert distance(*here, *there) == pytest.approx(2 * EARTH_RADIUS * math.asin(min(1.0, chord / 2)), abs=1e-3)


def test_circles_know_no_edge_of_the_map() -> None:
    fiji = Circle("Fiji", lon=179.5, lat=-17, radius=200_000)
    assert fiji.holds(-179.5, -17)
    assert not fiji.holds(176, -17)
    pole = Circle("pole", lon=0, lat=90, radius=200_000)
    assert all(pole.holds(lon, 88.5) for lon in range(-180, 181, 30))
    assert not pole.holds(0, 88)


@pytest.mark.parametrize("lost", [Position("van", math.nan, 1), Position("van", 1, math.inf)])
def test_a_receiver_without_signal_crosses_nothing(lost: Position) -> None:
    rows = [(1, 2, Position("van", 1, 1)), (3, 4, lost), (5, 6, Position("van", 1, 1))]
    assert run_udm(Geofence(FENCES), rows, (0, 10), output=sd.Output.UNCHANGED) == []


def crossings(rows: list[Row]) -> Counter[Row]:
    """The definition: what changes from one time of a vehicle to its next."""
    found: Counter[Row] = Counter()
    for vehicle in ("van", "bus"):
        for fence in FENCES:
            times = sorted({le for le, _, p in rows if p.vehicle == vehicle})
            held = [any(fence.holds(p.lon, p.lat) for le, _, p in rows if le == t and p.vehicle == vehicle) for t in times]
            for (_, before), (time, now) in pairwise(zip(times, held, strict=True)):
                if before != now:
                    found[time, time + 1, Crossing(vehicle, fence.name, "enter" if now else "leave")] += 1
    return found


@examples(90)
@given(SEEDS)
def test_windows_that_reach_one_tick_back_find_each_crossing_once(seed: int) -> None:
    rng = Random(seed)
    rows = random_rows(rng, position)
    positions: sd.Stream[Any] = sd.from_rows(rows)
    size, clip = rng.choice([1, 3, 10]), rng.choice(list(sd.Clip))
    windows = positions.to_edges("vehicle").hopping_window(size + 1, size, offset=-1, clip=clip, output=sd.Output.TIME_BOUND)
    found = windows.apply(Geofence(FENCES)).run(until=size * 50).cht()
    assert Counter(tuple(row) for row in found) == crossings(rows)


@examples(90)
@given(SEEDS)
def test_a_window_tells_the_crossings_inside_it_of_the_positions_that_it_has(seed: int) -> None:
    rng = Random(seed)
    rows = random_rows(rng, position)
    members = [row for row in rows if row[0] < 12 and row[1] > 4]
    found = run_udm(Geofence(FENCES), rows, (4, 12), output=sd.Output.UNCHANGED, seed=seed)
    assert Counter(tuple(row) for row in found) == Counter({row: n for row, n in crossings(members).items() if row[0] >= 4})


@examples(60)
@given(SEEDS)
def test_in_a_query_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    hop = rng.choice([12, 5])
    policy: dict[str, Any] = {
        "clip": rng.choice(list(sd.Clip)),
        "output": rng.choice([sd.Output.TIME_BOUND, sd.Output.CLIP, sd.Output.ALIGN]),
    }
    assert_law(lambda s: s.hopping_window(12, hop, **policy).apply(Geofence(FENCES)), random_rows(rng, position), rng)


def test_a_taxi_between_the_airport_and_the_station() -> None:
    airport = Polygon("JFK", ((-73.825, 40.620), (-73.745, 40.620), (-73.745, 40.665), (-73.825, 40.665)))
    station = Circle("Penn Station", lon=-73.9935, lat=40.7506, radius=400)
    track = [(0, -73.780, 40.645), (5, -73.790, 40.650), (20, -73.87, 40.73), (45, -73.992, 40.750), (50, -73.985, 40.758)]
    hours = sd.source("taxis", unit="s").to_edges("vehicle").hopping_window(61, 60, offset=-1, output=sd.Output.TIME_BOUND)
    session = hours.apply(Geofence([airport, station]), lambda e: Position(e.vehicle, e.lon, e.lat)).open()

    def at(time: int, lon: float, lat: float) -> sd.Event[Any]:
        return sd.point(time, time, {"vehicle": "7X", "lon": lon, "lat": lat})

    out = session.push([at(*place) for place in track])
    told = [(row.le, row.payload.kind, row.payload.fence) for row in sd.CHT.from_events(out)]
    assert told == [(20, "leave", "JFK"), (45, "enter", "Penn Station"), (50, "leave", "Penn Station")]
    late = session.push([at(9, -73.83, 40.66)])
    assert [(event.le, event.payload.kind) for event in late if isinstance(event, sd.Insert)] == [(9, "leave")]
    assert [event.le for event in late if isinstance(event, sd.Retract)] == [20]
