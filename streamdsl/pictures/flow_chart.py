"""Graphs of operators, drawn as Mermaid text or as SVG: what flows in is above, what flows out below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from streamdsl.pictures.layers import Layers
from streamdsl.pictures.picture_object import Drawing
from streamdsl.pictures.svg import COLOURS, label, picture

HEIGHT, STEP, HEAD = 44.0, 80.0, 16.0
MOST: Final = 60
"""The characters of a line in a box, if nothing else is said; the whole text is shown when it is pointed at."""
CHARACTER: Final = 6.9
_COLOURS: Final = {"source": COLOURS[0], "operator": COLOURS[3], "group": COLOURS[2]}
_STYLE: Final = (
    ".sd .box{fill-opacity:.14;stroke-width:1.3}.sd .arrow{fill:none;stroke:currentColor;stroke-width:1.2}"
    ".sd .tip{fill:currentColor}"
)
_TIP: Final = (
    '<defs><marker id="sd-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="tip" d="M0,0L8,4L0,8z"/></marker></defs>'
)


@dataclass(frozen=True)
class ChartBox:
    """A box: its name, its settings, `"source"`, `"operator"` or `"group"`, and the group-apply in whose body it is."""

    name: str
    settings: str = ""
    kind: str = "operator"
    within: str = ""


class FlowChart(Drawing):
    """A picture of a plan: boxes and arrows, of which `str()` is Mermaid text, and Jupyter shows SVG (docs/pictures.md).

    >>> FlowChart({"a": ChartBox("source:a", kind="source"), "b": ChartBox("where_1", "e > 1")}, [("a", "b")])
    flowchart TD
        n0[("source:a")]
        n1["<b>where_1</b><br>e > 1"]
        n0 --> n1
    """

    def __init__(self, boxes: Mapping[str, ChartBox], arrows: Iterable[tuple[str, str]]) -> None:
        self.boxes = dict(boxes)
        self.arrows = list(dict.fromkeys(arrows))

    def __str__(self) -> str:
        ids = {name: f"n{number}" for number, name in enumerate(self.boxes)}
        return "\n".join(
            ["flowchart TD", *self._mermaid("", ids, "    "), *(f"    {ids[one]} --> {ids[to]}" for one, to in self.arrows)]
        )

    def _mermaid(self, within: str, ids: Mapping[str, str], indent: str) -> Iterator[str]:
        bodies = list(dict.fromkeys(box.within for box in self.boxes.values() if box.within))
        for name, box in self.boxes.items():
            if box.within != within:
                continue
            if name in bodies:
                yield f'{indent}subgraph s{ids[name]}["{_mermaid_text(f"for each group of {box.name}")}"]'
                yield from self._mermaid(name, ids, indent + "    ")
                yield f"{indent}end"
            text = _mermaid_text(box.name)
            if box.kind == "source":
                yield f'{indent}{ids[name]}[("{text}")]'
            else:
                yield f'{indent}{ids[name]}["<b>{text}</b>{"<br>" + _mermaid_text(box.settings) if box.settings else ""}"]'

    def svg(self, most: int = MOST) -> str:
        """Return the plan as the text of an SVG document, which needs nothing else; a line has at most `most` characters."""
        layers = Layers(self._rows(), self.arrows, lambda name: _wide(self.boxes[name], most), HEIGHT, STEP, HEAD)
        arrows = [
            f'<path class="arrow" d="{layers.arrow(*arrow)}"{self._dashed(arrow)} marker-end="url(#sd-tip)"/>'
            for arrow in self.arrows
        ]
        boxes = [part for name, box in self.boxes.items() for part in _box(box, layers.x[name,], layers.top((name,)), most)]
        return picture([_TIP, *arrows, *boxes], round(layers.width), round(layers.bottom - STEP + HEIGHT + HEAD), _STYLE)

    def _dashed(self, arrow: tuple[str, str]) -> str:
        """Return the style of arrows into the body of a group-apply and out of it: rows pass there group by group."""
        return ' stroke-dasharray="5 4"' if len({self.boxes[end].within for end in arrow}) > 1 else ""

    def _rows(self) -> dict[str, int]:
        """Return the row of each box: below all whose output it reads; boxes come after those."""
        above: dict[str, list[str]] = {name: [] for name in self.boxes}
        for one, to in self.arrows:
            above[to].append(one)
        rows: dict[str, int] = {}
        for name in self.boxes:
            rows[name] = max((rows[each] + 1 for each in above[name]), default=0)
        return rows


def _mermaid_text(text: str) -> str:
    """Return text that Mermaid shows as it is: what it takes for markup is written as an entity."""
    for sign, entity in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;")):
        text = text.replace(sign, entity)
    return " ".join(text.split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _wide(box: ChartBox, most: int) -> float:
    lines: Sequence[str] = (box.name, box.settings)
    return max(72.0, 24 + CHARACTER * max(len(_cut(line, most)) for line in lines))


def _box(box: ChartBox, middle: float, top: float, most: int) -> Iterator[str]:
    colour, wide = _COLOURS[box.kind], _wide(box, most)
    place = f'x="{middle - wide / 2:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{HEIGHT:.0f}"'
    rx = HEIGHT / 2 if box.kind == "source" else 6
    dashes = ' stroke-dasharray="5 4"' if box.within else ""
    yield f'<g data-box="{escape(box.name)}"><title>{escape(f"{box.name} {box.settings}".strip())}</title>'
    yield f'<rect class="box" {place} rx="{rx:.0f}" fill="{colour}" stroke="{colour}"{dashes}/>'
    if box.settings:
        yield label(middle, top + 18, _cut(box.name, most), "name", "middle")
        yield label(middle, top + 34, _cut(box.settings, most), "quiet", "middle") + "</g>"
    else:
        yield label(middle, top + 26, _cut(box.name, most), "name", "middle") + "</g>"
