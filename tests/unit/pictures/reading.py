"""Pictures of timelines, read again: what is drawn where, found without the code that draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from streamdsl.temporal import INFINITY

SVG = "{http://www.w3.org/2000/svg}"


class Shape(NamedTuple):
    """A row as it is drawn: its lifetime and payload as its title says them, its kind, and its ends in the picture."""

    le: int
    re: int
    payload: str
    kind: str
    low: float
    high: float
    top: float


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in parsed(svg).iter(f"{SVG}text")]


def shapes(svg: str) -> Iterator[Shape]:
    """Yield the rows and windows of a picture; members inside of windows are moved to where they are seen."""
    yield from _shapes(parsed(svg), 0.0)


def _shapes(element: ElementTree.Element, down: float) -> Iterator[Shape]:
    for group in element.findall(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        found = None if title is None else re.match(r"\[(-?\w+), (-?\w+)\) (.*)", title.text or "")
        moved = re.match(r"translate\(0 (.*)\)", group.get("transform", ""))
        if found is not None:
            yield Shape(_time(found[1]), _time(found[2]), found[3], *_drawn(group, down))
        yield from _shapes(group, down + (float(moved[1]) if moved else 0.0))


def _time(text: str) -> int:
    return INFINITY if text == "inf" else int(text)


def _drawn(group: ElementTree.Element, down: float) -> tuple[str, float, float, float]:
    for each in group:
        kind = each.get("class", "")
        if each.tag == f"{SVG}circle":
            return "point", float(each.attrib["cx"]), float(each.attrib["cx"]), float(each.attrib["cy"]) + down
        if each.tag == f"{SVG}rect":
            low, wide = float(each.attrib["x"]), float(each.attrib["width"])
            return kind, low, low + wide, float(each.attrib["y"]) + down
        if each.tag == f"{SVG}path":
            places = [float(x) for x in re.findall(r"[MHL](-?[\d.]+)", each.attrib["d"])]
            return "edge", min(places), max(places), float(each.attrib["d"].partition(",")[2].partition("H")[0]) + down
    raise AssertionError("nothing is drawn")


def written_axis(svg: str) -> Callable[[int], float]:
    """Return where a time is, by the first and the last number that are written on the axis."""
    lines = [float(each.attrib["x1"]) for each in parsed(svg).iter(f"{SVG}line") if each.get("class") == "grid"]
    quiet = [each for each in parsed(svg).iter(f"{SVG}text") if each.get("class") == "quiet" and float(each.attrib["y"]) < 20]
    times = [int(each.text or "") for each in quiet if each.text != "∞"]
    assert len(lines) == len(times) >= 2
    (t0, x0), (t1, x1) = (times[0], lines[0]), (times[-1], lines[-1])
    return lambda time: x0 + (time - t0) * (x1 - x0) / (t1 - t0)
