"""The structure of the package as a picture: `python -m tests.architecture.structure --picture FILE.svg` draws it.

Rooms are boxes in rows, each below the rooms that it imports, as wide as they are large. An arrow that follows from others is
left out. Dashed ones are imports when a function is called; red is what goes in circles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import sqrt
from typing import Final

from streamdsl.pictures import COLOURS, label, picture
from streamdsl.pictures.layers import MARGIN, Layers
from tests.architecture.structure import BESIDE, CORE, FACADE, LAYERS, cycles, graph, imported_rooms, room_of, sizes

PARTS: Final = (("the core", CORE, COLOURS[0]), ("its facade", FACADE, COLOURS[2]), ("beside them", BESIDE, COLOURS[4]))
RED: Final = COLOURS[3]
HEAD: Final = 78
HEIGHT: Final = 38
ROW: Final = 84


@dataclass(frozen=True)
class Rooms:
    """Which room imports which: at once, and when a function is called."""

    eager: dict[str, set[str]]
    late: dict[str, set[str]]

    @cached_property
    def reached(self) -> dict[str, set[str]]:
        """What each room imports, be it by others; a room comes after those that it imports."""
        found: dict[str, set[str]] = {}
        for room, imported in self.eager.items():
            found[room] = imported.union(*(found[each] for each in imported))
        return found

    @cached_property
    def row(self) -> dict[str, int]:
        """The row of each room: below all that it imports."""
        found: dict[str, int] = {}
        for room, imported in self.eager.items():
            found[room] = max((found[each] + 1 for each in imported), default=0)
        return found

    @cached_property
    def circle(self) -> dict[str, int]:
        """The number of the cycle that a room is in, for rooms that are in one."""
        edges = {room: imported | self.late[room] for room, imported in self.eager.items()}
        return {room: n for n, each in enumerate(cycles(edges)) for room in each}

    def in_a_circle(self, room: str, imported: str) -> bool:
        return room in self.circle and self.circle.get(imported) == self.circle[room]

    def arrows(self) -> list[tuple[str, str]]:
        """Return the imports that do not follow from others."""
        return [
            (room, each)
            for room, imported in self.eager.items()
            for each in sorted(imported)
            if not any(each in self.reached[other] for other in imported)
        ]

    def late_arrows(self) -> list[tuple[str, str]]:
        """Return the imports when a function is called, of what a room would not have otherwise."""
        return [(room, each) for room, imported in self.late.items() for each in sorted(imported - self.reached[room])]


class Layout(Layers):
    """Where the boxes of rooms and their arrows are."""

    def __init__(self, rooms: Rooms, lines: dict[str, int]) -> None:
        self.rooms, self.lines = rooms, lines
        self.late = rooms.late_arrows()
        super().__init__(rooms.row, [*rooms.arrows(), *self.late], self.wide_enough, HEIGHT, ROW, HEAD)

    def wide_enough(self, room: str) -> float:
        return max(84.0, 8.5 * len(room), 1.9 * sqrt(self.lines[room]))

    def drawn(self) -> Iterator[str]:
        for room, imported in self.paths:
            colour = RED if self.rooms.in_a_circle(room, imported) else "#7d8590"
            yield self._styled(room, imported, colour)
        inner = {room: max(map(len, found)) for room, found in circles().items()}
        for room in LAYERS:
            yield from self._box(room, inner.get(room, 0))

    def _styled(self, room: str, imported: str, colour: str) -> str:
        style = f'stroke="{colour}" stroke-opacity="{0.6 if colour != RED else 0.9}" stroke-width="1.2"'
        dashed = ' stroke-dasharray="5 4"' if (room, imported) in self.late else ""
        return f'<path d="{self.arrow(room, imported)}" fill="none" {style}{dashed} marker-end="url(#tip)"/>'

    def _box(self, room: str, circle: int) -> Iterator[str]:
        wide, middle, top = self.wide((room,)), self.x[room,], self.top((room,))
        colour = next(colour for _, rooms, colour in PARTS if room in rooms)
        place = f'x="{middle - wide / 2:.0f}" y="{top}" width="{wide:.0f}" height="{HEIGHT}" rx="5"'
        yield f"<g><title>{escape(room)}: {escape(', '.join(sorted(self.rooms.eager[room])) or 'nothing')}</title>"
        yield f'<rect class="paper" {place}/><rect {place} fill="{colour}" fill-opacity=".22" stroke="{colour}"/>'
        yield label(middle, top + 16, room, "name", "middle")
        yield label(middle, top + 31, f"{self.lines[room]:,}" + (f" · ↻{circle}" if circle else ""), "quiet", "middle") + "</g>"


def circles() -> dict[str, list[frozenset[str]]]:
    """Return the cycles of modules inside of rooms, by room."""
    found: dict[str, list[frozenset[str]]] = {}
    for each in cycles(graph()):
        for room in {room_of(module) for module in each}:
            found.setdefault(room, []).append(each)
    return found


def drawing() -> str:
    """Return the structure as a picture in SVG."""
    lines: dict[str, int] = {}
    for module, n in sizes().items():
        lines[room_of(module)] = lines.get(room_of(module), 0) + n
    rooms = Rooms(*({room: imported_rooms(room, eager) for room in LAYERS} for eager in (True, False)))
    layout = Layout(rooms, lines)
    return picture([*head(layout, sum(lines.values())), *layout.drawn()], round(layout.width), round(layout.bottom))


def head(layout: Layout, lines: int) -> Iterator[str]:
    tip = '<path d="M0,0L6,3L0,6z" fill="context-stroke"/>'
    size = 'viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6"'
    yield f'<defs><marker id="tip" {size} orient="auto">{tip}</marker></defs>'
    yield label(
        MARGIN, 24, f"streamdsl: {lines:,} lines in {len(sizes())} modules. An arrow leads to what a room imports.", "name"
    )
    yield label(
        MARGIN, 44, "Dashed: imported when a function is called. Red: rooms that go in circles. ↻20: 20 modules that do.", "quiet"
    )
    x = float(MARGIN)
    for title, _, colour in PARTS:
        yield f'<rect x="{x:.0f}" y="53" width="12" height="12" rx="3" fill="{colour}" fill-opacity=".22" stroke="{colour}"/>'
        yield label(x + 18, 63, title)
        x += 40 + 7 * len(title)
