"""The structure of the package as a picture: `python -m tests.architecture.structure --picture FILE.svg` draws it.

Rooms are boxes in rows, each below the rooms that it imports, as wide as they are large. An arrow that follows from others is
left out. Dashed ones are imports when a function is called; red is what goes in circles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from math import sqrt
from statistics import fmean
from typing import Final, TypeAlias

from streamdsl.temporal.svg import COLOURS, label, picture
from tests.architecture.structure import BESIDE, CORE, FACADE, LAYERS, cycles, graph, imported_rooms, room_of, sizes

PARTS: Final = (("the core", CORE, COLOURS[0]), ("its facade", FACADE, COLOURS[2]), ("beside them", BESIDE, COLOURS[4]))
RED: Final = COLOURS[3]
MARGIN: Final = 24
HEAD: Final = 78
HEIGHT: Final = 38
ROW: Final = 84
GAP: Final = 16
SWEEPS: Final = 60

Node: TypeAlias = tuple[str, ...]
"""A box, `(room,)`, or where an arrow between two of them passes a row, `(room, imported, row)`."""


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


class Layout:
    """Where boxes and arrows are: rows in which neighbours of neighbours are near each other (K. Sugiyama, 1981)."""

    def __init__(self, rooms: Rooms, lines: dict[str, int]) -> None:
        self.rooms, self.lines = rooms, lines
        self.late = rooms.late_arrows()
        self.paths = {arrow: self._path(*arrow) for arrow in (*rooms.arrows(), *self.late)}
        self.rows: list[list[Node]] = [[] for _ in range(max(rooms.row.values()) + 1)]
        for room, row in rooms.row.items():
            self.rows[row].append((room,))
        for path in self.paths.values():
            for node in path[1:-1]:
                self.rows[int(node[2])].append(node)
        self.x = {node: float(n) for row in self.rows for n, node in enumerate(row)}
        self._arrange()
        left = min(self.x[node] - self.wide(node) / 2 for node in self.x) - MARGIN
        self.x = {node: x - left for node, x in self.x.items()}
        self.width = max(self.x[node] + self.wide(node) / 2 for node in self.x) + MARGIN
        self.height = HEAD + ROW * len(self.rows)

    def _path(self, room: str, imported: str) -> list[Node]:
        start, end = self.rooms.row[room], self.rooms.row[imported]
        step = 1 if start < end else -1
        return [(room,), *((room, imported, str(row)) for row in range(start + step, end, step)), (imported,)]

    def wide(self, node: Node) -> float:
        return 0 if len(node) > 1 else max(84.0, 8.5 * len(node[0]), 1.9 * sqrt(self.lines[node[0]]))

    def _arrange(self) -> None:
        near: dict[Node, list[Node]] = {node: [] for row in self.rows for node in row}
        for path in self.paths.values():
            for one, other in pairwise(path):
                near[one].append(other)
                near[other].append(one)
        for turn in range(SWEEPS):
            for row in self.rows if turn % 2 else self.rows[::-1]:
                wanted = {node: fmean([self.x[each] for each in near[node]] or [self.x[node]]) for node in row}
                row.sort(key=wanted.__getitem__)
                self._place(row, wanted)

    def _place(self, row: list[Node], wanted: dict[Node, float]) -> None:
        """Put a row's boxes side by side, halfway between as far left and as far right of where they want to be as needed."""
        right, left = dict(wanted), dict(wanted)
        for one, other in pairwise(row):
            right[other] = max(right[other], right[one] + self._apart(one, other))
        for other, one in pairwise(row[::-1]):
            left[one] = min(left[one], left[other] - self._apart(one, other))
        self.x.update({node: (left[node] + right[node]) / 2 for node in row})

    def _apart(self, one: Node, other: Node) -> float:
        return (self.wide(one) + self.wide(other)) / 2 + (GAP if len(one) + len(other) < 6 else GAP / 2)

    def top(self, node: Node) -> float:
        return HEAD + ROW * (int(node[2]) if len(node) > 1 else self.rooms.row[node[0]])

    def drawn(self) -> Iterator[str]:
        for (room, imported), path in self.paths.items():
            colour = RED if self.rooms.in_a_circle(room, imported) else "#7d8590"
            yield self._arrow(path, colour, (room, imported) in self.late)
        inner = {room: max(map(len, found)) for room, found in circles().items()}
        for room in LAYERS:
            yield from self._box(room, inner.get(room, 0))

    def _arrow(self, path: list[Node], colour: str, late: bool) -> str:
        start, end = path[0], path[-1]
        style = f'stroke="{colour}" stroke-opacity="{0.6 if colour != RED else 0.9}" stroke-width="1.2"'
        dashed = ' stroke-dasharray="5 4"' if late else ""
        line = self._across(start, end) if self.top(start) == self.top(end) else self._down_or_up(path)
        return f'<path d="{line}" fill="none" {style}{dashed} marker-end="url(#tip)"/>'

    def _across(self, start: Node, end: Node) -> str:
        side = 0.5 if self.x[start] < self.x[end] else -0.5
        x, to = self.x[start] + side * self.wide(start), self.x[end] - side * self.wide(end)
        return f"M{x:.0f},{self.top(start) + HEIGHT / 2:.0f}H{to:.0f}"

    def _down_or_up(self, path: list[Node]) -> str:
        up = self.top(path[0]) > self.top(path[-1])
        x, y = self.x[path[0]], self.top(path[0]) + (0 if up else HEIGHT)
        line = f"M{x:.0f},{y:.0f}"
        for node in path[1:]:
            to, end = self.x[node], self.top(node) + (HEIGHT if up else 0)
            bend = (end - y) / 2
            line += f"C{x:.0f},{y + bend:.0f} {to:.0f},{end - bend:.0f} {to:.0f},{end:.0f}"
            x, y = to, self.top(node) + (0 if up else HEIGHT)
            line += f"V{y:.0f}" if len(node) > 1 else ""
        return line

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
    return picture([*head(layout, sum(lines.values())), *layout.drawn()], round(layout.width), layout.height)


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
