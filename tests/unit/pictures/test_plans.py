"""Plans as pictures: every operator is a box, every input an arrow, and data flows down."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.plan.labels import labels
from tests.unit.pictures.reading import SVG, parsed, texts

TRIPS, ZONES = sd.source("trips"), sd.source("zones")
JOINED = TRIPS.where(lambda e: e.fare > 3).join(ZONES, on="zone")
PLANS: dict[str, sd.Stream[Any]] = {
    "a source": TRIPS,
    "a chain": TRIPS.where(lambda e: e.fare > 3).shift(5),
    "a shared part": JOINED.union(JOINED.shift(5)),
    "groups": TRIPS.group_by("zone").apply(lambda s: s.where(lambda e: e.fare > 4).tumbling_window(5).aggregate(n=sd.count())),
    "groups in groups": TRIPS.group_by("a").apply(
        lambda s: s.group_by("b").apply(lambda t: t.snapshot_window().aggregate(n=sd.count()))
    ),
    "an outer join": TRIPS.left_join(ZONES, on="zone"),
}


@pytest.mark.parametrize("name", PLANS)
def test_every_operator_is_a_box_and_every_input_an_arrow(name: str) -> None:
    plan = PLANS[name].plan()
    chart = plan.draw()
    names = labels(plan)
    assert chart.boxes.keys() == set(names.values())
    into = {node: [one for one, to in chart.arrows if to == node] for node in chart.boxes}
    for node in plan.walk_all():
        if node.name != "Group":
            below = [node.body] if node.name == "GroupApply" else node.inputs  # type: ignore[attr-defined]
            assert set(into[names[id(node)]]) == {names[id(each)] for each in below}
        else:
            assert len(into[names[id(node)]]) == 1


@pytest.mark.parametrize("name", PLANS)
def test_data_flow_down_between_boxes_that_do_not_overlap(name: str) -> None:
    chart = PLANS[name].draw()
    root = parsed(chart.svg())
    boxes = [each.attrib for each in root.iter(f"{SVG}rect") if each.get("class") == "box"]
    places = {
        box: (float(each["x"]), float(each["y"]), float(each["x"]) + float(each["width"]))
        for box, each in zip(chart.boxes, boxes, strict=True)
    }
    assert [arrow for arrow in chart.arrows if places[arrow[0]][1] >= places[arrow[1]][1]] == []
    rows = sorted(places.values(), key=lambda place: (place[1], place[0]))
    assert [(a, b) for a, b in pairwise(rows) if a[1] == b[1] and a[2] >= b[0]] == []
    assert all(0 <= low < high <= float(root.attrib["width"]) for low, _, high in rows)
    assert len([each for each in root.iter(f"{SVG}path") if each.get("class") == "arrow"]) == len(chart.arrows)


@pytest.mark.parametrize("name", PLANS)
def test_mermaid_has_the_same_boxes_and_arrows(name: str) -> None:
    chart = PLANS[name].draw()
    lines = str(chart).splitlines()
    assert lines[0] == "flowchart TD"
    ids = {match[1] for line in lines if (match := re.match(r"\s+(n\d+)\[", line))}
    arrows = [match.groups() for line in lines if (match := re.match(r"\s+(n\d+) --> (n\d+)$", line))]
    assert len(ids) == len(chart.boxes)
    assert [(list(chart.boxes)[int(a[1:])], list(chart.boxes)[int(b[1:])]) for a, b in arrows] == chart.arrows
    assert sum("subgraph" in line for line in lines) == sum(line.strip() == "end" for line in lines) == name.count("groups")


def test_what_is_markup_elsewhere_is_text_here() -> None:
    chart = TRIPS.where(lambda e: e.zone == '<b>"#&').draw()
    assert "<b>&quot;" not in chart.svg()
    assert any('<b>"#&' in text for text in texts(chart.svg()))
    line = next(line for line in str(chart).splitlines() if "where_1" in line)
    assert "#lt;b>#quot;#35;#amp;" in line
    assert line.count('"') == 2


def test_jupyter_shows_a_picture_of_a_plan_that_can_be_read() -> None:
    assert PLANS["groups"]._repr_html_().startswith('<div style="overflow-x:auto"><svg ')
    assert PLANS["groups"].plan()._repr_html_().startswith('<div style="overflow-x:auto"><svg ')
    deep = TRIPS
    for n in range(70):
        deep = deep.shift(n + 1)
    assert deep._repr_html_().startswith("<pre ")
    assert len(deep.draw().boxes) == 71
