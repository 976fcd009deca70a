"""Geofences as a user-defined operator: positions of moving objects in, the moments at which they enter and leave areas out.

Circles lie on the sphere: the distance is the great circle's, by the haversine formula (R. Sinnott, "Virtues of the Haversine",
Sky & Telescope 68(2), 1984). Polygons lie in the plane of longitude and latitude: a point is inside if a ray from it crosses the
border an odd number of times (M. Shimrat, "Algorithm 112: Position of point relative to polygon", Communications of the ACM 5(8),
1962).

- A border belongs to its area, as far as floats can tell.
- A polygon is closed by itself, need not be convex and may cross itself (even-odd rule); it may not cross the meridian of 180
  degrees. A circle may, and may hold a pole.
- A vehicle is where its last position says, however old that is. Of several positions at one time it is inside if one of them is.
- A position whose longitude or latitude is NaN or infinite, as of a receiver without signal, says nothing.
- The first position of a vehicle in a window says where it is, and nothing of how it came there: it makes no crossing.
- A vehicle that crosses an area between two positions, or stays between them, is not seen to do so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import asin, cos, isfinite, radians, sin, sqrt
from typing import ClassVar, Literal, Protocol

import streamdsl as sd
from streamdsl.errors import QueryError
from udm_examples.settings import positive

EARTH_RADIUS = 6_371_008.8
"""The mean radius of the earth in metres (IUGG)."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a vehicle is, in degrees, from the start of the event on."""

    vehicle: str
    lon: float
    lat: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """A vehicle that enters or leaves an area."""

    vehicle: str
    fence: str
    kind: Literal["enter", "leave"]


class Fence(Protocol):
    """An area with a name."""

    @property
    def name(self) -> str:
        """The area's name."""

    def holds(self, lon: float, lat: float) -> bool:
        """Say whether a point, in degrees, lies in the area or on its border."""


@dataclass(frozen=True, slots=True)
class Circle:
    """All points at most `radius` metres from a point. Raises `QueryError` for what is no place or no radius.

    >>> office = Circle("office", lon=-73.9857, lat=40.7484, radius=500)
    >>> office.holds(-73.9900, 40.7500), office.holds(-73.9772, 40.7527)
    (True, False)
    """

    name: str
    lon: float
    lat: float
    radius: float

    def __post_init__(self) -> None:
        _check_place(self.name, self.lon, self.lat)
        positive(f"the radius of {self.name!r}", self.radius)

    def holds(self, lon: float, lat: float) -> bool:
        """Say whether a point lies in the circle or on its border."""
        return distance(self.lon, self.lat, lon, lat) <= self.radius


@dataclass(frozen=True, slots=True)
class Polygon:
    """The area inside a closed line through corners, each `(lon, lat)`.

    Raises `QueryError` for fewer than three corners, or one that is no place.

    >>> yard = Polygon("yard", ((0, 0), (4, 0), (4, 4), (2, 1), (0, 4)))
    >>> [yard.holds(*point) for point in ((1, 1), (2, 2), (2, 1), (4, 4), (5, 2))]
    [True, False, True, True, False]
    """

    name: str
    corners: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if len(self.corners) < 3:
            raise QueryError(f"the polygon {self.name!r} has {len(self.corners)} corners", hint="an area has three at least")
        for corner in self.corners:
            _check_place(self.name, *corner)

    def holds(self, lon: float, lat: float) -> bool:
        """Say whether a point lies in the polygon or on its border."""
        inside = False
        for (x1, y1), (x2, y2) in zip(self.corners, (*self.corners[1:], *self.corners[:1]), strict=True):
            side = (x2 - x1) * (lat - y1) - (y2 - y1) * (lon - x1)
            if side == 0 and min(x1, x2) <= lon <= max(x1, x2) and min(y1, y2) <= lat <= max(y1, y2):
                return True
            if (y1 > lat) != (y2 > lat):
                inside ^= (side > 0) == (y2 > y1)
        return inside


def _check_place(name: str, lon: float, lat: float) -> None:
    if not (isfinite(lon) and -90 <= lat <= 90):
        raise QueryError(
            f"the area {name!r} has a point at longitude {lon} and latitude {lat}",
            hint="give degrees, the longitude first; a latitude lies between -90 and 90",
        )


def distance(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """Return the great-circle distance of two points, given in degrees, in metres.

    >>> round(distance(0, 0, 180, 0) / 1000)
    20015
    """
    across, up = radians(lon2 - lon1) / 2, radians(lat2 - lat1) / 2
    haversine = sin(up) ** 2 + cos(radians(lat1)) * cos(radians(lat2)) * sin(across) ** 2
    return 2 * EARTH_RADIUS * asin(min(1.0, sqrt(haversine)))


class Geofence(sd.TimeSensitiveUDO[Position, Crossing]):
    """The crossings of fences by each vehicle, as points at the first position on the other side.

    A crossing before the start of the window is left to an earlier one. So that none is lost between two windows, let positions
    live until the next (`to_edges`) and windows reach one tick back, `hopping_window(size + 1, size, offset=-1)`: a window then
    has the last position before it, and each crossing is found once. Ends do not count, so right clipping changes nothing.

    Time-bound: a position at s changes no crossing before s. Not so over count windows, whose bounds depend on later events.

    Raises `QueryError` if there are no fences, or two of one name.

    >>> fence = Geofence([Polygon("yard", ((0, 0), (4, 0), (4, 4), (0, 4)))])
    >>> track = [(1, Position("van", 9, 9)), (5, Position("van", 1, 1)), (8, Position("van", 2, 2)), (12, Position("van", 9, 9))]
    >>> events = [sd.IntervalEvent(time, time + 1, position) for time, position in track]
    >>> for crossing in fence.compute_result(events, sd.WindowDescriptor(0, 100)):
    ...     print(crossing.start_time, crossing.payload.kind, crossing.payload.fence)
    5 enter yard
    12 leave yard

    In a query, where the van is already inside when the second window starts:

    >>> positions = sd.from_rows([(time, time + 1, position) for time, position in track])
    >>> known = positions.to_edges("vehicle")
    >>> windows = known.hopping_window(11, 10, offset=-1, clip=sd.Clip.RIGHT, output=sd.Output.TIME_BOUND)
    >>> for le, re, crossing in windows.apply(fence).run(until=20):
    ...     print(le, re, crossing)
    5 6 Crossing(vehicle='van', fence='yard', kind='enter')
    12 13 Crossing(vehicle='van', fence='yard', kind='leave')
    """

    time_bound: ClassVar[bool] = True
    ignores_ends_beyond_window: ClassVar[bool] = True
    commutes_with_filter_on: ClassVar[Sequence[str]] = ("vehicle",)
    reads: ClassVar[Sequence[str] | None] = ("vehicle", "lon", "lat")

    def __init__(self, fences: Sequence[Fence]) -> None:
        names = [fence.name for fence in fences]
        if not names or len(set(names)) < len(names):
            raise QueryError(f"the fences are {names}", hint="give at least one fence, and each a name of its own")
        self.fences = tuple(fences)

    def compute_result(
        self, events: Sequence[sd.IntervalEvent[Position]], window: sd.WindowDescriptor
    ) -> Iterator[sd.IntervalEvent[Crossing]]:
        """Yield the crossings inside the window."""
        tracks: dict[str, list[sd.IntervalEvent[Position]]] = {}
        for event in events:
            if isfinite(event.payload.lon) and isfinite(event.payload.lat):
                tracks.setdefault(event.payload.vehicle, []).append(event)
        for vehicle, track in tracks.items():
            for fence in self.fences:
                inside = _inside(fence, track)
                for before, time in pairwise(sorted(inside)):
                    if inside[before] != inside[time] and time >= window.start_time:
                        kind: Literal["enter", "leave"] = "enter" if inside[time] else "leave"
                        yield sd.IntervalEvent(time, time + 1, Crossing(vehicle, fence.name, kind))


def _inside(fence: Fence, track: list[sd.IntervalEvent[Position]]) -> dict[int, bool]:
    """Say for each time of a track whether the vehicle is in the area."""
    inside: dict[int, bool] = {}
    for event in track:
        here = fence.holds(event.payload.lon, event.payload.lat)
        inside[event.start_time] = here or inside.get(event.start_time, False)
    return inside
