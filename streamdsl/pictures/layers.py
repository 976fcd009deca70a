"""The layout of graphs: boxes in rows, in which neighbours of neighbours are near each other (K. Sugiyama, 1981)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from statistics import fmean
from typing import Final, TypeAlias

MARGIN: Final = 24
GAP: Final = 16
SWEEPS: Final = 60

Node: TypeAlias = tuple[str, ...]
"""A box, `(name,)`, or where an arrow between two of them passes a row, `(from, to, row)`."""


class Layers:
    """Where boxes and arrows are: `rows` has the row of each box, `wide` its width; rows are `step` apart, from `head` down.

    >>> layers = Layers({"a": 0, "b": 1, "c": 1}, [("a", "b"), ("a", "c")], lambda name: 20.0, 30, 80)
    >>> layers.x["a",], layers.x["b",], layers.top(("b",))
    (52.0, 34.0, 80.0)
    """

    def __init__(
        self,
        rows: Mapping[str, int],
        arrows: Collection[tuple[str, str]],
        wide: Callable[[str], float],
        height: float,
        step: float,
        head: float = 0.0,
    ) -> None:
        self.row, self._width_of, self.height, self.step, self.head = rows, wide, height, step, head
        self.paths = {arrow: self._path(*arrow) for arrow in arrows}
        self.rows: list[list[Node]] = [[] for _ in range(max(rows.values(), default=0) + 1)]
        for name, row in rows.items():
            self.rows[row].append((name,))
        for path in self.paths.values():
            for node in path[1:-1]:
                self.rows[int(node[2])].append(node)
        self.x = {node: float(n) for line in self.rows for n, node in enumerate(line)}
        self._arrange()
        left = min(self.x[node] - self.wide(node) / 2 for node in self.x) - MARGIN
        self.x = {node: x - left for node, x in self.x.items()}
        self.width = max(self.x[node] + self.wide(node) / 2 for node in self.x) + MARGIN
        self.bottom = head + step * len(self.rows)

    def _path(self, name: str, to: str) -> list[Node]:
        start, end = self.row[name], self.row[to]
        step = 1 if start < end else -1
        return [(name,), *((name, to, str(row)) for row in range(start + step, end, step)), (to,)]

    def wide(self, node: Node) -> float:
        """Return the width of a box; where an arrow passes takes none."""
        return 0 if len(node) > 1 else self._width_of(node[0])

    def _arrange(self) -> None:
        near: dict[Node, list[Node]] = {node: [] for line in self.rows for node in line}
        for path in self.paths.values():
            for one, other in pairwise(path):
                near[one].append(other)
                near[other].append(one)
        for turn in range(SWEEPS):
            for line in self.rows if turn % 2 else self.rows[::-1]:
                wanted = {node: fmean([self.x[each] for each in near[node]] or [self.x[node]]) for node in line}
                line.sort(key=wanted.__getitem__)
                self._place(line, wanted)

    def _place(self, line: list[Node], wanted: dict[Node, float]) -> None:
        """Put a row's boxes side by side, halfway between as far left and as far right of where they want to be as needed."""
        right, left = dict(wanted), dict(wanted)
        for one, other in pairwise(line):
            right[other] = max(right[other], right[one] + self._apart(one, other))
        for other, one in pairwise(line[::-1]):
            left[one] = min(left[one], left[other] - self._apart(one, other))
        self.x.update({node: (left[node] + right[node]) / 2 for node in line})

    def _apart(self, one: Node, other: Node) -> float:
        return (self.wide(one) + self.wide(other)) / 2 + (GAP if len(one) + len(other) < 6 else GAP / 2)

    def top(self, node: Node) -> float:
        """Return the top of a row's boxes."""
        return self.head + self.step * (int(node[2]) if len(node) > 1 else self.row[node[0]])

    def arrow(self, name: str, to: str) -> str:
        """Return the line of an arrow, as SVG's `path` has it."""
        path = self.paths[name, to]
        return self._across(*path) if self.top(path[0]) == self.top(path[-1]) else self._down_or_up(path)

    def _across(self, start: Node, end: Node) -> str:
        side = 0.5 if self.x[start] < self.x[end] else -0.5
        x, to = self.x[start] + side * self.wide(start), self.x[end] - side * self.wide(end)
        return f"M{x:.0f},{self.top(start) + self.height / 2:.0f}H{to:.0f}"

    def _down_or_up(self, path: list[Node]) -> str:
        up = self.top(path[0]) > self.top(path[-1])
        x, y = self.x[path[0]], self.top(path[0]) + (0 if up else self.height)
        line = f"M{x:.0f},{y:.0f}"
        for node in path[1:]:
            to, end = self.x[node], self.top(node) + (self.height if up else 0)
            bend = (end - y) / 2
            line += f"C{x:.0f},{y + bend:.0f} {to:.0f},{end - bend:.0f} {to:.0f},{end:.0f}"
            x, y = to, self.top(node) + (0 if up else self.height)
            line += f"V{y:.0f}" if len(node) > 1 else ""
        return line
