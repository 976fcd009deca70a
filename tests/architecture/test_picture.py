"""The picture of the structure: every room has a box, below those that it imports, and circles are red."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from tests.architecture.picture import RED, Rooms, drawing
from tests.architecture.structure import LAYERS, imported_rooms, main

SVG = "{http://www.w3.org/2000/svg}"


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


@pytest.fixture(scope="module")
def drawn() -> ElementTree.Element:
    return ElementTree.fromstring(drawing())


@pytest.fixture(scope="module")
def boxes(drawn: ElementTree.Element) -> dict[str, Box]:
    found: dict[str, Box] = {}
    for group in drawn.iter(f"{SVG}g"):
        rect = next(group.iter(f"{SVG}rect")).attrib
        x, y, width, height = (float(rect[name]) for name in ("x", "y", "width", "height"))
        found[next(group.iter(f"{SVG}text")).text or ""] = Box(x, y, x + width, y + height)
    return found


def test_every_room_has_a_box_inside_of_the_picture(drawn: ElementTree.Element, boxes: dict[str, Box]) -> None:
    assert boxes.keys() == LAYERS.keys()
    width, height = float(drawn.attrib["width"]), float(drawn.attrib["height"])
    assert [name for name, box in boxes.items() if not (0 <= box.left < box.right <= width and box.bottom <= height)] == []


def test_no_box_hides_another(boxes: dict[str, Box]) -> None:
    hidden = [
        (one, other)
        for (one, a), (other, b) in combinations(boxes.items(), 2)
        if a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom
    ]
    assert hidden == []


def test_a_room_is_below_those_that_it_imports(boxes: dict[str, Box]) -> None:
    above = [
        (room, each) for room in LAYERS for each in imported_rooms(room, eager=True) if boxes[each].bottom >= boxes[room].top
    ]
    assert above == []


ROOMS = Rooms(
    eager={"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"c"}},
    late={"a": set(), "b": {"d"}, "c": {"a"}, "d": {"a", "b"}},
)


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert ROOMS.arrows() == [("b", "a"), ("c", "b"), ("d", "c")]
    assert ROOMS.late_arrows() == [("b", "d")]


def test_rooms_that_go_in_circles_are_found_with_late_imports() -> None:
    assert ROOMS.circle == {"b": 0, "c": 0, "d": 0}
    assert not ROOMS.in_a_circle("b", "a")
    assert Rooms(ROOMS.eager, {room: set() for room in "abcd"}).circle == {}


def test_circles_are_red(drawn: ElementTree.Element) -> None:
    rooms = Rooms(*({room: imported_rooms(room, eager) for room in LAYERS} for eager in (True, False)))
    arrows = [*rooms.arrows(), *rooms.late_arrows()]
    paths = [each.attrib for each in drawn.iter(f"{SVG}path") if "marker-end" in each.attrib]
    assert len(paths) == len(arrows)
    assert [each["stroke"] == RED for each in paths] == [rooms.in_a_circle(*arrow) for arrow in arrows]
    assert ["stroke-dasharray" in each for each in paths].count(True) == len(rooms.late_arrows())


def test_it_is_written_to_a_file_or_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--picture", str(tmp_path / "structure.svg")])
    assert capsys.readouterr().out == ""
    assert ElementTree.parse(tmp_path / "structure.svg").getroot().tag == f"{SVG}svg"
    main([])
    assert "The core\n  redaction" in capsys.readouterr().out
