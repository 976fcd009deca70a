"""The demo's picture, as SVG: aircraft aloft per carrier over the storm of 8-9 February 2013."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.demo.data import NEW_YORK
from streamdsl.demo.flight_files import Times
from streamdsl.pictures import COLOURS, label, picture
from streamdsl.temporal import CHT

STORM: Final = (datetime(2013, 2, 8, tzinfo=NEW_YORK), datetime(2013, 2, 10, tzinfo=NEW_YORK))
"""The two days of the storm, from midnight to midnight in New York."""
STEP: Final = 300
"""The picture shows the counts every five minutes."""
WIDTH, HEIGHT = 1000, 560
LEFT, RIGHT, TOP, BOTTOM = 64, 204, 92, 76
LAYERS: Final = (*COLOURS, "#f0e442", "#999999")
"""The colours of the busiest carriers."""
REST: Final = "#d0d7de"
"""The colour of all others, which are one layer."""
STYLE: Final = (
    ".sd text{font-size:14px}.sd .layer{stroke:#fff;stroke-width:.8;stroke-linejoin:round}"
    ".sd .title{font-size:20px;font-weight:600}"
    ".sd .axis{stroke:currentColor;stroke-opacity:.7}.sd .lead{fill:none;stroke-width:1.5}"
    ".sd .grounded{fill:currentColor;fill-opacity:.12}"
    "@media(prefers-color-scheme:dark){.sd .layer{stroke:#0d1117}}"
)


class CarrierCount(NamedTuple):
    """How many aircraft a carrier has in the air over a lifetime, in seconds of UTC."""

    le: int
    re: int
    carrier: str
    aloft: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One band of the picture."""

    label: str
    colour: str
    aloft: NDArray[np.int64]


def counts_at(counts: Iterable[CarrierCount], times: Times) -> dict[str, NDArray[np.int64]]:
    """Return each carrier's count at sorted times.

    >>> counts_at([CarrierCount(0, 4, "UA", 2), CarrierCount(4, 6, "UA", 3)], np.array([1, 4, 9]))
    {'UA': array([2, 3, 0])}
    """
    found: dict[str, NDArray[np.int64]] = {}
    for count in counts:
        first, last = np.searchsorted(times, [count.le, count.re])
        if first < last:
            found.setdefault(count.carrier, np.zeros(len(times), dtype=np.int64))[first:last] += count.aloft
    return found


def layers(series: Mapping[str, NDArray[np.int64]], names: Mapping[str, str]) -> list[Layer]:
    """Return the bands from the bottom up: the busiest carriers, then the rest as one."""
    busiest = sorted(series, key=lambda carrier: (-int(series[carrier].sum()), carrier))
    rest = busiest[len(LAYERS) :]
    found = [Layer(names.get(each, each), colour, series[each]) for each, colour in zip(busiest, LAYERS, strict=False)]
    if rest:
        found.append(Layer(f"{len(rest)} others", REST, np.sum([series[carrier] for carrier in rest], axis=0)))
    return found


def storm(aloft: CHT[Any], names: Mapping[str, str], grounded: CHT[Any]) -> str:
    """Return the picture of the answers to queries (a) and (e)."""
    counts = (CarrierCount(row.le, row.re, row.payload.carrier, row.payload.aloft) for row in aloft)
    return draw(counts, names, [(row.le, row.re) for row in grounded])


def draw(counts: Iterable[CarrierCount], names: Mapping[str, str], grounded: Sequence[tuple[int, int]] = ()) -> str:
    """Return the picture of the counts as SVG; `grounded` are the times in which nothing was in the air."""
    start, end = (int(moment.timestamp()) for moment in STORM)
    times = np.arange(start, end + STEP, STEP, dtype=np.int64)
    bands = layers(counts_at(counts, times), names)
    frame = Axes(start, end, _ceiling(bands))
    parts = [*_heading(), *_grid(frame), *_bands(frame, times, bands), *_shades(frame, grounded), *_labels(frame, bands)]
    return picture(parts, WIDTH, HEIGHT, STYLE)


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes: the coordinates of times and counts."""

    start: int
    end: int
    top: int

    def x(self, time: float) -> float:
        """Return the x coordinate of a time."""
        return LEFT + (time - self.start) / (self.end - self.start) * (WIDTH - LEFT - RIGHT)

    def y(self, count: float) -> float:
        """Return the y coordinate of a count."""
        return HEIGHT - BOTTOM - count / self.top * (HEIGHT - TOP - BOTTOM)


def _ceiling(bands: Sequence[Layer]) -> int:
    total = np.sum([band.aloft for band in bands], axis=0) if bands else np.zeros(1)
    return max(20, -(-int(total.max()) // 20) * 20)


def _heading() -> list[str]:
    return [
        "<title>Aircraft in the air out of New York, 8\u20139 February 2013</title>",
        label(LEFT, 36, "The storm of 8\u20139 February 2013 empties the sky", "title"),
        label(LEFT, 60, "Aircraft in the air per carrier, from take-off at EWR, JFK or LGA to landing", "quiet"),
    ]


def _grid(frame: Axes) -> list[str]:
    step = 20 if frame.top <= 120 else 50
    parts = []
    for count in range(0, frame.top + 1, step):
        y = frame.y(count)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(label(LEFT - 8, y + 5, str(count), "quiet", "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<g transform="rotate(-90 20 {middle})">{label(20, middle, "aircraft aloft", "quiet", "middle")}</g>')
    return parts + _clock(frame)


def _clock(frame: Axes) -> list[str]:
    floor = HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>']
    moment = STORM[0]
    while moment <= STORM[1]:
        x = frame.x(moment.timestamp())
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 5}"/>')
        parts.append(label(x, floor + 21, f"{moment:%H:%M}", "quiet", "middle"))
        if moment.hour == 12:
            parts.append(label(x, floor + 41, f"{moment:%A} {moment.day} {moment:%B}", "", "middle"))
        moment += timedelta(hours=6)
    parts.append(label(LEFT + (WIDTH - LEFT - RIGHT) / 2, floor + 62, "time in New York", "quiet", "middle"))
    return parts


def _bands(frame: Axes, times: Times, bands: Sequence[Layer]) -> list[str]:
    floor = np.zeros(len(times), dtype=np.int64)
    parts = []
    for band in bands:
        upper = floor + band.aloft
        outline = [*zip(times, upper, strict=True), *zip(times[::-1], floor[::-1], strict=True)]
        points = " ".join(f"{frame.x(time):.1f},{frame.y(count):.1f}" for time, count in outline)
        parts.append(f'<polygon class="layer" fill="{band.colour}" points="{points}"/>')
        floor = upper
    return parts


def _shades(frame: Axes, grounded: Sequence[tuple[int, int]]) -> list[str]:
    parts = []
    for start, end in grounded:
        x, width = frame.x(start), frame.x(end) - frame.x(start)
        parts.append(f'<rect class="grounded" x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>')
    if grounded:
        first, last = (datetime.fromtimestamp(time, NEW_YORK) for time in (grounded[0][0], grounded[-1][1]))
        x = frame.x((grounded[0][0] + grounded[-1][1]) / 2)
        parts.append(label(x, TOP + 46, "departures scheduled,", "", "middle"))
        parts.append(label(x, TOP + 64, "nothing in the air", "", "middle"))
        parts.append(label(x, TOP + 82, f"{first:%H:%M} to {last:%H:%M}", "quiet", "middle"))
    return parts


def _labels(frame: Axes, bands: Sequence[Layer]) -> list[str]:
    edges = np.concatenate([[0], np.cumsum([band.aloft[-1] for band in bands])])
    wanted = [frame.y((low + high) / 2) for low, high in pairwise(edges.tolist())]
    parts = []
    for band, tip, y in zip(bands, wanted, _spread(wanted, 21.0), strict=True):
        x = WIDTH - RIGHT
        parts.append(f'<path class="lead" stroke="{band.colour}" d="M{x + 3} {tip:.1f} L{x + 16} {y:.1f} H{x + 22}"/>')
        parts.append(f'<rect x="{x + 26}" y="{y - 6:.1f}" width="12" height="12" rx="2" fill="{band.colour}"/>')
        parts.append(label(x + 44, y + 5, band.label))
    return parts


def _spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places near the wanted ones, from the bottom up, at least `gap` apart.

    >>> _spread([100.0, 98.0, 50.0], 20.0)
    [100.0, 80.0, 50.0]
    """
    placed: list[float] = []
    for y in wanted:
        placed.append(min(y, placed[-1] - gap) if placed else y)
    return placed
